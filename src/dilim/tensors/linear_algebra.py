"""Linear algebra of the array API: matrix products and transposes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

from dilim import shapes
from dilim.errors import ShapeError
from dilim.ops.table import OPERATIONS
from dilim.tensors.dispatch import NUMBERS, apply, as_own
from dilim.tensors.elementwise import multiply

if TYPE_CHECKING:
    from dilim.tensors.tensor import Tensor

_matmul: Final = OPERATIONS["matmul"]
_reshape: Final = OPERATIONS["reshape"]
_permute: Final = OPERATIONS["permute"]
_sum: Final = OPERATIONS["sum"]


def matmul(x1: Any, x2: Any, /) -> Tensor:
    """Matrix product over the last axis of x1 and the second to last of x2.

    Args:
        x1: (..., n, k), or a vector (k,).
        x2: (..., k, m), or a vector (k,). Leading axes broadcast.

    Returns:
        (..., n, m); the axis of a vector is left out.

    Raises:
        ShapeError: inner sizes differ, or an operand has no dimensions.
    """
    for x in (x1, x2):
        if x.__class__ in NUMBERS or getattr(x, "shape", None) == ():
            raise ShapeError(f"matmul: expected at least one dimension, received {_described(x)}")
        if not hasattr(x, "shape"):
            return apply(_matmul, x1, x2)  # which says what was wrong
    first, second = len(x1.shape) == 1, len(x2.shape) == 1
    if not first and not second:
        return apply(_matmul, x1, x2)
    if first:
        x1 = apply(_reshape, x1, shape=(1, *x1.shape))
    if second:
        x2 = apply(_reshape, x2, shape=(*x2.shape, 1))
    result = apply(_matmul, x1, x2)
    shape = result.shape[:-2]
    shape += () if first else (result.shape[-2],)
    shape += () if second else (result.shape[-1],)
    return as_own(apply(_reshape, result, shape=shape))


def _described(x: Any) -> str:
    return f"the number {x!r}" if x.__class__ in NUMBERS else f"shape {x.shape}"


def matrix_transpose(x: Tensor, /) -> Tensor:
    """The last two axes swapped."""
    return x.mT


def vecdot(x1: Tensor, x2: Tensor, /, *, axis: int = -1) -> Tensor:
    """Sum of products along one axis of both; other axes broadcast.

    Raises:
        ShapeError: the sizes along the axis differ.
    """
    size1 = x1.shape[shapes.normalize_axis("vecdot", axis, len(x1.shape))]
    size2 = x2.shape[shapes.normalize_axis("vecdot", axis, len(x2.shape))]
    if size1 != size2 or axis >= 0:
        if axis >= 0:
            raise ShapeError(f"vecdot: expected a negative axis, received {axis}")
        raise ShapeError(
            f"vecdot: expected equal sizes along axis {axis}, received {x1.shape} and {x2.shape}"
        )
    product = multiply(x1, x2)
    where = len(product.shape) + axis
    return apply(_sum, product, axis=(where,), keepdims=False)


def tensordot(
    x1: Tensor, x2: Tensor, /, *, axes: int | tuple[Sequence[int], Sequence[int]] = 2
) -> Tensor:
    """Sum of products over several axes of both.

    Args:
        x1: any tensor.
        x2: any tensor.
        axes: the last N axes of x1 with the first N of x2, or two equally long lists of axes.

    Returns:
        The free axes of x1 followed by those of x2.

    Raises:
        ShapeError: paired sizes differ.
    """
    left, right = _paired_axes(x1, x2, axes)
    free1 = [axis for axis in range(len(x1.shape)) if axis not in left]
    free2 = [axis for axis in range(len(x2.shape)) if axis not in right]
    sizes1 = tuple(x1.shape[axis] for axis in left)
    sizes2 = tuple(x2.shape[axis] for axis in right)
    if sizes1 != sizes2:
        raise ShapeError(
            f"tensordot: expected equal sizes along the paired axes, received {sizes1} and {sizes2}"
        )
    outer1 = tuple(x1.shape[axis] for axis in free1)
    outer2 = tuple(x2.shape[axis] for axis in free2)
    inner = math.prod(sizes1)
    a = apply(_permute, x1, order=(*free1, *left))
    b = apply(_permute, x2, order=(*right, *free2))
    a = apply(_reshape, a, shape=(math.prod(outer1), inner))
    b = apply(_reshape, b, shape=(inner, math.prod(outer2)))
    return as_own(apply(_reshape, apply(_matmul, a, b), shape=outer1 + outer2))


def _paired_axes(x1: Tensor, x2: Tensor, axes: Any) -> tuple[list[int], list[int]]:
    rank1, rank2 = len(x1.shape), len(x2.shape)
    if isinstance(axes, int):
        if not 0 <= axes <= min(rank1, rank2):
            raise ShapeError(f"tensordot: expected 0 to {min(rank1, rank2)} axes, received {axes}")
        return list(range(rank1 - axes, rank1)), list(range(axes))
    first, second = axes
    if len(first) != len(second):
        raise ShapeError(f"tensordot: expected as many axes of x1 as of x2, received {axes}")
    left = [shapes.normalize_axis("tensordot", axis, rank1) for axis in first]
    right = [shapes.normalize_axis("tensordot", axis, rank2) for axis in second]
    return left, right
