"""Fits the polynomial of `dilim.ops.expansions_log` and checks all numbers. Needs mpmath."""

from collections.abc import Iterator

from fit_exp import LOG_BITS
from fit_minimax import Numbers, compare, even, minimax, rounded, split
from mpmath import mp, mpf

from dilim import dtypes
from dilim.ops.expansions_log import INVERSE_LOG_TEN, INVERSE_LOG_TWO, LOG, LOG10_TWO

HALF_BITS = {dtypes.float32: 11, dtypes.float64: 25}  # of a number from 1 to 2
LARGEST_SQUARE = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mpf("1.0001")

log_quotient = even(lambda s: (2 * mp.atanh(s) / s - 2) / s**2)
log_weight = even(lambda s: s**3 / (2 * mp.atanh(s)))


def factored(coefficients: list[mpf], dtype: dtypes.DType) -> Numbers:
    """c, a, b, ... of c (z**2 + a z + b) ..., by a, for a polynomial without real roots."""
    roots = mp.polyroots(coefficients[::-1], maxsteps=500, extraprec=300)
    factors = sorted((-2 * mp.re(root), abs(root) ** 2) for root in roots if mp.im(root) > 0)
    return tuple(rounded(x, dtype) for x in (coefficients[-1], *(x for f in factors for x in f)))


def rows() -> Iterator[tuple[str, Numbers, Numbers]]:
    for dtype, stored in LOG.items():
        powers = minimax(log_quotient, log_weight, (mpf(0), LARGEST_SQUARE), len(stored))
        yield "log", factored(powers, dtype), stored
        half = HALF_BITS[dtype]
        yield "1/log(2)", split(1 / mp.log(2), half, dtype), INVERSE_LOG_TWO[dtype]
        yield "1/log(10)", split(1 / mp.log(10), half + 2, dtype), INVERSE_LOG_TEN[dtype]
        yield "log10(2)", split(mp.log10(2), LOG_BITS[dtype], dtype), LOG10_TWO[dtype]


if __name__ == "__main__":
    compare(rows())
