"""The recommender beside NumPy in float64, and beside itself compiled."""

import runpy
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import dilim


@given(data=st.data())
def test_quick_select_is_a_partition(recommender, data):
    few = st.integers(0, 5).map(float)  # many ties
    any_number = st.floats(allow_nan=False)
    values = data.draw(st.lists(few, min_size=1) | st.lists(any_number, min_size=1))
    rank = data.draw(st.integers(1, len(values)))
    before = list(values)
    index = len(values) - rank
    assert recommender.quick_select(values, rank) == np.partition(values, index)[index]
    assert values == before


@pytest.mark.parametrize("length", [1_682, 10_000])
def test_quick_select_with_ties_in_long_rows(recommender, length):
    random = np.random.default_rng(length)
    for values in (random.integers(0, 50, length).astype(float), np.zeros(length)):
        for rank in (1, 60, length // 2, length):
            expected = np.partition(values, length - rank)[length - rank]
            assert recommender.quick_select(values.tolist(), rank) == expected


@pytest.mark.parametrize("rank", [0, 4, -1])
def test_quick_select_refuses_ranks_outside(recommender, rank):
    with pytest.raises(ValueError, match=f"expected a rank from 1 to 3, got {rank}"):
        recommender.quick_select([1.0, 2.0, 3.0], rank)


def test_the_ratings_are_like_real_ones(recommender):
    ratings = recommender.make_ratings(dilim.Generator(0)).numpy()
    assert ratings.shape == (943, 1_682)
    given_ratings = ratings[ratings > 0.0]
    assert set(np.unique(given_ratings)) == {1.0, 2.0, 3.0, 4.0, 5.0}
    assert given_ratings.size / ratings.size == pytest.approx(0.063, abs=0.001)
    assert given_ratings.mean() == pytest.approx(3.5, abs=0.1)
    counts = np.sort((ratings > 0.0).sum(axis=0))
    assert counts[-100:].sum() > 0.3 * given_ratings.size, "few movies are known to many"


def sample(seed, people=60, movies=40):
    """Ratings given and held back, with a person and a movie that nobody knows anything of."""
    random = np.random.default_rng(seed)
    ratings = random.integers(1, 6, (people, movies)) * (random.random((people, movies)) < 0.3)
    ratings[0] = 0
    ratings[:, 1] = 0
    held_back = random.random((people, movies)) < 0.25
    given_ratings = np.where(held_back, 0, ratings).astype(np.float32)
    return given_ratings, np.where(held_back, ratings, 0).astype(np.float32)


def reference(ratings, truth, neighbours):
    """Guesses, their error, and that of all movies; by one pair at a time in float64."""
    ratings = ratings.astype(np.float64)
    people, movies = ratings.shape
    similarity = np.zeros((movies, movies))
    for i in range(movies):
        for j in range(movies):
            length = np.linalg.norm(ratings[:, i]) * np.linalg.norm(ratings[:, j])
            if i != j and length > 0.0:
                similarity[i, j] = ratings[:, i] @ ratings[:, j] / length
    overall = ratings[ratings > 0.0].mean()

    def guess():
        guesses = np.empty((people, movies))
        for person in range(people):
            known = ratings[person] > 0.0
            own = (ratings[person].sum() + overall) / (known.sum() + 1)
            for movie in range(movies):
                weight = similarity[movie, known]
                guesses[person, movie] = (
                    weight @ ratings[person, known] / weight.sum() if weight.sum() > 0.0 else own
                )
        return guesses, ((guesses - truth)[truth > 0.0] ** 2).mean()

    _, error_of_all = guess()
    for row in similarity:
        row[row < np.partition(row, movies - neighbours)[movies - neighbours]] = 0.0
    return *guess(), error_of_all


@pytest.mark.parametrize("neighbours", [1, 5, 40])
def test_guesses_follow_numpy(recommender, neighbours, capsys):
    ratings, truth = sample(neighbours)
    guesses, error = recommender.recommend(dilim.tensor(ratings), dilim.tensor(truth), neighbours)
    expected, expected_error, error_of_all = reference(ratings, truth, neighbours)
    np.testing.assert_allclose(guesses.numpy(), expected, rtol=1e-5)
    assert error.item() == pytest.approx(expected_error, rel=1e-5)
    first, last = capsys.readouterr().out.splitlines()
    assert first == f"all movies: mean squared error {error_of_all:.4f}"
    assert last == f"{neighbours} nearest: mean squared error {expected_error:.4f}"


def test_neighbours_guess_better_than_all(recommender, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["recommender.py", "--eager"])
    runpy.run_path(recommender.__file__, run_name="__main__")
    lines = capsys.readouterr().out.splitlines()
    assert lines[:2] == [
        "943 people, 1682 movies: 75127 ratings given, 25348 held back",
        "all movies: mean squared error 0.8966",
    ]
    assert lines[2:6] == [
        f"{movie} of 1682 movies have their neighbours" for movie in (400, 800, 1200, 1600)
    ]
    assert lines[6] == "60 nearest: mean squared error 0.7866"
    assert float(lines[-1].removesuffix(" s")) < 60.0


def test_compiled_equals_eager(recommender, capsys):
    ratings, truth = (dilim.tensor(array) for array in sample(0, movies=450))
    guesses, error = recommender.recommend(ratings, truth, 60)
    printed = capsys.readouterr().out
    assert "400 of 450 movies have their neighbours" in printed
    compiled = dilim.compile(recommender.recommend)
    for _ in range(2):
        again, error_again = compiled(ratings, truth, 60)
        assert again.numpy().tobytes() == guesses.numpy().tobytes()
        assert error_again.item() == error.item()
        assert capsys.readouterr().out == printed
