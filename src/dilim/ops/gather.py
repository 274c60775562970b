"""Reading and adding at computed positions, and scans.

Positions are int64; negative ones count from the end; others are an IndexError.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import ShapeError
from dilim.ir.types import Type, Typed
from dilim.ops.build import draw, require, require_axes
from dilim.ops.opdef import OpDef, Sample
from dilim.ops.primitives import Expr, cast, load, loop_index, select
from dilim.ops.recipe import Map, Scan, Scatter, loop_indices
from dilim.shapes import Shape


def _positions(operation: str, indices: Typed) -> None:
    require(operation, indices, dtypes.INTEGER, "integer index")


def _wrapped(index: Expr, size: int) -> Expr:
    """A position with negative values counted from the end."""
    index = cast(index, dtypes.INDEX)
    return select(index < 0, index + size, index)


def checked(operation: str, indices: np.ndarray, size: int) -> np.ndarray:
    """Positions in 0 .. size - 1.

    Raises:
        IndexError: a position lies outside -size .. size - 1; it is named.
    """
    bad = (indices < -size) | (indices >= size)
    if bad.any():
        raise IndexError(
            f"{operation}: position {int(indices[bad].flat[0])} is out of range for an axis of "
            f"size {size}"
        )
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


def _take_infer(x: Typed, indices: Typed, *, axis: int) -> tuple[Shape, DType]:
    _positions("take", indices)
    require_axes("take", (axis,), len(x.shape))
    return (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :]), x.dtype


def _take_recipe(x: Type, indices: Type, *, axis: int) -> Map:
    shape, _ = _take_infer(x, indices, axis=axis)
    inner = len(indices.shape)
    where = load(1, indices.dtype, *loop_indices(inner, axis))
    before, after = loop_indices(axis), loop_indices(len(x.shape) - axis - 1, axis + inner)
    return Map(shape, load(0, x.dtype, *before, _wrapped(where, x.shape[axis]), *after))


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
)


def _index_add_infer(x: Typed, indices: Typed, value: Typed, *, axis: int) -> tuple[Shape, DType]:
    wanted, _ = _take_infer(x, indices, axis=axis)
    if value.shape != wanted or value.dtype is not x.dtype:
        raise ShapeError(
            f"index_add: expected a value of type {Type(wanted, x.dtype)}, received "
            f"{Type(value.shape, value.dtype)}"
        )
    return x.shape, x.dtype


def _index_add_reference(
    x: np.ndarray, indices: np.ndarray, value: np.ndarray, *, axis: int
) -> np.ndarray:
    out = np.array(x)
    where = checked("index_add", indices, x.shape[axis])
    key: Any = (*(slice(None),) * axis, where)
    np.add.at(out, key, value)
    return out


def _index_add_recipe(x: Type, indices: Type, value: Type, *, axis: int) -> Scatter:
    inner = len(indices.shape)
    where = load(1, indices.dtype, *loop_indices(inner, axis))
    before, after = loop_indices(axis), loop_indices(len(x.shape) - axis - 1, axis + inner)
    body = load(2, value.dtype, *loop_indices(len(value.shape)))
    target = (*before, _wrapped(where, x.shape[axis]), *after)
    return Scatter(value.shape, target, body, "add", base=0, shape=x.shape)


def _index_add_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for sample in _take_samples(rng, dtype):
        x, indices = sample.inputs
        value = draw(rng, _take_infer_shape(x, indices, sample.params["axis"]), dtype)
        yield Sample((x, indices, value), sample.params)


def _take_infer_shape(x: np.ndarray, indices: np.ndarray, axis: int) -> Shape:
    return (*x.shape[:axis], *indices.shape, *x.shape[axis + 1 :])


index_add = OpDef(
    name="index_add",
    doc="x with value added at integer positions along axis; repeats add up, in order.",
    infer=_index_add_infer,
    reference=_index_add_reference,
    samples=_index_add_samples,
    sample_dtypes=dtypes.NUMERIC,
    derivative=(
        lambda b, g, out, x, indices, value, *, axis: g,
        None,
        lambda b, g, out, x, indices, value, *, axis: b.take(g, indices, axis=axis),
    ),
    recipe=_index_add_recipe,
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
    where = _wrapped(load(1, indices.dtype, *loop_indices(rank)), size)
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
)

# --- scans ----------------------------------------------------------------------------------


def _scan_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for shape, axis in (((5,), 0), ((3, 4), 0), ((3, 4), 1), ((2, 0), 1), ((1,), 0)):
        yield Sample((draw(rng, shape, dtype, 0.2),), {"axis": axis})
    yield Sample((draw(rng, (4, 6), dtype, 0.2).T[::2],), {"axis": 1})


def _scan(name: str, doc: str, ufunc: np.ufunc, primitive: str, rule: Callable[..., Any]) -> OpDef:
    def infer(x: Typed, *, axis: int) -> tuple[Shape, DType]:
        require(name, x, dtypes.NUMERIC, "numeric")
        if not x.shape:
            raise ShapeError(f"{name}: expected at least one dimension, received shape ()")
        require_axes(name, (axis,), len(x.shape))
        return x.shape, x.dtype

    def formula(x: np.ndarray, axis: int) -> np.ndarray:
        rows = np.moveaxis(x, axis, 0)
        results = [ufunc.reduce(rows[: i + 1], axis=0) for i in range(len(rows))]
        return np.moveaxis(np.array(results).reshape(rows.shape), 0, axis)

    return OpDef(
        name=name,
        doc=doc,
        infer=infer,
        reference=lambda x, *, axis: ufunc.accumulate(x, axis=axis, dtype=x.dtype),
        samples=_scan_samples,
        sample_dtypes=dtypes.NUMERIC,
        derivative=(rule,),
        recipe=lambda x, *, axis: Scan(
            x.shape, axis, load(0, x.dtype, *loop_indices(len(x.shape))), primitive
        ),
        formula=formula,
    )


def _cumulative_sum_rule(b: Any, g: Any, out: Any, x: Any, *, axis: int) -> Any:
    return b.flip(b.cumulative_sum(b.flip(g, axis=(axis,)), axis=axis), axis=(axis,))


def _cumulative_prod_rule(b: Any, g: Any, out: Any, x: Any, *, axis: int) -> Any:
    """Without division, so that zeros are right; takes size**2 memory along the axis.

    Row k holds the cumulative products of x with element k replaced by 1; from position k on they
    are the derivatives of the outputs with respect to x[k].
    """
    rank, size = len(x.shape), x.shape[axis]
    order = (*(a for a in range(rank) if a != axis), axis)
    lead = tuple(x.shape[a] for a in order[:-1])
    rows = b.expand(
        b.reshape(b.permute(x, order=order), shape=(*lead, 1, size)), shape=(*lead, size, size)
    )
    one = b.full(shape=(size, size), value=1.0, dtype=x.dtype)
    column = b.cumulative_sum(one, axis=1)
    row = b.permute(column, order=(1, 0))
    products = b.cumulative_prod(b.where(b.equal(row, column), 1.0, rows), axis=rank)
    reached = b.where(b.greater_equal(column, row), products, 0.0)
    upstream = b.reshape(b.permute(g, order=order), shape=(*lead, 1, size))
    total = b.sum(b.multiply(reached, upstream), axis=(rank,), keepdims=False)
    return b.permute(total, order=tuple(order.index(a) for a in range(rank)))


cumulative_sum = _scan(
    "cumulative_sum", "Running sums along axis, in order.", np.add, "add", _cumulative_sum_rule
)
cumulative_prod = _scan(
    "cumulative_prod",
    "Running products along axis, in order; the derivative takes size**2 memory along it.",
    np.multiply,
    "multiply",
    _cumulative_prod_rule,
)

OPS = (take, index_add, take_along_axis, add_along_axis, cumulative_sum, cumulative_prod)
