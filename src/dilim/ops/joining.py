"""Joins and partial writes: a tensor made of parts of several."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import DtypeError, ShapeError
from dilim.ir.types import Type, Typed
from dilim.ops.build import draw, require_axes
from dilim.ops.gather import index_update
from dilim.ops.movement import SLICE_SAMPLES, Slices, numpy_slices, require_inside
from dilim.ops.opdef import OpDef, Sample
from dilim.ops.primitives import Expr, cast, constant, load, loop_index, prim, select
from dilim.ops.recipe import Map, Scatter, loop_indices
from dilim.shapes import Shape

ANY = dtypes.ALL


def _index_constant(value: int) -> Expr:
    return constant(value, dtypes.INDEX)


# --- partial write --------------------------------------------------------------------------


def _slice_update_infer(x: Typed, value: Typed, *, index: Slices) -> tuple[Shape, DType]:
    require_inside("slice_update", x.shape, index)
    wanted = tuple(count for _, count, _ in index)
    if value.shape != wanted:
        raise ShapeError(
            f"slice_update: expected a value of shape {wanted}, received {value.shape}"
        )
    if value.dtype is not x.dtype:
        raise DtypeError(
            f"slice_update: expected a value of dtype {x.dtype.name}, received "
            f"{value.dtype.name}; cast it with value.astype(dilim.{x.dtype.name})"
        )
    return x.shape, x.dtype


def _slice_update_reference(x: np.ndarray, value: np.ndarray, *, index: Slices) -> np.ndarray:
    out = np.array(x)
    out[numpy_slices(index) if index else ...] = value
    return out


def _slice_update_recipe(x: Type, value: Type, *, index: Slices) -> Map:
    inside = constant(True, dtypes.bool_)
    where: list[Expr] = []
    for axis, (start, count, step) in enumerate(index):
        steps = (loop_index(axis) - start) * int(math.copysign(1, step))
        number = steps // abs(step)
        hit = (steps >= 0) & prim("equal", steps % abs(step), 0) & (number < count)
        inside = inside & hit
        where.append(number)
    old = load(0, x.dtype, *loop_indices(len(x.shape)))
    return Map(x.shape, select(inside, load(1, value.dtype, *where, guard=inside), old))


def _slice_update_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for shape, index in SLICE_SAMPLES:
        value = draw(rng, tuple(n for _, n, _ in index), dtype)
        yield Sample((draw(rng, shape, dtype), value), {"index": index})


def _slice_update_base(b: Any, g: Any, out: Any, x: Any, value: Any, *, index: Slices) -> Any:
    zeros = b.full(shape=value.shape, value=0.0, dtype=g.dtype)
    return b.slice_update(g, zeros, index=index)


slice_update = OpDef(
    name="slice_update",
    doc="x with the elements that `slice` would read replaced by value.",
    infer=_slice_update_infer,
    reference=_slice_update_reference,
    samples=_slice_update_samples,
    sample_dtypes=ANY,
    derivative=(
        _slice_update_base,
        lambda b, g, out, x, value, *, index: b.slice(g, index=index),
    ),
    recipe=_slice_update_recipe,
)


def _slice_write_recipe(x: Type, value: Type, *, index: Slices) -> Scatter:
    space = value.shape
    target = tuple(loop_index(a) * step + start for a, (start, _, step) in enumerate(index))
    body = load(1, value.dtype, *loop_indices(len(space)))
    return Scatter(space, target, body, None, base=0, shape=x.shape)


slice_write = replace(
    slice_update,
    name="slice_write",
    doc="`slice_update` for memory that is written in place: only the slice is touched.",
    recipe=_slice_write_recipe,
)


def _seen(x: Typed, shape: Shape) -> Type:
    return Type(shape, x.dtype)


def _index_write_infer(
    x: Typed, indices: Typed, value: Typed, *, axis: int, shape: Shape
) -> tuple[Shape, DType]:
    if math.prod(shape) != math.prod(x.shape):
        raise ShapeError(f"index_write: shape {x.shape} cannot be seen as {shape}")
    index_update.infer(_seen(x, shape), indices, value, axis=axis)
    return x.shape, x.dtype


def _index_write_reference(
    x: np.ndarray, indices: np.ndarray, value: np.ndarray, *, axis: int, shape: Shape
) -> np.ndarray:
    changed = index_update.reference(x.reshape(shape), indices, value, axis=axis)
    return changed.reshape(x.shape)


def _index_write_recipe(x: Type, indices: Type, value: Type, *, axis: int, shape: Shape) -> Any:
    recipe: Any = index_update.recipe
    return recipe(_seen(x, shape), indices, value, axis=axis)


def _index_write_failure(
    value: int, x: Typed, *others: Typed, axis: int, shape: Shape
) -> Exception:
    failure: Any = index_update.failure
    found: Exception = failure(value, _seen(x, shape), *others, axis=axis)
    return found


def _index_write_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for sample in index_update.samples(rng, dtype):
        x, indices, value = sample.inputs
        params = {**sample.params, "shape": x.shape}
        yield Sample((np.ascontiguousarray(x).reshape(-1), indices, value), params)


index_write = replace(
    index_update,
    name="index_write",
    doc="`index_update` for memory that is written in place, with x seen in another shape.",
    infer=_index_write_infer,
    reference=_index_write_reference,
    kernel=None,
    samples=_index_write_samples,
    derivative=(),
    recipe=_index_write_recipe,
    failure=_index_write_failure,
)

# --- joining --------------------------------------------------------------------------------


def _concat_infer(*inputs: Typed, axis: int) -> tuple[Shape, DType]:
    first = inputs[0]
    require_axes("concat", (axis,), len(first.shape))
    dtype = first.dtype
    for x in inputs[1:]:
        dtype = dtypes.promote("concat", dtype, x.dtype)
        same = (
            x.shape[:axis] == first.shape[:axis] and x.shape[axis + 1 :] == first.shape[axis + 1 :]
        )
        if len(x.shape) != len(first.shape) or not same:
            raise ShapeError(
                f"concat: expected equal sizes except along axis {axis}, received shapes "
                f"{' and '.join(str(y.shape) for y in inputs)}"
            )
    total = sum(x.shape[axis] for x in inputs)
    return (*first.shape[:axis], total, *first.shape[axis + 1 :]), dtype


def _concat_recipe(*inputs: Type, axis: int) -> Map:
    shape, dtype = _concat_infer(*inputs, axis=axis)
    position = loop_index(axis)
    body = constant(0, dtype)
    start = 0
    for number, x in enumerate(inputs):
        inside = (position >= start) & (position < start + x.shape[axis])
        index = [loop_index(a) if a != axis else position - start for a in range(len(shape))]
        body = select(inside, cast(load(number, x.dtype, *index, guard=inside), dtype), body)
        start += x.shape[axis]
    return Map(shape, body)


def _concat_rule(b: Any, g: Any, out: Any, *inputs: Any, axis: int, position: int) -> Any:
    start = sum(x.shape[axis] for x in inputs[:position])
    index = tuple(
        (start if a == axis else 0, size, 1) for a, size in enumerate(inputs[position].shape)
    )
    return b.slice(g, index=index)


def _concat_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for sizes, axis in ((((2,), (3,)), 0), (((2, 1), (2, 0), (2, 2)), 1), (((1, 3),), 0)):
        yield Sample(tuple(draw(rng, size, dtype) for size in sizes), {"axis": axis})
    yield Sample((draw(rng, (3, 2), dtype).T, draw(rng, (4, 3), dtype)[::2]), {"axis": 0})


concat = OpDef(
    name="concat",
    doc="Tensors joined along an axis.",
    infer=_concat_infer,
    reference=lambda *inputs, axis: np.concatenate(inputs, axis),
    samples=_concat_samples,
    sample_dtypes=ANY,
    derivative=(_concat_rule,),
    variadic=True,
    recipe=_concat_recipe,
    formula=lambda *inputs, axis: np.moveaxis(
        np.array([row for x in inputs for row in np.moveaxis(x, axis, 0)]).reshape(
            (-1, *np.moveaxis(inputs[0], axis, 0).shape[1:])
        ),
        0,
        axis,
    ),
)

OPS = (
    slice_update, slice_write, index_write, concat,
)  # fmt: skip
