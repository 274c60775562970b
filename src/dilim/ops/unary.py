"""Elementwise operations of one input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dilim import dtypes
from dilim.ops.build import same_type, to_bool, unary, zero_like
from dilim.ops.opdef import OpDef
from dilim.ops.primitives import Expr, constant, prim, select

NUMERIC, FLOATING = dtypes.NUMERIC, dtypes.FLOATING


identity = unary(
    "identity",
    "The same numbers in memory of their own.",
    lambda x: np.array(x, order="C"),
    lambda x: x,
    lambda b, g, out, x: g,
    formula=lambda x: x,
    allowed=dtypes.ALL,
    wanted="any",
)

# --- arithmetic -----------------------------------------------------------------------------

abs_ = unary(
    "abs",
    "Absolute value; derivative sign(x), 0 at 0.",
    np.abs,
    lambda x: prim("abs", x),
    lambda b, g, out, x: b.multiply(g, b.sign(x)),
    formula=abs,
    allowed=NUMERIC,
    wanted="numeric",
    avoid=(0.0,),
)
negative = unary(
    "negative",
    "-x; integers wrap.",
    np.negative,
    lambda x: -x,
    lambda b, g, out, x: b.negative(g),
    formula=lambda x: -x,
    allowed=NUMERIC,
    wanted="numeric",
)
sign = unary(
    "sign",
    "-1, 0 or 1; NaN for NaN. Derivative 0.",
    np.sign,
    lambda x: select(
        x > 0, constant(1, x.dtype), select(x < 0, constant(-1, x.dtype), _zero_or_nan(x))
    ),
    zero_like,
    formula=lambda x: (x > 0) - (x < 0),
    allowed=NUMERIC,
    wanted="numeric",
    avoid=(0.0,),
)


def _zero_or_nan(x: Expr) -> Expr:
    return select(prim("is_nan", x), x, 0) if x.dtype.is_floating else constant(0, x.dtype)


sqrt = unary(
    "sqrt",
    "Square root, correctly rounded; NaN below 0. Derivative 1 / (2 sqrt(x)).",
    np.sqrt,
    lambda x: prim("sqrt", x),
    lambda b, g, out, x: b.multiply_no_nan(g, b.divide(0.5, out)),
    formula=math.sqrt,
    low=0.2,
    high=4.0,
)
relu = unary(
    "relu",
    "max(x, 0), NaN kept; derivative 1 where x > 0, else 0.",
    lambda x: np.maximum(x, 0),
    lambda x: prim("maximum", x, 0),
    lambda b, g, out, x: b.where(b.greater(x, 0), g, 0),
    formula=lambda x: x if x > 0 else type(x)(0),
    allowed=NUMERIC,
    wanted="numeric",
    avoid=(0.0,),
)

# --- rounding -------------------------------------------------------------------------------


def _rounding(name: str, doc: str, function: Any, formula: Any) -> OpDef:
    def reference(x: np.ndarray) -> np.ndarray:
        result: np.ndarray = function(x) if x.dtype.kind == "f" else x.copy()
        return result

    def body(x: Expr) -> Expr:
        return prim(name, x) if x.dtype.is_floating else x

    return unary(
        name,
        doc + " Integers stay as they are. Derivative 0.",
        reference,
        body,
        zero_like,
        formula=formula,
        allowed=NUMERIC,
        wanted="numeric",
        avoid=(-2.0, -1.5, -1.0, -0.5, 0.0, 0.5, 1.0, 1.5, 2.0),
    )


floor = _rounding("floor", "Largest integer <= x.", np.floor, math.floor)
ceil = _rounding("ceil", "Smallest integer >= x.", np.ceil, math.ceil)
trunc = _rounding("trunc", "x without its fraction.", np.trunc, math.trunc)
round_ = _rounding("round", "Nearest integer, halves to even.", np.rint, round)

# --- tests and bits -------------------------------------------------------------------------


def _float_test(name: str, doc: str, reference: Any, body: Any, formula: Any) -> OpDef:
    def any_body(x: Expr) -> Expr:
        result: Expr = body(x) if x.dtype.is_floating else prim("less", x, x)
        return result

    return unary(
        name,
        doc,
        reference,
        any_body,
        formula=formula,
        infer=to_bool(name, NUMERIC, "numeric"),
        allowed=NUMERIC,
        wanted="numeric",
    )


def _is_infinite(x: Expr) -> Expr:
    return prim("equal", prim("abs", x), math.inf)


isnan = _float_test(
    "isnan", "True where x is NaN.", np.isnan, lambda x: prim("is_nan", x), math.isnan
)
isinf = _float_test("isinf", "True where x is infinite.", np.isinf, _is_infinite, math.isinf)
isfinite = unary(
    "isfinite",
    "True where x is neither NaN nor infinite.",
    np.isfinite,
    lambda x: (
        prim("less", prim("abs", x), math.inf) if x.dtype.is_floating else prim("equal", x, x)
    ),
    formula=math.isfinite,
    infer=to_bool("isfinite", NUMERIC, "numeric"),
    allowed=NUMERIC,
    wanted="numeric",
)
signbit = unary(
    "signbit",
    "True for negative numbers and -0.0. NaN has no sign: False.",
    lambda x: np.signbit(x) & (x == x),  # which NaN an operation makes depends on the machine
    lambda x: prim("sign_bit", x) & prim("equal", x, x),
    formula=lambda x: math.copysign(1, x) < 0,
    infer=to_bool("signbit", FLOATING, "floating"),
)
logical_not = unary(
    "logical_not",
    "True where x is False.",
    np.logical_not,
    lambda x: prim("equal", x, False),
    formula=lambda x: not x,
    allowed=(dtypes.bool_,),
    wanted="bool",
)
bitwise_invert = unary(
    "bitwise_invert",
    "Every bit flipped; logical not for bools.",
    np.invert,
    lambda x: prim("equal", x, False) if x.dtype is dtypes.bool_ else x ^ _all_ones(x),
    formula=lambda x: not x if isinstance(x, bool) else ~x,
    infer=same_type("bitwise_invert", (dtypes.bool_, *dtypes.INTEGER), "bool or integer"),
    allowed=(dtypes.bool_, *dtypes.INTEGER),
    wanted="bool or integer",
)


def _all_ones(x: Expr) -> Expr:
    return constant(-1 if x.dtype.kind == "int" else 2 ** (8 * x.dtype.itemsize) - 1, x.dtype)


OPS = (
    identity, abs_, negative, sign, sqrt, relu, floor, ceil, trunc, round_, isnan, isinf,
    isfinite, signbit, logical_not, bitwise_invert,
)  # fmt: skip
