"""Fully connected layers: `Dense` and the network made of them, `MLP`."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import ShapeError
from dilim.nn.activations import ACTIVATIONS
from dilim.nn.checks import check_input, check_size
from dilim.nn.init import Initializer, known, weight_and_bias
from dilim.nn.module import Module
from dilim.tensors.linear_algebra import matmul
from dilim.tensors.random import Generator
from dilim.tensors.tensor import Tensor


class Dense(Module):
    """Y = X W + b.

    Args:
        input_size: F, numbers that come in, at least 1.
        output_size: H, numbers that go out, at least 1.
        bias: whether there is a b.
        init: "fan_in" (weight and bias from U(-k, k), k = 1 / sqrt(F)), "xavier", "kaiming",
            "orthogonal", "micrograd", "zeros", or a function like those of `dilim.nn.init`.
        generator: where random numbers come from; the default generator if None.
        dtype: of weight, bias, inputs and outputs: float32 or float64.
        name: free text for errors and for the names of the tensors.

    Attributes:
        weight: (F, H).
        bias: (H,), or None.

    Raises:
        ShapeError: a size below 1.
        ValueError: there is no initialiser of that name.

    Example:
        >>> import dilim
        >>> layer = dilim.nn.Dense(3, 2, generator=dilim.Generator(0))
        >>> layer(dilim.ones((5, 3))).shape
        (5, 2)
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        *,
        bias: bool = True,
        init: str | Initializer = "fan_in",
        generator: Generator | None = None,
        dtype: DType | str = dtypes.float32,
        name: str | None = None,
    ) -> None:
        self.input_size = check_size("Dense: input_size", input_size)
        self.output_size = check_size("Dense: output_size", output_size)
        self.name = name
        shape = (self.input_size, self.output_size)
        self.weight, offset = weight_and_bias(init, shape, self.output_size, generator, dtype)
        self.weight.name = f"{name or 'dense'}.weight"
        offset.name = f"{name or 'dense'}.bias"
        self.bias = offset if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """(..., F) to (..., H).

        Raises:
            ShapeError: the last axis of x does not have size F.
            DtypeError: x has another dtype than the weight.
        """
        check_input(self, x, self.weight)
        if x.shape[-1:] != (self.input_size,):
            raise ShapeError(
                f"{self.described}: expected inputs of size {self.input_size} on the last axis, "
                f"received shape {x.shape}"
            )
        result = matmul(x, self.weight)
        return result if self.bias is None else result + self.bias

    def __repr__(self) -> str:
        extra = "" if self.bias is not None else ", bias=False"
        return f"Dense({self.input_size} -> {self.output_size}{extra})"


Linear = Dense


class MLP(Module):
    """Dense layers in sequence (multi-layer perceptron): an activation inside, the last linear.

    Args:
        input_size: F, numbers that come in, at least 1.
        layer_sizes: outputs of each layer; the last is the number of outputs A.
        activation: of all layers but the last: "relu", "tanh", "sigmoid", "gelu" or "linear".
        init: see `Dense`; for all layers.
        generator: where random numbers come from; the default generator if None.
        dtype: float32 or float64.
        name: free text for errors.

    Attributes:
        layers: a list of `Dense`.

    Raises:
        ShapeError: no layer, or a size below 1.
        ValueError: there is no activation or initialiser of that name.

    Example:
        >>> import dilim
        >>> model = dilim.nn.MLP(3, [4, 4, 1])
        >>> model
        MLP(3 -> 4 -> 4 -> 1, relu, 41 parameters)
        >>> model(dilim.ones((5, 3))).shape
        (5, 1)
    """

    def __init__(
        self,
        input_size: int,
        layer_sizes: Sequence[int],
        activation: str = "relu",
        *,
        init: str | Initializer = "fan_in",
        generator: Generator | None = None,
        dtype: DType | str = dtypes.float32,
        name: str | None = None,
    ) -> None:
        if not layer_sizes:
            raise ShapeError("MLP: layer_sizes is empty, expected sizes such as [16, 16, 1]")
        self.activation = known("MLP: activation", activation, ACTIVATIONS)
        self.name = name
        sizes = [check_size("MLP: a size", size) for size in (input_size, *layer_sizes)]
        self.layers = [
            Dense(
                *ends,
                init=init,
                generator=generator,
                dtype=dtype,
                name=f"{name}.layers.{number}" if name else f"layers.{number}",
            )
            for number, ends in enumerate(itertools.pairwise(sizes))
        ]

    def forward(self, x: Tensor) -> Tensor:
        """(..., F) to (..., A).

        Raises:
            ShapeError, DtypeError: see `Dense`.
        """
        activate = ACTIVATIONS[self.activation]
        *inner, last = self.layers
        for layer in inner:
            x = activate(layer(x))
        result: Tensor = last(x)
        return result

    def __repr__(self) -> str:
        sizes = " -> ".join(str(layer.output_size) for layer in self.layers)
        count = sum(x.size for x in self.parameters())
        first = self.layers[0].input_size
        return f"MLP({first} -> {sizes}, {self.activation}, {count:,} parameters)"
