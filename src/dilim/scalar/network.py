"""A small neural network of `Value`s: `Neuron`, `Layer`, `MLP`."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Collection, Sequence

from .value import Value, as_value

ACTIVATIONS: dict[str, Callable[[Value], Value]] = {
    "linear": lambda value: value,
    "relu": Value.relu,
    "tanh": Value.tanh,
    "sigmoid": Value.sigmoid,
}
INITIALIZERS = ("fan_in", "micrograd")


class Module:
    """Something with parameters."""

    def parameters(self) -> list[Value]:
        """Return the values that training changes, always in the same order."""
        raise NotImplementedError(f"{type(self).__name__} does not define parameters()")

    def zero_grad(self) -> None:
        """Set the `grad` of all parameters to 0.0. Call it before each `backward()`."""
        for parameter in self.parameters():
            parameter.grad, parameter.has_grad = 0.0, False


class Neuron(Module):
    """activation(b + w1 x1 + w2 x2 + ...).

    Args:
        input_size: Number of inputs, at least 1.
        activation: "relu", "tanh", "sigmoid" or "linear" (none).
        init: "fan_in": weights and bias from U(-k, k) with k = 1 / sqrt(input_size), the default
            of PyTorch's Linear. "micrograd": weights from U(-1, 1), bias 0, as in micrograd.
        generator: Where random numbers come from; a new unseeded one by default.

    Raises:
        ValueError: A size below 1, or an unknown activation or initialiser.
    """

    def __init__(
        self,
        input_size: int,
        activation: str = "relu",
        *,
        init: str = "fan_in",
        generator: random.Random | None = None,
    ) -> None:
        _check_size("Neuron: input_size", input_size)
        _check_choice("activation", activation, ACTIVATIONS)
        _check_choice("init", init, INITIALIZERS)
        generator = generator or random.Random()
        bound = 1.0 / math.sqrt(input_size) if init == "fan_in" else 1.0
        self.weights = [Value(generator.uniform(-bound, bound)) for _ in range(input_size)]
        self.bias = Value(generator.uniform(-bound, bound) if init == "fan_in" else 0.0)
        self.activation = activation

    def forward(self, inputs: Sequence[Value | float]) -> Value:
        """Compute the neuron's output.

        Args:
            inputs: `input_size` values or numbers.

        Raises:
            ValueError: Another number of inputs.
        """
        if len(inputs) != len(self.weights):
            raise ValueError(f"{self!r}: expected {len(self.weights)} inputs, got {len(inputs)}")
        total = self.bias
        for weight, source in zip(self.weights, inputs, strict=True):
            total = total + weight * source
        return ACTIVATIONS[self.activation](total)

    __call__ = forward

    def parameters(self) -> list[Value]:
        """Return the weights, then the bias."""
        return [*self.weights, self.bias]

    def __repr__(self) -> str:
        return f"Neuron({len(self.weights)}, {self.activation})"


class Layer(Module):
    """Neurons side by side that share their inputs.

    Args:
        input_size: Number of inputs, at least 1.
        output_size: Number of neurons, at least 1.
        activation: See `Neuron`.
        init: See `Neuron`.
        generator: See `Neuron`.
    """

    def __init__(
        self,
        input_size: int,
        output_size: int,
        activation: str = "relu",
        *,
        init: str = "fan_in",
        generator: random.Random | None = None,
    ) -> None:
        _check_size("Layer: output_size", output_size)
        generator = generator or random.Random()
        self.neurons = [
            Neuron(input_size, activation, init=init, generator=generator)
            for _ in range(output_size)
        ]

    def forward(self, inputs: Sequence[Value | float]) -> list[Value]:
        """Compute one output per neuron from `input_size` values or numbers."""
        return [neuron.forward(inputs) for neuron in self.neurons]

    __call__ = forward

    def parameters(self) -> list[Value]:
        """Return the parameters of the first neuron, then of the second, and so on."""
        return [parameter for neuron in self.neurons for parameter in neuron.parameters()]

    def __repr__(self) -> str:
        first = self.neurons[0]
        return f"Layer({len(first.weights)} -> {len(self.neurons)}, {first.activation})"


class MLP(Module):
    """Layers in sequence (multi-layer perceptron): an activation inside, the last layer linear.

    Args:
        input_size: Number of inputs, at least 1.
        layer_sizes: Number of neurons of each layer; the last is the number of outputs.
        activation: That of all layers but the last; see `Neuron`.
        init: "fan_in" or "micrograd"; see `Neuron`.
        seed: Start of the model's own random numbers: the same seed gives the same parameters.
            By default every model is different.

    Raises:
        ValueError: No layer, a size below 1, or an unknown activation or initialiser.

    Example:
        >>> model = MLP(3, [4, 4, 1], seed=0)
        >>> model
        MLP(3 -> 4 -> 4 -> 1, relu, 41 parameters)
    """

    def __init__(
        self,
        input_size: int,
        layer_sizes: Sequence[int],
        activation: str = "relu",
        *,
        init: str = "fan_in",
        seed: int | None = None,
    ) -> None:
        if not layer_sizes:
            raise ValueError("MLP: layer_sizes is empty, expected such as [16, 16, 1]")
        generator = random.Random(seed)
        sizes = [input_size, *layer_sizes]
        last = len(layer_sizes) - 1
        self.layers = [
            Layer(
                size,
                sizes[index + 1],
                "linear" if index == last else activation,
                init=init,
                generator=generator,
            )
            for index, size in enumerate(sizes[:-1])
        ]
        self.activation = activation
        self.sizes = sizes

    def forward(self, inputs: Sequence[Value | float]) -> Value | list[Value]:
        """Compute the outputs for one sample.

        Args:
            inputs: `input_size` values or numbers.

        Returns:
            One value if the last layer has one neuron, otherwise a list.

        Raises:
            ValueError: Another number of inputs.
        """
        if len(inputs) != self.sizes[0]:
            raise ValueError(f"{self!r}: expected {self.sizes[0]} inputs, got {len(inputs)}")
        signals = [as_value(source) for source in inputs]
        for layer in self.layers:
            signals = layer.forward(signals)
        return signals[0] if len(signals) == 1 else signals

    __call__ = forward

    def parameters(self) -> list[Value]:
        """Return the parameters of the first layer, then of the second, and so on."""
        return [parameter for layer in self.layers for parameter in layer.parameters()]

    def __repr__(self) -> str:
        sizes = " -> ".join(str(size) for size in self.sizes)
        return f"MLP({sizes}, {self.activation}, {len(self.parameters())} parameters)"


def _check_size(what: str, size: int) -> None:
    if isinstance(size, bool) or not isinstance(size, int) or size < 1:
        raise ValueError(f"{what} must be a whole number of at least 1, got {size!r}")


def _check_choice(what: str, choice: str, choices: Collection[str]) -> None:
    if choice not in choices:
        raise ValueError(f"{what}: expected one of {', '.join(choices)}, got {choice!r}")
