"""Scalar autograd: one training step (forward, backward, update) of dilim.scalar and of micrograd.

``dilim`` and ``micrograd`` run the very same expressions, node for node (the rows' ``nodes`` are
counted by walking the loss), on Python floats. ``dilim_own`` is the same network as a dilim user
writes it: ``MLP``, ``loss.mse``, ``SGD``. ``dilim_compiled`` is that network as machine code, one
step per call; ``dilim_compiled_train`` takes 1,000 steps in one call. ``numpy`` computes the same
step on arrays, for scale.

    python benchmarks/scalar_step.py [--cases mlp,moons] [--peers ...] [--quick] [--out FILE]
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from harness import Job, Peer, main

LEARNING_RATE = 0.01
CHECKED_STEPS = 10
STEPS = 1000
"""Steps that ``dilim_compiled_train`` takes in one call."""
PEERS = [
    Peer(name)
    for name in (
        *("dilim", "dilim_own", "dilim_compiled", "dilim_compiled_train"),
        *("micrograd", "numpy"),
    )
]
# Layer sizes and activation of the hidden layers; the last layer is linear.
CASES: dict[str, tuple[list[int], str]] = {
    "mlp": ([3, 4, 4, 1], "tanh"),
    "moons": ([2, 16, 16, 1], "relu"),
}

Weights = list[np.ndarray]


def data(case: str) -> tuple[np.ndarray, np.ndarray]:
    """Inputs (B, F) and targets (B,): four fixed samples, or 100 points of two moons with noise."""
    if case == "mlp":
        inputs = [[2.0, 3.0, -1.0], [3.0, -1.0, 0.5], [0.5, 1.0, 1.0], [1.0, 1.0, -1.0]]
        return np.array(inputs), np.array([1.0, -1.0, -1.0, 1.0])
    random = np.random.default_rng(3)
    angle = math.pi * random.random(50)
    upper = np.stack([np.cos(angle), np.sin(angle)], axis=1)
    lower = np.stack([1 - np.cos(angle), 0.5 - np.sin(angle)], axis=1)
    points = np.concatenate([upper, lower])
    noise = 0.1 * random.standard_normal(points.shape)
    return points + noise, np.repeat([-1.0, 1.0], 50)


def initial_weights(case: str) -> Weights:
    """One matrix (F, H) per layer, uniform in (-1, 1); biases start at zero."""
    random = np.random.default_rng(4)
    sizes, _ = CASES[case]
    return [random.uniform(-1, 1, (i, o)) for i, o in itertools.pairwise(sizes)]


def losses(step: Callable[[int], float]) -> Iterator[float]:
    """The losses of the first steps, computed as they are taken."""
    return (step(0) for _ in range(CHECKED_STEPS))


def same_expressions(case: str, value: type, tanh: Callable[[Any], Any], inputs_of: str) -> Job:
    """The step written with ``+ - * **`` on scalars, for any engine with micrograd's interface.

    Args:
        case: A name in ``CASES``.
        value: The engine's node class, with ``data``, ``grad``, ``backward()`` and ``relu()``.
        tanh: The engine's hyperbolic tangent of a node.
        inputs_of: Name of the attribute that holds the nodes a node was computed from.
    """
    points, targets = (array.tolist() for array in data(case))
    layers = [
        [([value(w) for w in column], value(0.0)) for column in matrix.T.tolist()]
        for matrix in initial_weights(case)
    ]
    parameters = [p for layer in layers for weights, bias in layer for p in (*weights, bias)]
    activation = tanh if CASES[case][1] == "tanh" else value.relu

    def predict(point: list[float]) -> Any:
        signal = [value(x) for x in point]
        for layer in layers:
            signal = [
                sum((w * x for w, x in zip(weights, signal, strict=True)), bias)
                for weights, bias in layer
            ]
            if layer is not layers[-1]:
                signal = [activation(x) for x in signal]
        return signal[0]

    def mean_square() -> Any:
        total = 0
        for point, target in zip(points, targets, strict=True):
            total = total + (predict(point) - target) ** 2
        return total * (1.0 / len(points))

    def step(_: int) -> float:
        loss = mean_square()
        for parameter in parameters:
            parameter.grad = 0.0
        loss.backward()
        for parameter in parameters:
            parameter.data -= LEARNING_RATE * parameter.grad
        return loss.data

    return Job(step, losses(step), facts={"nodes": count_nodes(mean_square(), inputs_of)})


def count_nodes(root: Any, inputs_of: str) -> int:
    """Number of different nodes that ``root`` was computed from, itself and leaves included."""
    seen, waiting = {id(root)}, [root]
    while waiting:
        for node in getattr(waiting.pop(), inputs_of):
            if id(node) not in seen:
                seen.add(id(node))
                waiting.append(node)
    return len(seen)


def micrograd_job(case: str) -> Job:
    from micrograd.engine import Value

    def tanh(node: Value) -> Value:  # micrograd 0.1.0 has none; written in the style of its relu.
        out = Value(math.tanh(node.data), (node,), "tanh")

        def backward() -> None:
            node.grad += (1 - out.data * out.data) * out.grad

        out._backward = backward
        return out

    return same_expressions(case, Value, tanh, "_prev")


def dilim_job(case: str) -> Job:
    from dilim.scalar import Value

    return same_expressions(case, Value, Value.tanh, "inputs")


def dilim_own_job(case: str) -> Job:
    from dilim.scalar import SGD, loss

    points, targets = (array.tolist() for array in data(case))
    model = own_model(case)
    optimiser = SGD(model.parameters(), learning_rate=LEARNING_RATE)

    def error() -> Any:
        return loss.mse([model(point) for point in points], targets)

    def step(_: int) -> float:
        result = error()
        model.zero_grad()
        result.backward()
        optimiser.step()
        return result.data

    return Job(step, losses(step), facts={"nodes": count_nodes(error(), "inputs")})


def own_model(case: str) -> Any:
    """The network of a case in `dilim.scalar`."""
    from dilim.scalar import MLP

    sizes, activation = CASES[case]
    model = MLP(sizes[0], sizes[1:], activation=activation)
    for layer, matrix in zip(model.layers, initial_weights(case), strict=True):
        for neuron, column in zip(layer.neurons, matrix.T.tolist(), strict=True):
            for weight, number in zip(neuron.weights, column, strict=True):
                weight.data = number
            neuron.bias.data = 0.0
    return model


def compiled_model(case: str) -> Any:
    """The network of a case with its training step as machine code."""
    import dilim
    from dilim.scalar import SGD

    model = own_model(case)
    return dilim.compile(model, optimizer=SGD(model.parameters(), learning_rate=LEARNING_RATE))


def dilim_compiled_job(case: str) -> Job:
    points, targets = data(case)
    step = compiled_model(case).step
    numbers = (step(points, targets) for _ in range(CHECKED_STEPS))
    return Job(step, numbers, arguments=[(points, targets)])


def dilim_compiled_train_job(case: str) -> Job:
    points, targets = data(case)
    train = compiled_model(case).train
    numbers = train(points, targets, STEPS)[:CHECKED_STEPS]
    return Job(train, numbers, arguments=[(points, targets, STEPS)], unit=STEPS)


def numpy_job(case: str) -> Job:
    points, targets = data(case)
    weights = initial_weights(case)
    biases = [np.zeros(matrix.shape[1]) for matrix in weights]
    tanh = CASES[case][1] == "tanh"
    last = len(weights) - 1

    def step(_: int) -> float:
        signals = [points]
        for index, (matrix, bias) in enumerate(zip(weights, biases, strict=True)):
            signal = signals[-1] @ matrix + bias
            if index < last:
                signal = np.tanh(signal) if tanh else np.maximum(signal, 0.0)
            signals.append(signal)
        error = signals.pop()[:, 0] - targets
        slope = (2.0 / len(targets) * error)[:, None]
        for index in range(last, -1, -1):
            signal = signals[index]
            matrix_bar, bias_bar = signal.T @ slope, slope.sum(axis=0)
            if index > 0:
                slope = slope @ weights[index].T * (1.0 - signal**2 if tanh else signal > 0.0)
            weights[index] -= LEARNING_RATE * matrix_bar
            biases[index] -= LEARNING_RATE * bias_bar
        return float(np.mean(error * error))

    return Job(step, losses(step))


JOBS = {
    "dilim": dilim_job,
    "dilim_own": dilim_own_job,
    "dilim_compiled": dilim_compiled_job,
    "dilim_compiled_train": dilim_compiled_train_job,
    "micrograd": micrograd_job,
    "numpy": numpy_job,
}


def _job(peer: str, case: str) -> Job | None:
    return JOBS[peer](case)


if __name__ == "__main__":
    main(__file__, __doc__, PEERS, list(CASES), _job, lambda case: list(numpy_job(case).check))
