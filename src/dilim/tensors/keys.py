"""Keys: what stands between the brackets of ``x[key]``, read against a shape.

Integers, slices, ``...`` and None are *basic*; they become one span per axis. Integer and bool
tensors, arrays, lists and bools are *advanced*; they are kept beside the spans, with the axes that
they select from.
"""

from __future__ import annotations

from operator import index as as_index
from typing import Any, Final, NamedTuple

import numpy as np

from dilim import dtypes
from dilim.errors import DtypeError
from dilim.ops.checks import outside
from dilim.ops.movement import Slices
from dilim.shapes import Shape
from dilim.tensors.dispatch import has_numbers
from dilim.tensors.interchange import numpy_of

_EVERYTHING: Final = slice(None)


class Selector(NamedTuple):
    """An advanced part of a key.

    Attributes:
        part: integer positions or a bool mask, as given.
        axis: the first axis it selects from, after the basic parts were applied.
        rank: from how many axes it selects: 1, or the number of dimensions of a mask.
    """

    part: Any
    axis: int
    rank: int


class Key(NamedTuple):
    """A key read against a shape.

    Attributes:
        spans: the basic part, one ``(start, count, step)`` per axis.
        sliced: the shape that the spans leave.
        final: that shape without the axes of integers, and with the new axes of None.
        selectors: the advanced parts, in order.
        adjacent: whether these (and integers) stand side by side; where not, the axes that they
            make come first in the result, as in NumPy.
    """

    spans: Slices
    sliced: Shape
    final: Shape
    selectors: list[Selector]
    adjacent: bool


def read(key: Any, shape: Shape) -> Key:
    """Read ``key`` against ``shape``.

    Raises:
        IndexError: more indices than dimensions, two ``...``, a position outside its axis, or a
            mask of another shape.
        DtypeError: something that can be no index.
    """
    spans: list[tuple[int, int, int]] = []
    final: list[int] = []
    selectors: list[Selector] = []
    places: list[int] = []
    for place, part in enumerate(_written_out(key, shape)):
        kind = part.__class__
        if part is None:
            final.append(1)
        elif kind is slice:
            span = _span(part, shape[len(spans)])
            spans.append(span)
            final.append(span[1])
        elif part is Ellipsis:
            continue
        elif kind is int or is_integer(part):
            spans.append(_position(part, len(spans), shape))
            places.append(place)
        else:
            count = rank(part)
            axes = shape[len(spans) : len(spans) + count]
            selectors.append(Selector(_checked_selector(part, axes), len(final), count))
            spans.extend((0, size, 1) for size in axes)
            final.extend(axes)
            places.append(place)
    adjacent = not places or places[-1] - places[0] < len(places)
    sliced = tuple([count for _, count, _ in spans])
    return Key(tuple(spans), sliced, tuple(final), selectors, adjacent)


def _written_out(key: Any, shape: Shape) -> tuple[Any, ...]:
    """The parts of a key with ``...`` replaced by whole slices, if there is any axis for them."""
    parts = key if key.__class__ is tuple else (key,)
    used = 0
    dots = -1
    for place, part in enumerate(parts):
        if part is Ellipsis:
            if dots >= 0:
                raise IndexError("index: expected at most one '...', received two")
            dots = place
        elif part is not None:
            kind = part.__class__
            used += 1 if kind is int or kind is slice else rank(part)
    missing = len(shape) - used
    if missing < 0:
        raise IndexError(f"index: {used} indices for a tensor of {len(shape)} dimensions {shape}")
    if dots < 0:
        return (*parts, *[_EVERYTHING] * missing) if missing else parts
    if not missing:
        return parts
    return (*parts[:dots], *[_EVERYTHING] * missing, *parts[dots + 1 :])


def _span(part: slice, size: int) -> tuple[int, int, int]:
    start, stop, step = part.indices(size)
    count = len(range(start, stop, step))
    return (start if count else 0, count, step)


def _position(part: Any, axis: int, shape: Shape) -> tuple[int, int, int]:
    position = as_index(part)
    size = shape[axis]
    if not -size <= position < size:
        raise outside(position, size, axis)
    return (position + size if position < 0 else position, 1, 1)


def is_integer(part: Any) -> bool:
    """Whether a part of a key is a single known integer (also a 0-d tensor or array of one)."""
    if isinstance(part, (bool, np.bool_, list)):
        return False
    if hasattr(part, "shape") and part.shape != ():
        return False
    if hasattr(part, "_storage"):
        return bool(part.dtype.is_integer) and has_numbers(part)
    return hasattr(part, "__index__") and getattr(part, "dtype", None) != np.bool_


def is_tensor(part: Any) -> bool:
    """Whether a part of a key is a tensor."""
    return hasattr(part, "_storage")


def tensors_in(key: Any) -> list[Any]:
    """The tensors among the parts of a key."""
    return [part for part in (key if key.__class__ is tuple else (key,)) if is_tensor(part)]


def is_mask(part: Any) -> bool:
    """Whether an advanced part of a key is made of bools."""
    return part.dtype is dtypes.bool_ if is_tensor(part) else part.dtype == np.bool_


def rank(part: Any) -> int:
    """Dimensions that one part of a key selects from."""
    if isinstance(part, (bool, np.bool_)):
        return 0
    if isinstance(part, (list, np.ndarray)) or is_tensor(part):
        array = part if hasattr(part, "dtype") else np.asarray(part)
        if is_mask(array):
            return len(array.shape)
    return 1


def _checked_selector(part: Any, axes: Shape) -> Any:
    """An advanced part as a tensor or an array, of integers or of bools that fit the axes."""
    array = part if is_tensor(part) else np.asarray(part)
    if is_mask(array):
        empty = 0 in array.shape
        fits = all(m == n or (empty and m == 0) for m, n in zip(array.shape, axes, strict=True))
        if not fits:
            raise IndexError(
                f"index: expected a mask of shape {axes}, received one of shape {array.shape}"
            )
        return array
    if is_tensor(part):
        integer = part.dtype.is_integer
    else:
        if part.__class__ is list and array.size == 0:
            return array.astype(np.int64)
        integer = array.dtype.kind in "iu"
    if not integer:
        name = array.dtype.name if hasattr(part, "dtype") else type(part).__name__
        raise DtypeError(
            f"index: expected integers, bools, slices, '...' or None, received {name}; cast "
            "positions with x.astype(dilim.int64)"
        )
    return array


def host_positions(selector: Selector, sizes: Shape) -> np.ndarray:
    """Row-major positions, in the joined axes of one selector, as a host array.

    Raises:
        IndexError: a position is out of range.
    """
    part = selector.part
    array = numpy_of(part) if is_tensor(part) else part
    if array.dtype == np.bool_:
        if 0 in array.shape:
            return np.zeros(0, np.int64)
        return np.flatnonzero(array)
    size = sizes[0]
    bad = (array < -size) | (array >= size)
    if bad.any():
        raise outside(int(array[bad].flat[0]), size, None)
    return array.astype(np.int64, copy=False) % size if array.size else array.astype(np.int64)


def name_outside(what: Key) -> None:
    """Raise the error that names the first position of the advanced parts that is out of range.

    Raises:
        IndexError: there is one.
    """
    for selector in what.selectors:
        host_positions(selector, what.final[selector.axis : selector.axis + selector.rank])
