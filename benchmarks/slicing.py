"""Functions compiled by `dilim.compile`, beside JAX, PyTorch and graphs built by hand.

Peers:

- ``dilim``: the compiled function. ``dilim_without``: the same without its transfer.
  ``dilim_print``: with a print each hundredth epoch. ``dilim_eager``: the plain function.
- ``graph``: the same function as a `dilim.Graph`, built once. ``bare``: its code, called with one
  pointer.
- ``append``, ``print``: what the host does, by itself: lines are formatted already.
- ``jax``: ``jax.lax.fori_loop``, jitted; ``jax_1t``: on one core. ``torch``: eager.

A compiled function that left anything to plain Python that belongs to its graph is not timed.

    python benchmarks/slicing.py [--cases classifier] [--peers dilim,jax] [--quick] [--out FILE]
"""

from __future__ import annotations

import functools
import itertools
import os
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
from eager_cases import CASES
from harness import ONE_THREAD, TWO_THREADS, Job, Peer, main
from slicing_cases import EPOCHS, PRINT_EACH, RATE, TITLES, TURNS, reference, survey

ALONE = ONE_THREAD | {"DILIM_THREADS": "1"}
PEERS = [
    *(Peer(name, ALONE) for name in ("dilim", "dilim_without", "dilim_print", "dilim_eager")),
    *(Peer(name, ALONE) for name in ("graph", "bare", "append", "print")),
    Peer("jax", TWO_THREADS),
    Peer("jax_1t", ONE_THREAD),
    Peer("torch", ONE_THREAD),
]


# ------------------------------------------------------------------ dilim
def dilim_job(peer: str, name: str) -> Job | None:
    """A function, compiled or not."""
    import slicing_programs as programs

    import dilim

    functions = {
        ("dilim", "call"): programs.add_ten,
        ("dilim", "number"): programs.keep_numbers,
        ("dilim", "vector"): programs.keep_tensors,
        ("dilim", "classifier"): programs.train,
        ("dilim_without", "number"): programs.count,
        ("dilim_without", "vector"): programs.count,
        ("dilim_print", "classifier"): programs.train_and_print,
    }
    update, batches = programs.dqn_update(name) if name in CASES else (None, [])
    known = functions.get((peer.replace("_eager", ""), name))
    function = update if peer in ("dilim", "dilim_eager") and update else known
    if function is None:
        return None
    if peer == "dilim_print":
        sys.stdout = Path(os.devnull).open("w")
    arguments, unit = batches or [_arguments(name)], 1
    if name in ("number", "vector", "classifier"):
        unit = EPOCHS if name == "classifier" else TURNS
    finish: Callable[[], Any] | None = None
    if peer != "dilim_eager":
        function = dilim.compile(function, compile_after=0)
        finish = functools.partial(programs.require_native, function)
    check = _checked(function, arguments, CASES[name].checked if batches else 1, finish)
    return Job(function, check, arguments=arguments, unit=unit, finish=finish)


def _arguments(name: str) -> tuple[Any, ...]:
    import dilim

    match name:
        case "call":
            return tuple(dilim.tensor([float(number)] * 4) for number in range(10))
        case "classifier":
            return (*map(dilim.asarray, survey()), EPOCHS)
    return dilim.zeros(() if name == "number" else 32), TURNS


def _checked(function: Any, arguments: Any, calls: int, finish: Any) -> Iterator[float]:
    """The numbers of the first calls; an error if they did not run as they should."""
    for given in arguments[:calls]:
        yield from _numbers(function(*given))
    if finish is not None:
        finish()


def _numbers(result: Any) -> list[float]:
    """Of a classifier its weights and loss; of a list its last item; else the sum."""
    if isinstance(result, tuple):
        return [float(x) for part in result for x in np.asarray(part.numpy()).ravel()]
    last = result[-1] if isinstance(result, list) else result
    return [last if isinstance(last, float) else float(last.numpy().sum())]


def graph_job(peer: str, name: str) -> Job | None:
    """The public call of a graph built by hand, or only its code."""
    import slicing_programs as programs

    import dilim

    if name == "call":
        function, arguments = programs.add_ten, [_arguments(name)]
    elif name in CASES and peer == "graph":
        function, arguments = programs.dqn_update(name)
    else:
        return None
    run = dilim.Graph.from_function(function, *arguments[0]).compile()
    if peer == "graph":
        calls = CASES[name].checked if name in CASES else 1
        return Job(run, _checked(run, arguments, calls, None), arguments=arguments)
    native = run.program.native
    activation = native.activation()
    arrays = [*(x.numpy() for x in arguments[0]), np.empty(4, np.float32)]
    activation.begin([array.ctypes.data for array in arrays])
    activation.grant(1)
    native.call(activation.address)
    kept = native, activation, arrays
    check = [float(arrays[-1].sum())]
    return Job(native.call, check, arguments=[(activation.address,)], finish=lambda: kept and None)


# ------------------------------------------------------------------ the host alone
def host_job(peer: str, name: str) -> Job | None:
    """What the host does at the transfers, in plain Python."""
    if peer == "print" and name == "classifier":
        sys.stdout = Path(os.devnull).open("w")
        lines = [f"epoch: {i}, log loss: {1 / (2 + i):.6f}" for i in range(0, EPOCHS, PRINT_EACH)]

        def prints() -> None:
            for line in lines:
                print(line)

        return Job(prints, reference(name), arguments=[()], unit=EPOCHS)
    if peer != "append" or name not in ("number", "vector"):
        return None
    value = float(TURNS)

    def appends() -> list[float]:
        seen: list[float] = []
        for _ in itertools.repeat(None, TURNS):
            seen.append(value)
        return seen

    check = [appends()[-1] * (32 if name == "vector" else 1)]
    return Job(appends, check, arguments=[()], unit=TURNS)


# ------------------------------------------------------------------ peers
def jax_job(peer: str, name: str) -> Job | None:
    if name != "classifier":
        return None
    if peer == "jax_1t":
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    import jax
    import jax.numpy as jnp

    inputs, labels, weights = map(jnp.asarray, survey())

    def epoch(inputs: Any, labels: Any, weights: Any) -> Any:
        scores = inputs @ weights
        errors = labels - jax.nn.sigmoid(scores)
        loss = (jax.nn.softplus(scores) - labels * scores).mean()
        return weights + RATE * (inputs.T @ errors), loss

    @jax.jit
    def train(inputs: Any, labels: Any, weights: Any) -> Any:
        state = weights, jnp.zeros(())
        return jax.lax.fori_loop(0, EPOCHS, lambda _, s: epoch(inputs, labels, s[0]), state)

    result = None

    def step() -> None:
        nonlocal result
        result = train(inputs, labels, weights)

    def numbers() -> Iterator[float]:
        step()
        yield from (float(x) for part in result for x in np.asarray(part).ravel())

    finish = lambda: jax.block_until_ready(result)  # noqa: E731
    return Job(lambda _: step(), numbers(), unit=EPOCHS, finish=finish)


def torch_job(_: str, name: str) -> Job | None:
    if name != "classifier":
        return None
    import torch

    torch.set_num_threads(1)
    given = [torch.from_numpy(array) for array in survey()]

    def train(inputs: Any, labels: Any, weights: Any) -> Any:
        for _ in range(EPOCHS):
            scores = inputs @ weights
            errors = labels - torch.sigmoid(scores)
            loss = (torch.nn.functional.softplus(scores) - labels * scores).mean()
            weights = weights + RATE * (inputs.T @ errors)
        return weights, loss

    numbers = (float(x) for part in train(*given) for x in part.numpy().ravel())
    return Job(train, numbers, arguments=[tuple(given)], unit=EPOCHS)


JOBS = {
    "graph": graph_job,
    "bare": graph_job,
    "append": host_job,
    "print": host_job,
    "jax": jax_job,
    "jax_1t": jax_job,
    "torch": torch_job,
}


def _job(peer: str, name: str) -> Job | None:
    return JOBS.get(peer, dilim_job)(peer, name)


if __name__ == "__main__":
    main(__file__, __doc__, PEERS, list(TITLES), _job, reference)
