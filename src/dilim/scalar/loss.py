"""Losses: one number that says how wrong predictions are, as a `Value` to minimise."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .value import Value


def mse(predicted: Sequence[Value], targets: Sequence[Value | float]) -> Value:
    """Mean squared error: the mean of (prediction - target)^2.

    Args:
        predicted: One value per sample.
        targets: One number per sample.

    Returns:
        The mean over the samples.

    Raises:
        ValueError: The lengths differ, or there are no samples.

    Example:
        >>> mse([Value(2.0), Value(5.0)], [1.0, 3.0])
        Value(data=2.5, grad=0.0)
    """
    _check_lengths("mse", predicted, targets)
    errors = [value - target for value, target in zip(predicted, targets, strict=True)]
    # Products, no powers: C's pow may round a square otherwise than the next machine does.
    return _mean([error * error for error in errors])


def hinge(predicted: Sequence[Value], targets: Sequence[float]) -> Value:
    """Hinge loss of a two-class classifier: the mean of max(0, 1 - target * prediction).

    A sample costs nothing once its prediction has the sign of its class and is at least 1 away
    from 0.

    Args:
        predicted: One value per sample; its sign is the predicted class.
        targets: The class of each sample, -1 or 1.

    Returns:
        The mean over the samples.

    Raises:
        ValueError: The lengths differ, there are no samples, or a target is neither -1 nor 1.

    Example:
        >>> hinge([Value(0.5), Value(3.0)], [1, 1])
        Value(data=0.25, grad=0.0)
    """
    _check_lengths("hinge", predicted, targets)
    check_classes(targets)
    return _mean(
        [(1.0 - target * value).relu() for value, target in zip(predicted, targets, strict=True)]
    )


def check_classes(targets: Iterable[float]) -> None:
    """Refuse targets that are no classes for `hinge`.

    Raises:
        ValueError: A target is neither -1 nor 1.
    """
    for target in targets:
        if target not in (-1, 1):
            raise ValueError(
                f"hinge: targets must be -1 or 1, got {target!r}; turn 0 and 1 into 2 * target - 1"
            )


def _check_lengths(name: str, predicted: Sequence[Value], targets: Sequence[Value | float]) -> None:
    if isinstance(predicted, Value):
        raise ValueError(f"{name}: expected a list of predictions, got one Value; write [value]")
    if len(predicted) != len(targets) or not predicted:
        raise ValueError(
            f"{name}: expected as many targets as predictions and at least one, "
            f"got {len(predicted)} predictions and {len(targets)} targets"
        )


def _mean(values: list[Value]) -> Value:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total / len(values)
