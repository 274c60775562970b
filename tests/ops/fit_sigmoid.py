"""Fits the polynomials of `dilim.ops.expansions_sigmoid` and checks the stored ones. Needs mpmath.

    PYTHONPATH=src python tests/ops/fit_sigmoid.py

It prints the constants that stand in ``expansions_sigmoid.py`` and fails when they differ. The
accuracy of the whole functions is a test: ``tests/ops/test_expansions_sigmoid.py``.
"""

import sys
from collections.abc import Callable

import numpy as np
from mpmath import mp, mpf

from dilim import dtypes
from dilim.ops.expansions_sigmoid import ERF, TANH, TANH_SERIES_END

mp.dps = 60
TINY = mpf(10) ** -12  # keeps weights from being 0 at 0
Function = Callable[[mpf], mpf]


def tanh_quotient(z: mpf) -> mpf:
    """(tanh(a) / a - 1) / z with z = a**2."""
    a = mp.sqrt(z)
    return -mpf(1) / 3 + 2 * z / 15 if z < TINY else (mp.tanh(a) / a - 1) / z


def tanh_weight(z: mpf) -> mpf:
    """What an error of the quotient becomes in tanh, relatively."""
    a = mp.sqrt(z + TINY**2)
    return (z + TINY) * a / mp.tanh(a)


def erf_quotient(z: mpf) -> mpf:
    """erf(a) / a - 1 with z = a**2."""
    a = mp.sqrt(z)
    return 2 / mp.sqrt(mp.pi) - 1 if z == 0 else mp.erf(a) / a - 1


def erf_weight(z: mpf) -> mpf:
    """What an error of the quotient becomes in erf, relatively."""
    a = mp.sqrt(z + TINY**2)
    return a / mp.erf(a)


def log_erfc(y: mpf) -> mpf:
    """log(1 - erf(y + 1))."""
    return mp.log(mp.erfc(y + 1))


def log_erfc_weight(y: mpf) -> mpf:
    """What an error of the logarithm becomes in erf, relatively."""
    return mp.erfc(y + 1) / mp.erf(y + 1)


def solved(function: Function, weight: Function, points: list[mpf]) -> tuple[list[mpf], mpf]:
    """Coefficients whose weighted errors at the points have one size and alternating signs."""
    terms = len(points) - 1
    matrix = mp.matrix(terms + 1)
    for row, z in enumerate(points):
        for column in range(terms):
            matrix[row, column] = z**column
        matrix[row, terms] = (-1) ** row / weight(z)
    solution = mp.lu_solve(matrix, mp.matrix([function(z) for z in points]))
    return [solution[i] for i in range(terms)], abs(solution[terms])


def minimax(function: Function, weight: Function, end: float, terms: int) -> list[mpf]:
    """Coefficients, lowest power first, with the smallest largest weighted error on [0, end]."""

    def place(number: int, count: int) -> mpf:
        return mpf(end) / 2 * (1 - mp.cos(mp.pi * mpf(number) / count))

    points = [place(2 * i + 1, 2 * terms + 2) for i in range(terms + 1)]
    grid = [place(i, 900) for i in range(901)]
    targets = [(z, function(z), weight(z)) for z in grid]
    for _ in range(30):
        coefficients, level = solved(function, weight, points)
        errors = [w * (mp.polyval(coefficients[::-1], z) - want) for z, want, w in targets]
        places = [0]
        for i, error in enumerate(errors):
            if error * errors[places[-1]] < 0:
                places.append(i)
            elif abs(error) > abs(errors[places[-1]]):
                places[-1] = i
        while len(places) > terms + 1:
            places.pop(0 if abs(errors[places[0]]) < abs(errors[places[-1]]) else -1)
        points = [grid[i] for i in places]
        largest = max(abs(e) for e in errors)
        if largest <= level * mpf("1.001"):
            print(f"    {terms} terms, largest error 2**{float(mp.log(largest, 2)):.1f}")
            return coefficients
    raise RuntimeError("the exchange did not settle")


def same_as_stored(
    name: str,
    dtype: dtypes.DType,
    stored: tuple[float, ...],
    fit: tuple[Function, Function],
    end: float,
) -> bool:
    """Prints the fitted constants in one precision; whether they are the stored ones."""
    print(name, dtype.name)
    exact = minimax(*fit, end, len(stored))
    # float32 rounds twice, which matters only next to a tie.
    found = tuple(float(dtype.numpy.type(float(c))) for c in exact)
    print("   ", *(c.hex() for c in found))
    return found == stored and bool(np.all(dtype.numpy.type(found) == found))


def main() -> int:
    """Prints the constants; 1 when the stored ones differ."""
    same = True
    near = (erf_quotient, erf_weight)
    far = (log_erfc, log_erfc_weight)
    for dtype, c in ERF.items():
        tanh = (tanh_quotient, tanh_weight)
        same &= same_as_stored("tanh", dtype, TANH[dtype], tanh, TANH_SERIES_END**2)
        same &= same_as_stored("erf", dtype, c.quotient, near, 1.0)
        same &= same_as_stored("log_erfc", dtype, c.log_erfc, far, c.highest - 1)
    print("equal to the stored ones" if same else "DIFFERENT from the stored ones")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
