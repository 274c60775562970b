"""Reading, adding and replacing at computed positions.

Positions are int64; negative ones count from the end; others are an IndexError.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import ShapeError
from dilim.ir.types import Type, Typed
from dilim.ops.build import draw, require, require_axes
from dilim.ops.opdef import InferRule, OpDef, Sample
from dilim.ops.primitives import Expr, cast, check, load, loop_index, select
from dilim.ops.recipe import Map, RecipeRule, Scatter, loop_indices
from dilim.shapes import Shape


def _positions(operation: str, indices: Typed) -> None:
    require(operation, indices, dtypes.INTEGER, "integer index")


def wrapped(index: Expr, size: int) -> Expr:
    """A position, checked, with negative values counted from the end."""
    if index.dtype is dtypes.uint64:  # tested before half of them would become negative
        return cast(check(index < size, index), dtypes.INDEX)
    index = cast(index, dtypes.INDEX)
    index = check((index >= -size) & (index < size), index)
    return select(index < 0, index + size, index)


def _out_of_range(operation: str, position: int, size: int) -> IndexError:
    return IndexError(
        f"{operation}: position {position} is out of range for an axis of size {size}"
    )


def _failure(operation: str) -> Callable[..., Exception]:
    """`OpDef.failure` of operations that take positions along ``axis`` as their second input."""

    def failure(value: int, x: Typed, indices: Typed, *rest: Typed, axis: int) -> Exception:
        position = value % 2**64 if indices.dtype is dtypes.uint64 else value
        return _out_of_range(operation, position, x.shape[axis])

    return failure


def checked(operation: str, indices: np.ndarray, size: int) -> np.ndarray:
    """Positions in 0 .. size - 1.

    Raises:
        IndexError: a position lies outside -size .. size - 1; it is named.
    """
    bad = (indices < -size) | (indices >= size)
    if bad.any():
        raise _out_of_range(operation, int(indices[bad].flat[0]), size)
    indices = indices.astype(np.int64, copy=False)
    return np.where(indices < 0, indices + size, indices)


def _take_kernel(x: np.ndarray, indices: np.ndarray, *, axis: int) -> np.ndarray:
    """NumPy checks the positions itself; its error and 64 unsigned bits go the long way."""
    if indices.dtype != np.uint64:
        try:
            return x.take(indices, axis)
        except IndexError:
            pass
    return np.take(x, checked("take", indices, x.shape[axis]), axis=axis)


@functools.lru_cache(maxsize=256)
def _open_grid(shape: Shape, axis: int) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Positions along the axes before and after ``axis``, ready to broadcast."""
    grid = list(np.indices(shape, sparse=True))
    return grid[:axis], grid[axis + 1 :]


def _along_key(indices: np.ndarray, axis: int) -> tuple[np.ndarray, ...]:
    before, after = _open_grid(indices.shape, axis)
    return (*before, indices, *after)


def _along_kernel(x: np.ndarray, indices: np.ndarray, *, axis: int) -> np.ndarray:
    """As `_take_kernel`."""
    if indices.dtype != np.uint64:
        try:
            return np.asarray(x[_along_key(indices, axis)])
        except IndexError:
            pass
    where = checked("take_along_axis", indices, x.shape[axis])
    return np.asarray(x[_along_key(where, axis)])


# --- whole slices along one axis ------------------------------------------------------------


def _take_shape(x: Any, indices: Any, axis: int) -> Shape:
    return (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])


def _take_infer(x: Typed, indices: Typed, *, axis: int) -> tuple[Shape, DType]:
    _positions("take", indices)
    require_axes("take", (axis,), len(x.shape))
    return _take_shape(x, indices, axis), x.dtype


def _take_recipe(x: Type, indices: Type, *, axis: int) -> Map:
    shape, _ = _take_infer(x, indices, axis=axis)
    inner = len(indices.shape)
    where = load(1, indices.dtype, *loop_indices(inner, axis))
    before, after = loop_indices(axis), loop_indices(len(x.shape) - axis - 1, axis + inner)
    return Map(shape, load(0, x.dtype, *before, wrapped(where, x.shape[axis]), *after))


def _index_samples(rng: np.random.Generator, size: int, shape: Shape) -> np.ndarray:
    return rng.integers(-size, size, shape)


def _take_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for shape, axis, count in (
        ((4,), 0, (6,)),
        ((3, 4), 1, ()),
        ((3, 2), 0, (2, 3)),
        ((5,), 0, (0,)),
    ):
        indices = _index_samples(rng, shape[axis], count)
        yield Sample((draw(rng, shape, dtype), indices), {"axis": axis})
    yield Sample((draw(rng, (4, 3), dtype).T, np.array([2, 2, 0])), {"axis": 0})


take = OpDef(
    name="take",
    doc="Slices of x along axis at integer positions; repeated positions add their gradients.",
    infer=_take_infer,
    reference=lambda x, indices, *, axis: np.take(
        x, checked("take", indices, x.shape[axis]), axis=axis
    ),
    samples=_take_samples,
    sample_dtypes=dtypes.ALL,
    kernel=_take_kernel,
    derivative=(
        lambda b, g, out, x, indices, *, axis: b.index_add(
            b.full(shape=x.shape, value=0.0, dtype=x.dtype), indices, g, axis=axis
        ),
        None,
    ),
    recipe=_take_recipe,
    failure=_failure("take"),
)


def _index_write_infer(operation: str) -> InferRule:
    def infer(x: Typed, indices: Typed, value: Typed, *, axis: int) -> tuple[Shape, DType]:
        _positions(operation, indices)
        require_axes(operation, (axis,), len(x.shape))
        wanted = _take_shape(x, indices, axis)
        if value.shape != wanted or value.dtype is not x.dtype:
            raise ShapeError(
                f"{operation}: expected a value of type {Type(wanted, x.dtype)}, received "
                f"{Type(value.shape, value.dtype)}"
            )
        return x.shape, x.dtype

    return infer


def _index_add_reference(
    x: np.ndarray, indices: np.ndarray, value: np.ndarray, *, axis: int
) -> np.ndarray:
    out = np.array(x)
    where = checked("index_add", indices, x.shape[axis])
    key: Any = (*(slice(None),) * axis, where)
    np.add.at(out, key, value)
    return out


def _index_write_recipe(combine: str | None) -> RecipeRule:
    def recipe(x: Type, indices: Type, value: Type, *, axis: int) -> Scatter:
        inner = len(indices.shape)
        where = load(1, indices.dtype, *loop_indices(inner, axis))
        before, after = loop_indices(axis), loop_indices(len(x.shape) - axis - 1, axis + inner)
        body = load(2, value.dtype, *loop_indices(len(value.shape)))
        target = (*before, wrapped(where, x.shape[axis]), *after)
        return Scatter(value.shape, target, body, combine, base=0, shape=x.shape)

    return recipe


def _index_write_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for sample in _take_samples(rng, dtype):
        x, indices = sample.inputs
        value = draw(rng, _take_shape(x, indices, sample.params["axis"]), dtype)
        yield Sample((x, indices, value), sample.params)


index_add = OpDef(
    name="index_add",
    doc="x with value added at integer positions along axis; repeats add up, in order.",
    infer=_index_write_infer("index_add"),
    reference=_index_add_reference,
    samples=_index_write_samples,
    sample_dtypes=dtypes.NUMERIC,
    derivative=(
        lambda b, g, out, x, indices, value, *, axis: g,
        None,
        lambda b, g, out, x, indices, value, *, axis: b.take(g, indices, axis=axis),
    ),
    recipe=_index_write_recipe("add"),
    failure=_failure("index_add"),
)


def _index_update_reference(
    x: np.ndarray, indices: np.ndarray, value: np.ndarray, *, axis: int
) -> np.ndarray:
    out = np.array(x)
    where = checked("index", indices, x.shape[axis])
    out[(slice(None),) * axis + (where,)] = value  # NumPy writes in order
    return out


def _index_update_kernel(
    x: np.ndarray, indices: np.ndarray, value: np.ndarray, *, axis: int
) -> np.ndarray:
    """As `_take_kernel`."""
    if indices.dtype != np.uint64:
        out = np.array(x)
        try:
            out[(slice(None),) * axis + (indices,)] = value
        except IndexError:
            pass
        else:
            return out
    return _index_update_reference(x, indices, value, axis=axis)


def _kept_rule(b: Any, g: Any, out: Any, x: Any, indices: Any, value: Any, *, axis: int) -> Any:
    nothing = b.full(shape=value.shape, value=0.0, dtype=value.dtype)
    return b.index_update(g, indices, nothing, axis=axis)


def _written_rule(b: Any, g: Any, out: Any, x: Any, indices: Any, value: Any, *, axis: int) -> Any:
    """Only the last of the values that go to one position has a gradient."""
    gradient = b.take(g, indices, axis=axis)
    shape, count = indices.shape, math.prod(indices.shape)
    if count < 2:
        return gradient
    ones = b.full(shape=(count,), value=1, dtype=dtypes.INDEX)
    order = b.reshape(b.cumulative_sum(ones, axis=0), shape=shape)
    nobody = b.full(shape=(x.shape[axis],), value=0, dtype=dtypes.INDEX)
    last = b.index_update(nobody, indices, order, axis=0)
    stays = b.equal(b.take(last, indices, axis=0), order)
    aligned = b.reshape(stays, shape=(*shape, *(1,) * (len(x.shape) - axis - 1)))
    return b.where(aligned, gradient, 0.0)


index_update = OpDef(
    name="index_update",
    doc="x with slices replaced by value at integer positions along axis; the last one stays.",
    infer=_index_write_infer("index_update"),
    reference=_index_update_reference,
    kernel=_index_update_kernel,
    samples=_index_write_samples,
    sample_dtypes=dtypes.ALL,
    derivative=(_kept_rule, None, _written_rule),
    recipe=_index_write_recipe(None),
    failure=_failure("index"),  # ``x[indices] = value`` is all that does it
)

# --- one element per position ---------------------------------------------------------------


def _along_infer(x: Typed, indices: Typed, *, axis: int) -> tuple[Shape, DType]:
    _positions("take_along_axis", indices)
    require_axes("take_along_axis", (axis,), len(x.shape))
    a, c = x.shape, indices.shape
    if len(a) != len(c) or a[:axis] != c[:axis] or a[axis + 1 :] != c[axis + 1 :]:
        raise ShapeError(
            f"take_along_axis: expected positions of shape {a} except along axis {axis}, "
            f"received {c}"
        )
    return c, x.dtype


def _along_target(indices: Type, rank: int, axis: int, size: int) -> tuple[Expr, ...]:
    where = wrapped(load(1, indices.dtype, *loop_indices(rank)), size)
    return tuple(where if a == axis else loop_index(a) for a in range(rank))


def _along_recipe(x: Type, indices: Type, *, axis: int) -> Map:
    target = _along_target(indices, len(x.shape), axis, x.shape[axis])
    return Map(indices.shape, load(0, x.dtype, *target))


def _along_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for shape, axis, count in (((4,), 0, 6), ((3, 4), 1, 2), ((3, 2), 0, 1), ((2, 3), 1, 0)):
        wanted = (*shape[:axis], count, *shape[axis + 1 :])
        indices = _index_samples(rng, shape[axis], wanted)
        yield Sample((draw(rng, shape, dtype), indices), {"axis": axis})
    yield Sample((draw(rng, (2, 3), dtype).T, np.array([[1], [1], [0]])), {"axis": 1})


take_along_axis = OpDef(
    name="take_along_axis",
    doc="out[.., i, ..] = x[.., indices[.., i, ..], ..]; repeats add their gradients.",
    infer=_along_infer,
    reference=lambda x, indices, *, axis: np.take_along_axis(
        x, checked("take_along_axis", indices, x.shape[axis]), axis
    ),
    samples=_along_samples,
    sample_dtypes=dtypes.ALL,
    kernel=_along_kernel,
    derivative=(
        lambda b, g, out, x, indices, *, axis: b.add_along_axis(
            b.full(shape=x.shape, value=0.0, dtype=x.dtype), indices, g, axis=axis
        ),
        None,
    ),
    recipe=_along_recipe,
    failure=_failure("take_along_axis"),
)


def _add_along_infer(x: Typed, indices: Typed, value: Typed, *, axis: int) -> tuple[Shape, DType]:
    _along_infer(x, indices, axis=axis)
    if value.shape != indices.shape or value.dtype is not x.dtype:
        raise ShapeError(
            f"add_along_axis: expected a value of type {Type(indices.shape, x.dtype)}, received "
            f"{Type(value.shape, value.dtype)}"
        )
    return x.shape, x.dtype


def _add_along_reference(
    x: np.ndarray, indices: np.ndarray, value: np.ndarray, *, axis: int
) -> np.ndarray:
    out = np.array(x)
    key = _along_key(checked("add_along_axis", indices, x.shape[axis]), axis)
    np.add.at(out, key, value)
    return out


def _add_along_kernel(
    x: np.ndarray, indices: np.ndarray, value: np.ndarray, *, axis: int
) -> np.ndarray:
    """Where each row has one position, none can repeat, and a plain read and write will do."""
    if indices.shape[axis] != 1 or indices.dtype == np.uint64:
        return _add_along_reference(x, indices, value, axis=axis)
    out = np.array(x)
    key = _along_key(indices, axis)
    try:
        out[key] += value
    except IndexError:
        checked("add_along_axis", indices, x.shape[axis])
        raise
    return out


def _add_along_recipe(x: Type, indices: Type, value: Type, *, axis: int) -> Scatter:
    rank = len(x.shape)
    target = _along_target(indices, rank, axis, x.shape[axis])
    body = load(2, value.dtype, *loop_indices(rank))
    return Scatter(value.shape, target, body, "add", base=0, shape=x.shape)


def _add_along_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for sample in _along_samples(rng, dtype):
        x, indices = sample.inputs
        yield Sample((x, indices, draw(rng, indices.shape, dtype)), sample.params)


add_along_axis = OpDef(
    name="add_along_axis",
    doc="x with value[.., i, ..] added at position indices[.., i, ..] along axis, in order.",
    infer=_add_along_infer,
    reference=_add_along_reference,
    kernel=_add_along_kernel,
    samples=_add_along_samples,
    sample_dtypes=dtypes.NUMERIC,
    derivative=(
        lambda b, g, out, x, indices, value, *, axis: g,
        None,
        lambda b, g, out, x, indices, value, *, axis: b.take_along_axis(g, indices, axis=axis),
    ),
    recipe=_add_along_recipe,
    failure=_failure("add_along_axis"),
)

OPS = (take, index_add, index_update, take_along_axis, add_along_axis)
