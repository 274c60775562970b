"""One sample of a scalar model as straight-line code: forward, and backward in the same order.

The model is run once on `Value` objects; what they remember is all there is to know. Derivatives
are added up in the order in which `Value.backward` adds them, so that the bits are the same.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dilim import scalar
from dilim.errors import UnsupportedError
from dilim.scalar.naming import CONSTANT
from dilim.scalar.network import MLP, Layer, Module, Neuron
from dilim.scalar.value import Value

Loss = Callable[..., Value]
LOSSES = (scalar.loss.mse, scalar.loss.hinge)


@dataclass(frozen=True, slots=True)
class Sample:
    """The graph of one sample.

    Attributes:
        parameters: leaves that are trained.
        inputs: leaves that hold the sample.
        target: the leaf that holds what is wanted.
        prediction: the model's result.
        term: what the sample adds to the loss.
        order: everything that leads to the term, each after its inputs.
    """

    parameters: tuple[Value, ...]
    inputs: tuple[Value, ...]
    target: Value
    prediction: Value
    term: Value
    order: tuple[Value, ...]


def trace_sample(model: Module, loss: Loss) -> Sample:
    """Run a model and a loss on one sample.

    Raises:
        UnsupportedError: another model than Neuron or MLP with one output, or an unknown loss:
            Python code that looks at numbers could take another way for another sample.
    """
    layers_of(model)
    if loss not in LOSSES:
        raise UnsupportedError(
            f"compile: expected loss=dilim.scalar.loss.mse or hinge, received {loss!r}"
        )
    size = len(model.weights) if isinstance(model, Neuron) else model.sizes[0]  # type: ignore[attr-defined]
    inputs = [Value(1.0) for _ in range(size)]
    target = Value(1.0)
    prediction = model(inputs)  # type: ignore[operator]
    if not isinstance(prediction, Value):
        raise UnsupportedError(
            f"compile: expected a model with one output, received {len(prediction)} outputs"
        )
    term = loss([prediction], [target]).inputs[0]  # the mean over one sample: term / 1
    parameters = tuple(model.parameters())
    return Sample(parameters, tuple(inputs), target, prediction, term, tuple(term.graph()))


def layers_of(model: Module) -> list[list[Neuron]]:
    """The neurons of a model.

    Raises:
        UnsupportedError: the model, or a part of it, is of another class.
    """
    if type(model) is Neuron:
        return [[model]]
    if type(model) is not MLP:
        raise UnsupportedError(
            f"compile: expected a scalar Neuron or MLP, received {type(model).__name__}; train it "
            "uncompiled"
        )
    for layer in model.layers:
        _check_part(layer, Layer)
        for neuron in layer.neurons:
            _check_part(neuron, Neuron)
    return [layer.neurons for layer in model.layers]


def _check_part(part: object, kind: type) -> None:
    if type(part) is not kind:
        raise UnsupportedError(
            f"compile: expected an MLP made of Layer and Neuron, received one with "
            f"{type(part).__name__}; train it uncompiled"
        )


def is_constant(value: Value) -> bool:
    """Whether a leaf is a number that the model's code wrote down."""
    return value.op == CONSTANT
