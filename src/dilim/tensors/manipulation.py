"""Functions that change shapes, order and layout."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dilim import dtypes, shapes
from dilim.dtypes import DType
from dilim.errors import ShapeError
from dilim.ops.table import OPERATIONS
from dilim.shapes import Shape
from dilim.tensors.dispatch import NUMBERS, apply, as_own, rank_of
from dilim.tensors.transfer import beside

if TYPE_CHECKING:
    from dilim.tensors.tensor import Tensor

_reshape: Final = OPERATIONS["reshape"]
_permute: Final = OPERATIONS["permute"]
_expand: Final = OPERATIONS["expand"]
_flip: Final = OPERATIONS["flip"]
_slice: Final = OPERATIONS["slice"]
_concat: Final = OPERATIONS["concat"]
_astype: Final = OPERATIONS["astype"]
_identity: Final = OPERATIONS["identity"]


def astype(x: Tensor, dtype: DType | str, /, *, copy: bool = True, device: Any = None) -> Tensor:
    """x with each element converted to ``dtype``.

    Args:
        x: any tensor.
        dtype: the new element type; floats go towards zero to become integers.
        copy: False returns x itself when nothing changes.
        device: a device to move to as well.
    """
    target = dtypes.as_dtype(dtype)
    result = x
    if target is not x.dtype or copy:
        result = apply(_astype, x, dtype=target)
    return result if device is None else result.to(device)


def reshape(x: Tensor, /, shape: int | Sequence[int], *, copy: bool | None = None) -> Tensor:
    """The same elements, row-major, in another shape.

    Args:
        x: any tensor.
        shape: new sizes; one of them may be -1.
        copy: None shares memory when it can, True copies, False refuses to copy.

    Raises:
        ShapeError: the numbers of elements differ; or copy=False and the layout needs a copy.
    """
    sizes = (shape,) if isinstance(shape, int) else tuple(shape)
    wanted = shapes.resolve_reshape("reshape", x.shape, sizes)
    if copy:
        return apply(_reshape, astype(x, x.dtype), shape=wanted)
    result = apply(_reshape, x, shape=wanted)
    if copy is False and result.size and result._storage is not x._storage:
        raise ShapeError(f"reshape: strides {x.strides} of shape {x.shape} need a copy here")
    return result


def permute_dims(x: Tensor, /, axes: Sequence[int]) -> Tensor:
    """Axes in another order: out.shape[k] = x.shape[axes[k]]."""
    rank = rank_of("permute_dims", x)
    order = tuple(shapes.normalize_axis("permute_dims", axis, rank) for axis in axes)
    return apply(_permute, x, order=order)


def transpose(x: Tensor, /, axis1: int, axis2: int) -> Tensor:
    """Two axes swapped."""
    order = list(range(len(x.shape)))
    a = shapes.normalize_axis("transpose", axis1, len(order))
    b = shapes.normalize_axis("transpose", axis2, len(order))
    order[a], order[b] = order[b], order[a]
    return apply(_permute, x, order=tuple(order))


def moveaxis(x: Tensor, source: int | Sequence[int], destination: int | Sequence[int], /) -> Tensor:
    """Axes moved to new places; the others keep their order."""
    rank = len(x.shape)
    sources = [source] if isinstance(source, int) else list(source)
    targets = [destination] if isinstance(destination, int) else list(destination)
    if len(sources) != len(targets):
        raise ShapeError(f"moveaxis: received {len(sources)} sources, {len(targets)} destinations")
    sources = [shapes.normalize_axis("moveaxis", axis, rank) for axis in sources]
    targets = [shapes.normalize_axis("moveaxis", axis, rank) for axis in targets]
    order = [axis for axis in range(rank) if axis not in sources]
    for target, axis in sorted(zip(targets, sources, strict=True)):
        order.insert(target, axis)
    return permute_dims(x, order)


def broadcast_to(x: Tensor, /, shape: Sequence[int]) -> Tensor:
    """x stretched to a shape without a copy.

    Raises:
        ShapeError: x does not broadcast to it.
    """
    return apply(_expand, x, shape=tuple(shape))


def broadcast_arrays(*arrays: Tensor) -> tuple[Tensor, ...]:
    """All tensors stretched to their common shape."""
    shape = broadcast_shapes(*(x.shape for x in arrays))
    return tuple(broadcast_to(x, shape) for x in arrays)


def broadcast_shapes(*args: Shape) -> Shape:
    """The common shape of several shapes."""
    return shapes.broadcast("broadcast_shapes", *args) if args else ()


def expand_dims(x: Tensor, /, axis: int | Sequence[int] = 0) -> Tensor:
    """New axes of size 1 at the given places of the result."""
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    rank = len(x.shape) + len(axes)
    places = set(shapes.normalize_axes("expand_dims", axes, rank))
    sizes = iter(x.shape)
    shape = tuple(1 if a in places else next(sizes) for a in range(rank))
    return apply(_reshape, x, shape=shape)


def squeeze(x: Tensor, /, axis: int | Sequence[int] | None = None) -> Tensor:
    """x without axes of size 1; all of them for None.

    Raises:
        ShapeError: a named axis has another size.
    """
    rank = rank_of("squeeze", x)
    if axis is None:
        axes = tuple(a for a, size in enumerate(x.shape) if size == 1)
    else:
        axes = shapes.normalize_axes("squeeze", axis, rank)
    for a in axes:
        if x.shape[a] != 1:
            raise ShapeError(f"squeeze: axis {a} of shape {x.shape} has size {x.shape[a]}, not 1")
    shape = tuple(size for a, size in enumerate(x.shape) if a not in axes)
    return apply(_reshape, x, shape=shape)


def flatten(x: Tensor, /, start_axis: int = 0) -> Tensor:
    """Axes from ``start_axis`` on joined into one (row-major)."""
    rank = rank_of("flatten", x)
    if not rank:
        return apply(_reshape, x, shape=(1,))
    start = shapes.normalize_axis("flatten", start_axis, rank)
    shape = (*x.shape[:start], shapes.size_of(x.shape[start:]))
    return apply(_reshape, x, shape=shape)


def flip(x: Tensor, /, *, axis: int | Sequence[int] | None = None) -> Tensor:
    """Elements in reverse order along axes; all of them for None. A view."""
    axes = shapes.normalize_axes("flip", axis, rank_of("flip", x))
    return apply(_flip, x, axis=axes)


def concat(arrays: Sequence[Tensor], /, *, axis: int | None = 0) -> Tensor:
    """Tensors joined along an axis; flattened first for axis None.

    Raises:
        ShapeError: no tensors, or other sizes than along the axis differ.
    """
    tensors = list(arrays)
    if not tensors:
        raise ShapeError("concat: expected at least one tensor, received none")
    if axis is None:
        tensors = [flatten(x) for x in tensors]
        axis = 0
    place = shapes.normalize_axis("concat", axis, len(tensors[0].shape))
    return apply(_concat, *tensors, axis=place)


def stack(arrays: Sequence[Tensor], /, *, axis: int = 0) -> Tensor:
    """Tensors of one shape joined along a new axis.

    Raises:
        ShapeError: no tensors, or their shapes differ.
    """
    tensors = list(arrays)
    if not tensors:
        raise ShapeError("stack: expected at least one tensor, received none")
    for x in tensors:
        if x.shape != tensors[0].shape:
            raise ShapeError(
                f"stack: expected equal shapes, received {tensors[0].shape} and {x.shape}"
            )
    place = shapes.normalize_axis("stack", axis, len(tensors[0].shape) + 1)
    return concat([expand_dims(x, place) for x in tensors], axis=place)


def along(x: Tensor, axis: int, start: int, count: int) -> Any:
    """A view of ``count`` elements from ``start`` on along one (normalized) axis."""
    spans = tuple((start, count, 1) if a == axis else (0, n, 1) for a, n in enumerate(x.shape))
    return apply(_slice, x, index=spans)


def unstack(x: Tensor, /, *, axis: int = 0) -> tuple[Tensor, ...]:
    """Views of x at each position along an axis, without that axis."""
    place = shapes.normalize_axis("unstack", axis, rank_of("unstack", x))
    return tuple(squeeze(along(x, place, i, 1), place) for i in range(x.shape[place]))


def split(x: Tensor, /, sizes: int | Sequence[int], *, axis: int = 0) -> tuple[Tensor, ...]:
    """Views of x cut along an axis.

    Args:
        x: any tensor.
        sizes: the size of each part (the last may be smaller), or all sizes.
        axis: where to cut.

    Raises:
        ShapeError: the sizes do not add up.
    """
    place = shapes.normalize_axis("split", axis, rank_of("split", x))
    total = x.shape[place]
    if isinstance(sizes, int):
        parts = [sizes] * (total // sizes) + ([total % sizes] if total % sizes else [])
    else:
        parts = list(sizes)
    if sum(parts) != total:
        raise ShapeError(f"split: sizes {parts} do not add up to {total}, the size of axis {place}")
    starts = [sum(parts[:i]) for i in range(len(parts))]
    return tuple(along(x, place, s, n) for s, n in zip(starts, parts, strict=True))


def roll(
    x: Tensor, /, shift: int | Sequence[int], *, axis: int | Sequence[int] | None = None
) -> Tensor:
    """Elements moved along axes; those beyond the end come in at the start."""
    if axis is None:
        if not isinstance(shift, int):
            raise ShapeError("roll: expected one shift for axis=None, received several")
        return as_own(reshape(roll(flatten(x), shift, axis=0), x.shape))
    axes = [axis] if isinstance(axis, int) else list(axis)
    shifts = [shift] * len(axes) if isinstance(shift, int) else list(shift)
    if len(shifts) != len(axes):
        raise ShapeError(f"roll: received {len(shifts)} shifts for {len(axes)} axes")
    result = apply(_identity, x)
    for amount, a in zip(shifts, axes, strict=True):
        place = shapes.normalize_axis("roll", a, rank_of("roll", x))
        size = x.shape[place]
        if size and amount % size:
            cut = size - amount % size
            tail = along(result, place, cut, size - cut)
            result = concat([tail, along(result, place, 0, cut)], axis=place)
    return result


def repeat(x: Tensor, repeats: int | Tensor, /, *, axis: int | None = None) -> Tensor:
    """Each element repeated in place along an axis of x, or of the flattened x.

    Args:
        x: any tensor.
        repeats: how often: a number, or an integer tensor with one count per element.
        axis: along which axis; None flattens first.
    """
    if axis is None:
        return repeat(flatten(x), repeats, axis=0)
    place = shapes.normalize_axis("repeat", axis, rank_of("repeat", x))
    size = x.shape[place]
    if repeats.__class__ in NUMBERS:
        counts = [index(repeats)] * size
    else:
        counts = repeats.tolist()  # type: ignore[union-attr]
        counts = counts if isinstance(counts, list) else [counts]
        counts = counts * size if len(counts) == 1 else counts
    if len(counts) != size or any(count < 0 for count in counts):
        raise ShapeError(f"repeat: expected {size} counts >= 0, received {counts}")
    positions = beside(x, np.repeat(np.arange(size), counts))
    return apply(OPERATIONS["take"], x, positions, axis=place)


def tile(x: Tensor, repetitions: Sequence[int], /) -> Tensor:
    """x laid side by side: ``repetitions[k]`` times along axis k."""
    counts = tuple(repetitions)
    rank = max(len(counts), len(x.shape))
    counts = (1,) * (rank - len(counts)) + counts
    shape = (1,) * (rank - len(x.shape)) + x.shape
    paired = tuple(size for n, m in zip(counts, shape, strict=True) for size in (1, m))
    wide = tuple(size for n, m in zip(counts, shape, strict=True) for size in (n, m))
    final = tuple(n * m for n, m in zip(counts, shape, strict=True))
    blocks = apply(_expand, apply(_reshape, x, shape=paired), shape=wide)
    result = apply(_reshape, blocks, shape=final)
    return result.clone() if result._is_view else result


def pad(x: Tensor, /, widths: Sequence[tuple[int, int]], *, value: float = 0.0) -> Tensor:
    """x with ``value`` added before and after each axis.

    Args:
        x: any tensor.
        widths: one (before, after) per axis.
        value: the number to fill with.
    """
    if len(widths) != len(x.shape):
        raise ShapeError(f"pad: expected {len(x.shape)} pairs of widths, received {len(widths)}")
    shape = tuple(a + n + b for (a, b), n in zip(widths, x.shape, strict=True))
    spans = tuple((a, n, 1) for (a, _), n in zip(widths, x.shape, strict=True))
    fill: Any = value if x.dtype.is_floating else x.dtype.numpy.type(value).item()
    base = beside(x, OPERATIONS["full"].reference(shape=shape, value=fill, dtype=x.dtype))
    return apply(OPERATIONS["slice_update"], base, x, index=spans)


def _diagonal_part(x: Tensor, k: int, lower: bool) -> Tensor:
    if len(x.shape) < 2:
        raise ShapeError(f"{'tril' if lower else 'triu'}: expected a matrix, received {x.shape}")
    rows, columns = x.shape[-2:]
    kept = np.tri(rows, columns, k if lower else k - 1, dtype=bool)
    mask = beside(x, kept if lower else ~kept)
    zero: Any = 0.0 if x.dtype.is_floating else False if x.dtype is dtypes.bool_ else 0
    return apply(OPERATIONS["where"], mask, x, zero)


def tril(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Elements on and below the k-th diagonal of the last two axes; zeros elsewhere."""
    return _diagonal_part(x, k, lower=True)


def triu(x: Tensor, /, *, k: int = 0) -> Tensor:
    """Elements on and above the k-th diagonal of the last two axes; zeros elsewhere."""
    return _diagonal_part(x, k, lower=False)
