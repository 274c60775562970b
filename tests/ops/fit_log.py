"""Fits the polynomial of `dilim.ops.expansions_log` and checks all numbers. Needs mpmath."""

from collections.abc import Iterator

from fit_exp import LOG_BITS
from fit_minimax import Numbers, compare, even, fitted, split
from mpmath import mp, mpf

from dilim.ops.expansions_log import LOG, LOG10_TWO

LARGEST_SQUARE = ((mp.sqrt(2) - 1) / (mp.sqrt(2) + 1)) ** 2 * mpf("1.0001")

log_quotient = even(lambda s: (2 * mp.atanh(s) / s - 2) / s**2)
log_weight = even(lambda s: s**3 / (2 * mp.atanh(s)))


def rows() -> Iterator[tuple[str, Numbers, Numbers]]:
    for dtype, stored in LOG.items():
        end = (0, LARGEST_SQUARE)
        yield "log", fitted(log_quotient, log_weight, end, len(stored), dtype), stored
        yield "log10(2)", split(mp.log10(2), LOG_BITS[dtype], dtype), LOG10_TWO[dtype]


if __name__ == "__main__":
    compare(rows())
