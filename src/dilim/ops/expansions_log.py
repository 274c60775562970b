"""Logarithms in exact primitives; see `dilim.ops.expansions`.

``tests/ops/fit_log.py`` makes and checks the numbers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from dilim import dtypes
from dilim.dtypes import DType
from dilim.ops.expansions_exp import EXP
from dilim.ops.expansions_float import (
    FORMATS,
    fraction_and_exponent,
    fraction_and_exponent_of_normal,
    high_part,
)
from dilim.ops.primitives import Expr, prim, select
from dilim.ops.special import hex_floats

LOG: Final[Mapping[DType, tuple[float, ...]]] = MappingProxyType(
    {
        dtypes.float32: hex_floats("0x1.31e13ap-2 0x1.569d44p+0 0x1.1dac3p+1"),
        dtypes.float64: hex_floats(
            "0x1.2f03b78af5fe1p-3 -0x1.bb5a1e9974947p+0 0x1.a065c76085d11p+0"
            " 0x1.d96d3c9fc2408p-2 0x1.aafa09acec335p+0 0x1.26fba0b13a361p+1"
            " 0x1.a93092a123f8p+0"
        ),
    }
)
"""``(log((1 + s) / (1 - s)) / s - 2) / z`` for z = s**2 as c (z**2 + a z + b) ...: c, a, b, ...

Factors take fewer multiplications than powers do, and a processor can do them at the same time.
"""


LOG10_TWO: Final[Mapping[DType, tuple[float, ...]]] = MappingProxyType(
    {
        dtypes.float32: hex_floats("0x1.344p-2 0x1.3509f8p-18"),
        dtypes.float64: hex_floats("0x1.34413509f7p-2 0x1.3fde623e2566bp-43"),
    }
)
"""log10(2) as high + low; high times an exponent is exact."""

INVERSE_LOG_TWO: Final[Mapping[DType, tuple[float, ...]]] = MappingProxyType(
    {
        dtypes.float32: hex_floats("0x1.714p+0 0x1.47652cp-12"),
        dtypes.float64: hex_floats("0x1.715476p+0 0x1.4ae0bf85ddf44p-26"),
    }
)
"""1 / log(2) as high + low; high has half of the digits."""

INVERSE_LOG_TEN: Final[Mapping[DType, tuple[float, ...]]] = MappingProxyType(
    {
        dtypes.float32: hex_floats("0x1.bcap-2 0x1.7b1526p-14"),
        dtypes.float64: hex_floats("0x1.bcb7b1p-2 0x1.49b9438ca9aaep-28"),
    }
)
"""1 / log(10) as high + low; high has half of the digits."""


def log(x: Expr) -> Expr:
    """Natural logarithm within one unit in the last place; -inf at 0, NaN below."""
    fraction, exponent = fraction_and_exponent(x)
    high, low = _per_exponent(EXP[x.dtype].log_two, x.dtype)
    f, rest = _log(fraction)
    return exponent * low - rest + f + exponent * high


def log2(x: Expr) -> Expr:
    """Logarithm to base 2 within 1.5 units in the last place; exact for powers of 2."""
    fraction, exponent = fraction_and_exponent(x)
    (one,) = _per_exponent((1.0,), x.dtype)
    large, small = _log_times(fraction, INVERSE_LOG_TWO[x.dtype])
    return small + large + exponent * one


def log10(x: Expr) -> Expr:
    """Logarithm to base 10 within 1.5 units in the last place; exact for powers of 10."""
    fraction, exponent = fraction_and_exponent(x)
    high, low = _per_exponent(LOG10_TWO[x.dtype], x.dtype)
    large, small = _log_times(fraction, INVERSE_LOG_TEN[x.dtype])
    return small + exponent * low + large + exponent * high


def log1p(x: Expr) -> Expr:
    """log(1 + x) within one unit in the last place; x itself when tiny; -inf at -1, NaN below.

    With u = 1 + x as rounded and d what rounding lost, it is log(u) + d / u.
    """
    u = x + 1.0
    lost = select(x < 1.0, x - (u - 1.0), -(u - x) + 1.0)
    fraction, exponent = fraction_and_exponent_of_normal(u)
    high, low = _per_exponent(EXP[x.dtype].log_two, x.dtype)
    f, rest = _log(fraction)
    value = exponent * low + lost / u - rest + f + exponent * high
    value = select(prim("equal", u, 0.0), -math.inf, value)
    value = select(u < math.inf, select(u < 0.0, math.nan, value), x)
    return select(prim("equal", x, 0.0), x, value)  # keeps the sign of -0


def _per_exponent(factors: tuple[float, ...], dtype: DType) -> tuple[float, ...]:
    """Factors of an exponent, for one in its format's unit, a power of 2."""
    return tuple(factor / FORMATS[dtype].exponent_unit for factor in factors)


def _log_times(fraction: Expr, factor: tuple[float, ...]) -> tuple[Expr, Expr]:
    """log(fraction) times high + low, as a large exact term and a small one."""
    high, low = factor
    f, rest = _log(fraction)
    f_high = high_part(f, FORMATS[f.dtype].half_digits)
    return f_high * high, (f - f_high - rest) * (high + low) + f_high * low


def _log(fraction: Expr) -> tuple[Expr, Expr]:
    """log(fraction) as f - rest, where f is exact; small terms are to be added to rest first.

    With 1 + f the fraction, s = f / (2 + f), z = s**2 it is f - s (f - z P(z)).
    """
    f = fraction - 1.0
    s = f / (fraction + 1.0)
    z = s * s
    leading, *factors = LOG[fraction.dtype]
    product = z * leading
    for a, b in zip(factors[::2], factors[1::2], strict=True):
        product = product * ((z + a) * z + b)
    return f, s * (f - product)
