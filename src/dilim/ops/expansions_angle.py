"""The angle of a point, `atan2`, in exact primitives; ``tests/ops/fit_angle.py`` has the fit."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from dilim import dtypes
from dilim.dtypes import DType
from dilim.ops.expansions_float import FORMATS, polynomial
from dilim.ops.primitives import Expr, constant, prim, select
from dilim.ops.special import hex_floats

ATAN: Final[Mapping[DType, tuple[float, ...]]] = MappingProxyType(
    {
        dtypes.float32: hex_floats(
            "-0x1.555552p-2 0x1.9996ecp-3 -0x1.244ab4p-3 0x1.c022ccp-4 -0x1.470012p-4 0x1.3d2418p-5"
        ),
        dtypes.float64: hex_floats(
            "-0x1.5555555555552p-2 0x1.9999999999016p-3 -0x1.249249244fc4ep-3"
            " 0x1.c71c71a9c5a65p-4 -0x1.745d137237dbdp-4 0x1.3b135ed6589f3p-4"
            " -0x1.110c5ca6ac0efp-4 0x1.e1819e82bf7bcp-5 -0x1.ac6c3a7813a52p-5"
            " 0x1.77e4f98459c5ap-5 -0x1.2fe74ac569e93p-5 0x1.831633062d28p-6"
            " -0x1.118baf1780d0fp-7"
        ),
    }
)
"""``(atan(t) / t - 1) / z`` with z = t**2 for t <= 1/2, lowest power first."""

QUARTER_PI: Final[Mapping[DType, tuple[float, ...]]] = MappingProxyType(
    {
        dtypes.float32: hex_floats("0x1.921fbp-1 0x1.5110b4p-23"),
        dtypes.float64: hex_floats("0x1.921fb54442d18p-1 0x1.1a62633145c07p-55"),
    }
)
"""pi/4 as high + low; high times 1, 2, 3, 4 is exact."""


def atan2(y: Expr, x: Expr) -> Expr:
    """The angle of the point (x, y) in radians within 2 units in the last place.

    With s <= b, the smaller and the larger of abs(x) and abs(y): atan(s / b), or where s > b / 2
    pi/4 + atan((s - b) / (s + b)); that is the angle in the first octant, which is mirrored. The
    signs of zeros and infinities count as IEEE 754 says.
    """
    dtype = x.dtype
    steep = prim("abs", x) < prim("abs", y)
    huge = 2.0 ** (FORMATS[dtype].bias - 1)
    large = select(steep, prim("abs", y), prim("abs", x))
    shrink = select(large < huge, constant(1.0, dtype), 0.25)  # s + b must not overflow
    b = select(prim("equal", large, 0.0), 1.0, large * shrink)
    s = select(steep, prim("abs", x), prim("abs", y)) * shrink
    middle = b <= s + s
    rise = select(prim("equal", s, b), 0.0, s - b)  # also of two infinities
    t = select(middle, rise, s) / select(middle, s + b, b)
    z = t * t
    angle = t + t * (z * polynomial(ATAN[dtype], z))
    octants = select(middle, constant(1.0, dtype), 0.0)
    octants = select(steep, -octants + 2.0, octants)
    left = prim("sign_bit", x)
    octants = select(left, -octants + 4.0, octants)
    angle = select(prim("equal", steep, left), angle, -angle)
    high, low = QUARTER_PI[dtype]
    return prim("copysign", octants * high + (octants * low + angle), y)
