"""Layers in sequence, and layers that only change shapes or numbers at random."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from dilim.nn.checks import check_tensor
from dilim.nn.module import Module
from dilim.tensors import elementwise as e
from dilim.tensors import manipulation as m
from dilim.tensors.random import Generator, default_generator
from dilim.tensors.tensor import Tensor


class Sequential(Module):
    """Layers one after the other: the output of each is the input of the next.

    Args:
        layers: modules, or functions of one tensor such as `dilim.relu`.

    Attributes:
        layers: a list; ``model[0]`` is its first item.

    Example:
        >>> import dilim
        >>> from dilim.nn import Dense, ReLU, Sequential
        >>> Sequential(Dense(4, 8), ReLU(), Dense(8, 2))
        Sequential(
          layers.0: Dense(4 -> 8)
          layers.1: ReLU()
          layers.2: Dense(8 -> 2)
        )
    """

    def __init__(self, *layers: Callable[..., Any]) -> None:
        for layer in layers:
            if not callable(layer):
                raise TypeError(
                    f"Sequential: expected modules or functions, received {type(layer).__name__}; "
                    "write Sequential(*layers) for a list of layers"
                )
        self.layers = list(layers)

    def forward(self, x: Any) -> Any:
        """The input of the first layer to the output of the last."""
        for layer in self.layers:
            x = layer(x)
        return x

    def __len__(self) -> int:
        return len(self.layers)

    def __getitem__(self, position: int) -> Callable[..., Any]:
        return self.layers[position]

    def __iter__(self) -> Iterator[Callable[..., Any]]:
        return iter(self.layers)


class Flatten(Module):
    """All axes but the batch axis joined into one, such as images to rows.

    Args:
        start_axis: the first axis that is joined.
    """

    def __init__(self, start_axis: int = 1) -> None:
        self.start_axis = start_axis

    def forward(self, x: Tensor) -> Tensor:
        """(B, ...) to (B, F)."""
        return m.flatten(x, self.start_axis)

    def __repr__(self) -> str:
        return "Flatten()" if self.start_axis == 1 else f"Flatten({self.start_axis})"


class Dropout(Module):
    """In training, each number becomes 0 with probability p, and the others grow by 1 / (1 - p).

    In evaluation the input comes out as it is.

    Args:
        p: probability, from 0 to below 1.
        generator: where random numbers come from; the default generator if None. Save its
            ``state`` beside the model to go on exactly.

    Raises:
        ValueError: p is not in that range.

    Source: Srivastava et al., Dropout, 2014, in the form that scales while training.
    """

    def __init__(self, p: float = 0.5, *, generator: Generator | None = None) -> None:
        if not 0.0 <= p < 1.0:
            raise ValueError(f"Dropout: expected p from 0 to below 1, received {p!r}")
        self.p = float(p)
        self.generator = generator

    def forward(self, x: Tensor) -> Tensor:
        """Any shape to the same shape."""
        check_tensor("Dropout", x)
        if not self.training or self.p == 0.0:
            return x
        generator = self.generator or default_generator()
        kept = generator.uniform(x.shape) >= self.p
        return e.where(kept, x * (1.0 / (1.0 - self.p)), 0.0)

    def __repr__(self) -> str:
        return f"Dropout({self.p})"
