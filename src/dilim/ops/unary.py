"""Elementwise operations of one input."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dilim import dtypes
from dilim.ops import special
from dilim.ops.build import same_type, to_bool, unary, zero_like
from dilim.ops.opdef import OpDef
from dilim.ops.primitives import Expr, constant, prim, select

NUMERIC, FLOATING = dtypes.NUMERIC, dtypes.FLOATING


def _safe(b: Any, g: Any, local: Any) -> Any:
    """``g * local``, but 0 where g is 0 and the local derivative is not finite."""
    return b.multiply_no_nan(g, local)


identity = unary(
    "identity",
    "x itself, as a new value.",
    lambda x: x,
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
    lambda b, g, out, x: _safe(b, g, b.divide(0.5, out)),
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

# --- exponentials ---------------------------------------------------------------------------

exp = unary(
    "exp",
    "e ** x; derivative exp(x).",
    np.exp,
    lambda x: prim("exp", x),
    lambda b, g, out, x: b.multiply(g, out),
    formula=math.exp,
)
expm1 = unary(
    "expm1",
    "exp(x) - 1, accurate near 0.",
    np.expm1,
    lambda x: prim("expm1", x),
    lambda b, g, out, x: b.multiply(g, b.add(out, 1.0)),
    formula=math.expm1,
)
log = unary(
    "log",
    "Natural logarithm; -inf at 0, NaN below. Derivative 1 / x.",
    np.log,
    lambda x: prim("log", x),
    lambda b, g, out, x: _safe(b, g, b.divide(1.0, x)),
    formula=math.log,
    low=0.2,
    high=4.0,
)
log1p = unary(
    "log1p",
    "log(1 + x), accurate near 0. Derivative 1 / (1 + x).",
    np.log1p,
    lambda x: prim("log1p", x),
    lambda b, g, out, x: _safe(b, g, b.divide(1.0, b.add(x, 1.0))),
    formula=math.log1p,
    low=-0.8,
    high=4.0,
)
log2 = unary(
    "log2",
    "Logarithm to base 2. Derivative 1 / (x ln 2).",
    np.log2,
    lambda x: prim("log", x) / math.log(2),
    lambda b, g, out, x: _safe(b, g, b.divide(1.0, b.multiply(x, math.log(2)))),
    formula=math.log2,
    low=0.2,
    high=4.0,
    tolerance=4,
)
log10 = unary(
    "log10",
    "Logarithm to base 10. Derivative 1 / (x ln 10).",
    np.log10,
    lambda x: prim("log", x) / math.log(10),
    lambda b, g, out, x: _safe(b, g, b.divide(1.0, b.multiply(x, math.log(10)))),
    formula=math.log10,
    low=0.2,
    high=4.0,
    tolerance=4,
)
tanh = unary(
    "tanh",
    "Hyperbolic tangent; derivative 1 - tanh(x)^2.",
    np.tanh,
    lambda x: prim("tanh", x),
    lambda b, g, out, x: b.multiply(g, b.subtract(1.0, b.multiply(out, out))),
    formula=math.tanh,
)
sigmoid = unary(
    "sigmoid",
    "1 / (1 + exp(-x)) without overflow; derivative s (1 - s).",
    special.sigmoid,
    lambda x: prim("sigmoid", x),
    lambda b, g, out, x: b.multiply(g, b.multiply(out, b.subtract(1.0, out))),
    formula=lambda x: 1 / (1 + math.exp(-x)),
)
erf = unary(
    "erf",
    "The error function; derivative 2 / sqrt(pi) * exp(-x^2).",
    special.erf,
    lambda x: prim("erf", x),
    lambda b, g, out, x: b.multiply(
        g, b.multiply(b.exp(b.negative(b.multiply(x, x))), 2 / math.sqrt(math.pi))
    ),
    formula=math.erf,
)

# --- trigonometric and hyperbolic -----------------------------------------------------------


def _root(b: Any, x: Any) -> Any:
    """sqrt((1 - x)(1 + x)): keeps its digits near -1 and 1."""
    return b.sqrt(b.multiply(b.subtract(1.0, x), b.add(x, 1.0)))


sin = unary(
    "sin",
    "Sine of x in radians.",
    np.sin,
    lambda x: prim("sin", x),
    lambda b, g, out, x: b.multiply(g, b.cos(x)),
    formula=math.sin,
)
cos = unary(
    "cos",
    "Cosine of x in radians.",
    np.cos,
    lambda x: prim("cos", x),
    lambda b, g, out, x: b.negative(b.multiply(g, b.sin(x))),
    formula=math.cos,
)
tan = unary(
    "tan",
    "Tangent of x in radians; derivative 1 + tan(x)^2.",
    np.tan,
    lambda x: prim("sin", x) / prim("cos", x),
    lambda b, g, out, x: b.multiply(g, b.add(b.multiply(out, out), 1.0)),
    formula=math.tan,
    low=-1.2,
    high=1.2,
    tolerance=4,
)
asin = unary(
    "asin",
    "Arc sine in radians; derivative 1 / sqrt(1 - x^2).",
    np.arcsin,
    lambda x: prim("atan2", x, prim("sqrt", (-x + 1) * (x + 1))),
    lambda b, g, out, x: _safe(b, g, b.divide(1.0, _root(b, x))),
    formula=math.asin,
    low=-0.9,
    high=0.9,
    tolerance=4,
)
acos = unary(
    "acos",
    "Arc cosine in radians; derivative -1 / sqrt(1 - x^2).",
    np.arccos,
    lambda x: prim("atan2", prim("sqrt", (-x + 1) * (x + 1)), x),
    lambda b, g, out, x: _safe(b, g, b.divide(-1.0, _root(b, x))),
    formula=math.acos,
    low=-0.9,
    high=0.9,
    tolerance=4,
)
atan = unary(
    "atan",
    "Arc tangent in radians; derivative 1 / (1 + x^2).",
    np.arctan,
    lambda x: prim("atan2", x, constant(1.0, x.dtype)),
    lambda b, g, out, x: b.divide(g, b.add(b.multiply(x, x), 1.0)),
    formula=math.atan,
    tolerance=4,
)


def _sinh_body(x: Expr) -> Expr:
    e = prim("expm1", prim("abs", x))
    return prim("copysign", (e + e / (e + 1)) / 2, x)


def _asinh_body(x: Expr) -> Expr:
    a = prim("abs", x)
    root = prim("sqrt", a * a + 1)
    return prim("copysign", prim("log1p", a + a * a / (root + 1)), x)


def _acosh_body(x: Expr) -> Expr:
    t = x - 1
    return prim("log1p", t + prim("sqrt", t * 2 + t * t))


sinh = unary(
    "sinh",
    "Hyperbolic sine; derivative cosh(x).",
    np.sinh,
    _sinh_body,
    lambda b, g, out, x: b.multiply(g, b.cosh(x)),
    formula=math.sinh,
    tolerance=4,
)
cosh = unary(
    "cosh",
    "Hyperbolic cosine; derivative sinh(x).",
    np.cosh,
    lambda x: (prim("exp", x) + prim("exp", -x)) / 2,
    lambda b, g, out, x: b.multiply(g, b.sinh(x)),
    formula=math.cosh,
    tolerance=4,
)
asinh = unary(
    "asinh",
    "Inverse hyperbolic sine; derivative 1 / sqrt(x^2 + 1).",
    np.arcsinh,
    _asinh_body,
    lambda b, g, out, x: b.divide(g, b.sqrt(b.add(b.multiply(x, x), 1.0))),
    formula=math.asinh,
    tolerance=4,
)
acosh = unary(
    "acosh",
    "Inverse hyperbolic cosine, x >= 1; derivative 1 / sqrt(x^2 - 1).",
    np.arccosh,
    _acosh_body,
    lambda b, g, out, x: _safe(
        b, g, b.divide(1.0, b.sqrt(b.multiply(b.subtract(x, 1.0), b.add(x, 1.0))))
    ),
    formula=math.acosh,
    low=1.2,
    high=4.0,
    tolerance=4,
)
atanh = unary(
    "atanh",
    "Inverse hyperbolic tangent, |x| < 1; derivative 1 / (1 - x^2).",
    np.arctanh,
    lambda x: prim("log1p", x * 2 / (-x + 1)) / 2,
    lambda b, g, out, x: _safe(b, g, b.divide(1.0, b.multiply(b.subtract(1.0, x), b.add(x, 1.0)))),
    formula=math.atanh,
    low=-0.9,
    high=0.9,
    tolerance=8,
)

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
    "True where the sign bit of x is set (also for -0.0).",
    np.signbit,
    lambda x: prim("sign_bit", x),
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
    identity, abs_, negative, sign, sqrt, relu, floor, ceil, trunc, round_, exp, expm1, log, log1p,
    log2, log10, tanh, sigmoid, erf, sin, cos, tan, asin, acos, atan, sinh, cosh, asinh, acosh,
    atanh, isnan, isinf, isfinite, signbit, logical_not, bitwise_invert,
)  # fmt: skip
