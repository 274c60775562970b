"""Limits on gradients, by norm and by value. Gradients that are not finite are refused."""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence

from dilim import dtypes
from dilim.errors import NonFiniteError
from dilim.ops.table import OPERATIONS
from dilim.tensors import elementwise as e
from dilim.tensors import reductions as r
from dilim.tensors.control import cond
from dilim.tensors.creation import zeros
from dilim.tensors.dispatch import apply, has_numbers
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor


def clip_grad_norm(parameters: Iterable[Tensor], limit: float) -> Tensor:
    """Scale all gradients by one factor, so that their common norm is at most ``limit``.

    The norm is sqrt(sum of all squares) over all elements of all gradients.

    Args:
        parameters: those without gradient are left out.
        limit: largest norm, above 0.

    Returns:
        The norm before, float64 ().

    Raises:
        NonFiniteError: a gradient has a NaN or an infinity; its parameter is named.
        ValueError: limit is not above 0.

    Source: Pascanu et al., On the difficulty of training recurrent neural networks, 2013.
    """
    check_limit("clip_grad_norm: limit", limit)
    named = [(name_of(i, x), x) for i, x in enumerate(parameters) if x.grad is not None]
    chosen = [x for _, x in named]
    with no_grad():
        norm = global_norm("clip_grad_norm", _gradients(chosen), named)
        for x, gradient in zip(chosen, _gradients(chosen), strict=True):
            x.grad = gradient * factor(norm, limit).astype(gradient.dtype)
    return norm


def clip_grad_value(parameters: Iterable[Tensor], limit: float) -> None:
    """Limit each element of all gradients to [-limit, limit].

    Args:
        parameters: those without gradient are left out.
        limit: largest absolute value, above 0.

    Raises:
        NonFiniteError: a gradient has a NaN; its parameter is named.
        ValueError: limit is not above 0.
    """
    check_limit("clip_grad_value: limit", limit)
    named = [(name_of(i, x), x) for i, x in enumerate(parameters) if x.grad is not None]
    chosen = [x for _, x in named]
    with no_grad():
        for gradient in _gradients(chosen):
            check_no_nan("clip_grad_value", gradient, named)
        for x, gradient in zip(chosen, _gradients(chosen), strict=True):
            x.grad = limited("clip_grad_value", gradient, limit)


def _gradients(parameters: Sequence[Tensor]) -> list[Tensor]:
    return [x.grad.detach() for x in parameters if x.grad is not None]


# --- the parts, also for optimisers ---------------------------------------------------------


def check_limit(what: str, limit: float) -> None:
    """Refuse a limit that is not above 0."""
    if not limit > 0.0:
        raise ValueError(f"{what}: expected a number above 0, received {limit!r}")


def name_of(position: int, x: Tensor) -> str:
    """A parameter's name for errors."""
    return x.name or f"parameter {position}"


def limited(operation: str, gradient: Tensor, limit: float) -> Tensor:
    """Each element limited to [-limit, limit]; a NaN stays, or stops a program."""
    if has_numbers(gradient):
        return e.maximum(e.minimum(gradient, float(limit)), -float(limit))
    has_nan = r.any(e.isnan(gradient))
    top = _require(operation, e.where(has_nan, math.nan, gradient.dtype.numpy.type(limit).item()))
    return e.maximum(e.minimum(gradient, top), -top)


def factor(norm: Tensor, limit: float) -> Tensor:
    """What to multiply gradients of this norm by: 1 up to the limit, limit / norm beyond."""
    return float(limit) / e.maximum(norm, float(limit))


def check_no_nan(
    operation: str, gradient: Tensor, parameters: Iterable[tuple[str, Tensor]]
) -> None:
    """Refuse a NaN in ``gradient``; left to `limited` in a graph.

    Raises:
        NonFiniteError: names the parameter whose gradient it is in.
    """
    if has_numbers(gradient) and bool(r.any(e.isnan(gradient))):
        raise non_finite(operation, parameters)


def global_norm(
    operation: str, gradients: Sequence[Tensor], parameters: Iterable[tuple[str, Tensor]]
) -> Tensor:
    """The norm of all elements of all gradients, float64 ().

    Args:
        operation: who asks, for the error.
        gradients: floating.
        parameters: names and parameters whose gradients they are, for the error.

    Raises:
        NonFiniteError: a gradient has a NaN or an infinity; its parameter is named.
    """
    norm = _root_of_squares(gradients)
    if not has_numbers(norm):
        finite = e.isfinite(norm)
        chosen: Tensor = cond(finite, lambda: norm, lambda: _scaled_norm(operation, gradients))
        return chosen
    if math.isfinite(float(norm)):
        return norm
    tops = [float(r.max(e.abs(gradient))) for gradient in gradients if gradient.size]
    if not all(math.isfinite(top) for top in tops):
        raise non_finite(operation, parameters)
    largest = max(tops)  # finite, but the squares overflow
    return _root_of_squares([gradient / largest for gradient in gradients]) * largest


def _scaled_norm(operation: str, gradients: Sequence[Tensor]) -> Tensor:
    """The norm of gradients whose squares overflow; a program stops if one is not finite."""
    tops = [r.max(e.abs(x)).astype(dtypes.float64) for x in gradients if x.size]
    largest = functools.reduce(e.maximum, [_require(operation, top) for top in tops])
    return _root_of_squares([x / largest.astype(x.dtype) for x in gradients]) * largest


def _require(operation: str, x: Tensor) -> Tensor:
    message = f"{operation}: a gradient is not finite"
    return apply(OPERATIONS["require_finite"], x, message=message)


def _root_of_squares(gradients: Sequence[Tensor]) -> Tensor:
    squares = [r.sum(gradient * gradient).astype(dtypes.float64) for gradient in gradients]
    total = squares[0] if squares else zeros((), dtype=dtypes.float64)
    for square in squares[1:]:
        total = total + square
    return e.sqrt(total)


def non_finite(operation: str, parameters: Iterable[tuple[str, Tensor]]) -> NonFiniteError:
    """The error that names the first parameter whose gradient is not finite."""
    for name, x in parameters:
        if x.grad is None or bool(r.all(e.isfinite(x.grad))):
            continue
        nan = int(r.count_nonzero(e.isnan(x.grad)))
        infinite = int(r.count_nonzero(e.isinf(x.grad)))
        return NonFiniteError(
            f"{operation}: the gradient of {name!r} {x.shape} has {nan} NaN and {infinite} "
            f"infinities of {x.size} elements; run the step under dilim.detect_anomaly() to see "
            "the first operation that makes a NaN, or lower the learning rate"
        )
    return NonFiniteError(f"{operation}: a gradient is not finite")
