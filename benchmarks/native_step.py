"""Compiled training steps: a whole update in one native call, beside JAX, PyTorch, NumPy and C.

Peers end in the number of threads.

- ``dilim``: the public call of the compiled step, each time with another batch of NumPy arrays.
  ``dilim_fast``: the same with ``numerics="fast"``.
- ``dilim_loop``: many steps over stacked batches in one call, by `dilim.loop`.
- ``jax_scan``: many steps in ``jax.lax.scan``; ``jax_jit``: one step per call, batches already on
  the device. XLA knows no thread limit, so that for one thread it is pinned to one core.
- ``torch_fused``: eager, with the fused Adam. ``numpy``: by hand.
- ``floor``: floor.c, strict arithmetic in C for cases a, b, e and act.

The first losses of dilim are also compared with those of its own eager steps, bit for bit.

    python benchmarks/native_step.py [--cases a,b,act] [--peers ...] [--quick] [--out FILE]
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from typing import Any

import numpy as np
from eager_cases import CASES, DESCENT_RATE, Case, Data, data, numbers_after, numpy_job, reference
from eager_step import TRAINING, dilim_network, dilim_update, torch_job
from floor import floor_job
from harness import ONE_THREAD, TWO_THREADS, Job, Peer, main
from native_jax import jax_job

STEPS = 100
FEWER_STEPS = {"d": 10}
"""Steps in one native loop, where 100 would take seconds."""
DESCENTS = 1000
NATIVE = [name for name in CASES if name != "a_np" and not name.startswith("small")]
WORTH_SHARING = "bcd"
"""Cases that PyTorch and NumPy too are timed on with two threads."""

ENVIRONMENTS = {
    "1t": ONE_THREAD | {"DILIM_THREADS": "1"},
    "2t": TWO_THREADS | {"DILIM_THREADS": "2"},
}
PEERS = [
    Peer(f"{library}_{threads}", ENVIRONMENTS[threads])
    for library in (
        "dilim", "dilim_loop", "dilim_fast", "jax_scan", "jax_jit", "torch_fused", "numpy", "floor",
    )
    for threads in ENVIRONMENTS
    if (library, threads) != ("floor", "2t")
]  # fmt: skip


# ------------------------------------------------------------------ dilim
def dilim_job(name: str, numerics: str) -> Job:
    """One step per call of the compiled function; for the logistic regression all of them."""
    import dilim

    case, given = CASES[name], data(name)
    if case.kind == "logistic":
        return _logistic(given, numerics)
    if case.kind == "act":
        return _act(case, given, numerics)
    update = dilim_update(case, given)
    step = dilim.Graph.from_function(update, *given.batches[0]).compile(numerics=numerics)
    facts: dict[str, Any] = {}
    losses = (step(*batch).item() for batch in given.batches[: case.checked])
    check = _checked(case, given, losses, numerics, facts)
    return Job(step, check, case.batches, arguments=given.batches, facts=facts)


def dilim_loop_job(name: str) -> Job | None:
    """Many steps per call, each on its part of the stacked batches."""
    import dilim

    case, given = CASES[name], data(name)
    if case.kind == "act":
        return None
    if case.kind == "logistic":
        return _logistic(given, "strict")
    update = dilim_update(case, given)
    stacked = [np.stack(arrays) for arrays in zip(*given.batches, strict=True)]
    steps = FEWER_STEPS.get(name, STEPS)
    losses = dilim.zeros(steps)

    def train(*stacked: Any) -> None:
        def body(index: Any) -> None:
            turn = index % case.batches
            losses[index] = update(*(array[turn] for array in stacked)).detach()

        dilim.loop(steps, None, body)

    run = dilim.Graph.from_function(train, *stacked).compile()

    def first_losses() -> Iterator[float]:
        run(*stacked)
        yield from losses.tolist()[: case.checked]

    facts: dict[str, Any] = {}
    check = _checked(case, given, first_losses(), "strict", facts)
    return Job(run, check, arguments=[tuple(stacked)], unit=steps, facts=facts)


def _checked(
    case: Case, given: Data, losses: Iterator[float], numerics: str, facts: dict[str, Any]
) -> Iterator[float]:
    """The losses, and after them a fact: whether eager steps give the same ones."""
    import dilim

    seen = []
    for loss in losses:
        seen.append(loss)
        yield loss
    if numerics == "strict":
        update = dilim_update(case, given)
        batches = given.batches[: len(seen)]
        eager = [update(*map(dilim.asarray, batch)).item() for batch in batches]
        facts["bits_of_eager"] = seen == eager


def _logistic(given: Data, numerics: str) -> Job:
    import dilim

    def loss_of(weights: Any, rows: Any, labels: Any) -> Any:
        return dilim.nn.losses.binary_cross_entropy_with_logits(rows @ weights, labels)

    gradient = dilim.grad(loss_of)

    def train(weights: Any, rows: Any, labels: Any) -> Any:
        def step(_: Any, weights: Any) -> Any:
            return weights - DESCENT_RATE * gradient(weights, rows, labels)

        return dilim.loop(DESCENTS, weights, step)

    batch = np.zeros(3, np.float32), *given.batches[0]
    run = dilim.Graph.from_function(train, *batch).compile(numerics=numerics)
    numbers = numbers_after(lambda _: None, 0, lambda: run(*batch).tolist())
    return Job(run, numbers, arguments=[batch], unit=DESCENTS)


def _act(case: Case, given: Data, numerics: str) -> Job:
    import dilim

    network = dilim_network(case, given.weights)

    def act(observation: Any) -> Any:
        with dilim.no_grad():
            return network(observation).argmax()

    run = dilim.Graph.from_function(act, *given.batches[0]).compile(
        numerics=numerics, as_numbers=True
    )
    numbers = (float(run(*batch)) for batch in given.batches)
    return Job(run, numbers, case.batches, arguments=given.batches)


# ------------------------------------------------------------------ all peers
def _job(peer: str, name: str) -> Job | None:
    """The job of a peer, or None where it would only repeat another peer's."""
    library, threads = peer.rsplit("_", 1)
    kind = CASES[name].kind
    if threads == "2t" and (
        kind not in TRAINING or (library in ("torch_fused", "numpy") and name not in WORTH_SHARING)
    ):
        return None
    if library == "dilim" and kind == "logistic":
        return None
    if library in ("jax_scan", "jax_jit"):
        steps = FEWER_STEPS.get(name, STEPS) if kind in TRAINING else DESCENTS
        return jax_job(name, steps if library == "jax_scan" else 1, threads == "1t")
    jobs = {
        "dilim": functools.partial(dilim_job, numerics="strict"),
        "dilim_fast": functools.partial(dilim_job, numerics="fast"),
        "dilim_loop": dilim_loop_job,
        "torch_fused": functools.partial(torch_job, fused=True),
        "numpy": numpy_job,
        "floor": floor_job,
    }
    return jobs[library](name)


if __name__ == "__main__":
    main(__file__, __doc__, PEERS, NATIVE, _job, reference)
