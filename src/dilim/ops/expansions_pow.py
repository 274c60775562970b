"""Powers in exact primitives, within 2 units in the last place also near 1 ** huge.

x ** y = 2 ** (y log2(abs(x))). What an error of the logarithm becomes grows with the exponent of
the result, so it is needed in more digits than the dtype has: float32 takes float64, float64 takes
a sum of two numbers, whose products are exact because the first factors have half the digits.
``tests/ops/fit_pow.py`` makes the numbers.
"""

from __future__ import annotations

import math
from typing import Final

from dilim import dtypes
from dilim.ops.expansions_float import (
    FORMATS,
    bits_of,
    fraction_and_exponent,
    high_part,
    polynomial,
    power_of_two,
    rounded,
    scaled,
)
from dilim.ops.primitives import Expr, bitcast, cast, constant, prim, select
from dilim.ops.special import hex_floats

HALF_DIGITS: Final = 27
"""Of the 53 binary digits of a float64 these are dropped from a first factor."""

LOG2: Final = hex_floats(
    "0x1.71547652bee7bp+1 0x1.ec709d123dd59p-1 0x1.277780496668ap-1 0x1.a58d5f91ff9ep-2"
    " 0x1.5ceb119e3ae34p-2"
)
"""``log2((1 + s) / (1 - s)) / s`` with z = s**2, for float32; lowest power first."""

LOG_REST: Final = hex_floats(
    "0x1.333333333333p-1 0x1.b6db6db6dc851p-2 0x1.5555555420372p-2 0x1.1745d225c9242p-2"
    " 0x1.d89d140b31d13p-3 0x1.99b1115256b82p-3 0x1.66a682e0949a7p-3 0x1.704d6addc44bfp-3"
)
"""``3 (atanh(s) / s - 1 - z / 3) / z**2``, for float64."""

LOG2_THIRD: Final = hex_floats("0x1.ec709d8p-1 0x1.0e80ff5d27f05p-27")
"""2 / (3 log 2) as high + low."""

EXP2_SHORT: Final = hex_floats(
    "0x1.62e430af5febp-1 0x1.ebfbdc3b0fb4ep-3 0x1.c6aee839fa309p-5 0x1.3b2d4d78173a4p-7"
    " 0x1.5f3e7f4b50796p-10 0x1.41fba06e8699bp-13"
)
"""``(2**r - 1) / r`` for abs(r) <= 1/2, for float32; lowest power first."""

EXP2: Final = hex_floats(
    "0x1.62e42fefa39efp-1 0x1.ebfbdff82c58fp-3 0x1.c6b08d704a0cfp-5 0x1.3b2ab6fba4e22p-7"
    " 0x1.5d87fe78a26afp-10 0x1.430912f883d9ep-13 0x1.ffcbfc74deaa2p-17 0x1.62c021e25079cp-20"
    " 0x1.b524dd41cc9f3p-24 0x1.e4d06cb72e8f2p-28 0x1.ea016e8061389p-32 0x1.c2ce77323a949p-36"
)


def pow_(x: Expr, y: Expr) -> Expr:
    """x ** y as IEEE 754 defines it; integers wrap, and need y >= 0.

    1 where y is 0 or x is 1, whatever the other; x * x where y is 2; a negative x has a power where
    y is an integer.
    """
    if not x.dtype.is_floating:
        return _integer_power(x, y)
    magnitude = prim("abs", x)
    # Further exponents change nothing: every base but 1 has overflowed or vanished.
    far = 2.0 ** (FORMATS[x.dtype].mantissa + 14)
    bounded = select(y < -far, -far, select(constant(far, x.dtype) < y, far, y))
    power = _power_float32 if x.dtype is dtypes.float32 else _power_float64
    result = _signed(x, y, power(magnitude, bounded))
    return select(prim("equal", y, 2.0), x * x, result)


def _signed(x: Expr, y: Expr, power: Expr) -> Expr:
    """The power of abs(x) made that of x: a sign where y is odd, NaN where y is no integer."""
    layout, dtype = FORMATS[x.dtype], x.dtype
    whole = 2.0**layout.mantissa
    size = prim("abs", y)
    # Adding `whole` rounds to an integer, whose last bit then is the last bit.
    shifted = select(size < whole, size + whole, size)
    integer = prim("equal", shifted - whole, size) | (constant(whole, dtype) <= size)
    odd = integer & (size < 2 * whole)
    last = select(odd, bits_of(shifted), 0) << (8 * dtype.itemsize - 1)
    power = bitcast(bits_of(power) | (last & bits_of(x)), dtype)
    defined = integer | (constant(0.0, dtype) <= x) | prim("equal", x, -math.inf)
    power = select(defined, power, math.nan)
    return select(prim("equal", y, 0.0) | prim("equal", x, 1.0), 1.0, power)


def _power_float32(x: Expr, y: Expr) -> Expr:
    """x ** y for x >= 0, computed in float64."""
    fraction, exponent = fraction_and_exponent(x)
    wide = dtypes.float64
    f = cast(fraction, wide) - 1.0
    s = f / (f + 2.0)
    unit = FORMATS[x.dtype].exponent_unit
    log2 = cast(exponent, wide) * (1.0 / unit) + s * polynomial(LOG2, s * s)
    t = cast(y, wide) * log2
    t = select(t < -200.0, -200.0, select(constant(200.0, wide) < t, 200.0, t))
    n, bits = rounded(t)
    r = t - n
    value = r * polynomial(EXP2_SHORT, r) + 1.0
    return cast(value * power_of_two(bits, wide), dtypes.float32)


def _power_float64(x: Expr, y: Expr) -> Expr:
    """x ** y for x >= 0, with the logarithm as a sum of two numbers."""
    high, low, exponent = _log2(x)
    y_high = high_part(y, HALF_DIGITS)
    product_low = (y - y_high) * high + y * low
    product = y_high * high  # exact
    total = product + product_low
    inside = prim("abs", total) < 1100.0
    product = select(inside, product, prim("copysign", constant(1100.0, x.dtype), total))
    n, bits = rounded(product)
    r = product - n + select(inside, product_low, 0.0)
    value = scaled(r * polynomial(EXP2, r) + 1.0, bits)
    end = y * exponent  # infinite or NaN where x is 0 or infinite, or something is NaN
    ordinary = prim("abs", end) < math.inf
    return select(ordinary, value, select(end < 0.0, 0.0, end))


def _log2(x: Expr) -> tuple[Expr, Expr, Expr]:
    """log2 of a positive finite float64 as high + low, of 66 right digits, and its exponent.

    High has half of the 53 digits. The exponent is right also for other numbers.

    With x = 2**e m, f = m - 1, s = f / (2 + f), z = s**2 it is
    e + 2 / (3 log 2) s (3 + z + z**2 P(z)).
    """
    m, e = fraction_and_exponent(x)
    f = m - 1.0
    divisor = m + 1.0
    inverse = constant(1.0, x.dtype) / divisor
    s = f * inverse
    s_high = high_part(s, HALF_DIGITS)
    d_high = high_part(divisor, HALF_DIGITS)
    s_low = inverse * (f - s_high * d_high - s_high * (m - (d_high - 1.0)))
    z = s * s
    square = s_high * s_high  # exact
    rest = z * z * polynomial(LOG_REST, z) + s_low * (s_high + s)
    factor_high = high_part(square + 3.0 + rest, HALF_DIGITS)
    factor_low = rest - (factor_high - 3.0 - square)
    product = s_high * factor_high  # exact
    product_low = s_low * factor_high + factor_low * s
    p_high = high_part(product + product_low, HALF_DIGITS)
    p_low = product_low - (p_high - product)
    third_high, third_low = LOG2_THIRD
    log_high = p_high * third_high  # exact
    log_low = p_high * third_low + p_low * (third_high + third_low)
    high = high_part(log_high + log_low + e, HALF_DIGITS)
    return high, log_low - (high - e - log_high), e


def _integer_power(x: Expr, y: Expr) -> Expr:
    """By repeated squaring; powers of odd numbers repeat, those of even ones become 0."""
    width = 8 * x.dtype.itemsize
    result, square = constant(1, x.dtype), x
    for bit in range(width):
        result = select(prim("equal", y & (1 << bit), 0), result, result * square)
        square = square * square
    return result
