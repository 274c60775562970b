"""Fits the polynomial of `dilim.ops.expansions_angle` and checks all numbers. Needs mpmath."""

from collections.abc import Iterator

from fit_minimax import Numbers, compare, even, fitted, split
from mpmath import mp, mpf

from dilim import dtypes
from dilim.ops.expansions_angle import ATAN, QUARTER_PI

LARGEST_SQUARE = mpf("0.2501")
PLACES = {dtypes.float32: 21, dtypes.float64: 50}  # three times pi/4 has two digits more

atan_quotient = even(lambda t: (mp.atan(t) / t - 1) / t**2)
atan_weight = even(lambda t: t**3 / mp.atan(t))


def rows() -> Iterator[tuple[str, Numbers, Numbers]]:
    for dtype, stored in ATAN.items():
        found = fitted(atan_quotient, atan_weight, (0, LARGEST_SQUARE), len(stored), dtype)
        yield "atan", found, stored
        yield "quarter_pi", split(mp.pi / 4, PLACES[dtype], dtype), QUARTER_PI[dtype]


if __name__ == "__main__":
    compare(rows())
