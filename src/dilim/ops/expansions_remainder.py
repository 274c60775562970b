"""Remainder and floor division of floats in exact primitives, with Python's and NumPy's meaning.

The remainder is exact for all numbers, however far apart: multiples of the divisor are taken away
from the dividend in a few steps, each of which is exact.
"""

from __future__ import annotations

import math
from typing import Final

from dilim import dtypes
from dilim.ops.expansions_float import FORMATS, bits_of, power_of_two, rounded
from dilim.ops.expansions_rounding import floor
from dilim.ops.primitives import Expr, bitcast, cast, constant, prim, select

STEP: Final = 28
"""Binary digits of a quotient that a step can take off a float32's remainder in float64."""

FARTHEST: Final = 277
"""A quotient of two float32 is below 2**277."""

DOUBLINGS: Final = 6
"""A quotient of two float64 is below 2**2099; 2**(2099 >> 6) is below every 53-bit modulus."""


def remainder(x: Expr, y: Expr) -> Expr:
    """x - y floor(x / y), exact but for the last addition; 0 with the sign of y.

    NaN where y is 0 or x infinite; x or y where y is infinite.
    """
    rest = _fmod(x, y)
    differs = prim("sign_bit", x) ^ prim("sign_bit", y)
    moved = select(differs, rest + y, rest)
    return select(prim("equal", rest, 0.0), prim("copysign", constant(0.0, y.dtype), y), moved)


def floor_divide(x: Expr, y: Expr) -> Expr:
    """The floor of the exact quotient; x / y itself where y is 0, its floor at infinities."""
    rest = _fmod(x, y)
    quotient = (x - rest) / y  # an integer, but for rounding
    differs = prim("sign_bit", x) ^ prim("sign_bit", y)
    lower = differs & ((rest < 0.0) | (constant(0.0, x.dtype) < rest))
    quotient = select(lower, quotient - 1.0, quotient)
    below = floor(quotient)
    whole = select(constant(0.5, x.dtype) < quotient - below, below + 1.0, below)
    plain = x / y
    whole = select(prim("equal", quotient, 0.0), prim("copysign", quotient, plain), whole)
    finite = (prim("abs", x) < math.inf) & (prim("abs", y) < math.inf)
    ordinary = finite & (constant(0.0, x.dtype) < prim("abs", y))
    return select(ordinary, whole, select(prim("equal", y, 0.0), plain, floor(plain)))


def _fmod(x: Expr, y: Expr) -> Expr:
    """x - y trunc(x / y) with the sign of x, always exact; NaN where y is 0 or x infinite."""
    dtype = x.dtype
    a, b = prim("abs", x), prim("abs", y)
    possible = (a < math.inf) & (constant(0.0, dtype) < b)
    smaller = a < b  # also where b is infinite
    usual = possible & (b <= a)
    divide = _rest_float32 if dtype is dtypes.float32 else _rest_float64
    rest = divide(select(usual, a, 1.0), select(usual, b, 1.0))
    rest = select(usual, rest, select(smaller & possible, a, math.nan))
    return prim("copysign", rest, x)


def _rest_float32(a: Expr, b: Expr) -> Expr:
    """The rest of a / b for finite a >= b > 0, in float64: there every product below is exact."""
    a, b = cast(a, dtypes.float64), cast(b, dtypes.float64)
    inverse = constant(1.0, b.dtype) / b
    rest = a
    for digits in reversed(range(0, FARTHEST, STEP)):
        quotient, _ = rounded(rest * (inverse * 2.0**-digits))
        rest = rest - quotient * (b * 2.0**digits)
    return cast(select(rest < 0.0, rest + b, rest), dtypes.float32)


def _rest_float64(a: Expr, b: Expr) -> Expr:
    """The rest of a / b for finite a >= b > 0, in integers that wrap around.

    With a = A 2**i and b = B 2**j it is (A 2**(i - j) mod B) 2**j, and the power of 2 comes from
    repeated squaring modulo B, which has 53 bits.
    """
    first, i = _significand_and_exponent(a)
    modulus, j = _significand_and_exponent(b)
    apart = i - j
    inverse = constant(1.0, dtypes.float64) / cast(modulus, dtypes.float64)

    def whole(quotient: Expr) -> Expr:
        magic = bits_of(constant(FORMATS[dtypes.float64].magic, dtypes.float64))
        return rounded(quotient)[1] - magic

    def reduced(rest: Expr) -> Expr:
        """Less a multiple of B; at most a little more than B / 2."""
        return rest - whole(cast(rest, dtypes.float64) * inverse) * modulus

    def product(p: Expr, q: Expr) -> Expr:
        """p q less a multiple of B, for reduced p and q."""
        quotient = cast(p, dtypes.float64) * (cast(q, dtypes.float64) * inverse)
        return p * q - whole(quotient) * modulus

    power = constant(1, dtypes.int64) << (apart >> DOUBLINGS)
    for bit in reversed(range(DOUBLINGS)):
        square = product(power, power)
        once = prim("equal", apart & (1 << bit), 0)
        power = reduced(select(once, square, square + square))
    rest = reduced(product(reduced(first), power))
    return _joined(select(rest < 0, rest + modulus, rest), j)


def _significand_and_exponent(x: Expr) -> tuple[Expr, Expr]:
    """A and i of a positive finite x = A 2**i with 2**52 <= A < 2**53, as integers."""
    layout = FORMATS[x.dtype]
    denormal = x < 2.0 ** (1 - layout.bias)
    bits = bits_of(select(denormal, x * 2.0**layout.mantissa, x))
    significand = bits & ((1 << layout.mantissa) - 1) | (1 << layout.mantissa)
    exponent = bits >> layout.mantissa
    return significand, select(denormal, exponent - layout.mantissa, exponent)


def _joined(significand: Expr, exponent: Expr) -> Expr:
    """significand 2**exponent, where the exponent counts as in `_significand_and_exponent`."""
    layout = FORMATS[dtypes.float64]
    normal = select(exponent < 1, 1, exponent)
    number = cast(significand, dtypes.float64) * 2.0**-layout.mantissa
    number = number * power_of_two(exponent - normal, dtypes.float64)
    return number * bitcast(normal << layout.mantissa, dtypes.float64)
