"""Training steps as graphs with state: what the passes are for."""

from __future__ import annotations

import itertools

import dilim
from dilim import dtypes
from dilim.ir.graph import Graph, Node, Variable
from dilim.ir.types import Type
from dilim.nn import losses
from dilim.tensors.symbolic import trace

f32, i64 = dtypes.float32, dtypes.int64


def stateful(graph: Graph, state: int, results: int) -> Graph:
    """The last inputs become variables, read first; their new values are the last outputs.

    Args:
        graph: inputs ``(*own, *state)`` and outputs ``(*results, *new state)``.
        state: how many inputs are state.
        results: how many outputs are results.
    """
    own, kept = graph.inputs[: len(graph.inputs) - state], graph.inputs[len(graph.inputs) - state :]
    variables = tuple(Variable(value.type, value.name) for value in kept)
    reads = [Node("read", (v,), {}, (x,)) for v, x in zip(variables, kept, strict=True)]
    new = graph.outputs[results:]
    writes = [Node("write", pair, {}, ()) for pair in zip(variables, new, strict=False)]
    nodes = (*reads, *graph.nodes, *writes)
    return Graph(own, nodes, graph.outputs[:results], variables, graph.sites)


def adam(parameters, gradients, first, second, steps):
    """New parameters, moments and step count."""
    steps = steps + 1
    exact = steps.astype(dtypes.float64)
    root = (1.0 - 0.999**exact).sqrt()
    size = (1e-3 * root / (1.0 - 0.9**exact)).astype(f32)
    epsilon = (root * 1e-8).astype(f32)
    new_first = [m + (g - m) * (1.0 - 0.9) for m, g in zip(first, gradients, strict=True)]
    new_second = [v + (g * g - v) * (1.0 - 0.999) for v, g in zip(second, gradients, strict=True)]
    new = [
        p - m * size / (v.sqrt() + epsilon)
        for p, m, v in zip(parameters, new_first, new_second, strict=True)
    ]
    return [*new, *new_first, *new_second, steps]


def mlp(x, parameters):
    count = len(parameters) // 2
    for layer in range(count):
        x = x @ parameters[2 * layer] + parameters[2 * layer + 1]
        x = x.relu() if layer + 1 < count else x
    return x


def mlp_types(sizes):
    pairs = itertools.pairwise(sizes)
    return [t for i, o in pairs for t in (Type((i, o), f32), Type((o,), f32))]


def dqn_update(sizes=(4, 64, 64, 2), batch=32) -> Graph:
    """One update with target network, gather, Huber loss and Adam.

    Variables: parameters, moments, second moments, steps, target parameters (not written).
    """
    types = mlp_types(sizes)
    n = len(types)

    def step(state, action, reward, after, done, *variables):
        parameters, first, second = (list(variables[i * n : i * n + n]) for i in range(3))
        steps, target = variables[3 * n], variables[3 * n + 1 :]

        def loss_of(*parameters):
            best = mlp(after, target).max(axis=1)
            wanted = reward + 0.99 * (1.0 - done) * best
            q = mlp(state, parameters)
            chosen = dilim.take_along_axis(q, action.reshape(batch, 1), axis=1)
            return losses.huber(chosen.reshape(batch), wanted)

        loss, gradients = dilim.value_and_grad(loss_of, argnums=tuple(range(n)))(*parameters)
        return [loss, *adam(parameters, gradients, first, second, steps)]

    rows, vector = Type((batch, sizes[0]), f32), Type((batch,), f32)
    own = [rows, Type((batch,), i64), vector, rows, vector]
    traced = trace(step, *own, *types * 3, Type((), i64), *types)
    return stateful(traced.graph, 4 * n + 1, 1)


def logistic_regression(rows=53, features=3) -> Graph:
    """One step of gradient descent on the logistic loss; variables: weights."""

    def step(x, y, w):
        def loss_of(w):
            return losses.binary_cross_entropy_with_logits(x @ w, y)

        loss, gradient = dilim.value_and_grad(loss_of)(w)
        return [loss, w - 0.1 * gradient]

    traced = trace(step, Type((rows, features), f32), Type((rows,), f32), Type((features,), f32))
    return stateful(traced.graph, 1, 1)


def sigmoid_regression(rows=53, features=3) -> Graph:
    """Logistic regression as taught: sigmoid, then the squared error; variables: weights."""

    def step(x, y, w):
        def loss_of(w):
            return losses.mse((x @ w).sigmoid(), y)

        loss, gradient = dilim.value_and_grad(loss_of)(w)
        return [loss, w - 0.1 * gradient]

    traced = trace(step, Type((rows, features), f32), Type((rows,), f32), Type((features,), f32))
    return stateful(traced.graph, 1, 1)


def classifier(sizes=(12, 16, 5), batch=8) -> Graph:
    """Softmax cross-entropy with integer targets and plain gradient descent."""
    types = mlp_types(sizes)
    n = len(types)

    def step(x, target, *parameters):
        def loss_of(*parameters):
            return losses.cross_entropy(mlp(x, parameters), target)

        loss, gradients = dilim.value_and_grad(loss_of, argnums=tuple(range(n)))(*parameters)
        return [loss, *(p - 0.1 * g for p, g in zip(parameters, gradients, strict=True))]

    traced = trace(step, Type((batch, sizes[0]), f32), Type((batch,), i64), *types)
    return stateful(traced.graph, n, 1)


PROGRAMS = {
    "dqn": dqn_update,
    "logistic": logistic_regression,
    "sigmoid": sigmoid_regression,
    "classifier": classifier,
}
