"""Fits the polynomials of `dilim.ops.expansions_exp` and checks the stored ones. Needs mpmath."""

from collections.abc import Iterator

from fit_minimax import TINY, Numbers, compare, even, fitted, split
from mpmath import mp, mpf

from dilim import dtypes
from dilim.ops.expansions_exp import EXP

LARGEST = mp.log(2) / 2 * mpf("1.0001")  # a little more than the reduced argument can be
LARGEST_EXPM1 = mp.log(2) * 3 / 4 * mpf("1.0002")
LARGEST_TANH = mp.log(2) * 3 / 8 * mpf("1.0002")
LOG_BITS = {dtypes.float32: 16, dtypes.float64: 42}  # an exponent has 8 or 11 bits more


def quotient(r: mpf) -> mpf:
    """(exp(r) - 1 - r) / r**2."""
    return mpf(1) / 2 + r / 6 if abs(r) < TINY else (mp.exp(r) - 1 - r) / r**2


def weight(r: mpf) -> mpf:
    """What an error of the quotient becomes in exp(r), relatively; not 0 at 0."""
    return (abs(r) + TINY) ** 2 / mp.exp(r)


def expm1_weight(r: mpf) -> mpf:
    """What an error of the quotient becomes in exp(r) - 1, relatively; not 0 at 0."""
    r = r if abs(r) > TINY else TINY
    return abs(r**2 / mp.expm1(r))


tanh_quotient = even(lambda s: (mp.tanh(s) / s - 1) / s**2)
tanh_weight = even(lambda s: s**3 / mp.tanh(s))


def rows() -> Iterator[tuple[str, Numbers, Numbers]]:
    around, wide = (-LARGEST, LARGEST), (-LARGEST_EXPM1, LARGEST_EXPM1)
    for dtype, c in EXP.items():
        yield "log_two", split(mp.log(2), LOG_BITS[dtype], dtype), c.log_two
        found = fitted(quotient, weight, around, len(c.quotient), dtype)
        yield "quotient", found, c.quotient
        found = fitted(quotient, expm1_weight, wide, len(c.expm1), dtype)
        yield "expm1", found, c.expm1
        found = fitted(tanh_quotient, tanh_weight, (0, LARGEST_TANH**2), len(c.tanh), dtype)
        yield "tanh", found, c.tanh


if __name__ == "__main__":
    compare(rows())
