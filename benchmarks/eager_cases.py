"""The training steps that are compared, their data, and the same steps written by hand in NumPy."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from harness import Job

LEARNING_RATE = 1e-4
DISCOUNT = 0.99
DESCENT_RATE = 0.1
"""Learning rate of the logistic regression, which uses plain gradient descent."""
BETA_1, BETA_2, EPSILON = 0.9, 0.999, 1e-8
"""Adam's constants, the same in every library."""


@dataclass(frozen=True)
class Case:
    """One kind of step at one size: what is trained (``kind``), layer sizes, batch size B."""

    title: str
    kind: str
    sizes: tuple[int, ...] = ()
    batch: int = 1
    batches: int = 20
    checked: int = 20


CASES = {
    "a": Case("DQN update 4-64-64-2, batch 32", "dqn", (4, 64, 64, 2), 32),
    "a_np": Case("the same, batches handed over as NumPy arrays", "dqn", (4, 64, 64, 2), 32),
    "b": Case("DQN update 11-256-128-3, batch 64", "dqn", (11, 256, 128, 3), 64),
    "c": Case(
        "classifier 784-256-128-10, batch 128", "classify", (784, 256, 128, 10), 128, checked=10
    ),
    "d": Case(
        "classifier 1024-1024-1024-10, batch 256",
        "classify",
        (1024, 1024, 1024, 10),
        256,
        checked=10,
    ),
    "e": Case("logistic regression, 3 weights, 53 rows", "logistic", (3,), 53, 1, 1000),
    "act": Case("greedy action 4-64-64-2, NumPy observation in, int out", "act", (4, 64, 64, 2)),
    "p": Case("DQN update 7-31-1-13-5, batch 37", "dqn", (7, 31, 1, 13, 5), 37),
    "q": Case("classifier 17-101-53-29-3, batch 23", "classify", (17, 101, 53, 29, 3), 23),
    "r": Case("regression 13-211-1, batch 64", "regress", (13, 211, 1), 64),
    "small": Case("x * y, 10 elements, taped", "small", (10,), 1, 1, 1),
    "small_grad": Case("(x * y) and its backward, 10 elements", "small_grad", (10,), 1, 1, 1),
}


@dataclass
class Data:
    """Initial weights (weight (F, H), bias (H,), ... per layer), target network's, and batches."""

    weights: list[np.ndarray]
    target: list[np.ndarray]
    batches: list[tuple[np.ndarray, ...]]


def data(name: str, dtype: Any = np.float32) -> Data:
    """The data of a case, the same numbers for every peer (float32 values, whatever the dtype)."""
    case = CASES[name]
    random = np.random.default_rng(11)
    batch, features = case.batch, case.sizes[0]

    def normal(*shape: int) -> np.ndarray:
        return random.standard_normal(shape).astype(np.float32).astype(dtype)

    def network() -> list[np.ndarray]:
        weights = []
        for fan_in, fan_out in itertools.pairwise(case.sizes):
            scale = dtype(np.float32((2 / fan_in) ** 0.5))
            weights += [normal(fan_in, fan_out) * scale, normal(fan_out) * dtype(np.float32(0.01))]
        return weights

    def transitions() -> tuple[np.ndarray, ...]:
        action = random.integers(0, case.sizes[-1], batch)
        terminated = (random.random(batch) < 0.1).astype(dtype)
        return normal(batch, features), action, normal(batch), normal(batch, features), terminated

    weights, target = network(), network()
    match case.kind:
        case "dqn":
            batches = [transitions() for _ in range(case.batches)]
        case "classify":
            batches = [
                (normal(batch, features), random.integers(0, case.sizes[-1], batch))
                for _ in range(case.batches)
            ]
        case "regress":
            batches = [(normal(batch, features), normal(batch, 1)) for _ in range(case.batches)]
        case "logistic":
            rows = normal(batch, features)
            noise = random.standard_normal(batch)
            batches = [(rows, (rows @ np.array([1.5, -2.0, 0.5]) + noise > 0).astype(dtype))]
        case "act":
            batches = [(normal(1, features),) for _ in range(case.batches)]
        case _:
            batches = [(normal(features), normal(features))]
    return Data(weights, target, batches)


# ------------------------------------------------------------------ by hand
def numpy_job(name: str, dtype: Any = np.float32) -> Job:
    """The case as one writes it in NumPy by hand; in float64 it is the reference of the others."""
    case = CASES[name]
    given = data(name, dtype)
    if case.kind == "logistic":
        return _logistic(given, dtype)
    if case.kind.startswith("small"):
        return _small(case.kind, given)
    network = _Network(given, case, dtype)
    step = getattr(network, case.kind)
    numbers = (float(step(i)) for i in range(case.checked))
    return Job(step, numbers, case.batches)


def reference(name: str) -> list[float]:
    """The right numbers of a case."""
    return list(numpy_job(name, np.float64).check)


def _logistic(given: Data, dtype: Any) -> Job:
    ((rows, labels),) = given.batches
    columns, rate = np.ascontiguousarray(rows.T), dtype(DESCENT_RATE / len(labels))
    weights = np.zeros(rows.shape[1], dtype)

    def step(_: int) -> None:
        nonlocal weights
        weights -= rate * (columns @ (1 / (1 + np.exp(-(rows @ weights))) - labels))

    return Job(step, numbers_after(step, CASES["e"].checked, lambda: weights.tolist()))


def _small(kind: str, given: Data) -> Job:
    ((x, y),) = given.batches

    def product(_: int) -> np.ndarray:
        return x * y

    def gradients(_: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        ones = np.ones_like(x)
        return x * y, ones * y, ones * x

    step = product if kind == "small" else gradients
    return Job(step, iter(np.concatenate([x * y, y, x]).tolist()))


def numbers_after(step: Any, count: int, read: Any) -> Iterator[float]:
    """Run ``count`` steps, then give the numbers that ``read()`` returns."""
    for _ in range(count):
        step(0)
    yield from read()


class _Network:
    """ReLU network with a linear last layer, in buffers made once; parameters lie in one vector."""

    def __init__(self, given: Data, case: Case, dtype: Any) -> None:
        self.dtype, self.given, self.layers = dtype, given, len(case.sizes) - 1
        self.rows = np.arange(case.batch)
        self.vector = np.concatenate([w.ravel() for w in given.weights])
        self.slope = np.empty_like(self.vector)
        self.parameters = _views(self.vector, given.weights)
        self.slopes = _views(self.slope, given.weights)
        self.mean, self.square, self.work, self.change = np.zeros((4, self.vector.size), dtype)
        self.updates = 0

        def buffers() -> list[np.ndarray]:
            return [np.empty((case.batch, size), dtype) for size in case.sizes[1:]]

        self.signals, self.target_signals, self.signal_slopes = buffers(), buffers(), buffers()

    def forward(
        self, weights: list[np.ndarray], x: np.ndarray, into: list[np.ndarray]
    ) -> np.ndarray:
        for layer, signal in enumerate(into):
            np.matmul(x, weights[2 * layer], out=signal)
            signal += weights[2 * layer + 1]
            if layer < self.layers - 1:
                np.maximum(signal, 0, out=signal)
            x = signal
        return x

    def backward(self, x: np.ndarray) -> None:
        """From the slope of the outputs, already in ``signal_slopes[-1]``, to all parameters."""
        for layer in range(self.layers - 1, -1, -1):
            slope = self.signal_slopes[layer]
            below = self.signals[layer - 1] if layer else x
            np.matmul(below.T, slope, out=self.slopes[2 * layer])
            np.sum(slope, axis=0, out=self.slopes[2 * layer + 1])
            if layer:
                np.matmul(slope, self.parameters[2 * layer].T, out=self.signal_slopes[layer - 1])
                self.signal_slopes[layer - 1] *= below > 0

    def adam(self) -> None:
        self.updates += 1
        number, slope, work, change = self.dtype, self.slope, self.work, self.change
        self.mean *= number(BETA_1)
        self.mean += np.multiply(slope, number(1 - BETA_1), out=work)
        self.square *= number(BETA_2)
        np.multiply(slope, slope, out=work)
        work *= number(1 - BETA_2)
        self.square += work
        np.sqrt(self.square, out=work)
        work *= number((1 - BETA_2**self.updates) ** -0.5)
        work += number(EPSILON)
        np.divide(self.mean, work, out=change)
        change *= number(LEARNING_RATE / (1 - BETA_1**self.updates))
        self.vector -= change

    def dqn(self, index: int) -> np.floating:
        observation, action, reward, following, terminated = self.given.batches[index]
        best = self.forward(self.given.target, following, self.target_signals).max(axis=1)
        wanted = reward + self.dtype(DISCOUNT) * (1 - terminated) * best
        values = self.forward(self.parameters, observation, self.signals)
        error = values[self.rows, action] - wanted
        bounded = np.clip(error, -1, 1)
        loss = (bounded * (error - self.dtype(0.5) * bounded)).mean()
        slope = self.signal_slopes[-1]
        slope.fill(0)
        slope[self.rows, action] = bounded * self.dtype(1 / len(error))
        self.backward(observation)
        self.adam()
        return loss

    def classify(self, index: int) -> np.floating:
        x, label = self.given.batches[index]
        scores = self.forward(self.parameters, x, self.signals)
        scores = scores - scores.max(axis=1, keepdims=True)
        exponentials = np.exp(scores)
        total = exponentials.sum(axis=1, keepdims=True)
        loss = (np.log(total[:, 0]) - scores[self.rows, label]).mean()
        slope = np.divide(exponentials, total, out=self.signal_slopes[-1])
        slope[self.rows, label] -= 1
        slope *= self.dtype(1 / len(label))
        self.backward(x)
        self.adam()
        return loss

    def regress(self, index: int) -> np.floating:
        x, wanted = self.given.batches[index]
        error = self.forward(self.parameters, x, self.signals) - wanted
        np.multiply(error, self.dtype(2 / error.size), out=self.signal_slopes[-1])
        self.backward(x)
        self.adam()
        return (error * error).mean()

    def act(self, index: int) -> int:
        (x,) = self.given.batches[index]
        weights = self.given.weights
        for layer in range(self.layers):
            x = x @ weights[2 * layer] + weights[2 * layer + 1]
            if layer < self.layers - 1:
                x = np.maximum(x, 0)
        return int(x.argmax())


def _views(vector: np.ndarray, like: list[np.ndarray]) -> list[np.ndarray]:
    ends = list(itertools.accumulate(array.size for array in like))
    pieces = np.split(vector, ends[:-1])
    return [piece.reshape(array.shape) for piece, array in zip(pieces, like, strict=True)]
