"""Comparison, logic, bits, and choice between two inputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dilim import dtypes, shapes
from dilim.dtypes import DType
from dilim.ir.types import Typed
from dilim.ops.build import binary, draw, require
from dilim.ops.opdef import OpDef, Sample
from dilim.ops.primitives import Expr, prim, select
from dilim.ops.recipe import elementwise
from dilim.shapes import Shape

FLOATING, INTEGER, BOOL = dtypes.FLOATING, dtypes.INTEGER, (dtypes.bool_,)

# --- comparison -----------------------------------------------------------------------------


def _comparison(name: str, symbol: str, reference: Any, body: Any, formula: Any) -> OpDef:
    ordered = name not in ("equal", "not_equal")
    return binary(
        name,
        f"x {symbol} y, as bools.",
        reference,
        body,
        formula=formula,
        allowed=dtypes.NUMERIC if ordered else dtypes.ALL,
        wanted="numeric" if ordered else "any",
        result=dtypes.bool_,
    )


equal = _comparison("equal", "==", np.equal, lambda x, y: prim("equal", x, y), lambda x, y: x == y)
not_equal = _comparison(
    "not_equal",
    "!=",
    np.not_equal,
    lambda x, y: prim("equal", prim("equal", x, y), False),
    lambda x, y: x != y,
)
less = _comparison("less", "<", np.less, lambda x, y: x < y, lambda x, y: x < y)
less_equal = _comparison(
    "less_equal", "<=", np.less_equal, lambda x, y: x <= y, lambda x, y: x <= y
)
greater = _comparison("greater", ">", np.greater, lambda x, y: x > y, lambda x, y: x > y)
greater_equal = _comparison(
    "greater_equal", ">=", np.greater_equal, lambda x, y: x >= y, lambda x, y: x >= y
)

# --- logic and bits -------------------------------------------------------------------------


def _logical(name: str, word: str, reference: Any, primitive: str, formula: Any) -> OpDef:
    return binary(
        name,
        f"x {word} y on bools.",
        reference,
        lambda x, y: prim(primitive, x, y),
        formula=formula,
        allowed=BOOL,
        wanted="bool",
    )


logical_and = _logical("logical_and", "and", np.logical_and, "bit_and", lambda x, y: x and y)
logical_or = _logical("logical_or", "or", np.logical_or, "bit_or", lambda x, y: x or y)
logical_xor = _logical("logical_xor", "xor", np.logical_xor, "bit_xor", lambda x, y: x != y)


def _bits(name: str, doc: str, reference: Any, primitive: str, formula: Any) -> OpDef:
    return binary(
        name,
        doc,
        reference,
        lambda x, y: prim(primitive, x, y),
        formula=formula,
        allowed=BOOL + INTEGER,
        wanted="bool or integer",
    )


bitwise_and = _bits("bitwise_and", "x & y.", np.bitwise_and, "bit_and", lambda x, y: x & y)
bitwise_or = _bits("bitwise_or", "x | y.", np.bitwise_or, "bit_or", lambda x, y: x | y)
bitwise_xor = _bits("bitwise_xor", "x ^ y.", np.bitwise_xor, "bit_xor", lambda x, y: x ^ y)


def _shift(name: str, symbol: str, reference: Any, primitive: str, formula: Any) -> OpDef:
    return binary(
        name,
        f"x {symbol} y on integers; shifting by the width or more gives 0 (or -1 for x < 0, >>).",
        reference,
        lambda x, y: prim(primitive, x, y),
        formula=formula,
        allowed=INTEGER,
        wanted="integer",
        second=(0, 3),
    )


bitwise_left_shift = _shift(
    "bitwise_left_shift", "<<", np.left_shift, "shift_left", lambda x, y: x << y
)
bitwise_right_shift = _shift(
    "bitwise_right_shift", ">>", np.right_shift, "shift_right", lambda x, y: x >> y
)

# --- choice ---------------------------------------------------------------------------------


def _where_infer(condition: Typed, x: Typed, y: Typed) -> tuple[Shape, DType]:
    require("where", condition, BOOL, "bool condition")
    dtype = x.dtype if x.dtype is y.dtype else dtypes.promote("where", x.dtype, y.dtype)
    return shapes.broadcast("where", condition.shape, x.shape, y.shape), dtype


def _where_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for c, a, b in (((3, 4), (3, 4), (3, 4)), ((3, 1), (4,), ()), ((), (2,), (2,)), ((0,), (), ())):
        yield Sample((draw(rng, c, dtypes.bool_), draw(rng, a, dtype), draw(rng, b, dtype)), {})
    condition, x = draw(rng, (4, 3), dtypes.bool_).T, draw(rng, (4, 3), dtype).T
    yield Sample((condition, x, draw(rng, (3, 8), dtype)[:, ::2]), {})


def _where_recipe(*types: Typed) -> Any:
    dtype = dtypes.promote("where", types[1].dtype, types[2].dtype)

    def body(condition: Expr, x: Expr, y: Expr) -> Expr:
        from_x = x if x.dtype is dtype else Expr("cast", (x,), dtype)
        from_y = y if y.dtype is dtype else Expr("cast", (y,), dtype)
        return select(condition, from_x, from_y)

    return elementwise(body)(*types)


where = OpDef(
    name="where",
    doc="x where the condition holds, else y; the branch not taken gets gradient 0.",
    infer=_where_infer,
    reference=np.where,
    samples=_where_samples,
    sample_dtypes=dtypes.ALL,
    derivative=(
        None,
        lambda b, g, out, condition, x, y: b.where(condition, g, 0.0),
        lambda b, g, out, condition, x, y: b.where(condition, 0.0, g),
    ),
    recipe=_where_recipe,
    formula=lambda condition, x, y: x if condition else y,
)

OPS = (
    equal, not_equal, less, less_equal, greater, greater_equal, logical_and, logical_or,
    logical_xor, bitwise_and, bitwise_or, bitwise_xor, bitwise_left_shift, bitwise_right_shift,
    where,
)  # fmt: skip
