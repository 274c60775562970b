"""Exponentials and the hyperbolic tangent in exact primitives; see `dilim.ops.expansions`.

All begin with x = n log(2) + r, abs(r) <= log(2) / 2, so that exp(x) = 2**n exp(r).
``tests/ops/fit_exp.py`` makes and checks the numbers.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Final

from dilim import dtypes
from dilim.dtypes import DType
from dilim.ops.expansions_float import FORMATS, polynomial, power_of_two, rounded, scaled
from dilim.ops.primitives import Expr, constant, prim, select
from dilim.ops.special import hex_floats


@dataclass(frozen=True, slots=True)
class ExpConstants:
    """What the functions need in one precision.

    Attributes:
        lowest: below this exp(x) rounds to 0.
        highest: above this exp(x) is infinite.
        one: below minus this exp(x) - 1 rounds to -1; from half of it on tanh is 1.
        log_two: log(2) as high + low; high times an exponent is exact.
        quotient: ``(exp(r) - 1 - r) / r**2``, lowest power first.
        expm1: the same, nearest in exp(r) - 1 and for abs(r) <= 3/4 log(2).
        tanh: ``(tanh(s) / s - 1) / z`` for z = s**2, lowest power first.
    """

    lowest: float
    highest: float
    one: float
    log_two: tuple[float, ...]
    quotient: tuple[float, ...]
    expm1: tuple[float, ...]
    tanh: tuple[float, ...]


EXP: Final[Mapping[DType, ExpConstants]] = MappingProxyType(
    {
        dtypes.float32: ExpConstants(
            lowest=-104.0,
            highest=89.0,
            one=20.0,
            log_two=hex_floats("0x1.62e4p-1 0x1.7f7d1cp-20"),
            quotient=hex_floats(
                "0x1.fffffcp-2 0x1.555492p-3 0x1.5558f2p-5 0x1.1239e4p-7 0x1.6a2448p-10"
            ),
            expm1=hex_floats(
                "0x1.000002p-1 0x1.55555p-3 0x1.555222p-5 0x1.11137cp-7 0x1.6f2108p-10"
                " 0x1.a04ac4p-13"
            ),
            tanh=hex_floats("-0x1.555506p-2 0x1.10d97ep-3 -0x1.a3aea4p-5"),
        ),
        dtypes.float64: ExpConstants(
            lowest=-746.0,
            highest=710.0,
            one=40.0,
            log_two=hex_floats("0x1.62e42fefa38p-1 0x1.ef35793c7673p-45"),
            quotient=hex_floats(
                "0x1.000000000000ap-1 0x1.55555555554fap-3 0x1.555555555087dp-5"
                " 0x1.1111111127be7p-7 0x1.6c16c1842a0ffp-10 0x1.a01a012a570b6p-13"
                " 0x1.a0199a0c691c3p-16 0x1.71df2553cf019p-19 0x1.28ad72cc49578p-22"
                " 0x1.ad7f6c633011bp-26"
            ),
            expm1=hex_floats(
                "0x1.0000000000001p-1 0x1.555555555562p-3 0x1.5555555555039p-5"
                " 0x1.11111110e7498p-7 0x1.6c16c16cea644p-10 0x1.a01a0252bf9e3p-13"
                " 0x1.a01a0002dafb5p-16 0x1.71dced5a4375dp-19 0x1.27e62459c30ddp-22"
                " 0x1.b0972a80e774cp-26 0x1.1ee278ab7dbb5p-29"
            ),
            tanh=hex_floats(
                "-0x1.55555555554b1p-2 0x1.11111110f2b35p-3 -0x1.ba1ba17d5d44p-5"
                " 0x1.664f2bab0c94ep-6 -0x1.2266de2239bf3p-7 0x1.d4c3cfa37aae2p-9"
                " -0x1.56c6e6f04a661p-10"
            ),
        ),
    }
)
LOG2_E: Final = 1.4426950408889634


def exp(x: Expr) -> Expr:
    """e ** x within one unit in the last place; denormal results are rounded right."""
    c = EXP[x.dtype]
    y = _clamped(x, c.lowest, c.highest)
    n, bits = rounded(y * LOG2_E)
    high, low = c.log_two
    r = y - n * high - n * low
    return scaled(r * r * polynomial(c.quotient, r) + r + 1.0, bits)


def expm1(x: Expr) -> Expr:
    """exp(x) - 1 within two units in the last place; x itself when tiny.

    With q = exp(r) - 1 and h = 2**n / 2 it is 2 (h q + (h - 1/2)). n is a quarter nearer to 0 than
    rounding makes it, so that little cancels in the sum where n is 1 or -1.
    """
    dtype, c = x.dtype, EXP[x.dtype]
    y = _clamped(x, -c.one, c.highest)
    quarter = prim("copysign", constant(0.25, dtype), y)
    n, bits = rounded(y * LOG2_E - quarter)
    high, low = c.log_two
    r = y - n * high - n * low
    q = r + r * r * polynomial(c.expm1, r)
    h = power_of_two(bits - 1, dtype)
    value = (h * q + (h - 0.5)) * 2.0
    tiny = 2.0 ** (3 - FORMATS[dtype].bias)  # here halves may be denormal
    return select(prim("abs", x) < tiny, x, value)


def tanh(x: Expr) -> Expr:
    """The hyperbolic tangent within 2 units in the last place, odd to the bit.

    With abs(x) = n log(2) / 2 + s, p = 2**n and u = tanh(s), the addition theorem gives
    (p - 1 + (p + 1) u) / (p + 1 + (p - 1) u); the divisor is the dividend + 2 - 2 u. s goes from
    -1/8 to 3/8 log(2), so that little cancels in the dividend where n is 1.
    """
    dtype, c = x.dtype, EXP[x.dtype]
    end = c.one / 2
    a = prim("abs", x)
    a = select(constant(end, dtype) < a, end, a)
    n, bits = rounded(a * (2.0 * LOG2_E) - 0.25)
    high, low = c.log_two
    s = a - n * (high / 2) - n * (low / 2)
    z = s * s
    u = s + s * (z * polynomial(c.tanh, z))
    p = power_of_two(bits, dtype)
    dividend = (p - 1.0) + (p + 1.0) * u
    divisor = dividend + (constant(2.0, dtype) - (u + u))
    return prim("copysign", dividend / divisor, x)


def _clamped(x: Expr, low: float, high: float) -> Expr:
    return select(x < low, low, select(constant(high, x.dtype) < x, high, x))
