"""Elementwise operations of two and three inputs."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dilim import dtypes
from dilim.ops.build import binary
from dilim.ops.opdef import OpDef
from dilim.ops.primitives import Expr, check, prim, select

FLOATING, INTEGER, BOOL = dtypes.FLOATING, dtypes.INTEGER, (dtypes.bool_,)


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float))


# --- arithmetic -----------------------------------------------------------------------------

add = binary(
    "add",
    "x + y; integers wrap.",
    np.add,
    lambda x, y: x + y,
    (lambda b, g, out, x, y: g, lambda b, g, out, x, y: g),
    formula=lambda x, y: x + y,
)
subtract = binary(
    "subtract",
    "x - y; integers wrap.",
    np.subtract,
    lambda x, y: x - y,
    (lambda b, g, out, x, y: g, lambda b, g, out, x, y: b.negative(g)),
    formula=lambda x, y: x - y,
)
multiply = binary(
    "multiply",
    "x * y; integers wrap.",
    np.multiply,
    lambda x, y: x * y,
    (lambda b, g, out, x, y: _times(b, g, y), lambda b, g, out, x, y: _times(b, g, x)),
    formula=lambda x, y: x * y,
)


def _times(b: Any, g: Any, factor: Any) -> Any:
    """``g * factor``; a gradient of 0 stays 0 where the factor is not finite."""
    if _is_number(factor) and math.isfinite(factor):
        return b.multiply(g, factor)
    return b.multiply_no_nan(g, factor)


def _multiply_no_nan(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    product = np.multiply(x, y)
    singular = np.equal(x, 0) & ~np.isfinite(y)
    return np.asarray(np.where(singular, np.zeros_like(product), product))


def _multiply_no_nan_kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The plain product unless something in it is not finite."""
    product = np.asarray(np.multiply(x, y))
    return product if math.isfinite(np.vdot(product, product)) else _multiply_no_nan(x, y)


multiply_no_nan = binary(
    "multiply_no_nan",
    "x * y, but 0 where x is 0 and y is not finite: how a gradient passes a singular derivative.",
    _multiply_no_nan,
    lambda x, y: select(prim("equal", x, 0), select(_finite(y), x * y, 0), x * y),
    (
        lambda b, g, out, x, y: b.multiply_no_nan(g, y),
        lambda b, g, out, x, y: b.multiply_no_nan(g, x),
    ),
    formula=lambda x, y: 0.0 if x == 0 and not math.isfinite(y) else x * y,
    kernel=_multiply_no_nan_kernel,
    allowed=FLOATING,
    wanted="floating",
)


def _finite(x: Expr) -> Expr:
    return prim("less", prim("abs", x), math.inf)


def _divide_first(b: Any, g: Any, out: Any, x: Any, y: Any) -> Any:
    if _is_number(y) and y != 0:
        return b.divide(g, y)
    return b.multiply_no_nan(g, b.divide(1.0, y))


divide = binary(
    "divide",
    "x / y on floats; by zero gives an infinity or NaN.",
    np.divide,
    lambda x, y: x / y,
    (
        _divide_first,
        lambda b, g, out, x, y: b.multiply_no_nan(g, b.negative(b.divide(out, y))),
    ),
    formula=lambda x, y: x / y,
    allowed=FLOATING,
    wanted="floating",
    second=(0.3, 2.0),
)


def _floor_divide_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """The floor of the exact quotient; of the IEEE quotient where an operand is infinite."""
    result = np.floor_divide(x, y)
    if result.dtype.kind == "f":
        infinite = np.isinf(x) | np.isinf(y)
        if infinite.any():
            result = np.where(infinite, np.floor(np.divide(x, y)), result)
    return np.asarray(result)


def _floor_divide_body(x: Expr, y: Expr) -> Expr:
    if not x.dtype.is_floating:
        return x // y
    return select(
        _finite(x), select(_finite(y), x // y, prim("floor", x / y)), prim("floor", x / y)
    )


floor_divide = binary(
    "floor_divide",
    "floor(x / y); an integer divided by 0 gives 0. Derivative 0.",
    _floor_divide_reference,
    _floor_divide_body,
    (
        lambda b, g, out, x, y: b.full(shape=x.shape, value=0.0, dtype=x.dtype),
        lambda b, g, out, x, y: b.full(shape=y.shape, value=0.0, dtype=y.dtype),
    ),
    formula=lambda x, y: x // y,
    low=0.5,
    high=3.0,
    second=(1.0, 3.0),
    smooth=False,
)
remainder = binary(
    "remainder",
    "x - y * floor(x / y), with the sign of y; an integer modulo 0 gives 0.",
    np.remainder,
    lambda x, y: x % y,
    (
        lambda b, g, out, x, y: g,
        lambda b, g, out, x, y: b.negative(b.multiply(g, b.floor_divide(x, y))),
    ),
    formula=lambda x, y: x % y,
    low=0.5,
    high=3.0,
    second=(1.0, 3.0),
    smooth=False,
)


def _pow_base(b: Any, g: Any, out: Any, x: Any, y: Any) -> Any:
    if _is_number(y):
        if y == 0:
            return b.full(shape=x.shape, value=0.0, dtype=x.dtype)
        if y == 1:
            return g
        if y == 2:
            return _times(b, g, b.multiply(x, 2.0))
        return b.multiply_no_nan(g, b.multiply(b.pow(x, y - 1), float(y)))
    # y - 1 is made 0 where y is 0, so that 0 * 0 ** -1 is not NaN
    lower = b.where(b.equal(y, 0), 0.0, b.subtract(y, 1.0))
    return b.multiply_no_nan(g, b.multiply(b.pow(x, lower), y))


def _pow_exponent(b: Any, g: Any, out: Any, x: Any, y: Any) -> Any:
    # 0 ** y is constant for y > 0; the logarithm of 0 is kept out of the product
    base = x if not _is_number(x) else b.full(shape=(), value=float(x), dtype=y.dtype)
    zero = b.logical_and(b.equal(base, 0), b.greater_equal(y, 0))
    safe = b.where(zero, 1.0, base)
    return b.multiply_no_nan(g, b.multiply(out, b.log(safe)))


def _pow_reference(x: Any, y: Any) -> Any:
    if np.result_type(x, y).kind in "iu":
        negative = np.asarray(y)[np.less(y, 0)]
        if negative.size:
            raise _negative_exponent(int(negative[0]))
    return np.power(x, y)


def _negative_exponent(value: int, *types: Any) -> Exception:
    return ValueError(
        f"pow: expected exponents >= 0 for integers, received {value}; cast to a floating dtype "
        "first"
    )


def _pow_body(x: Expr, y: Expr) -> Expr:
    return prim("pow", x, check(y >= 0, y) if y.dtype in dtypes.SIGNED else y)


pow_ = binary(
    "pow",
    "x ** y. x ** 0 is 1 with derivative 0, also at x = 0; integers need y >= 0 and wrap.",
    _pow_reference,
    _pow_body,
    (_pow_base, _pow_exponent),
    failure=_negative_exponent,
    failing=dtypes.SIGNED,
    formula=lambda x, y: x**y,
    low=0.3,
    high=2.0,
    second=(0.0, 2.5),
    tolerance=2,  # NumPy's own result depends on the layout of its input
)
atan2 = binary(
    "atan2",
    "Angle of the point (y, x) in radians, from -pi to pi.",
    np.arctan2,
    lambda x, y: prim("atan2", x, y),
    (
        lambda b, g, out, x, y: b.multiply_no_nan(g, b.divide(y, _square_sum(b, x, y))),
        lambda b, g, out, x, y: b.multiply_no_nan(g, b.negative(b.divide(x, _square_sum(b, x, y)))),
    ),
    formula=math.atan2,
    allowed=FLOATING,
    wanted="floating",
    low=0.3,
    high=2.0,
    tolerance=2,  # as for pow
)


def _square_sum(b: Any, x: Any, y: Any) -> Any:
    return b.add(b.multiply(x, x), b.multiply(y, y))


def _hypot_body(x: Expr, y: Expr) -> Expr:
    a, c = prim("abs", x), prim("abs", y)
    big, small = prim("maximum", a, c), prim("minimum", a, c)
    ratio = select(prim("equal", big, 0), 0.0, small / big)
    return big * prim("sqrt", ratio * ratio + 1)


hypot = binary(
    "hypot",
    "sqrt(x^2 + y^2) without overflow; derivative 0 at the origin.",
    np.hypot,
    _hypot_body,
    (
        lambda b, g, out, x, y: b.multiply(g, _ratio_or_zero(b, x, out)),
        lambda b, g, out, x, y: b.multiply(g, _ratio_or_zero(b, y, out)),
    ),
    formula=math.hypot,
    allowed=FLOATING,
    wanted="floating",
    low=0.3,
    high=2.0,
    tolerance=4,
)


def _ratio_or_zero(b: Any, x: Any, length: Any) -> Any:
    zero = b.equal(length, 0)
    return b.where(zero, 0.0, b.divide(x, b.where(zero, 1.0, length)))


def _logaddexp_body(x: Expr, y: Expr) -> Expr:
    difference = x - y
    larger = prim("maximum", x, y) + prim("log1p", prim("exp", -prim("abs", difference)))
    return select(prim("equal", x, y), x + math.log(2), larger)


logaddexp = binary(
    "logaddexp",
    "log(exp(x) + exp(y)) without overflow; derivatives sigmoid(x - y) and sigmoid(y - x).",
    np.logaddexp,
    _logaddexp_body,
    (
        lambda b, g, out, x, y: b.multiply(g, b.sigmoid(b.subtract(x, y))),
        lambda b, g, out, x, y: b.multiply(g, b.sigmoid(b.subtract(y, x))),
    ),
    formula=lambda x, y: math.log(math.exp(x) + math.exp(y)),
    allowed=FLOATING,
    wanted="floating",
    tolerance=8,
)


def _extremum(name: str, doc: str, reference: Any, wins: str, formula: Any) -> OpDef:
    def share(b: Any, g: Any, winner: Any, loser: Any) -> Any:
        half = b.where(b.equal(winner, loser), b.multiply(g, 0.5), 0.0)
        return b.where(getattr(b, wins)(winner, loser), g, half)

    return binary(
        name,
        doc + " NaN if either is NaN; a tie shares the gradient equally.",
        reference,
        lambda x, y: prim(name, x, y),
        (
            lambda b, g, out, x, y: share(b, g, x, y),
            lambda b, g, out, x, y: share(b, g, y, x),
        ),
        formula=formula,
    )


maximum = _extremum("maximum", "The larger of x and y.", np.maximum, "greater", max)
minimum = _extremum("minimum", "The smaller of x and y.", np.minimum, "less", min)
copysign = binary(
    "copysign",
    "|x| with the sign of y; |x| where y is NaN.",
    lambda x, y: np.copysign(x, np.where(np.isnan(y), y.dtype.type(1), y)),
    lambda x, y: prim("copysign", x, select(prim("is_nan", y), 1.0, y)),
    (
        lambda b, g, out, x, y: b.multiply(g, b.multiply(b.sign(x), b.copysign(1.0, y))),
        lambda b, g, out, x, y: b.full(shape=y.shape, value=0.0, dtype=y.dtype),
    ),
    formula=math.copysign,
    allowed=FLOATING,
    wanted="floating",
)
nextafter = binary(
    "nextafter",
    "The next representable number after x towards y.",
    np.nextafter,
    lambda x, y: prim("nextafter", x, y),
    allowed=FLOATING,
    wanted="floating",
)

OPS = (
    add, subtract, multiply, multiply_no_nan, divide, floor_divide, remainder, pow_, atan2,
    hypot, logaddexp, maximum, minimum, copysign, nextafter,
)  # fmt: skip
