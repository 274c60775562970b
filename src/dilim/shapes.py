"""Pure functions over shapes: tuples of non-negative integers, no arrays.

Every function takes the name of the operation first, so that its error can say who asked.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from operator import index

from dilim.errors import AxisError, ShapeError

Shape = tuple[int, ...]


def broadcast(operation: str, *shapes: Shape) -> Shape:
    """The common shape: sizes are aligned at the right; a size of 1 stretches.

    Raises:
        ShapeError: two sizes differ and neither is 1.
    """
    if len(shapes) == 2:
        first, second = shapes
        if first == second or not second:
            return first
        if not first:
            return second
    rank = max(map(len, shapes))
    result = [1] * rank
    for shape in shapes:
        for axis, size in enumerate(shape, rank - len(shape)):
            if size != 1:
                if result[axis] not in (1, size):
                    listed = " and ".join(map(str, shapes))
                    raise ShapeError(
                        f"{operation}: shapes {listed} do not broadcast: expected equal sizes or 1 "
                        f"at each position counted from the right, received {result[axis]} and "
                        f"{size} at position {axis - rank}"
                    )
                result[axis] = size
    return tuple(result)


def normalize_axis(operation: str, axis: int, rank: int) -> int:
    """``axis`` as a number from 0 to rank - 1; negative ones count from the end.

    Raises:
        AxisError: there is no such axis.
    """
    number = index(axis)
    if not -rank <= number < rank:
        raise AxisError(
            f"{operation}: axis {number} is out of range for a tensor of {rank} dimensions"
        )
    return number + rank if number < 0 else number


def normalize_axes(operation: str, axes: int | Sequence[int] | None, rank: int) -> Shape:
    """A sorted tuple of distinct axes; ``None`` means all of them."""
    if axes is None:
        return tuple(range(rank))
    listed = (axes,) if not isinstance(axes, (tuple, list)) else tuple(axes)
    result = sorted(normalize_axis(operation, axis, rank) for axis in listed)
    if len(set(result)) != len(result):
        raise ShapeError(f"{operation}: axes {tuple(listed)} name the same dimension twice")
    return tuple(result)


def reduced(shape: Shape, axes: Shape, keepdims: bool) -> Shape:
    """The shape after reducing ``axes`` (normalized)."""
    if keepdims:
        return tuple(1 if axis in axes else size for axis, size in enumerate(shape))
    return tuple(size for axis, size in enumerate(shape) if axis not in axes)


def row_major_strides(shape: Shape) -> Shape:
    """Elements to step per dimension when the last index runs fastest."""
    strides = [1] * len(shape)
    for axis in range(len(shape) - 2, -1, -1):
        strides[axis] = strides[axis + 1] * shape[axis + 1]
    return tuple(strides)


def size_of(shape: Shape) -> int:
    """The number of elements."""
    return math.prod(shape)


def resolve_reshape(operation: str, shape: Shape, wanted: Sequence[int]) -> Shape:
    """``wanted`` with a single -1 filled in.

    Raises:
        ShapeError: the numbers of elements differ, or more than one size is -1.
    """
    sizes = [index(size) for size in wanted]
    total = size_of(shape)
    if sizes.count(-1) > 1 or any(size < -1 for size in sizes):
        raise ShapeError(f"{operation}: expected sizes >= 0 and at most one -1, received {wanted}")
    if -1 in sizes:
        known = -math.prod(sizes)
        if known and total % known == 0:
            sizes[sizes.index(-1)] = total // known
    if math.prod(sizes) != total or -1 in sizes:
        raise ShapeError(
            f"{operation}: a tensor of shape {shape} has {total} elements and cannot take the "
            f"shape {tuple(wanted)}"
        )
    return tuple(sizes)
