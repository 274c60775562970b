"""Operations that move elements without computing: views, joins and partial writes.

A slice is written as one ``(start, count, step)`` per axis, normalized: ``count`` elements from
``start`` on, ``step`` apart, all inside the axis.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from dilim import dtypes, shapes
from dilim.dtypes import DType
from dilim.errors import ShapeError
from dilim.ir.types import Type, Typed
from dilim.ops.build import draw, layouts, require_axes
from dilim.ops.opdef import OpDef, Sample
from dilim.ops.primitives import Expr, cast, constant, converted, load, loop_index, prim
from dilim.ops.recipe import Map, flat_index, loop_indices, unravel
from dilim.shapes import Shape

Slices = tuple[tuple[int, int, int], ...]
ANY = dtypes.ALL


def _index_constant(value: int) -> Expr:
    return constant(value, dtypes.INDEX)


# --- fill and cast --------------------------------------------------------------------------


def _full_infer(*, shape: Shape, value: Any, dtype: DType) -> tuple[Shape, DType]:
    return shape, dtype


def _full_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    value = draw(rng, (), dtype).item()
    for shape in ((), (3,), (0, 2), (2, 1, 3)):
        yield Sample((), {"shape": shape, "value": value, "dtype": dtype})


full = OpDef(
    name="full",
    doc="A tensor of one repeated number.",
    infer=_full_infer,
    reference=lambda *, shape, value, dtype: np.full(shape, value, dtype.numpy),
    samples=_full_samples,
    sample_dtypes=ANY,
    recipe=lambda *, shape, value, dtype: Map(shape, constant(value, dtype)),
    formula=lambda shape, value, dtype: np.zeros(shape) + value,
)


def _astype_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for target in ANY:
        low = 0.0 if target.kind == "uint" else -2.0
        for x in (draw(rng, (), dtype, low), draw(rng, (4, 3), dtype, low).T):
            yield Sample((x,), {"dtype": target}, smooth=target is dtypes.float64)


astype = OpDef(
    name="astype",
    doc="Each element converted: towards zero from floats to integers, which stop at the ends of "
    "their range (NaN becomes 0), != 0 to bool.",
    infer=lambda x, *, dtype: (x.shape, dtype),
    reference=lambda x, *, dtype: np.ascontiguousarray(converted(x, dtype)).reshape(x.shape),
    samples=_astype_samples,
    sample_dtypes=ANY,
    derivative=(lambda b, g, out, x, *, dtype: b.astype(g, dtype=x.dtype),),
    recipe=lambda x, *, dtype: Map(
        x.shape, cast(load(0, x.dtype, *loop_indices(len(x.shape))), dtype)
    ),
    formula=lambda x, dtype: np.asarray(x).astype(dtype.numpy),
)

# --- views ----------------------------------------------------------------------------------


def _reshape_infer(x: Typed, *, shape: Shape) -> tuple[Shape, DType]:
    if math.prod(shape) != math.prod(x.shape) or (shape and min(shape) < 0):
        shape = shapes.resolve_reshape("reshape", x.shape, shape)
    return shape, x.dtype


def _reshape_recipe(x: Type, *, shape: Shape) -> Map:
    flat = flat_index(loop_indices(len(shape)), shape)
    return Map(shape, load(0, x.dtype, *unravel(flat, x.shape)))


def _reshape_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for old, new in (
        ((), (1, 1)),
        ((6,), (2, 3)),
        ((2, 3), (3, 2)),
        ((0, 3), (3, 0, 2)),
        ((1,), ()),
    ):
        yield Sample((draw(rng, old, dtype),), {"shape": new})
    yield Sample((draw(rng, (4, 3), dtype).T,), {"shape": (2, 6)})


reshape = OpDef(
    name="reshape",
    doc="The same elements in row-major order under another shape.",
    infer=_reshape_infer,
    reference=lambda x, *, shape: np.reshape(x, shape),
    kernel=lambda x, *, shape: x.reshape(shape),
    samples=_reshape_samples,
    sample_dtypes=ANY,
    derivative=(lambda b, g, out, x, *, shape: b.reshape(g, shape=x.shape),),
    recipe=_reshape_recipe,
    formula=lambda x, shape: np.array(list(x.flat), x.dtype).reshape(shape),
    is_view=True,
)


def _permute_infer(x: Typed, *, order: Shape) -> tuple[Shape, DType]:
    if sorted(order) != list(range(len(x.shape))):
        raise ShapeError(
            f"permute: expected a permutation of the {len(x.shape)} axes of shape {x.shape}, "
            f"received {order}"
        )
    return tuple(x.shape[axis] for axis in order), x.dtype


def _inverse(order: Shape) -> Shape:
    return tuple(order.index(axis) for axis in range(len(order)))


def _permute_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for shape, order in (((), ()), ((3,), (0,)), ((2, 3), (1, 0)), ((2, 0, 3), (2, 0, 1))):
        yield Sample((draw(rng, shape, dtype),), {"order": order})
    yield Sample((draw(rng, (4, 3, 5), dtype)[::2, :, ::-1],), {"order": (1, 2, 0)})


permute = OpDef(
    name="permute",
    doc="Axes in another order: out.shape[k] = x.shape[order[k]].",
    infer=_permute_infer,
    reference=lambda x, *, order: np.transpose(x, order),
    kernel=lambda x, *, order: x.transpose(order),
    samples=_permute_samples,
    sample_dtypes=ANY,
    derivative=(lambda b, g, out, x, *, order: b.permute(g, order=_inverse(order)),),
    recipe=lambda x, *, order: Map(
        tuple(x.shape[axis] for axis in order),
        load(0, x.dtype, *(loop_index(axis) for axis in _inverse(order))),
    ),
    formula=lambda x, order: np.einsum(x, list(range(x.ndim)), list(order)) if x.ndim else x,
    is_view=True,
)


def _expand_infer(x: Typed, *, shape: Shape) -> tuple[Shape, DType]:
    if x.shape and shapes.broadcast("expand", x.shape, shape) != shape:
        raise ShapeError(f"expand: shape {x.shape} does not stretch to {shape}")
    return shape, x.dtype


def _expand_kernel(x: np.ndarray, *, shape: Shape) -> np.ndarray:
    """`numpy.broadcast_to`, four times faster for the contiguous arrays that are the rule.

    What has the shape already is not stretched, and can be written as before.
    """
    if x.shape == shape:
        return x[...]
    if not x.flags.c_contiguous or not x.size:
        return np.broadcast_to(x, shape)
    lead = len(shape) - x.ndim
    steps = tuple(0 if n == 1 else step for n, step in zip(x.shape, x.strides, strict=True))
    view = np.ndarray(shape, x.dtype, x, 0, (0,) * lead + steps)
    view.flags.writeable = False
    return view


def _expand_recipe(x: Type, *, shape: Shape) -> Map:
    offset = len(shape) - len(x.shape)
    index = (
        loop_index(offset + axis) if size != 1 else _index_constant(0)
        for axis, size in enumerate(x.shape)
    )
    return Map(shape, load(0, x.dtype, *index))


def _expand_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for old, new in (
        ((), (2, 3)),
        ((3,), (2, 3)),
        ((2, 1), (2, 4)),
        ((1, 3), (0, 3)),
        ((2,), (2,)),
    ):
        yield Sample((draw(rng, old, dtype),), {"shape": new})
    yield Sample((draw(rng, (1, 3), dtype).T,), {"shape": (2, 3, 4)})


expand = OpDef(
    name="expand",
    doc="Sizes of 1, and missing leading axes, repeated without a copy.",
    infer=_expand_infer,
    reference=lambda x, *, shape: x[...] if x.shape == shape else np.broadcast_to(x, shape),
    kernel=_expand_kernel,
    samples=_expand_samples,
    sample_dtypes=ANY,
    derivative=(lambda b, g, out, x, *, shape: g,),
    recipe=_expand_recipe,
    formula=lambda x, shape: np.array(np.broadcast_arrays(x, np.empty(shape))[0]),
    is_view=True,
)


def _flip_infer(x: Typed, *, axis: Shape) -> tuple[Shape, DType]:
    require_axes("flip", axis, len(x.shape))
    return x.shape, x.dtype


def _flip_recipe(x: Type, *, axis: Shape) -> Map:
    index = (
        prim("subtract", _index_constant(size - 1), loop_index(a)) if a in axis else loop_index(a)
        for a, size in enumerate(x.shape)
    )
    return Map(x.shape, load(0, x.dtype, *index))


def _flip_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for x in layouts(rng, dtype):
        yield Sample((x,), {"axis": tuple(range(x.ndim))})
    yield Sample((draw(rng, (2, 3, 4), dtype),), {"axis": (1,)})


flip = OpDef(
    name="flip",
    doc="Elements in reverse order along axes.",
    infer=_flip_infer,
    reference=lambda x, *, axis: np.flip(x, axis),
    samples=_flip_samples,
    sample_dtypes=ANY,
    derivative=(lambda b, g, out, x, *, axis: b.flip(g, axis=axis),),
    recipe=_flip_recipe,
    formula=lambda x, axis: x[
        tuple(slice(None, None, -1 if a in axis else 1) for a in range(x.ndim))
    ],
    is_view=True,
)


@functools.lru_cache(maxsize=4096)
def numpy_slices(index: Slices) -> tuple[slice, ...]:
    """The NumPy slices that name the same elements."""
    result = []
    for start, count, step in index:
        stop: int | None = start + count * step
        result.append(slice(start, None if stop is not None and stop < 0 else stop, step))
    return tuple(slice(0, 0) if n == 0 else s for s, (_, n, _) in zip(result, index, strict=True))


def require_inside(operation: str, shape: Shape, index: Slices) -> None:
    """Raise a ShapeError unless every element that the slices name lies inside the shape."""
    fits = len(index) == len(shape) and all(
        count == 0 or (count > 0 and 0 <= start < size and 0 <= start + (count - 1) * step < size)
        for size, (start, count, step) in zip(shape, index, strict=True)
    )
    if not fits:
        raise ShapeError(
            f"{operation}: expected one (start, count, step) inside each axis of shape {shape}, "
            f"received {index}"
        )


def _slice_infer(x: Typed, *, index: Slices) -> tuple[Shape, DType]:
    require_inside("slice", x.shape, index)
    return tuple(count for _, count, _ in index), x.dtype


def _slice_recipe(x: Type, *, index: Slices) -> Map:
    where = (loop_index(a) * step + start for a, (start, _, step) in enumerate(index))
    return Map(tuple(count for _, count, _ in index), load(0, x.dtype, *where))


SLICE_SAMPLES: tuple[tuple[Shape, Slices], ...] = (
    ((), ()),
    ((6,), ((1, 3, 2),)),
    ((6,), ((5, 6, -1),)),
    ((4, 3), ((0, 4, 1), (2, 1, 1))),
    ((4, 3), ((3, 2, -2), (0, 0, 1))),
)


def _slice_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for shape, index in SLICE_SAMPLES:
        yield Sample((draw(rng, shape, dtype),), {"index": index})
    yield Sample((draw(rng, (3, 4), dtype).T,), {"index": ((1, 2, 2), (0, 3, 1))})


slice_ = OpDef(
    name="slice",
    doc="Every step-th element from start on, along each axis.",
    infer=_slice_infer,
    reference=lambda x, *, index: x[numpy_slices(index)] if index else x[...],
    samples=_slice_samples,
    sample_dtypes=ANY,
    derivative=(
        lambda b, g, out, x, *, index: b.slice_update(
            b.full(shape=x.shape, value=0.0, dtype=x.dtype), g, index=index
        ),
    ),
    recipe=_slice_recipe,
    formula=lambda x, index: (
        x[np.ix_(*(s + np.arange(n) * d for s, n, d in index))] if index else x
    ),
    is_view=True,
)

OPS = (
    full, astype, reshape, permute, expand, flip, slice_,
)  # fmt: skip
