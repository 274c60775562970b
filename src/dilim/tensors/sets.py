"""Sets: unique elements, membership, and the positions of what is not zero.

How many elements come out depends on the data. So the number is read first, on the host, and
everything after it is ordinary operations of known shape.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from dilim import dtypes, shapes
from dilim.errors import DtypeError, ShapeError
from dilim.ops.table import OPERATIONS
from dilim.tensors import elementwise as e
from dilim.tensors.dispatch import NUMBERS, apply, as_own
from dilim.tensors.interchange import numpy_of
from dilim.tensors.manipulation import concat, flatten, reshape
from dilim.tensors.reductions import any
from dilim.tensors.sorting import argsort, searchsorted, sort
from dilim.tensors.transfer import beside

if TYPE_CHECKING:
    from dilim.tensors.tensor import Tensor

_nonzero: Final = OPERATIONS["nonzero"]
_astype: Final = OPERATIONS["astype"]
_take: Final = OPERATIONS["take"]
_slice: Final = OPERATIONS["slice"]
_cumulative_sum: Final = OPERATIONS["cumulative_sum"]


def positions_of(mask: Tensor) -> Tensor:
    """Row-major positions (int64 vector) of the True elements of a bool tensor."""
    return apply(_nonzero, mask, count=int(np.count_nonzero(numpy_of(mask))))


def nonzero(x: Tensor, /) -> tuple[Tensor, ...]:
    """Positions of the elements that are not zero, row-major: one int64 vector per axis.

    Args:
        x: any tensor with at least one axis.

    Raises:
        ShapeError: x has no axis.
    """
    if not x.shape:
        raise ShapeError(
            "nonzero: expected at least one dimension, received shape (); compare with x != 0"
        )
    flat = positions_of(x if x.dtype is dtypes.bool_ else apply(_astype, x, dtype=dtypes.bool_))
    strides = shapes.row_major_strides(x.shape)
    return tuple(
        e.remainder(e.floor_divide(flat, stride), size)
        for stride, size in zip(strides, x.shape, strict=True)
    )


# --- unique elements ------------------------------------------------------------------------


class UniqueAll(NamedTuple):
    """What `unique_all` gives."""

    values: Tensor
    indices: Tensor
    inverse_indices: Tensor
    counts: Tensor


class UniqueCounts(NamedTuple):
    """What `unique_counts` gives."""

    values: Tensor
    counts: Tensor


class UniqueInverse(NamedTuple):
    """What `unique_inverse` gives."""

    values: Tensor
    inverse_indices: Tensor


class _Groups:
    """Equal elements of x, brought side by side.

    Attributes:
        flat: x as a vector.
        order: positions that sort it.
        begins: per sorted element whether it begins a new group.
        first: where the groups begin among the sorted elements.
    """

    def __init__(self, x: Tensor) -> None:
        self.flat: Any = flatten(x)
        self.order: Any = argsort(self.flat)
        size = self.flat.shape[0]
        ordered = apply(_take, self.flat.detach(), self.order, axis=0)
        rest = max(size - 1, 0)
        before = apply(_slice, ordered, index=((0, rest, 1),))
        after = apply(_slice, ordered, index=((size - rest, rest, 1),))
        head = beside(self.flat, np.ones(size - rest, bool))
        self.begins: Any = concat([head, e.not_equal(before, after)])
        self.first = positions_of(self.begins)

    def indices(self) -> Tensor:
        return apply(_take, self.order, self.first, axis=0)

    def values(self) -> Tensor:
        return apply(_take, self.flat, self.indices(), axis=0)

    def inverse(self, shape: shapes.Shape) -> Tensor:
        begun = apply(_cumulative_sum, apply(_astype, self.begins, dtype=dtypes.INDEX), axis=0)
        rank = argsort(self.order)
        return as_own(reshape(apply(_take, e.subtract(begun, 1), rank, axis=0), shape))

    def counts(self) -> Tensor:
        ends = concat([self.first, beside(self.flat, np.array(self.flat.shape))])
        ends = apply(_slice, ends, index=((1, self.first.shape[0], 1),))
        return e.subtract(ends, self.first)


def unique_all(x: Tensor, /) -> UniqueAll:
    """The distinct elements of x in ascending order, and where they are.

    NaNs are distinct from each other; -0.0 equals 0.0. Gradients of ``values`` go to the first
    of equal elements.

    Args:
        x: any tensor; read as a flat one.

    Returns:
        ``values`` (u,); ``indices`` (u,): the first position of each in the flat x;
        ``inverse_indices`` of x's shape: the number of each element's value; ``counts`` (u,): how
        often each occurs. Positions and counts are int64.
    """
    groups = _Groups(x)
    return UniqueAll(groups.values(), groups.indices(), groups.inverse(x.shape), groups.counts())


def unique_counts(x: Tensor, /) -> UniqueCounts:
    """The distinct elements of x and how often each occurs; see `unique_all`."""
    groups = _Groups(x)
    return UniqueCounts(groups.values(), groups.counts())


def unique_inverse(x: Tensor, /) -> UniqueInverse:
    """The distinct elements of x and the number of each element's value; see `unique_all`."""
    groups = _Groups(x)
    return UniqueInverse(groups.values(), groups.inverse(x.shape))


def unique_values(x: Tensor, /) -> Tensor:
    """The distinct elements of x in ascending order; see `unique_all`."""
    return _Groups(x).values()


# --- membership -----------------------------------------------------------------------------


def isin(x1: Any, x2: Any, /, *, invert: bool = False) -> Tensor:
    """True for each element of x1 that equals some element of x2.

    Args:
        x1: a tensor of any shape, or a Python number.
        x2: a tensor of any shape, or a Python number.
        invert: True for the elements that are not in x2.

    Raises:
        DtypeError: both are numbers, or the dtypes do not mix.
    """
    if x2.__class__ in NUMBERS:
        if x1.__class__ in NUMBERS:
            raise DtypeError("isin: expected at least one tensor, received two Python numbers")
        return e.not_equal(x1, x2) if invert else e.equal(x1, x2)
    if x1.__class__ in NUMBERS:
        hit = any(e.equal(x1, x2))
        return e.logical_not(hit) if invert else hit
    dtypes.promote("isin", x1.dtype, x2.dtype)
    known = sort(flatten(x2.detach()))
    count = known.shape[0]
    if count == 0:
        hits = e.logical_and(e.equal(x1, x1), False)
    else:
        place = searchsorted(known, x1)
        hits = e.equal(apply(_take, known, e.minimum(place, count - 1), axis=0), x1)
    return e.logical_not(hits) if invert else hits
