"""Guess how people would rate movies that they have not seen, from ratings of similar movies.

Two movies are similar where the same people rate them alike (the cosine of their columns). A guess
is the mean of what a person gave to the 60 nearest neighbours of a movie, weighted by similarity. A
quarter of the ratings is held back to measure the guesses. Run it:

    python examples/recommender.py [--eager]

``--eager`` runs the same function as ordinary Python: same numbers, same lines.
"""

from __future__ import annotations

import argparse
import time

import dilim

PEOPLE, MOVIES = 943, 1_682
NEIGHBOURS = 60
HELD_BACK = 0.25


def quick_select(values: list[float], rank: int) -> float:
    """The ``rank``-th largest of ``values``, equal ones counted each; 1 is the largest.

    Keeps only the part where the answer lies, so it takes time in proportion to the length.
    """
    if not 1 <= rank <= len(values):
        raise ValueError(f"quick_select: expected a rank from 1 to {len(values)}, got {rank}")
    while True:
        pivot = values[len(values) // 2]
        larger = [value for value in values if value > pivot]
        smaller = [value for value in values if value < pivot]
        down_to_pivot = len(values) - len(smaller)
        if rank <= len(larger):
            values = larger
        elif rank <= down_to_pivot:
            return pivot
        else:
            rank -= down_to_pivot
            values = smaller


def make_ratings(generator: dilim.Generator) -> dilim.Tensor:
    """Ratings from 1 to 5, and 0 where there is none (PEOPLE, MOVIES).

    About 6 % are there, spread as unevenly as in real life: few movies are known to many, and
    people see what is to their taste.
    """
    traits = 3
    people = generator.normal((PEOPLE, traits))
    movies = generator.normal((traits, MOVIES))
    taste = people @ movies / traits**0.5
    activity = generator.normal((PEOPLE, 1), std=0.9)
    fame = generator.normal((1, MOVIES), mean=-4.3, std=1.7)
    rated = generator.uniform((PEOPLE, MOVIES)) < dilim.sigmoid(fame + activity + taste)

    strictness = generator.normal((PEOPLE, 1), mean=3.0, std=0.4)
    quality = generator.normal((1, MOVIES), std=0.3)
    noise = generator.normal((PEOPLE, MOVIES), std=0.7)
    ratings = dilim.clip(dilim.round(strictness + quality + 0.8 * taste + noise), 1.0, 5.0)
    return dilim.where(rated, ratings, 0.0)


def cosine_similarity(columns: dilim.Tensor) -> dilim.Tensor:
    """The cosine between any two columns; 0 between a column and itself, or zeros."""
    length = dilim.sqrt((columns * columns).sum(axis=0, keepdims=True))
    unit = columns / dilim.where(length > 0.0, length, 1.0)
    return unit.T @ unit * (1.0 - dilim.eye(columns.shape[1]))


def guess(ratings: dilim.Tensor, similarity: dilim.Tensor) -> dilim.Tensor:
    """Means of each person's ratings, weighted by similarity to each movie.

    Where nothing similar was rated, the person's mean counts, of ratings that include one more: the
    mean of all people.
    """
    rated = (ratings > 0.0).astype(dilim.float32)
    overall = ratings.sum() / rated.sum()
    own = (ratings.sum(axis=1, keepdims=True) + overall) / (rated.sum(axis=1, keepdims=True) + 1.0)
    weight = rated @ similarity.T
    found = weight > 0.0
    return dilim.where(found, ratings @ similarity.T / dilim.where(found, weight, 1.0), own)


def mean_squared_error(guesses: dilim.Tensor, truth: dilim.Tensor) -> dilim.Tensor:
    """The mean of the squared differences where there is a true rating."""
    known = (truth > 0.0).astype(dilim.float32)
    return (known * (guesses - truth) ** 2).sum() / known.sum()


def recommend(
    ratings: dilim.Tensor, truth: dilim.Tensor, neighbours: int
) -> tuple[dilim.Tensor, dilim.Tensor]:
    """Guess all ratings, from all movies and from the nearest alone, and print both errors.

    The matrices are work for tensors, choosing the nearest is work for plain Python: for each
    movie, its similarities go out and the smallest that counts comes back. Movies as similar as the
    last of the nearest stay too.

    Returns:
        The guesses (people, movies), and the mean squared error of those that have a true rating.
    """
    similarity = cosine_similarity(ratings)
    error = mean_squared_error(guess(ratings, similarity), truth)
    print(f"all movies: mean squared error {error.item():.4f}")
    movies = similarity.shape[0]
    for movie in range(movies):
        row = similarity[movie]
        smallest = quick_select(row.tolist(), neighbours)
        similarity[movie] = dilim.where(row < smallest, 0.0, row)
        if (movie + 1) % 400 == 0:
            print(f"{movie + 1} of {movies} movies have their neighbours")
    guesses = guess(ratings, similarity)
    error = mean_squared_error(guesses, truth)
    print(f"{neighbours} nearest: mean squared error {error.item():.4f}")
    return guesses, error


def main(steps: int = MOVIES, *, eager: bool = False) -> float:
    """Guess the ratings of the first ``steps`` movies; returns the mean squared error."""
    generator = dilim.Generator(0)
    everything = make_ratings(generator)[:, :steps]
    held_back = generator.uniform((PEOPLE, MOVIES))[:, :steps] < HELD_BACK
    ratings = dilim.where(held_back, 0.0, everything)
    truth = dilim.where(held_back, everything, 0.0)
    given, hidden = int((ratings > 0.0).sum()), int((truth > 0.0).sum())
    print(f"{PEOPLE} people, {steps} movies: {given} ratings given, {hidden} held back")

    start = time.perf_counter()
    run = recommend if eager else dilim.compile(recommend)
    guesses, error = run(ratings, truth, min(NEIGHBOURS, steps))
    seconds = time.perf_counter() - start
    best = int(dilim.where(everything[0] > 0.0, 0.0, guesses[0]).argmax())
    print(f"the first person may like movie {best}: {guesses[0, best].item():.1f} of 5")
    print(f"{seconds:.1f} s")
    final: float = error.item()
    return final


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--eager", action="store_true", help="run as ordinary Python")
    main(eager=parser.parse_args().eager)
