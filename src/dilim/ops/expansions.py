"""Transcendental primitives written in exact ones, so that every back end gives the same bits.

An expansion uses only what IEEE 754 and integer arithmetic fix: ``+ - * /``, comparison and choice,
bit operations and `bitcast`. A back end that has those needs nothing else, and the interpreter can
run an expansion too, which makes it the test of every back end.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final

from dilim import dtypes
from dilim.dtypes import DType
from dilim.ops.expansions_log import LOG, expm1, log, log1p
from dilim.ops.expansions_sigmoid import erf, sigmoid, tanh
from dilim.ops.primitives import Expr, bitcast, constant, select
from dilim.ops.recipe import Recipe
from dilim.ops.special import hex_floats


@dataclass(frozen=True, slots=True)
class ExpConstants:
    """What `exp` needs in one precision; ``tests/ops/fit_exp.py`` makes and checks the numbers.

    Attributes:
        bits: signed integer dtype of the same size.
        mantissa: stored bits of the significand.
        bias: of the exponent.
        lowest: below this the result rounds to 0.
        highest: above this the result is infinite.
        log_two: log(2) as high + low; high times an exponent is exact.
        quotient: ``(exp(r) - 1 - r) / r**2``, lowest power first.
    """

    bits: DType
    mantissa: int
    bias: int
    lowest: float
    highest: float
    log_two: tuple[float, ...]
    quotient: tuple[float, ...]


EXP: Final = {
    dtypes.float32: ExpConstants(
        bits=dtypes.int32,
        mantissa=23,
        bias=127,
        lowest=-104.0,
        highest=89.0,
        log_two=LOG[dtypes.float32].log_two,
        quotient=hex_floats(
            "0x1.fffffcp-2 0x1.555492p-3 0x1.5558f2p-5 0x1.1239e4p-7 0x1.6a2448p-10"
        ),
    ),
    dtypes.float64: ExpConstants(
        bits=dtypes.int64,
        mantissa=52,
        bias=1023,
        lowest=-746.0,
        highest=710.0,
        log_two=LOG[dtypes.float64].log_two,
        quotient=hex_floats(
            "0x1.000000000000ap-1 0x1.55555555554fap-3 0x1.555555555087dp-5 0x1.1111111127be7p-7"
            " 0x1.6c16c1842a0ffp-10 0x1.a01a012a570b6p-13 0x1.a0199a0c691c3p-16"
            " 0x1.71df2553cf019p-19 0x1.28ad72cc4956ep-22 0x1.ad7f6c63300fap-26"
        ),
    ),
}
LOG2_E: Final = 1.4426950408889634


def exp(x: Expr) -> Expr:
    """e ** x within one unit in the last place; denormal results are rounded right.

    x = n log(2) + r with abs(r) <= log(2) / 2; then exp(x) = 2**n (1 + r + r**2 P(r)).

    Two tricks. Adding 1.5 * 2**mantissa rounds to an integer and leaves it in the low bits. 2**n
    is applied in two halves, so that each is a normal number where the result is not.
    """
    dtype, c = x.dtype, EXP[x.dtype]
    x = select(x < c.lowest, c.lowest, select(x > c.highest, c.highest, x))
    magic = constant(1.5 * 2.0**c.mantissa, dtype)
    shifted = x * LOG2_E + magic
    n = shifted - magic
    high, low = c.log_two
    r = x - n * high - n * low
    p = constant(c.quotient[-1], dtype)
    for coefficient in reversed(c.quotient[:-1]):
        p = p * r + coefficient
    power = bitcast(shifted, c.bits) - bitcast(magic, c.bits)
    half = power >> 1
    return (
        (r * r * p + r + 1) * _power_of_two(half, c, dtype) * _power_of_two(power - half, c, dtype)
    )


def _power_of_two(n: Expr, c: ExpConstants, dtype: DType) -> Expr:
    return bitcast((n + c.bias) << c.mantissa, dtype)


EXPANSIONS: Final[Mapping[str, Callable[..., Expr]]] = MappingProxyType(
    {
        "erf": erf,
        "exp": exp,
        "expm1": expm1,
        "log": log,
        "log1p": log1p,
        "sigmoid": sigmoid,
        "tanh": tanh,
    }
)
"""Name of a primitive -> from its operands to an expression of exact primitives and others here."""


def expanded(recipe: Recipe) -> Recipe:
    """The recipe with every primitive that has an expansion replaced by it."""
    return replace(recipe, body=_expand(recipe.body, {}))


def _expand(expr: Expr, done: dict[int, Expr]) -> Expr:
    """Shared parts stay shared; an expansion is expanded in turn, but for its finished operands."""
    if id(expr) not in done:
        args = tuple(_expand(arg, done) for arg in expr.args)
        if expr.op in EXPANSIONS:
            finished = {id(arg): arg for arg in args}
            done[id(expr)] = _expand(EXPANSIONS[expr.op](*args), finished)
        else:
            changed = any(a is not b for a, b in zip(args, expr.args, strict=True))
            done[id(expr)] = replace(expr, args=args) if changed else expr
    return done[id(expr)]
