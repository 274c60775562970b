"""`sigmoid` and `erf` in exact primitives and `exp`.

Each is at most 2 units in the last place from the true value; ``tests/ops/fit_sigmoid.py`` makes
and checks the numbers. Everything is computed in the dtype of the argument.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dilim import dtypes
from dilim.dtypes import DType
from dilim.ops.expansions_float import polynomial
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


ERF: Final[Mapping[DType, ErfConstants]] = {
    dtypes.float32: ErfConstants(
        highest=4.0,
        quotient=hex_floats(
            "0x1.06eba8p-3 -0x1.81273ep-2 0x1.ce2cf8p-4 -0x1.b7f90ep-6 0x1.5405b2p-8"
            " -0x1.a3f706p-11 0x1.496a42p-14"
        ),
        log_erfc=hex_floats(
            "-0x1.d97fcp+0 -0x1.51c9aap+1 -0x1.afad1cp-1 -0x1.53ff22p-5 0x1.44410ap-7"
            " -0x1.df8f26p-10 0x1.86dbfep-13"
        ),
    ),
    dtypes.float64: ErfConstants(
        highest=6.0,
        quotient=hex_floats(
            "0x1.06eba8214db69p-3 -0x1.812746b0379e6p-2 0x1.ce2f21a042b2p-4"
            " -0x1.b82ce3128499cp-6 0x1.565bcd0db02d8p-8 -0x1.c02db3d8ecffcp-11"
            " 0x1.f9a321a1197a3p-14 -0x1.f4d1df38f56bdp-17 0x1.b9def1998ae92p-20"
            " -0x1.5f1d369c2aa18p-23 0x1.f7a4108d59e9fp-27 -0x1.386abba87d4a9p-30"
            " 0x1.05799cb1f868dp-34"
        ),
        log_erfc=hex_floats(
            "-0x1.d97fbf27aa2a1p+0 -0x1.51c9b0006c237p+1 -0x1.afabc11a29553p-1"
            " -0x1.5477f09c109bbp-5 0x1.48c9d3ed5a086p-7 -0x1.033f65e9b693ep-9"
            " 0x1.f1b39890cdae1p-13 0x1.b8dd439be64aap-16 -0x1.c7a4c0887a2c9p-16"
            " 0x1.4263b11dcb07p-17 -0x1.14519fd31e225p-19 0x1.31021209ef1b9p-23"
            " 0x1.a52b6120b618p-24 -0x1.c0fd58f897ba3p-25 0x1.017b2c14c5d29p-26"
            " -0x1.8c0c9d36a1aap-29 0x1.97e382e21d35dp-32 -0x1.ff5e4d6aab748p-36"
            " 0x1.2773d03acb44fp-40"
        ),
    ),
}


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
    near = a + a * polynomial(c.quotient, a * a)
    beyond = select(a > c.highest, c.highest, a) - 1
    far = constant(1, x.dtype) - prim("exp", polynomial(c.log_erfc, beyond))
    return prim("copysign", select(a < 1, near, far), x)
