"""`tanh`, `sigmoid` and `erf` in exact primitives and `exp`.

Each is at most 2 units in the last place from the true value; ``tests/ops/fit_sigmoid.py`` makes
and checks the numbers. Everything is computed in the dtype of the argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dilim import dtypes
from dilim.dtypes import DType
from dilim.ops.primitives import Expr, constant, prim, select
from dilim.ops.special import hex_floats


@dataclass(frozen=True, slots=True)
class ErfConstants:
    """What `erf` needs in one precision.

    Attributes:
        highest: from here on the result rounds to 1.
        quotient: ``erf(a) / a - 1`` for a <= 1, in powers of a**2, lowest first.
        log_erfc: ``log(1 - erf(a))`` for 1 <= a <= highest, in powers of a - 1, lowest first.
    """

    highest: float
    quotient: tuple[float, ...]
    log_erfc: tuple[float, ...]


TANH_SERIES_END: Final = 0.5625
"""A little above the argument where tanh is 1/2, so that `tanh` subtracts without cancellation."""

TANH: Final[Mapping[DType, tuple[float, ...]]] = {
    dtypes.float32: hex_floats(
        "-0x1.555548p-2 0x1.110c72p-3 -0x1.b90948p-5 0x1.582fbp-6 -0x1.950018p-8"
    ),
    dtypes.float64: hex_floats(
        "-0x1.555555555554bp-2 0x1.11111111102b6p-3 -0x1.ba1ba1b935e73p-5 0x1.664f484957105p-6"
        " -0x1.226e2d02726cfp-7 0x1.d6d247964d38ap-9 -0x1.7d8b95f7e9aa3p-10 0x1.3460ad2b882bbp-11"
        " -0x1.e80a9991bb93fp-13 0x1.597274421841dp-14 -0x1.3d281451c7e47p-16"
    ),
}
"""``(tanh(a) / a - 1) / a**2`` for a <= TANH_SERIES_END, in powers of a**2, lowest first."""

ERF: Final[Mapping[DType, ErfConstants]] = {
    dtypes.float32: ErfConstants(
        highest=4.0,
        quotient=hex_floats(
            "0x1.06eba8p-3 -0x1.81273ep-2 0x1.ce2cf8p-4 -0x1.b7f90ep-6 0x1.5405b2p-8"
            " -0x1.a3f7p-11 0x1.496a2ep-14"
        ),
        log_erfc=hex_floats(
            "-0x1.d97fcp+0 -0x1.51c9aap+1 -0x1.afad1cp-1 -0x1.53ff24p-5 0x1.444122p-7"
            " -0x1.df8fc6p-10 0x1.86dd7p-13"
        ),
    ),
    dtypes.float64: ErfConstants(
        highest=6.0,
        quotient=hex_floats(
            "0x1.06eba8214db69p-3 -0x1.812746b0379e6p-2 0x1.ce2f21a042b2p-4"
            " -0x1.b82ce3128499dp-6 0x1.565bcd0db0304p-8 -0x1.c02db3d8ed7b8p-11"
            " 0x1.f9a321a127834p-14 -0x1.f4d1df3a0427cp-17 0x1.b9def1a7371aap-20"
            " -0x1.5f1d371127c4cp-23 0x1.f7a41583553b8p-27 -0x1.386acb1d52825p-30"
            " 0x1.0579c6c5e9a1dp-34"
        ),
        log_erfc=hex_floats(
            "-0x1.d97fbf27aa2a1p+0 -0x1.51c9b0006c237p+1 -0x1.afabc11a29554p-1"
            " -0x1.5477f09c10927p-5 0x1.48c9d3ed58772p-7 -0x1.033f65e98e23bp-9"
            " 0x1.f1b398861c947p-13 0x1.b8dd44963756cp-16 -0x1.c7a4c294516abp-16"
            " 0x1.4263b75f910fbp-17 -0x1.1451bc26a2db4p-19 0x1.31039036f2838p-23"
            " 0x1.a52980f4b3f6p-24 -0x1.c0fb9ad10d57cp-25 0x1.0179fe9c2a0ebp-26"
            " -0x1.8c0a5ead310dfp-29 0x1.97e0a8c09c15p-32 -0x1.ff59f8ee690adp-36"
            " 0x1.2770d9113c48p-40"
        ),
    ),
}


def tanh(x: Expr) -> Expr:
    """The hyperbolic tangent, odd to the bit; a tiny x gives x itself.

    With a = abs(x): a + a**3 P(a**2) where a is small, else 1 - 2 / (exp(2 a) + 1), in which an
    infinite exponential gives 1.
    """
    a = prim("abs", x)
    square = a * a
    near = a + a * square * _polynomial(TANH[x.dtype], square)
    far = constant(1, x.dtype) - constant(2, x.dtype) / (prim("exp", a + a) + 1)
    return prim("copysign", select(a < TANH_SERIES_END, near, far), x)


def sigmoid(x: Expr) -> Expr:
    """1 / (1 + exp(-x)) without overflow; denormal results are right as those of `exp` are.

    With e = exp(-abs(x)): 1 / (1 + e) for x >= 0 and s = e / (1 + e) below. Where e < 1/2 that is
    taken as e - e s: the rounding of 1 + e then touches a small correction only.
    """
    e = prim("exp", -prim("abs", x))
    s = select(x < 0, e, 1) / (e + 1)
    return select(x < -0.7, e - e * s, s)


def erf(x: Expr) -> Expr:
    """The error function, odd to the bit.

    With a = abs(x): a + a P(a**2) for a < 1, else 1 - exp(Q(a - 1)), where Q is the logarithm of
    the complement, at most 0.16, so that errors of Q and exp hardly count.
    """
    c = ERF[x.dtype]
    a = prim("abs", x)
    near = a + a * _polynomial(c.quotient, a * a)
    beyond = select(a > c.highest, c.highest, a) - 1
    far = constant(1, x.dtype) - prim("exp", _polynomial(c.log_erfc, beyond))
    return prim("copysign", select(a < 1, near, far), x)


def _polynomial(coefficients: tuple[float, ...], x: Expr) -> Expr:
    """The sum of coefficients times powers of x, the lowest power first."""
    total = constant(coefficients[-1], x.dtype)
    for coefficient in reversed(coefficients[:-1]):
        total = total * x + coefficient
    return total
