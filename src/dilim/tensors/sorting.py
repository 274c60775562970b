"""Sorting, and searching in what is sorted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dilim import shapes
from dilim.errors import ShapeError
from dilim.ops.table import OPERATIONS
from dilim.tensors.dispatch import apply, rank_of

if TYPE_CHECKING:
    from dilim.tensors.tensor import Tensor

_argsort: Final = OPERATIONS["argsort"]
_searchsorted: Final = OPERATIONS["searchsorted"]
_take: Final = OPERATIONS["take"]
_take_along: Final = OPERATIONS["take_along_axis"]


def argsort(
    x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True
) -> Tensor:
    """Positions (int64) that sort x along an axis.

    NaN counts as larger than every number: last when ascending, first when descending.

    Args:
        x: any tensor with at least one axis.
        axis: along which axis.
        descending: largest first.
        stable: equal elements keep their order; here they always do.

    Raises:
        ShapeError: x has no axis to sort along.
    """
    rank = rank_of("argsort", x)
    if not rank:
        raise ShapeError("argsort: expected at least one dimension, received shape ()")
    place = shapes.normalize_axis("argsort", axis, rank)
    return apply(_argsort, x, axis=place, descending=bool(descending))


def sort(x: Tensor, /, *, axis: int = -1, descending: bool = False, stable: bool = True) -> Tensor:
    """x sorted along an axis; gradients go back to where the elements came from.

    Arguments and order are those of `argsort`.
    """
    order = argsort(x, axis=axis, descending=descending, stable=stable)
    return apply(_take_along, x, order, axis=axis % len(x.shape))


def searchsorted(
    x1: Tensor, x2: Any, /, *, side: str = "left", sorter: Tensor | None = None
) -> Tensor:
    """Positions (int64) at which the values x2 would enter the sorted vector x1.

    Args:
        x1: a vector in ascending order (or one that ``sorter`` brings into it).
        x2: values to look up, of any shape; or a Python number.
        side: "left" gives the first place that keeps x1 sorted, so x1[i - 1] < value <= x1[i];
            "right" the last, so x1[i - 1] <= value < x1[i].
        sorter: positions that sort x1, as from `argsort`.

    Raises:
        ShapeError: x1 is not a vector.
        DtypeError: the dtypes do not mix, or ``side`` is something else.
    """
    if sorter is not None:
        x1 = apply(_take, x1, sorter, axis=0)
    return apply(_searchsorted, x1, x2, side=side)
