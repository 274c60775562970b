"""Functions as a user writes them, for slicing.py and first_call.py, and a check of what ran."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from eager_cases import CASES, DISCOUNT, LEARNING_RATE, data
from eager_step import dilim_network
from slicing_cases import PRINT_EACH, RATE

import dilim
from dilim.nn import losses


# ------------------------------------------------------------------ small functions
def add_ten(a: Any, b: Any, c: Any, d: Any, e: Any, f: Any, g: Any, h: Any, i: Any, j: Any) -> Any:
    return a + b + c + d + e + f + g + h + i + j


def count(x: Any, turns: int) -> Any:
    """The loops below without their transfer."""
    for _ in range(turns):
        x = x + 1.0
    return x


def keep_numbers(x: Any, turns: int) -> Any:
    seen = []
    for _ in range(turns):
        x = x + 1.0
        seen.append(float(x))
    return seen


def keep_tensors(x: Any, turns: int) -> Any:
    seen = []
    for _ in range(turns):
        x = x + 1.0
        seen.append(x)
    return seen


# ------------------------------------------------------------------ the linear classifier
def train(inputs: Any, labels: Any, weights: Any, epochs: int) -> Any:
    for _ in range(epochs):
        scores = inputs @ weights
        errors = labels - dilim.sigmoid(scores)
        loss = (dilim.softplus(scores) - labels * scores).mean()
        weights = weights + RATE * (inputs.T @ errors)
    return weights, loss


def train_and_print(inputs: Any, labels: Any, weights: Any, epochs: int) -> Any:
    for epoch in range(epochs):
        scores = inputs @ weights
        errors = labels - dilim.sigmoid(scores)
        loss = (dilim.softplus(scores) - labels * scores).mean()
        weights = weights + RATE * (inputs.T @ errors)
        if epoch % PRINT_EACH == 0:
            print(f"epoch: {epoch}, log loss: {loss.item():.6f}")
    return weights, loss


# ------------------------------------------------------------------ the DQN update
def dqn_update(name: str) -> tuple[Callable[..., Any], list[tuple[Any, ...]]]:
    """The update of a case of eager_cases.py, and its batches as tensors."""
    case, given = CASES[name], data(name)
    online = dilim_network(case, given.weights)
    target = dilim_network(case, given.target)
    optimizer = dilim.optim.Adam(online.parameters(), learning_rate=LEARNING_RATE)

    def update(observation: Any, action: Any, reward: Any, following: Any, end: Any) -> Any:
        with dilim.no_grad():
            wanted = reward + DISCOUNT * (1 - end) * target(following).max(axis=1)
        chosen = dilim.take_along_axis(online(observation), action[:, None], axis=1)[:, 0]
        loss = losses.huber(chosen, wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    return update, [tuple(map(dilim.asarray, batch)) for batch in given.batches]


# ------------------------------------------------------------------ what ran
def require_native(compiled: Any) -> None:
    """Raise unless every call so far ran as a program with all tensor operations in its graph."""
    seen = compiled.statistics
    whole = seen.native_calls == seen.calls and not seen.fallbacks
    if not whole or seen.tensor_operations_host or not seen.tensor_operations_native:
        raise RuntimeError(f"{compiled.__name__} did not run native: {seen}")
