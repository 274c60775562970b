"""Reductions: sums, products, extremes, statistics, and their positions."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any, Final

from dilim import dtypes, shapes
from dilim.dtypes import DType
from dilim.errors import DtypeError
from dilim.ops.table import OPERATIONS
from dilim.tensors import elementwise as e
from dilim.tensors.dispatch import apply, as_own, rank_of

if TYPE_CHECKING:
    from dilim.tensors.tensor import Tensor

Axes = int | tuple[int, ...] | None

_sum: Final = OPERATIONS["sum"]
_prod: Final = OPERATIONS["prod"]
_astype: Final = OPERATIONS["astype"]
_reshape: Final = OPERATIONS["reshape"]


def _reduce(name: str, x: Tensor, axis: Axes, keepdims: bool) -> Tensor:
    axes = shapes.normalize_axes(name, axis, rank_of(name, x))
    return apply(OPERATIONS[name], x, axis=axes, keepdims=keepdims)


def widened(operation: str, x: Any, dtype: DType | str | None) -> Any:
    """Integers in 64 bits, as the standard asks of sums and products."""
    rank_of(operation, x)
    if dtype is not None:
        target = dtypes.as_dtype(dtype)
    elif x.dtype.is_floating:
        return x
    elif x.dtype.kind == "uint":
        target = dtypes.uint64
    else:
        target = dtypes.int64
    return x if x.dtype is target else apply(_astype, x, dtype=target)


def sum(
    x: Tensor, /, *, axis: Axes = None, dtype: DType | str | None = None, keepdims: bool = False
) -> Tensor:
    """Sum of elements over axes.

    Args:
        x: any numeric tensor; bools count as 0 and 1.
        axis: one axis, several, or None for all.
        dtype: dtype to sum in; by default that of x, 64 bits wide for integers.
        keepdims: keep reduced axes with size 1.
    """
    return _reduce("sum", widened("sum", x, dtype), axis, keepdims)


def prod(
    x: Tensor, /, *, axis: Axes = None, dtype: DType | str | None = None, keepdims: bool = False
) -> Tensor:
    """Product of elements over axes; arguments as for `sum`."""
    return _reduce("prod", widened("prod", x, dtype), axis, keepdims)


def max(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Largest element over axes; NaN if there is one; a tie shares the gradient equally."""
    return _reduce("max", x, axis, keepdims)


def min(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Smallest element over axes; NaN if there is one; a tie shares the gradient equally."""
    return _reduce("min", x, axis, keepdims)


def any(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """True where some element over axes is not zero."""
    return _reduce("any", _truth(x), axis, keepdims)


def all(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """True where every element over axes is not zero."""
    return _reduce("all", _truth(x), axis, keepdims)


def _truth(x: Any) -> Any:
    return x if x.dtype is dtypes.bool_ else apply(_astype, x, dtype=dtypes.bool_)


def count_nonzero(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Number of elements that are not zero, as int64."""
    return sum(_truth(x), axis=axis, keepdims=keepdims)


def argmax(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Position of the first largest element (int64); in the flattened tensor for axis None."""
    return _reduce("argmax", x, axis, keepdims)


def argmin(x: Tensor, /, *, axis: int | None = None, keepdims: bool = False) -> Tensor:
    """Position of the first smallest element (int64); in the flattened tensor for axis None."""
    return _reduce("argmin", x, axis, keepdims)


# --- statistics -----------------------------------------------------------------------------


def _count(operation: str, x: Tensor, axis: Axes) -> int:
    rank = rank_of(operation, x)
    if not x.dtype.is_floating:
        raise DtypeError(
            f"{operation}: expected a floating dtype, received {x.dtype.name}; cast first, for "
            f"example x.astype(dilim.float32)"
        )
    count = 1
    for a in shapes.normalize_axes(operation, axis, rank):
        count *= x.shape[a]
    return count


def mean(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Arithmetic mean over axes; NaN where there are no elements.

    Raises:
        DtypeError: the dtype is not floating.
    """
    count = _count("mean", x, axis)
    return e.divide(sum(x, axis=axis, keepdims=keepdims), float(count))


def var(
    x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Variance over axes: sum((x - mean)^2) / (n - correction).

    Args:
        x: a floating tensor.
        axis: one axis, several, or None for all.
        correction: 0 for a population, 1 for a sample.
        keepdims: keep reduced axes with size 1.

    Returns:
        The variances; NaN where n - correction is not positive.

    Raises:
        DtypeError: the dtype is not floating.
    """
    freedom = _count("var", x, axis) - correction
    deviation = e.subtract(x, mean(x, axis=axis, keepdims=True))
    total = sum(e.multiply(deviation, deviation), axis=axis, keepdims=keepdims)
    return e.divide(total, float(freedom) if freedom > 0 else math.nan)


def _root_or_zero(x: Tensor) -> Tensor:
    """sqrt(x) with derivative 0 at 0, the subgradient that norms take there."""
    zero = e.equal(x, 0.0)
    return e.where(zero, 0.0, e.sqrt(e.where(zero, 1.0, x)))


def std(
    x: Tensor, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
) -> Tensor:
    """Standard deviation: the root of `var`; derivative 0 where it is 0."""
    return _root_or_zero(var(x, axis=axis, correction=correction, keepdims=keepdims))


def norm(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """Euclidean norm sqrt(sum(x^2)) over axes; derivative 0 at the origin."""
    return _root_or_zero(sum(e.multiply(x, x), axis=axis, keepdims=keepdims))


# --- softmax --------------------------------------------------------------------------------


def logsumexp(x: Tensor, /, *, axis: Axes = None, keepdims: bool = False) -> Tensor:
    """log(sum(exp(x))) over axes without overflow; -inf for no elements' weight at all."""
    axes = shapes.normalize_axes("logsumexp", axis, rank_of("logsumexp", x))
    if 0 in (x.shape[a] for a in axes):
        return e.log(sum(x, axis=axis, keepdims=keepdims))
    top = max(x, axis=axis, keepdims=True).detach()
    top = e.where(e.isfinite(top), top, 0.0)
    total = e.log(sum(e.exp(e.subtract(x, top)), axis=axis, keepdims=True))
    result = e.add(total, top)
    if keepdims:
        return result
    return as_own(apply(_reshape, result, shape=shapes.reduced(x.shape, axes, False)))


def log_softmax(x: Tensor, /, *, axis: int = -1) -> Tensor:
    """x - log(sum(exp(x))) along an axis, without overflow and without log(0)."""
    top = max(x, axis=axis, keepdims=True).detach()
    shifted = e.subtract(x, top)
    return e.subtract(shifted, e.log(sum(e.exp(shifted), axis=axis, keepdims=True)))


def softmax(x: Tensor, /, *, axis: int = -1) -> Tensor:
    """exp(x) / sum(exp(x)) along an axis: probabilities that sum to 1, without overflow."""
    top = max(x, axis=axis, keepdims=True).detach()
    weights = e.exp(e.subtract(x, top))
    return e.divide(weights, sum(weights, axis=axis, keepdims=True))
