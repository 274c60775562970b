"""Fits the polynomials of `dilim.ops.expansions_sine` and checks all numbers. Needs mpmath."""

from collections.abc import Iterator

from fit_minimax import Numbers, compare, even, fitted, split
from mpmath import mp, mpf

from dilim import dtypes
from dilim.ops.expansions_sine import HALF_PI, HALF_PI_PIECES, SINE, TWO_OVER_PI, TWO_OVER_PI_BITS

LARGEST_SQUARE = (mp.pi / 4) ** 2 * mpf("1.0002")

sine_quotient = even(lambda r: (mp.sin(r) / r - 1) / r**2)
sine_weight = even(lambda r: r**3 / mp.sin(r))
cosine_quotient = even(lambda r: (mp.cos(r) - 1 + r**2 / 2) / r**4)
cosine_weight = even(lambda r: r**4 / mp.cos(r))


def half_pi_pieces() -> Numbers:
    """Two of 37 binary digits and the rest."""
    first, _ = split(mp.pi / 2, 36, dtypes.float64)
    return first, *split(mp.pi / 2 - mpf(first), 75, dtypes.float64)


def rows() -> Iterator[tuple[str, Numbers, Numbers]]:
    for dtype, c in SINE.items():
        found = fitted(sine_quotient, sine_weight, (0, LARGEST_SQUARE), len(c.sine), dtype)
        yield "sine", found, c.sine
        found = fitted(cosine_quotient, cosine_weight, (0, LARGEST_SQUARE), len(c.cosine), dtype)
        yield "cosine", found, c.cosine
    yield "HALF_PI_PIECES", half_pi_pieces(), HALF_PI_PIECES
    yield "HALF_PI", split(mp.pi / 2, 24, dtypes.float64), HALF_PI
    with mp.workprec(TWO_OVER_PI_BITS + 100):
        digits = int(mp.floor(2 / mp.pi * mpf(2) ** TWO_OVER_PI_BITS))
    yield "TWO_OVER_PI", (float(digits != TWO_OVER_PI),), (0.0,)


if __name__ == "__main__":
    compare(rows())
