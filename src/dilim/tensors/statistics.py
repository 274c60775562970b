"""Running sums and products, and differences, along an axis."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dilim import shapes
from dilim.dtypes import DType
from dilim.errors import ShapeError
from dilim.ops.opdef import OpDef
from dilim.ops.table import OPERATIONS
from dilim.tensors import elementwise as e
from dilim.tensors.dispatch import apply, rank_of
from dilim.tensors.manipulation import along, concat
from dilim.tensors.reductions import widened
from dilim.tensors.transfer import beside

if TYPE_CHECKING:
    from dilim.tensors.tensor import Tensor

_cumulative_sum: Final = OPERATIONS["cumulative_sum"]
_cumulative_prod: Final = OPERATIONS["cumulative_prod"]


def cumulative_sum(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DType | str | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Running sums: out[k] = x[0] + ... + x[k] along an axis, in order.

    Args:
        x: a numeric tensor with at least one axis.
        axis: along which axis; may be left out for a vector.
        dtype: dtype to sum in; by default that of x, 64 bits wide for integers.
        include_initial: begin with 0, so that the axis has one element more.

    Raises:
        ShapeError: x has no axis, or several and none is named.
    """
    return _running(_cumulative_sum, x, axis, dtype, 0 if include_initial else None)


def cumulative_prod(
    x: Tensor,
    /,
    *,
    axis: int | None = None,
    dtype: DType | str | None = None,
    include_initial: bool = False,
) -> Tensor:
    """Running products: out[k] = x[0] * ... * x[k] along an axis, in order.

    Arguments are those of `cumulative_sum`; ``include_initial`` begins with 1.
    """
    return _running(_cumulative_prod, x, axis, dtype, 1 if include_initial else None)


def _running(
    op: OpDef, x: Tensor, axis: int | None, dtype: DType | str | None, initial: int | None
) -> Tensor:
    rank = rank_of(op.name, x)
    if axis is None:
        if rank != 1:
            raise ShapeError(f"{op.name}: axis is needed for a tensor of shape {x.shape}")
        axis = 0
    place = shapes.normalize_axis(op.name, axis, rank)
    wide = widened(op.name, x, dtype)
    result = apply(op, wide, axis=place)
    if initial is None:
        return result
    shape = tuple(1 if a == place else n for a, n in enumerate(x.shape))
    first = OPERATIONS["full"].reference(shape=shape, value=initial, dtype=wide.dtype)
    return concat([beside(x, first), result], axis=place)


def diff(
    x: Tensor,
    /,
    *,
    axis: int = -1,
    n: int = 1,
    prepend: Tensor | None = None,
    append: Tensor | None = None,
) -> Tensor:
    """Differences of neighbours, out[k] = x[k + 1] - x[k] along an axis, taken n times.

    Args:
        x: a numeric tensor with at least one axis.
        axis: along which axis; each time it becomes one element shorter, down to none.
        n: how many times; 0 gives x itself.
        prepend: elements to put before x along the axis first; of x's shape except there.
        append: elements to put after x likewise.

    Raises:
        ShapeError: x has no axis, n is negative, or shapes do not fit.
    """
    place = shapes.normalize_axis("diff", axis, rank_of("diff", x))
    if n < 0:
        raise ShapeError(f"diff: expected n >= 0, received {n}")
    parts = [part for part in (prepend, x, append) if part is not None]
    result = concat(parts, axis=place) if len(parts) > 1 else x
    for _ in range(n):
        count = max(result.shape[place] - 1, 0)
        later = along(result, place, result.shape[place] - count, count)
        result = e.subtract(later, along(result, place, 0, count))
    return result
