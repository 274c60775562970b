"""Whole programs as graphs: the work of a training step, built from layers, losses and optimisers.

Each function gives a `Case`: a graph, the arguments of one call, and the options to compile it
with. ``case.graph.compile(**case.options)(*case.batches[0])`` runs it.

    python benchmarks/programs.py        # prints the size of each and checks it against eager runs
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

import dilim
from dilim import nn, optim

GAMMA = 0.99
LEARNING_RATE = 1e-4


class Case(NamedTuple):
    graph: dilim.Graph
    batches: list[tuple[np.ndarray, ...]]
    options: dict[str, Any]
    state: list[dilim.Tensor]
    eager: Callable[..., Any]


def _case(
    function: Callable[..., Any],
    batches: list[tuple[np.ndarray, ...]],
    state: Sequence[dilim.Tensor] = (),
    **options: Any,
) -> Case:
    graph = dilim.Graph.from_function(function, *batches[0])
    return Case(graph, batches, options, list(state), function)


def _normal(rng: np.random.Generator, *shape: int) -> np.ndarray:
    return rng.standard_normal(shape).astype(np.float32)


def dqn_update(sizes: Sequence[int], batch: int, *, batches: int = 20, seed: int = 7) -> Case:
    """Double forward, Huber loss, backward and Adam; arguments (s, action, reward, s2, done)."""
    generator = dilim.Generator(seed)
    online = nn.MLP(sizes[0], sizes[1:], generator=generator)
    target = nn.MLP(sizes[0], sizes[1:], generator=generator)
    optimizer = optim.Adam(online, learning_rate=LEARNING_RATE)

    def update(s, action, reward, s2, done):
        with dilim.no_grad():
            goal = reward + GAMMA * (1.0 - done) * target(s2).max(axis=1)
        optimizer.zero_grad()
        chosen = dilim.take_along_axis(online(s), action.reshape(batch, 1), axis=1)
        loss = nn.losses.huber(chosen.reshape(batch), goal)
        loss.backward()
        optimizer.step()
        return loss

    rng = np.random.default_rng(seed)
    given = [
        (
            _normal(rng, batch, sizes[0]),
            rng.integers(0, sizes[-1], batch),
            _normal(rng, batch),
            _normal(rng, batch, sizes[0]),
            (rng.random(batch) < 0.1).astype(np.float32),
        )
        for _ in range(batches)
    ]
    return _case(update, given, online.parameters())


def classifier_update(
    sizes: Sequence[int], batch: int, *, batches: int = 20, seed: int = 7
) -> Case:
    """Forward, cross entropy, backward and Adam; arguments (x, class)."""
    model = nn.MLP(sizes[0], sizes[1:], generator=dilim.Generator(seed))
    optimizer = optim.Adam(model, learning_rate=LEARNING_RATE)

    def update(x, label):
        optimizer.zero_grad()
        loss = nn.losses.cross_entropy(model(x), label)
        loss.backward()
        optimizer.step()
        return loss

    rng = np.random.default_rng(seed)
    given = [
        (_normal(rng, batch, sizes[0]), rng.integers(0, sizes[-1], batch)) for _ in range(batches)
    ]
    return _case(update, given, model.parameters())


def logistic_regression(rows: int, features: int, steps: int, *, seed: int = 7) -> Case:
    """All steps of gradient descent in one loop; arguments (weights, x, y), gives the weights."""

    def loss_of(w, x, y):
        return nn.losses.binary_cross_entropy_with_logits(x @ w, y)

    gradient = dilim.grad(loss_of)

    def train(w, x, y):
        return dilim.loop(steps, w, lambda index, w: w - 0.1 * gradient(w, x, y))

    rng = np.random.default_rng(seed)
    x = _normal(rng, rows, features)
    y = (x @ _normal(rng, features) + _normal(rng, rows) > 0).astype(np.float32)
    return _case(train, [(np.zeros(features, np.float32), x, y)])


def logistic_regression_by_optimizer(
    rows: int, features: int, steps: int, *, seed: int = 7
) -> Case:
    """As `logistic_regression`, by `optim.SGD` on weights outside; gives the last loss."""
    w = dilim.zeros(features, requires_grad=True, name="w")
    optimizer = optim.SGD([w], learning_rate=0.1)

    def train(x, y):
        def step(index, last):
            optimizer.zero_grad()
            loss = nn.losses.binary_cross_entropy_with_logits(x @ w, y)
            loss.backward()
            optimizer.step()
            return loss.detach()

        return dilim.loop(steps, dilim.tensor(0.0), step)

    return _case(train, [logistic_regression(rows, features, 1, seed=seed).batches[0][1:]], [w])


def greedy_action(sizes: Sequence[int], *, batches: int = 20, seed: int = 7) -> Case:
    """The action of the largest value for one observation, as a Python int."""
    model = nn.MLP(sizes[0], sizes[1:], generator=dilim.Generator(seed))

    def act(observation):
        with dilim.no_grad():
            return model(observation).argmax()

    rng = np.random.default_rng(seed)
    given = [(_normal(rng, sizes[0]),) for _ in range(batches)]
    return _case(act, given, as_numbers=True)


CASES: dict[str, Callable[[], Case]] = {
    "dqn 4-64-64-2, 32": lambda: dqn_update([4, 64, 64, 2], 32),
    "dqn 11-256-128-3, 64": lambda: dqn_update([11, 256, 128, 3], 64),
    "classifier 784-256-128-10, 128": lambda: classifier_update([784, 256, 128, 10], 128),
    "logistic 53 x 3, 1000 steps": lambda: logistic_regression(53, 3, 1000),
    "logistic by SGD": lambda: logistic_regression_by_optimizer(53, 3, 1000),
    "greedy 4-64-64-2": lambda: greedy_action([4, 64, 64, 2]),
}


def check(name: str, backend: str) -> None:
    """Run a few calls compiled and eagerly from the same state, and compare results and state."""
    started = time.perf_counter()
    case = CASES[name]()
    traced = time.perf_counter()
    compiled = case.graph.compile(backend=backend, **case.options)
    done = time.perf_counter()
    calls = case.batches[:3]
    got = [compiled(*batch) for batch in calls] + case.state
    fresh = CASES[name]()
    want = [fresh.eager(*map(dilim.asarray, batch)) for batch in calls] + fresh.state
    pairs = [(np.asarray(x), np.asarray(y)) for x, y in zip(got, want, strict=True)]
    for x, y in pairs:
        np.testing.assert_allclose(x, y, rtol=1e-4, atol=1e-6)
    same = all(x.tobytes() == y.astype(x.dtype).tobytes() for x, y in pairs)
    graph = compiled.graph
    print(
        f"{name:32} {len(graph.nodes):4} nodes, {len(graph.variables):3} variables, "
        f"trace {(traced - started) * 1e3:6.1f} ms, compile {(done - traced) * 1e3:7.1f} ms, "
        f"bits of eager runs: {'yes' if same else 'no'}"
    )


if __name__ == "__main__":
    for name in CASES:
        check(name, sys.argv[1] if len(sys.argv) > 1 else "reference")
