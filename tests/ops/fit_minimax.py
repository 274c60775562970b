"""What the scripts that fit the polynomials of expansions share. Needs mpmath.

Each ``fit_*.py`` is run by hand (``PYTHONPATH=src python tests/ops/fit_exp.py``): it prints the
numbers that stand in the source and fails when they differ. The accuracy of the whole functions is
a test.
"""

import sys
from collections.abc import Callable, Iterable

from mpmath import mp, mpf

from dilim import dtypes

mp.dps = 60
TINY = mpf(10) ** -20  # in place of 0, where quotients are 0 / 0
Function = Callable[[mpf], mpf]
Numbers = tuple[float, ...]


def minimax(wanted: Function, weight: Function, interval: tuple[mpf, mpf], terms: int) -> list[mpf]:
    """Coefficients, lowest power first, with the smallest largest weighted error: Remez."""
    middle, half = (interval[1] + interval[0]) / 2, (interval[1] - interval[0]) / 2
    count = terms + 1
    points = [middle - half * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    grid = [middle - half * mp.cos(mp.pi * mpf(i) / 1500) for i in range(1501)]
    values, weights = [wanted(r) for r in grid], [weight(r) for r in grid]
    for _ in range(30):
        coefficients, level = solved(wanted, weight, points)
        errors = [
            w * (mp.polyval(coefficients[::-1], r) - value)
            for r, value, w in zip(grid, values, weights, strict=True)
        ]
        places = [0]
        for i, error in enumerate(errors):
            if error * errors[places[-1]] < 0:
                places.append(i)
            elif abs(error) > abs(errors[places[-1]]):
                places[-1] = i
        while len(places) > count:
            places.pop(0 if abs(errors[places[0]]) < abs(errors[places[-1]]) else -1)
        points = [grid[i] for i in places]
        largest = max(abs(e) for e in errors)
        if largest <= level * mpf("1.001"):
            print(f"    {terms} terms, largest error 2**{float(mp.log(largest, 2)):.1f}")
            return coefficients
    raise RuntimeError("the exchange did not settle")


def solved(wanted: Function, weight: Function, points: list[mpf]) -> tuple[list[mpf], mpf]:
    """Coefficients whose weighted errors at the points have one size and alternating signs."""
    terms = len(points) - 1
    matrix = mp.matrix(terms + 1)
    for row, r in enumerate(points):
        for column in range(terms):
            matrix[row, column] = r**column
        matrix[row, terms] = (-1) ** row / weight(r)
    solution = mp.lu_solve(matrix, mp.matrix([wanted(r) for r in points]))
    return [solution[i] for i in range(terms)], abs(solution[terms])


def rounded(x: mpf, dtype: dtypes.DType) -> float:
    """The nearest number of a dtype; float64 rounds once, float32 once more, far from ties."""
    return float(dtype.numpy.type(float(x)))


def fitted(
    wanted: Function,
    weight: Function,
    interval: tuple[mpf | float, mpf | float],
    terms: int,
    dtype: dtypes.DType,
) -> Numbers:
    """The rounded coefficients of `minimax`."""
    ends = mpf(interval[0]), mpf(interval[1])
    return tuple(rounded(c, dtype) for c in minimax(wanted, weight, ends, terms))


def split(x: mpf, binary_places: int, dtype: dtypes.DType) -> Numbers:
    """x as high + low, where high has so many places after the binary point."""
    scale = mpf(2) ** binary_places
    high = mp.floor(x * scale) / scale
    return float(high), rounded(x - high, dtype)


def even(function: Function) -> Function:
    """A function of z = a**2 from one of a, away from 0."""
    return lambda z: function(mp.sqrt(max(z, TINY)))


def compare(rows: Iterable[tuple[str, Numbers, Numbers]]) -> None:
    """Prints (name, found, stored) rows and ends the script: with 1 where they differ."""
    same = True
    for name, found, stored in rows:
        print(name, *(x.hex() for x in found), "" if found == stored else "DIFFERS")
        same &= found == stored
    print("equal to the stored ones" if same else "DIFFERENT from the stored ones")
    sys.exit(0 if same else 1)
