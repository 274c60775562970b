"""Sine and cosine in exact primitives, right for every float.

The argument is x = n pi/2 + r with abs(r) <= pi/4. Of x 2/pi only what is left after multiples of
4 counts, and those bits of 2/pi that give such multiples for an exponent are left out (Payne and
Hanek). float32 multiplies by the others in float64; float64 takes pi/2 in pieces from x below a
limit and multiplies integers above it. ``tests/ops/fit_sine.py`` makes and checks the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from dilim import dtypes
from dilim.dtypes import DType
from dilim.ops.expansions_float import FORMATS, bits_of, high_part, polynomial, rounded
from dilim.ops.primitives import Expr, bitcast, cast, constant, prim, select
from dilim.ops.special import hex_floats


@dataclass(frozen=True, slots=True)
class SineConstants:
    """What the functions need in one precision.

    Attributes:
        sine: ``(sin(r) / r - 1) / z`` for z = r**2, lowest power first.
        cosine: ``(cos(r) - 1 + z / 2) / z**2``, lowest power first.
    """

    sine: tuple[float, ...]
    cosine: tuple[float, ...]


SINE: Final[Mapping[DType, SineConstants]] = {
    dtypes.float32: SineConstants(
        sine=hex_floats("-0x1.555556p-3 0x1.111108p-7 -0x1.a00f7ep-13 0x1.6cd1bp-19"),
        cosine=hex_floats("0x1.55554ap-5 -0x1.6c0c32p-10 0x1.99eb4ap-16"),
    ),
    dtypes.float64: SineConstants(
        sine=hex_floats(
            "-0x1.5555555555555p-3 0x1.111111111110bp-7 -0x1.a01a01a018a67p-13"
            " 0x1.71de3a5330177p-19 -0x1.ae64528ce4c77p-26 0x1.61208be46bcep-33"
            " -0x1.aaa2150f3f86ap-41"
        ),
        cosine=hex_floats(
            "0x1.555555555554bp-5 -0x1.6c16c16c14f8ap-10 0x1.a01a019c83924p-16"
            " -0x1.27e4f7ea387d6p-22 0x1.1ee9d7532ae66p-29 -0x1.8fa4663b3cdb5p-37"
        ),
    ),
}

LIMIT: Final = 2.0**16
"""Below it a float64 is reduced by subtraction."""
HALF_PI_PIECES: Final = hex_floats("0x1.921fb5444p+0 0x1.68c234c4cp-39 0x1.98a2e03707345p-77")
"""pi/2 in pieces; the first two are exact when multiplied by 16 bits."""
HALF_PI: Final = hex_floats("0x1.921fb5p+0 0x1.110b4611a6263p-26")
"""pi/2 as high + low; high times 28 bits is exact."""
TWO_OVER_PI: Final = int(
    "A2F9836E4E441529FC2757D1F534DDC0DB6295993C439041FE5163ABDEBBC561B7246E3A424DD2E0"
    "06492EEA09D1921CFE1DEB1CB129A73EE88235F52EBB4484E99C7026B45F7E413991D639835339F4"
    "9C845F8BBDF9283B1FF897FFDE05980FEF2F118B5A0A6D1F6D367ECF27CB09B74F463F669E5FEA2D"
    "7527BAC7EBE5F17B3D0739F78A5292EA6BFB5FB11F8D5D0856033046FC7B6BAB",
    16,
)
"""2/pi * 2**1216, rounded down: more bits than any float64 asks for."""
TWO_OVER_PI_BITS: Final = 1216
WORD: Final = 64
STARTS: Final = (0, 29, 57, 85, 113)
"""From each of these powers of 2 on (the first: from 0) float32 takes other bits of 2/pi."""


def sin(x: Expr) -> Expr:
    """The sine of x in radians within 2 units in the last place; NaN for infinities; -0 for -0."""
    r, quarter = _reduced(x)
    return _turned(x, r, quarter, bits_of(x))


def cos(x: Expr) -> Expr:
    """The cosine of x in radians within 2 units in the last place; NaN for infinities."""
    r, quarter = _reduced(x)
    return _turned(x, r, quarter + 1, constant(0, quarter.dtype))


def _turned(x: Expr, r: Expr, quarter: Expr, sign: Expr) -> Expr:
    """The sine of r plus quarter turns, negated where the sign bit of ``sign`` is set."""
    c, layout = SINE[x.dtype], FORMATS[x.dtype]
    z = r * r
    sine = r + r * (z * polynomial(c.sine, z))
    cosine = -(z * 0.5) + 1.0 + z * z * polynomial(c.cosine, z)
    value = select(prim("equal", quarter & 1, 0), sine, cosine)
    half_turn = quarter << (8 * x.dtype.itemsize - 2)
    value = bitcast(bits_of(value) ^ ((half_turn ^ sign) & layout.sign), x.dtype)
    return select(prim("abs", x) < math.inf, value, x - x)


def _reduced(x: Expr) -> tuple[Expr, Expr]:
    """abs(x) as a rest of at most pi/4 and a number of quarter turns of which two bits count."""
    magnitude = prim("abs", x)
    if x.dtype is dtypes.float32:
        return _reduced_float32(magnitude)
    large = constant(LIMIT, x.dtype) <= magnitude
    near, far = _by_subtraction(magnitude), _by_digits(magnitude)
    return select(large, far[0], near[0]), select(large, far[1], near[1])


def _reduced_float32(x: Expr) -> tuple[Expr, Expr]:
    """For a positive float32: x 2/pi in three products, of which the first two are exact."""
    wide = dtypes.float64
    pieces = [constant(piece, wide) for piece in _pieces(STARTS[0])]
    for start in STARTS[1:]:
        far = constant(2.0**start, x.dtype) <= x
        new = (constant(piece, wide) for piece in _pieces(start))
        pieces = [select(far, *pair) for pair in zip(new, pieces, strict=True)]
    number = cast(x, wide)
    first, second = _modulo_four(number * pieces[0]), _modulo_four(number * pieces[1])
    n, quarter = rounded(first + second)
    turn = first - n + second + number * pieces[2]
    return cast(turn * (math.pi / 2), x.dtype), cast(quarter, dtypes.int32)


def _pieces(start: int) -> tuple[float, ...]:
    """29, 29 and 53 bits of 2/pi, without those that give multiples of 4 from 2**start on."""
    left_out = max(start - FORMATS[dtypes.float32].mantissa - 2, 0)
    place = TWO_OVER_PI_BITS - left_out
    rest = TWO_OVER_PI % 2**place
    pieces = []
    for digits in (29, 29, 53):
        place -= digits
        pieces.append(math.ldexp(rest >> place, place - TWO_OVER_PI_BITS))
        rest %= 2**place
    return tuple(pieces)


def _modulo_four(x: Expr) -> Expr:
    """x less the nearest multiple of 4, exactly, for a float64 of less than 2**53."""
    magic = 4.0 * FORMATS[x.dtype].magic
    return x - (x + magic - magic)


def _by_subtraction(x: Expr) -> tuple[Expr, Expr]:
    """x - n pi/2 and n for a positive float64 below the limit."""
    n, quarter = rounded(x * (2.0 / math.pi))
    rest = x - n * HALF_PI_PIECES[0]  # exact
    second = n * HALF_PI_PIECES[1]
    r = rest - second
    lost = rest - r - second
    return r + (lost - n * HALF_PI_PIECES[2]), quarter


def _by_digits(x: Expr) -> tuple[Expr, Expr]:
    """The same from the bits of 2/pi, for a positive float64 from the limit on."""
    layout = FORMATS[x.dtype]
    bits = bits_of(x)
    exponent = (bits >> layout.mantissa) - (layout.bias + int(math.log2(LIMIT)))
    significand = bits & ((1 << layout.mantissa) - 1) | (1 << layout.mantissa)
    window = _window(cast(exponent, dtypes.uint64))
    top, bottom = _product(cast(significand, dtypes.uint64), window)
    quarter = (top + (1 << WORD - 3)) >> (WORD - 2)
    rest = cast(top - (quarter << (WORD - 2)), dtypes.int64)
    # About 50 bits and 63 below them: their sum is rounded once, also when the first are 0.
    above = (rest + 0x800) & -0x1000
    below = (rest - above << 51) + cast(bottom >> 13, dtypes.int64)
    above = cast(above, dtypes.float64) * 2.0 ** (2 - WORD)
    turn = above + cast(below, dtypes.float64) * 2.0 ** (2 - WORD - 51)
    high, split = high_part(turn, 27), HALF_PI
    r = high * split[0] + (turn * split[1] + (turn - high) * split[0])
    return r, cast(quarter, dtypes.int64)


def _window(exponent: Expr) -> list[Expr]:
    """The three words of 2/pi that a significand with this exponent (0 at the limit) needs.

    The first word begins with the bits that count whole turns, which are multiples of 4 above.
    """
    leading = FORMATS[dtypes.float64].mantissa - int(math.log2(LIMIT)) + 2
    digits = TWO_OVER_PI >> leading
    words = [
        constant(digits >> (TWO_OVER_PI_BITS - WORD * (i + 1)) & (2**WORD - 1), dtypes.uint64)
        for i in range(TWO_OVER_PI_BITS // WORD)
    ]
    for step in (8, 4, 2, 1):
        stay = prim("equal", exponent & (WORD * step), 0)
        words = [select(stay, words[i], words[i + step]) for i in range(len(words) - step)]
    shift = exponent & (WORD - 1)
    complement = -shift + (WORD - 1)
    return [high << shift | low >> 1 >> complement for high, low in pairwise(words)]


def _product(significand: Expr, window: list[Expr]) -> tuple[Expr, Expr]:
    """The upper two words of significand * window, without what overflows the first."""
    half = WORD // 2
    mask = 2**half - 1
    low, high = significand & mask, significand >> half
    middle_low, middle_high = window[1] & mask, window[1] >> half
    last_low, last_high = window[2] & mask, window[2] >> half
    tail = high * last_high + (low * last_high >> half) + (high * last_low >> half)
    first = low * middle_low + tail
    carry = select(first < tail, constant(1 << half, first.dtype), 0)
    second = high * middle_low + (first >> half) + carry
    third = low * middle_high + (second & mask)
    top = significand * window[0] + high * middle_high + (second >> half) + (third >> half)
    return top, third << half | first & mask
