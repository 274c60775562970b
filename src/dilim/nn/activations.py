"""Activations as layers, and by name."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Final

from dilim.nn.init import known
from dilim.nn.module import Module
from dilim.tensors import elementwise as e
from dilim.tensors.reductions import log_softmax, softmax
from dilim.tensors.tensor import Tensor

_CUBIC: Final = 0.044715


def gelu(x: Tensor, approximate: str = "none") -> Tensor:
    """x times the probability that a standard normal number is below x.

    Args:
        x: a floating tensor.
        approximate: "none": 0.5 x (1 + erf(x / sqrt(2))). "tanh": 0.5 x (1 + tanh(sqrt(2 / pi) (x +
            0.044715 x^3))), within 0.0005 of it and faster.

    Returns:
        The shape of x.

    Raises:
        ValueError: another value of approximate.

    Source: Hendrycks and Gimpel, Gaussian error linear units, 2016.
    """
    if known("gelu: approximate", approximate, ("none", "tanh")) == "none":
        share = e.erf(x * (1.0 / math.sqrt(2.0)))
    else:
        share = e.tanh((x + x * x * x * _CUBIC) * math.sqrt(2.0 / math.pi))
    return x * (share * 0.5 + 0.5)


def linear(x: Tensor) -> Tensor:
    """x itself: no activation."""
    return x


ACTIVATIONS: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "relu": e.relu,
    "tanh": e.tanh,
    "sigmoid": e.sigmoid,
    "gelu": gelu,
    "linear": linear,
}


class ReLU(Module):
    """max(x, 0), elementwise; NaN stays; derivative 0 at 0."""

    def forward(self, x: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return e.relu(x)


class Tanh(Module):
    """tanh(x), elementwise."""

    def forward(self, x: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return e.tanh(x)


class Sigmoid(Module):
    """1 / (1 + exp(-x)), elementwise, without overflow."""

    def forward(self, x: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return e.sigmoid(x)


class GELU(Module):
    """x times the probability that a standard normal number is below x; see `gelu`.

    Args:
        approximate: "none" or "tanh".
    """

    def __init__(self, approximate: str = "none") -> None:
        self.approximate = known("GELU: approximate", approximate, ("none", "tanh"))

    def forward(self, x: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return gelu(x, self.approximate)

    def __repr__(self) -> str:
        return "GELU()" if self.approximate == "none" else f"GELU({self.approximate!r})"


class Softmax(Module):
    """Probabilities exp(x) / sum(exp(x)) along an axis, without overflow.

    Args:
        axis: the axis that sums to 1.
    """

    def __init__(self, axis: int = -1) -> None:
        self.axis = axis

    def forward(self, x: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return softmax(x, axis=self.axis)

    def __repr__(self) -> str:
        return f"{type(self).__name__}(axis={self.axis})"


class LogSoftmax(Softmax):
    """Log-probabilities x - log(sum(exp(x))) along an axis, without overflow and log(0).

    Args:
        axis: the axis whose exp sums to 1.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Any shape to the same shape."""
        return log_softmax(x, axis=self.axis)
