"""The training steps in JAX with optax: one per call, or many in ``lax.scan``."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from eager_cases import CASES, DESCENT_RATE, DISCOUNT, LEARNING_RATE, Case, Data, data
from eager_cases import numbers_after as after
from harness import Job


def jax_job(name: str, steps: int, one_core: bool) -> Job | None:
    """The case with so many steps per call, or None where JAX has no such.

    Args:
        name: in ``CASES``.
        steps: 1 for a call per step; more for a scan.
        one_core: keep this process on one core.
    """
    if one_core:
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    case, given = CASES[name], data(name)
    given.batches = [tuple(map(_as_32_bits, batch)) for batch in given.batches]
    if case.kind == "act":
        return _act(case, given) if steps == 1 else None
    if case.kind == "logistic":
        return _logistic(case, given, steps)
    return _training(case, given, steps)


def _as_32_bits(array: np.ndarray) -> np.ndarray:
    return array.astype(np.int32) if array.dtype == np.int64 else array


def _forward(parameters: list[Any], x: Any) -> Any:
    import jax

    layers = len(parameters) // 2
    for layer in range(layers):
        x = x @ parameters[2 * layer] + parameters[2 * layer + 1]
        if layer < layers - 1:
            x = jax.nn.relu(x)
    return x


def _loss_of(kind: str, target: list[Any]) -> Callable[..., Any]:
    import jax
    import jax.numpy as jnp
    import optax

    def dqn(p: Any, observation: Any, action: Any, reward: Any, following: Any, end: Any) -> Any:
        wanted = reward + DISCOUNT * (1 - end) * _forward(target, following).max(axis=1)
        chosen = jnp.take_along_axis(_forward(p, observation), action[:, None], 1)[:, 0]
        return optax.huber_loss(chosen, jax.lax.stop_gradient(wanted)).mean()

    def classify(p: Any, x: Any, label: Any) -> Any:
        scores = _forward(p, x)
        return optax.softmax_cross_entropy_with_integer_labels(scores, label).mean()

    def regress(p: Any, x: Any, wanted: Any) -> Any:
        return jnp.square(_forward(p, x) - wanted).mean()

    return {"dqn": dqn, "classify": classify, "regress": regress}[kind]


def _training(case: Case, given: Data, steps: int) -> Job:
    import jax
    import jax.numpy as jnp
    import optax

    loss_of = _loss_of(case.kind, [jnp.asarray(w) for w in given.target])
    optimiser = optax.adam(LEARNING_RATE)

    def train(state: Any, batch: Any) -> Any:
        parameters, moments = state
        loss, gradient = jax.value_and_grad(loss_of)(parameters, *batch)
        change, moments = optimiser.update(gradient, moments)
        return (optax.apply_updates(parameters, change), moments), loss

    parameters = [jnp.asarray(w) for w in given.weights]
    state = parameters, optimiser.init(parameters)
    if steps > 1:
        stacked = tuple(jnp.asarray(np.stack(x)) for x in zip(*given.batches, strict=True))
        turns = jnp.arange(steps) % case.batches

        def many(state: Any, stacked: Any) -> Any:
            return jax.lax.scan(lambda s, i: train(s, tuple(x[i] for x in stacked)), state, turns)

        run, batches = jax.jit(many, donate_argnums=0), [stacked]
    else:
        run = jax.jit(train, donate_argnums=0)
        batches = [tuple(map(jnp.asarray, batch)) for batch in given.batches]

    def step(index: int) -> Any:
        nonlocal state
        state, loss = run(state, batches[index])
        return loss

    def first_losses() -> Iterator[float]:
        if steps > 1:
            yield from np.asarray(step(0)).tolist()[: case.checked]
        else:
            yield from (float(step(index)) for index in range(case.checked))

    finish = lambda: jax.block_until_ready(state)  # noqa: E731
    return Job(step, first_losses(), len(batches), unit=steps, finish=finish)


def _logistic(case: Case, given: Data, steps: int) -> Job:
    import jax
    import jax.numpy as jnp
    import optax

    rows, labels = map(jnp.asarray, given.batches[0])
    gradient = jax.grad(lambda w: optax.sigmoid_binary_cross_entropy(rows @ w, labels).mean())

    def descend(weights: Any) -> Any:
        return weights - DESCENT_RATE * gradient(weights)

    def many(weights: Any) -> Any:
        return jax.lax.fori_loop(0, steps, lambda _, w: descend(w), weights)

    run = jax.jit(descend if steps == 1 else many)
    weights = jnp.zeros(rows.shape[1])

    def step(_: int) -> None:
        nonlocal weights
        weights = run(weights)

    numbers = after(step, case.checked // steps, lambda: np.asarray(weights).tolist())
    return Job(step, numbers, unit=steps, finish=lambda: weights.block_until_ready())


def _act(case: Case, given: Data) -> Job:
    import jax
    import jax.numpy as jnp

    weights = [jnp.asarray(w) for w in given.weights]
    run = jax.jit(lambda x: _forward(weights, x).argmax())

    def step(index: int) -> int:
        return int(run(given.batches[index][0]))

    return Job(step, (float(step(index)) for index in range(case.batches)), case.batches)
