"""Fits the polynomials of `dilim.ops.expansions_pow` and checks the stored ones. Needs mpmath."""

from fit_minimax import TINY, Numbers, compare, even, fitted, split
from mpmath import mp, mpf

from dilim import dtypes
from dilim.ops import expansions_pow as stored

LARGEST_SQUARE = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mpf("1.0001")
LARGEST = mpf("0.5001")


def exp2_quotient(r: mpf) -> mpf:
    """(2**r - 1) / r."""
    return mp.log(2) if abs(r) < TINY else mp.expm1(r * mp.log(2)) / r


def exp2_weight(r: mpf) -> mpf:
    """What an error of the quotient becomes in 2**r, relatively; not 0 at 0."""
    return (abs(r) + TINY) / mpf(2) ** r


def exp2(terms: int) -> Numbers:
    return fitted(exp2_quotient, exp2_weight, (-LARGEST, LARGEST), terms, dtypes.float64)


def log2() -> Numbers:
    """Of the binary logarithm of (1 + s) / (1 - s), divided by s."""
    quotient = even(lambda s: 2 * mp.atanh(s) / mp.log(2) / s)
    return fitted(quotient, lambda z: mpf(1), (0, LARGEST_SQUARE), 5, dtypes.float64)


def log_rest() -> Numbers:
    """3 (atanh(s) / s - 1 - z / 3) / z**2."""
    rest = even(lambda s: 3 * (mp.atanh(s) / s - 1 - s**2 / 3) / s**4)
    weight = even(lambda s: s**4)
    return fitted(rest, weight, (0, LARGEST_SQUARE), 8, dtypes.float64)


if __name__ == "__main__":
    compare(
        [
            ("log2", log2(), stored.LOG2),
            ("log_rest", log_rest(), stored.LOG_REST),
            ("log2_third", split(2 / (3 * mp.log(2)), 26, dtypes.float64), stored.LOG2_THIRD),
            ("exp2_short", exp2(6), stored.EXP2_SHORT),
            ("exp2", exp2(12), stored.EXP2),
        ]
    )
