"""Fits the polynomials of `dilim.ops.expansions.exp` and checks the stored ones. Needs mpmath.

    PYTHONPATH=src python tests/ops/fit_exp.py

It prints the constants that stand in ``expansions.py`` and fails when they differ. The accuracy of
the whole function is a test: ``tests/ops/test_expansions.py``.
"""

import sys
from collections.abc import Callable

import numpy as np
from mpmath import mp, mpf

from dilim import dtypes
from dilim.ops.expansions import EXP

mp.dps = 50
LARGEST = mp.log(2) / 2 * mpf("1.0001")  # a little more than the reduced argument can be
TERMS = {dtypes.float32: 5, dtypes.float64: 10}
LOG_BITS = {dtypes.float32: 16, dtypes.float64: 42}  # an exponent has 8 or 11 bits more


def quotient(r: mpf) -> mpf:
    """(exp(r) - 1 - r) / r**2."""
    if abs(r) < mpf(10) ** -10:
        return mpf(1) / 2 + r / 6
    return (mp.exp(r) - 1 - r) / r**2


def weight(r: mpf) -> mpf:
    """What an error of the quotient becomes in exp(r), relatively; not 0 at 0."""
    return (abs(r) + mpf(10) ** -12) ** 2 / mp.exp(r)


def minimax(
    wanted: Callable[[mpf], mpf],
    weight: Callable[[mpf], mpf],
    interval: tuple[mpf, mpf],
    terms: int,
) -> list[mpf]:
    """Coefficients, lowest power first, with the smallest largest weighted error: Remez."""
    middle, half = (interval[1] + interval[0]) / 2, (interval[1] - interval[0]) / 2
    count = terms + 1
    points = [middle - half * mp.cos(mp.pi * (2 * i + 1) / (2 * count)) for i in range(count)]
    grid = [middle - half * mp.cos(mp.pi * mpf(i) / 1500) for i in range(1501)]
    values, weights = [wanted(r) for r in grid], [weight(r) for r in grid]
    for _ in range(30):
        matrix = mp.matrix(terms + 1)
        for row, r in enumerate(points):
            for column in range(terms):
                matrix[row, column] = r**column
            matrix[row, terms] = (-1) ** row / weight(r)
        solution = mp.lu_solve(matrix, mp.matrix([wanted(r) for r in points]))
        coefficients = [solution[i] for i in range(terms)]
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
        while len(places) > terms + 1:
            places.pop(0 if abs(errors[places[0]]) < abs(errors[places[-1]]) else -1)
        points = [grid[i] for i in places]
        if max(abs(e) for e in errors) <= abs(solution[terms]) * mpf("1.001"):
            return coefficients
    raise RuntimeError("the exchange did not settle")


def rounded(x: mpf, dtype: dtypes.DType) -> float:
    """The nearest number of a dtype; float64 rounds once, float32 once more, far from ties."""
    return float(dtype.numpy.type(float(x)))


def split_log_two(dtype: dtypes.DType) -> tuple[float, float]:
    """log(2) as high + low; high times an exponent is exact."""
    scale = mpf(2) ** LOG_BITS[dtype]
    high = mp.floor(mp.log(2) * scale) / scale
    return float(high), rounded(mp.log(2) - high, dtype)


def main() -> int:
    """Prints the constants; 1 when the stored ones differ."""
    same = True
    for dtype, terms in TERMS.items():
        coefficients = minimax(quotient, weight, (-LARGEST, LARGEST), terms)
        found = tuple(rounded(c, dtype) for c in coefficients)
        log_two = split_log_two(dtype)
        print(dtype.name, *(x.hex() for x in log_two), "\n   ", *(x.hex() for x in found))
        same &= found == EXP[dtype].quotient and log_two == EXP[dtype].log_two
        same &= bool(np.all(dtype.numpy.type(found) == found))
    print("equal to the stored ones" if same else "DIFFERENT from the stored ones")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
