"""Exponential, logarithmic, trigonometric and hyperbolic functions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dilim.ops import expansions_log, special
from dilim.ops.build import unary
from dilim.ops.primitives import Expr, constant, prim, select

# --- exponentials ---------------------------------------------------------------------------

exp = unary(
    "exp",
    "e ** x; derivative exp(x).",
    np.exp,
    lambda x: prim("exp", x),
    lambda b, g, out, x: b.multiply_no_nan(g, out),
    formula=math.exp,
)
expm1 = unary(
    "expm1",
    "exp(x) - 1, accurate near 0.",
    np.expm1,
    lambda x: prim("expm1", x),
    lambda b, g, out, x: b.multiply_no_nan(g, b.add(out, 1.0)),
    formula=math.expm1,
)
log = unary(
    "log",
    "Natural logarithm; -inf at 0, NaN below. Derivative 1 / x.",
    np.log,
    lambda x: prim("log", x),
    lambda b, g, out, x: b.multiply_no_nan(g, b.divide(1.0, x)),
    formula=math.log,
    low=0.2,
    high=4.0,
)
log1p = unary(
    "log1p",
    "log(1 + x), accurate near 0. Derivative 1 / (1 + x).",
    np.log1p,
    lambda x: prim("log1p", x),
    lambda b, g, out, x: b.multiply_no_nan(g, b.divide(1.0, b.add(x, 1.0))),
    formula=math.log1p,
    low=-0.8,
    high=4.0,
)
log2 = unary(
    "log2",
    "Logarithm to base 2. Derivative 1 / (x ln 2).",
    np.log2,
    expansions_log.log2,
    lambda b, g, out, x: b.multiply_no_nan(g, b.divide(1.0, b.multiply(x, math.log(2)))),
    formula=math.log2,
    low=0.2,
    high=4.0,
    tolerance=4,
)
log10 = unary(
    "log10",
    "Logarithm to base 10. Derivative 1 / (x ln 10).",
    np.log10,
    expansions_log.log10,
    lambda b, g, out, x: b.multiply_no_nan(g, b.divide(1.0, b.multiply(x, math.log(10)))),
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
    lambda b, g, out, x: b.multiply_no_nan(g, b.add(b.multiply(out, out), 1.0)),
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
    lambda b, g, out, x: b.multiply_no_nan(g, b.divide(1.0, _root(b, x))),
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
    lambda b, g, out, x: b.multiply_no_nan(g, b.divide(-1.0, _root(b, x))),
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
    a, large, factor = _halved_late(x)
    e = prim("expm1", a)
    return prim("copysign", select(large, e * factor, (e + e / (e + 1)) / 2), x)


def _cosh_body(x: Expr) -> Expr:
    a, large, factor = _halved_late(x)
    e = prim("exp", a)
    return select(large, e * factor, (e + constant(1, x.dtype) / e) / 2)


def _halved_late(x: Expr) -> tuple[Expr, Expr, float]:
    """abs(x), less 1 where it is large, whether it is, and what then times its exp is exp(x) / 2.

    exp(x) itself overflows before exp(x) / 2 does.
    """
    a = prim("abs", x)
    large = constant(40, x.dtype) < a
    return select(large, a - 1, a), large, math.e / 2


def _asinh_body(x: Expr) -> Expr:
    a = prim("abs", x)
    root = prim("sqrt", a * a + 1)
    return prim("copysign", _log1p_or_log_twice(a + a * a / (root + 1), a), x)


def _acosh_body(x: Expr) -> Expr:
    t = x - 1
    return _log1p_or_log_twice(t + prim("sqrt", t * 2 + t * t), x)


def _atanh_body(x: Expr) -> Expr:
    a = prim("abs", x)
    return prim("copysign", prim("log1p", a * 2 / (-a + 1)) / 2, x)


def _log1p_or_log_twice(y: Expr, x: Expr) -> Expr:
    """log(1 + y), or log(2 x) where the square of x in y could overflow; there 1 counts nothing."""
    large = constant(2.0**60, x.dtype) < x
    value = prim("log1p", select(large, x, y))
    return value + select(large, constant(math.log(2), x.dtype), 0.0)


sinh = unary(
    "sinh",
    "Hyperbolic sine; derivative cosh(x).",
    np.sinh,
    _sinh_body,
    lambda b, g, out, x: b.multiply_no_nan(g, b.cosh(x)),
    formula=math.sinh,
    tolerance=4,
)
cosh = unary(
    "cosh",
    "Hyperbolic cosine; derivative sinh(x).",
    np.cosh,
    _cosh_body,
    lambda b, g, out, x: b.multiply_no_nan(g, b.sinh(x)),
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
    lambda b, g, out, x: b.multiply_no_nan(
        g, b.divide(1.0, b.sqrt(b.multiply(b.subtract(x, 1.0), b.add(x, 1.0))))
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
    _atanh_body,
    lambda b, g, out, x: b.multiply_no_nan(
        g, b.divide(1.0, b.multiply(b.subtract(1.0, x), b.add(x, 1.0)))
    ),
    formula=math.atanh,
    low=-0.9,
    high=0.9,
    tolerance=8,
)

OPS = (
    exp, expm1, log, log1p, log2, log10, tanh, sigmoid, erf, sin, cos, tan, asin, acos, atan,
    sinh, cosh, asinh, acosh, atanh,
)  # fmt: skip
