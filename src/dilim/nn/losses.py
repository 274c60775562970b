"""Losses: how wrong predictions are, as a tensor to minimise.

All take ``reduction``: "mean" (default) over all elements or rows, "sum", or "none" for one number
each. Shapes that differ are refused, never broadcast. All are stable for predictions of any size.
"""

from __future__ import annotations

from typing import Final

from dilim.errors import DtypeError, ShapeError
from dilim.nn.checks import check_tensor, checked_indices
from dilim.nn.init import known
from dilim.ops.table import OPERATIONS
from dilim.shapes import Shape, size_of
from dilim.tensors import elementwise as e
from dilim.tensors import reductions as r
from dilim.tensors.dispatch import apply, has_numbers
from dilim.tensors.indexing import take_along_axis
from dilim.tensors.tensor import Tensor

REDUCTIONS: Final = ("mean", "sum", "none")

_multiply_no_nan: Final = OPERATIONS["multiply_no_nan"]

# --- regression -----------------------------------------------------------------------------


def mse(prediction: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Squared error (prediction - target)^2.

    Args:
        prediction: floating, any shape.
        target: floating, the same shape.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError: the shapes differ, or there is nothing to average.
        DtypeError: a dtype is not floating.

    Example:
        >>> import dilim
        >>> mse(dilim.tensor([2.0, 5.0]), dilim.tensor([1.0, 3.0])).item()
        2.5
    """
    _check("mse", prediction, target)
    difference = prediction - target
    return _reduced("mse", difference * difference, reduction)


def mae(prediction: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """Absolute error abs(prediction - target); derivative 0 where they agree. As `mse`."""
    _check("mae", prediction, target)
    return _reduced("mae", e.abs(prediction - target), reduction)


def huber(
    prediction: Tensor, target: Tensor, *, delta: float = 1.0, reduction: str = "mean"
) -> Tensor:
    """Squared error near 0, absolute error beyond: gradients are never larger than delta.

    With d = abs(prediction - target): 0.5 d^2 where d <= delta, else delta (d - 0.5 delta).

    Args:
        prediction: floating, any shape.
        target: floating, the same shape.
        delta: where the two meet, above 0.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DtypeError: as `mse`.
        ValueError: delta is not above 0.

    Source: Huber, Robust estimation of a location parameter, 1964.
    """
    _check("huber", prediction, target)
    if not delta > 0.0:
        raise ValueError(f"huber: expected delta above 0, received {delta!r}")
    distance = e.abs(prediction - target)
    near = e.minimum(distance, float(delta))
    return _reduced("huber", near * (distance - near * 0.5), reduction)


# --- two classes ----------------------------------------------------------------------------


def hinge(prediction: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """max(0, 1 - target * prediction): 0 once a prediction is at least 1 on the right side of 0.

    Args:
        prediction: floating, any shape; its sign is the predicted class.
        target: floating, the same shape: the class, -1 or 1.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DtypeError: as `mse`.
        ValueError: a target is neither -1 nor 1.
    """
    _check("hinge", prediction, target)
    if has_numbers(target) and not bool(r.all(e.equal(e.abs(target.detach()), 1.0))):
        raise ValueError(
            "hinge: expected targets -1 and 1, received others; turn 0 and 1 into 2 * target - 1"
        )
    return _reduced("hinge", e.relu(1.0 - target * prediction), reduction)


def binary_cross_entropy_with_logits(
    prediction: Tensor, target: Tensor, *, reduction: str = "mean"
) -> Tensor:
    """-log of the probability that sigmoid(prediction) gives to the class.

    (1 - target) softplus(prediction) + target softplus(-prediction): without overflow, and right
    to the last digits also where the loss is tiny. The derivative is sigmoid(prediction) - target.

    Args:
        prediction: floating, any shape: the logit of class 1.
        target: floating, the same shape: the probability of class 1, from 0 to 1.
        reduction: "mean", "sum" or "none".

    Raises:
        ShapeError, DtypeError: as `mse`.
        ValueError: a target is not from 0 to 1.
    """
    name = "binary_cross_entropy_with_logits"
    _check(name, prediction, target)
    if target.size and has_numbers(target):
        low, high = float(r.min(target)), float(r.max(target))
        if not (low >= 0.0 and high <= 1.0):
            raise ValueError(
                f"{name}: expected targets from 0 to 1, received some from {low} to {high}"
            )
    if_one = e.softplus(-prediction) * target
    return _reduced(name, e.softplus(prediction) * (1.0 - target) + if_one, reduction)


# --- many classes ---------------------------------------------------------------------------


def cross_entropy(prediction: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """-log of the probability that softmax(prediction) gives to the class, per row.

    Args:
        prediction: floating (..., C): logits of C classes. -inf is a class that cannot be.
        target: integers (...) from 0 to C - 1; or floating (..., C), probabilities of all classes.
        reduction: "mean" over rows, "sum" or "none".

    Raises:
        ShapeError: the shapes do not fit, or there is nothing to average.
        DtypeError: a dtype does not fit.
        IndexError: a class below 0 or above C - 1.

    Example:
        >>> import dilim
        >>> cross_entropy(dilim.tensor([[1000.0, 0.0, -1000.0]]), dilim.tensor([2])).item()
        2000.0
    """
    name = "cross_entropy"
    check_tensor(name, target)
    if not target.dtype.is_floating:
        target = _checked_classes(name, prediction, target)
        top = r.max(prediction.detach(), axis=-1, keepdims=True)
        shifted = prediction - top
        total = e.log(r.sum(e.exp(shifted), axis=-1, keepdims=True))
        return _reduced(name, (total - _chosen(shifted, target)).reshape(target.shape), reduction)
    if target.shape == prediction.shape[:-1] and target.shape != prediction.shape:
        raise DtypeError(
            f"{name}: class numbers must be integers, received {target.dtype.name}; use "
            "target.astype(dilim.int64)"
        )
    _check(name, prediction, target)
    # a class that cannot be, with probability 0, adds 0
    rows = apply(_multiply_no_nan, target, r.log_softmax(prediction, axis=-1))
    return _reduced(name, -r.sum(rows, axis=-1), reduction)


def nll(prediction: Tensor, target: Tensor, *, reduction: str = "mean") -> Tensor:
    """-prediction[class]: negative log-likelihood, per row; after a `log_softmax`.

    Args:
        prediction: floating (..., C): log-probabilities of C classes.
        target: integers (...) from 0 to C - 1.
        reduction: "mean" over rows, "sum" or "none".

    Raises:
        ShapeError, DtypeError, IndexError: as `cross_entropy`.
    """
    target = _checked_classes("nll", prediction, target)
    return _reduced("nll", -_chosen(prediction, target).reshape(target.shape), reduction)


def _chosen(rows: Tensor, classes: Tensor) -> Tensor:
    """rows[..., class], with a last axis of size 1."""
    return take_along_axis(rows, classes.reshape(*classes.shape, 1), axis=-1)


# --- checks ---------------------------------------------------------------------------------


def _check(name: str, prediction: Tensor, target: Tensor) -> None:
    """Refuse tensors that are not floating and of one shape."""
    for what, x in (("prediction", prediction), ("target", target)):
        check_tensor(f"{name}: {what}", x)
        if not x.dtype.is_floating:
            raise DtypeError(
                f"{name}: expected a floating {what}, received {x.dtype.name}; cast it with "
                "x.astype(dilim.float32)"
            )
    if prediction.shape != target.shape:
        raise _shapes_differ(name, prediction, target, prediction.shape)


def _checked_classes(name: str, prediction: Tensor, target: Tensor) -> Tensor:
    """The classes; refuse anything but floating (..., C) with classes (...) from 0 to C - 1."""
    check_tensor(f"{name}: prediction", prediction)
    if not prediction.dtype.is_floating or not prediction.shape:
        raise DtypeError(
            f"{name}: expected a floating prediction (..., C), received {prediction.dtype.name} "
            f"{prediction.shape}"
        )
    count = prediction.shape[-1]
    classes = checked_indices(f"{name}: target", target, count, "class")
    if prediction.shape[:-1] != target.shape:
        raise _shapes_differ(name, prediction, target, prediction.shape[:-1])
    return classes


def _shapes_differ(name: str, prediction: Tensor, target: Tensor, wanted: Shape) -> ShapeError:
    text = f"{name}: prediction {prediction.shape}, target {target.shape}: shapes differ"
    if wanted != prediction.shape:
        text += f", expected one class per row {wanted}"
    if size_of(wanted) == target.size:
        text += f"; use target.reshape({', '.join(map(str, wanted))})"
    return ShapeError(text)


def _reduced(name: str, loss: Tensor, reduction: str) -> Tensor:
    if reduction == "mean":
        if not loss.size:
            raise ShapeError(f"{name}: there are no elements to average, shape {loss.shape}")
        return r.mean(loss)
    known(f"{name}: reduction", reduction, REDUCTIONS)
    return r.sum(loss) if reduction == "sum" else loss
