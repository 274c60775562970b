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
from dilim.ops.expansions_exp import EXP, LOG2_E
from dilim.ops.expansions_float import (
    fraction_and_exponent,
    fraction_and_exponent_of_normal,
    polynomial,
)
from dilim.ops.primitives import Expr, prim, select
from dilim.ops.special import hex_floats

LOG: Final[Mapping[DType, tuple[float, ...]]] = MappingProxyType(
    {
        dtypes.float32: hex_floats("0x1.55557ap-1 0x1.995eccp-2 0x1.31e13ap-2"),
        dtypes.float64: hex_floats(
            "0x1.5555555555592p-1 0x1.999999997fea8p-2 0x1.24924941e4a2fp-2"
            " 0x1.c71c5212ef4eap-3 0x1.74663d0ea804ep-3 0x1.39a1e7bef05b3p-3"
            " 0x1.2f03b78af5fe1p-3"
        ),
    }
)
"""``(log((1 + s) / (1 - s)) / s - 2) / z`` for z = s**2, lowest power first."""


LOG10_TWO: Final[Mapping[DType, tuple[float, ...]]] = MappingProxyType(
    {
        dtypes.float32: hex_floats("0x1.344p-2 0x1.3509f8p-18"),
        dtypes.float64: hex_floats("0x1.34413509f7p-2 0x1.3fde623e2566bp-43"),
    }
)
"""log10(2) as high + low; high times an exponent is exact."""
LOG10_E: Final = float.fromhex("0x1.bcb7b1526e50ep-2")


def log(x: Expr) -> Expr:
    """Natural logarithm within one unit in the last place; -inf at 0, NaN below."""
    fraction, exponent = fraction_and_exponent(x)
    high, low = EXP[x.dtype].log_two
    f, rest, h = _log(fraction)
    return rest + exponent * low - h + f + exponent * high


def log2(x: Expr) -> Expr:
    """Logarithm to base 2 within 2 units in the last place; exact for powers of 2."""
    fraction, exponent = fraction_and_exponent(x)
    f, rest, h = _log(fraction)
    return (rest - h) * LOG2_E + f * LOG2_E + exponent


def log10(x: Expr) -> Expr:
    """Logarithm to base 10 within 2 units in the last place; exact for powers of 10."""
    fraction, exponent = fraction_and_exponent(x)
    high, low = LOG10_TWO[x.dtype]
    f, rest, h = _log(fraction)
    return (rest - h) * LOG10_E + exponent * low + f * LOG10_E + exponent * high


def log1p(x: Expr) -> Expr:
    """log(1 + x) within one unit in the last place; x itself when tiny; -inf at -1, NaN below.

    With u = 1 + x as rounded and d what rounding lost, it is log(u) + d / u.
    """
    u = x + 1.0
    lost = select(x < 1.0, x - (u - 1.0), -(u - x) + 1.0)
    fraction, exponent = fraction_and_exponent_of_normal(u)
    high, low = EXP[x.dtype].log_two
    f, rest, h = _log(fraction)
    value = rest + (exponent * low + lost / u) - h + f + exponent * high
    value = select(prim("equal", u, 0.0), -math.inf, value)
    value = select(u < math.inf, select(u < 0.0, math.nan, value), x)
    return select(prim("equal", x, 0.0), x, value)  # keeps the sign of -0


def _log(fraction: Expr) -> tuple[Expr, Expr, Expr]:
    """log(fraction) as f + rest - h, where f is exact; small terms are to be added first.

    With 1 + f the fraction, s = f / (2 + f), z = s**2, h = f**2 / 2, it is
    f - (h - s (h + z P(z))).
    """
    f = fraction - 1.0
    s = f / (f + 2.0)
    z = s * s
    h = f * f * 0.5
    return f, s * (h + z * polynomial(LOG[fraction.dtype], z)), h
