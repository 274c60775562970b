"""Reading and writing by ``x[key]``, and reading at computed positions.

A key of integers, slices, ``...`` and None is *basic*: reading it is a view. A key with integer or
bool tensors, arrays or lists is *advanced*: reading it copies, repeated positions add their
gradients, and a bool mask has a result whose shape depends on the data.
"""

from __future__ import annotations

from operator import index as as_index
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dilim import dtypes, shapes
from dilim.errors import DtypeError, ShapeError
from dilim.ops.movement import Slices
from dilim.ops.table import OPERATIONS
from dilim.shapes import Shape
from dilim.tensors import inplace
from dilim.tensors.dispatch import NUMBERS, apply
from dilim.tensors.interchange import numpy_of
from dilim.tensors.tape import mode

if TYPE_CHECKING:
    from dilim.tensors.tensor import Tensor

_slice: Final = OPERATIONS["slice"]
_slice_update: Final = OPERATIONS["slice_update"]
_reshape: Final = OPERATIONS["reshape"]
_permute: Final = OPERATIONS["permute"]
_expand: Final = OPERATIONS["expand"]
_take: Final = OPERATIONS["take"]
_take_along: Final = OPERATIONS["take_along_axis"]
_astype: Final = OPERATIONS["astype"]


def take(x: Tensor, indices: Any, /, *, axis: int | None = None) -> Tensor:
    """Slices of x along an axis at integer positions.

    Args:
        x: any tensor.
        indices: integer tensor of any shape; negative positions count from the end.
        axis: along which axis; may be left out for a vector.

    Raises:
        IndexError: a position is out of range.
    """
    if axis is None:
        if len(x.shape) != 1:
            raise ShapeError(f"take: axis is needed for a tensor of shape {x.shape}")
        axis = 0
    place = shapes.normalize_axis("take", axis, len(x.shape))
    return apply(_take, x, indices, axis=place)


def take_along_axis(x: Tensor, indices: Tensor, /, *, axis: int = -1) -> Tensor:
    """out[.., i, ..] = x[.., indices[.., i, ..], ..] along an axis.

    Args:
        x: any tensor.
        indices: integers, of x's shape except along the axis (other axes broadcast).
        axis: along which axis.

    Raises:
        IndexError: a position is out of range.
    """
    place = shapes.normalize_axis("take_along_axis", axis, len(x.shape))
    if len(indices.shape) == len(x.shape):
        outer_x = (*x.shape[:place], 1, *x.shape[place + 1 :])
        outer_i = (*indices.shape[:place], 1, *indices.shape[place + 1 :])
        if outer_x != outer_i:
            outer = shapes.broadcast("take_along_axis", outer_x, outer_i)
            x = _stretched(x, outer, place)
            indices = _stretched(indices, outer, place)
    return apply(_take_along, x, indices, axis=place)


def _stretched(x: Any, outer: Shape, axis: int) -> Any:
    shape = (*outer[:axis], x.shape[axis], *outer[axis + 1 :])
    return x if x.shape == shape else apply(_expand, x, shape=shape)


# --- keys -----------------------------------------------------------------------------------


def _expand_key(key: Any, shape: Shape) -> tuple[Any, ...]:
    """The key as a tuple with ``...`` written out; None stays.

    Raises:
        IndexError: more indices than dimensions, or two ``...``.
    """
    parts = list(key) if isinstance(key, tuple) else [key]
    used = 0
    for part in parts:
        if part is None or part is Ellipsis:
            continue
        used += _mask_rank(part)
    if used > len(shape):
        raise IndexError(f"index: {used} indices for a tensor of {len(shape)} dimensions {shape}")
    dots = [i for i, part in enumerate(parts) if part is Ellipsis]
    if len(dots) > 1:
        raise IndexError("index: expected at most one '...', received two")
    place = dots[0] if dots else len(parts)
    fill = [slice(None)] * (len(shape) - used)
    return (*parts[:place], *fill, *parts[place + len(dots) :])


def _mask_rank(part: Any) -> int:
    """Dimensions that one part of a key consumes."""
    if isinstance(part, (bool, np.bool_)):
        return 0
    if _is_array(part):
        array = part if hasattr(part, "dtype") else np.asarray(part)
        if array.dtype in (dtypes.bool_, np.dtype(bool)):
            return len(array.shape)
    return 1


def _is_array(part: Any) -> bool:
    return isinstance(part, (list, np.ndarray)) or (
        hasattr(part, "_data") and hasattr(part, "dtype")
    )


def _is_scalar_integer(part: Any) -> bool:
    if isinstance(part, (bool, np.bool_)) or isinstance(part, (slice, list)) or part is None:
        return False
    if _is_array(part):
        integer = part.dtype.is_integer if hasattr(part, "_data") else part.dtype.kind in "iu"
        return bool(integer and part.shape == ())
    return hasattr(part, "__index__")


def _spans(parts: tuple[Any, ...], shape: Shape) -> tuple[Slices, Shape, Shape]:
    """Basic parts as spans; the shape of the slice; and the final shape."""
    spans: list[tuple[int, int, int]] = []
    final: list[int] = []
    sizes = iter(enumerate(shape))
    for part in parts:
        if part is None:
            final.append(1)
            continue
        axis, size = next(sizes)
        if isinstance(part, slice):
            start, stop, step = part.indices(size)
            count = len(range(start, stop, step))
            spans.append((start if count else 0, count, step))
            final.append(count)
            continue
        position = as_index(part)
        if not -size <= position < size:
            raise IndexError(
                f"index: position {position} is out of range for axis {axis} of size {size}"
            )
        spans.append((position % size, 1, 1))
    return tuple(spans), tuple(count for _, count, _ in spans), tuple(final)


def _is_basic(parts: tuple[Any, ...]) -> bool:
    return all(
        part is None or isinstance(part, slice) or _is_scalar_integer(part) for part in parts
    )


# --- reading --------------------------------------------------------------------------------


def get(x: Any, key: Any) -> Any:
    """``x[key]``."""
    parts = _expand_key(key, x.shape)
    if _is_basic(parts):
        spans, shape, final = _spans(parts, x.shape)
        result = apply(_slice, x, index=spans)
        return result if shape == final else apply(_reshape, result, shape=final)
    return _gather(x, parts)


def _gather(x: Any, parts: tuple[Any, ...]) -> Any:
    """Advanced reading: basic parts first, then one `take` on the flattened indexed axes."""
    x, positions, axes, adjacent = _split_key(x, parts)
    common = shapes.broadcast("index", *(p.shape for p in positions))
    rank = len(x.shape)
    others = tuple(axis for axis in range(rank) if axis not in axes)
    sizes = tuple(x.shape[axis] for axis in axes)
    moved = apply(_permute, x, order=(*axes, *others))
    moved = apply(_reshape, moved, shape=(shapes.size_of(sizes), *moved.shape[len(axes) :]))
    flat = np.zeros(common, np.int64)
    for position, size, stride in zip(
        positions, sizes, shapes.row_major_strides(sizes), strict=True
    ):
        flat = flat + _checked(position, size) * stride
    where = type(x)._from_array(np.asarray(flat))
    result = apply(_take, moved, where, axis=0)
    if not adjacent or not axes or axes[0] == 0:
        return result
    # NumPy's rule: neighbouring index tensors leave their result where they stood
    lead, inner = axes[0], len(common)
    order = (*range(inner, inner + lead), *range(inner), *range(inner + lead, len(result.shape)))
    return apply(_permute, result, order=order)


def _checked(position: np.ndarray, size: int) -> np.ndarray:
    bad = (position < -size) | (position >= size)
    if bad.any():
        raise IndexError(
            f"index: position {int(position[bad].flat[0])} is out of range for an axis of size "
            f"{size}"
        )
    return np.where(position < 0, position + size, position)


def _split_key(
    x: Any, parts: tuple[Any, ...]
) -> tuple[Any, list[np.ndarray], tuple[int, ...], bool]:
    """Apply slices and None now; give positions for the axes that index tensors select."""
    basic: list[Any] = []
    arrays: list[tuple[int, np.ndarray]] = []
    axis = 0
    for part in parts:
        if part is None or isinstance(part, slice):
            basic.append(part)
            axis += 1
            continue
        for position in _as_positions(part, x.shape, _consumed(basic)):
            basic.append(slice(None))
            arrays.append((axis, position))
            axis += 1
    sliced = get(x, tuple(basic))
    axes = tuple(axis for axis, _ in arrays)
    places = [i for i, part in enumerate(parts) if part is not None and not isinstance(part, slice)]
    adjacent = places == list(range(places[0], places[0] + len(places)))
    return sliced, [position for _, position in arrays], axes, adjacent


def _consumed(basic: list[Any]) -> int:
    return sum(part is not None for part in basic)


def _as_positions(part: Any, shape: Shape, axis: int) -> list[np.ndarray]:
    """Integer positions per axis for one part of a key; a mask gives one array per dimension."""
    array = numpy_of(part) if hasattr(part, "_data") else np.asarray(part)
    if array.dtype == np.bool_:
        wanted = shape[axis : axis + array.ndim]
        if array.shape != wanted:
            raise IndexError(f"index: a mask of shape {array.shape} does not fit sizes {wanted}")
        return [np.asarray(p, np.int64) for p in np.nonzero(array)]
    if array.dtype.kind not in "iu":
        if array.size == 0 and isinstance(part, list):
            return [np.zeros(array.shape, np.int64)]
        raise DtypeError(
            f"index: expected integers, bools, slices, '...' or None, received {array.dtype}"
        )
    return [array.astype(np.int64)]


# --- writing --------------------------------------------------------------------------------


def set_(x: Any, key: Any, value: Any) -> None:
    """``x[key] = value``: writes x's memory; recorded where a gradient is wanted."""
    inplace.check_writable("x[...] = value", x, value)
    value = _as_value(x, value)
    parts = _expand_key(key, x.shape)
    basic = _is_basic(parts)
    tracked = mode.recording and (x.requires_grad or getattr(value, "requires_grad", False))
    if tracked and not basic:
        raise DtypeError(
            "x[...] = value: a recorded write needs integers and slices as key; build the result "
            "with dilim.where(...) or dilim.concat(...) instead"
        )
    if tracked:
        spans, shape, final = _spans(parts, x.shape)
        fitted = _fit_value(x, value, shape, final)
        alias = x._alias()
        inplace.replace(x, apply(_slice_update, alias, fitted, index=spans))
        return
    device = inplace.common_side(x, x)
    source = value if value.__class__ in NUMBERS else numpy_of(value)
    if basic:
        _write_basic(x, parts, value, device)
        return
    target = x._on(device)
    key_arrays = tuple(numpy_of(p) if hasattr(p, "_data") else p for p in parts)
    target[key_arrays] = source
    inplace.written(x, device)


def _write_basic(x: Any, parts: tuple[Any, ...], value: Any, device: Any) -> None:
    spans, shape, final = _spans(parts, x.shape)
    with_grad = mode.recording
    mode.recording = False
    try:
        region = apply(_slice, x, index=spans)
        fitted = _fit_value(x, value, shape, final)
    finally:
        mode.recording = with_grad
    device.write(region._on(device), fitted._on(device))
    inplace.written(x, device)


def _as_value(x: Any, value: Any) -> Any:
    """The value as a number or tensor whose dtype can be written into x.

    Raises:
        DtypeError: its dtype does not fit without loss.
    """
    if value.__class__ in NUMBERS:
        if value.__class__ is float and not x.dtype.is_floating:
            raise DtypeError(
                f"x[...] = value: the float {value} does not fit in a {x.dtype.name} tensor"
            )
        return value
    if not hasattr(value, "_data"):
        value = type(x)(value)
    if value.dtype is not x.dtype:
        if dtypes.PROMOTIONS.get((value.dtype, x.dtype)) is not x.dtype:
            raise DtypeError(
                f"x[...] = value: a {value.dtype.name} value does not fit in a {x.dtype.name} "
                f"tensor; cast it with value.astype(dilim.{x.dtype.name})"
            )
        value = apply(_astype, value, dtype=x.dtype)
    return value


def _fit_value(x: Any, value: Any, shape: Shape, final: Shape) -> Any:
    """The value broadcast to the shape of the region."""
    if value.__class__ in NUMBERS:
        array = np.full(shape, value, x.dtype.numpy)
        fitted = type(x)._from_array(array)
        return fitted if x.device.name == "cpu" else fitted.to(x.device)
    extra = len(value.shape) - len(final)
    if extra > 0 and value.shape[:extra] == (1,) * extra:
        value = apply(_reshape, value, shape=value.shape[extra:])
    if value.shape != final:
        value = apply(_expand, value, shape=final)
    return value if final == shape else apply(_reshape, value, shape=shape)
