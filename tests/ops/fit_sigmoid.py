"""Fits the polynomials of `dilim.ops.expansions_sigmoid` and checks the stored ones. Needs mpmath.

Those of `erf`; `sigmoid` has none of its own.
"""

from collections.abc import Iterator

from fit_minimax import Numbers, compare, even, fitted
from mpmath import mp, mpf

from dilim.ops.expansions_sigmoid import ERF

erf_quotient = even(lambda a: mp.erf(a) / a - 1)
erf_weight = even(lambda a: a / mp.erf(a))


def log_erfc(y: mpf) -> mpf:
    """log(1 - erf(y + 1))."""
    return mp.log(mp.erfc(y + 1))


def log_erfc_weight(y: mpf) -> mpf:
    """What an error of the logarithm becomes in erf, relatively."""
    return mp.erfc(y + 1) / mp.erf(y + 1)


def rows() -> Iterator[tuple[str, Numbers, Numbers]]:
    for dtype, c in ERF.items():
        found = fitted(erf_quotient, erf_weight, (0, 1), len(c.quotient), dtype)
        yield "erf", found, c.quotient
        far = (0, c.highest - 1)
        found = fitted(log_erfc, log_erfc_weight, far, len(c.log_erfc), dtype)
        yield "log_erfc", found, c.log_erfc


if __name__ == "__main__":
    compare(rows())
