"""Logarithms and exp(x) - 1 in exact primitives; see `dilim.ops.expansions`."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final

from dilim import dtypes
from dilim.dtypes import DType
from dilim.ops.primitives import Expr, bitcast, cast, constant, prim, select
from dilim.ops.special import hex_floats


@dataclass(frozen=True, slots=True)
class LogConstants:
    """What the functions need in one precision; ``tests/ops/fit_log.py`` makes the numbers.

    Attributes:
        bits: signed integer dtype of the same size.
        mantissa: stored bits of the significand.
        bias: of the exponent.
        root_half: sqrt(1/2), rounded down, as an integer.
        lowest: below this exp(x) - 1 rounds to -1.
        highest: above this exp(x) - 1 is infinite.
        log_two: log(2) as high + low; high times an exponent is exact.
        log: ``(log((1 + s) / (1 - s)) / s - 2) / z`` for z = s**2, lowest power first.
        expm1: ``(exp(r) - 1 - r - r**2 / 2) / r**3``, lowest power first.
    """

    bits: DType
    mantissa: int
    bias: int
    root_half: int
    lowest: float
    highest: float
    log_two: tuple[float, ...]
    log: tuple[float, ...]
    expm1: tuple[float, ...]


LOG: Final = {
    dtypes.float32: LogConstants(
        bits=dtypes.int32,
        mantissa=23,
        bias=127,
        root_half=0x3F3504F3,
        lowest=-20.0,
        highest=89.0,
        log_two=hex_floats("0x1.62e4p-1 0x1.7f7d1cp-20"),
        log=hex_floats("0x1.55557ap-1 0x1.995eccp-2 0x1.31e13ap-2"),
        expm1=hex_floats("0x1.5554b8p-3 0x1.5555bap-5 0x1.12236ep-7 0x1.6c555p-10"),
    ),
    dtypes.float64: LogConstants(
        bits=dtypes.int64,
        mantissa=52,
        bias=1023,
        root_half=0x3FE6A09E667F3BCC,
        lowest=-40.0,
        highest=710.0,
        log_two=hex_floats("0x1.62e42fefa38p-1 0x1.ef35793c7673p-45"),
        log=hex_floats(
            "0x1.5555555555592p-1 0x1.999999997fea8p-2 0x1.24924941e4a2fp-2 0x1.c71c5212ef4eap-3"
            " 0x1.74663d0ea804ep-3 0x1.39a1e7bef05b3p-3 0x1.2f03b78af5fe1p-3"
        ),
        expm1=hex_floats(
            "0x1.555555555553ep-3 0x1.5555555553b1p-5 0x1.1111111118d0ep-7 0x1.6c16c179fdd2cp-10"
            " 0x1.a01a0171ad1adp-13 0x1.a019b3a02d66bp-16 0x1.71de9775aa7f5p-19"
            " 0x1.2897622458a03p-22 0x1.ae490212aa137p-26"
        ),
    ),
}
LOG2_E: Final = 1.4426950408889634


def log(x: Expr) -> Expr:
    """Natural logarithm within one unit in the last place; -inf at 0, NaN below."""
    dtype, c = x.dtype, LOG[x.dtype]
    special = select(x < 0.0, math.nan, select(prim("equal", x, 0.0), -math.inf, x))
    ordinary = (x > 0.0) & (x < math.inf)
    number = select(ordinary, x, 1.0)
    denormal = number < 2.0 ** (1 - c.bias)
    digits = c.mantissa + 1
    number = select(denormal, number * 2.0**digits, number)
    added = select(denormal, constant(-float(digits), dtype), 0.0)
    return select(ordinary, _log(number, added, constant(0.0, dtype)), special)


def log1p(x: Expr) -> Expr:
    """log(1 + x) within one unit in the last place; x itself when tiny; -inf at -1, NaN below.

    With u = 1 + x as rounded and d what rounding lost, it is log(u) + d / u.
    """
    dtype = x.dtype
    special = select(x < -1.0, math.nan, select(prim("equal", x, -1.0), -math.inf, x))
    ordinary = (x > -1.0) & (x < math.inf)
    number = select(ordinary, x, 0.0)
    u = number + 1.0
    lost = select(number < 1.0, number - (u - 1.0), -(u - number) + 1.0)
    value = select(ordinary, _log(u, constant(0.0, dtype), lost / u), special)
    return select(prim("equal", x, 0.0), x, value)  # keeps the sign of -0


def _log(u: Expr, exponent: Expr, correction: Expr) -> Expr:
    """log(u) + exponent log(2) + correction for a positive normal u and a small correction.

    u = 2**e (1 + f) with sqrt(1/2) <= 1 + f < sqrt(2); s = f / (2 + f), z = s**2, h = f**2 / 2;
    then log(1 + f) = f - (h - s (h + z P(z))). Small terms are added first.
    """
    dtype, c = u.dtype, LOG[u.dtype]
    # Moves the border between two exponents from 1 to sqrt(1/2).
    shifted = bitcast(u, c.bits) + ((c.bias << c.mantissa) - c.root_half)
    e = cast((shifted >> c.mantissa) - c.bias, dtype) + exponent
    f = bitcast((shifted & ((1 << c.mantissa) - 1)) + c.root_half, dtype) - 1.0
    s = f / (f + 2.0)
    z = s * s
    h = f * f * 0.5
    high, low = c.log_two
    rest = e * low + correction
    return s * (h + z * _polynomial(c.log, z)) + rest - h + f + e * high


def expm1(x: Expr) -> Expr:
    """exp(x) - 1 within two units in the last place; x itself when tiny.

    x = n log(2) + r with abs(r) <= log(2) / 2; with m = 1 - 2**-n,
    exp(x) - 1 = 2**n (m + r + r**2 / 2 + r**3 P(r)). What rounding r and m + r loses is added to
    the small terms. Rounding to n and the halves of 2**n are as in `dilim.ops.expansions.exp`.
    """
    dtype, c = x.dtype, LOG[x.dtype]
    y = select(x < c.lowest, c.lowest, select(x > c.highest, c.highest, x))
    magic = constant(1.5 * 2.0**c.mantissa, dtype)
    shifted = y * LOG2_E + magic
    n = shifted - magic
    high, low = y - n * c.log_two[0], n * c.log_two[1]
    r = high - low
    lost = high - r - low
    power = bitcast(shifted, c.bits) - bitcast(magic, c.bits)
    half = power >> 1
    rest = power - half
    m = -(_power_of_two(-half, c, dtype) * _power_of_two(-rest, c, dtype)) + 1.0
    total = m + r
    z = r * r
    small = (z * _polynomial(c.expm1, r) + lost) * r + z * 0.5 + (lost + (r - (total - m)))
    value = (total + small) * _power_of_two(half, c, dtype) * _power_of_two(rest, c, dtype)
    return select(prim("equal", x, 0.0), x, value)  # keeps the sign of -0


def _polynomial(coefficients: tuple[float, ...], x: Expr) -> Expr:
    """Horner's scheme, every product and sum rounded."""
    result = constant(coefficients[-1], x.dtype)
    for coefficient in reversed(coefficients[:-1]):
        result = result * x + coefficient
    return result


def _power_of_two(n: Expr, c: LogConstants, dtype: DType) -> Expr:
    return bitcast((n + c.bias) << c.mantissa, dtype)
