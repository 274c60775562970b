"""Fits the polynomials of `dilim.ops.expansions_log` and checks the stored ones. Needs mpmath.

    PYTHONPATH=src python tests/ops/fit_log.py

It prints the constants that stand in ``expansions_log.py`` and fails when they differ. The accuracy
of the whole functions is a test: ``tests/ops/test_expansions_log.py``.
"""

import sys

from fit_exp import LARGEST, minimax, rounded, split_log_two
from mpmath import mp, mpf

from dilim import dtypes
from dilim.ops.expansions_log import LOG

mp.dps = 50
LARGEST_SQUARE = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mpf("1.0001")
TINY = mpf(10) ** -12  # in place of 0, where quotients are 0 / 0
LOG_TERMS = {dtypes.float32: 3, dtypes.float64: 7}
EXPM1_TERMS = {dtypes.float32: 4, dtypes.float64: 9}


def log_quotient(z: mpf) -> mpf:
    """(log((1 + s) / (1 - s)) / s - 2) / z with z = s**2."""
    s = mp.sqrt(max(z, TINY))
    return (2 * mp.atanh(s) / s - 2) / s**2


def log_weight(z: mpf) -> mpf:
    """What an error of the quotient becomes in the logarithm, relatively; not 0 at 0."""
    s = mp.sqrt(max(z, TINY))
    return s**3 / (2 * mp.atanh(s))


def expm1_quotient(r: mpf) -> mpf:
    """(exp(r) - 1 - r - r**2 / 2) / r**3."""
    if abs(r) < TINY:
        return mpf(1) / 6 + r / 24
    return (mp.expm1(r) - r - r**2 / 2) / r**3


def expm1_weight(r: mpf) -> mpf:
    """What an error of the quotient becomes in exp(r) - 1, relatively; not 0 at 0."""
    r = r if abs(r) > TINY else TINY
    return abs(r**3 / mp.expm1(r))


def main() -> int:
    """Prints the constants; 1 when the stored ones differ."""
    same = True
    for dtype, stored in LOG.items():
        log = minimax(log_quotient, log_weight, (mpf(0), LARGEST_SQUARE), LOG_TERMS[dtype])
        expm1 = minimax(expm1_quotient, expm1_weight, (-LARGEST, LARGEST), EXPM1_TERMS[dtype])
        found = {
            "log_two": split_log_two(dtype),
            "log": tuple(rounded(c, dtype) for c in log),
            "expm1": tuple(rounded(c, dtype) for c in expm1),
        }
        for name, values in found.items():
            print(dtype.name, name, *(value.hex() for value in values))
            same &= values == getattr(stored, name)
    print("equal to the stored ones" if same else "DIFFERENT from the stored ones")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
