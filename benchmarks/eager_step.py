"""Eager training steps: forward, loss, backward, update, in dilim, PyTorch and hand-written NumPy.

Peers end in the number of threads. ``torch`` uses the default Adam, ``torch_fused`` the fused one
(only where there is an Adam). The small cases time one taped operation, and it with its backward.

    python benchmarks/eager_step.py [--cases a,b,act] [--peers ...] [--quick] [--out FILE]
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable
from typing import Any

import numpy as np
from eager_cases import (
    CASES,
    DESCENT_RATE,
    DISCOUNT,
    LEARNING_RATE,
    Case,
    Data,
    data,
    numbers_after,
    numpy_job,
    reference,
)
from harness import ONE_THREAD, TWO_THREADS, Job, Peer, main

PEERS = [
    Peer(f"{library}_{threads}t", environment)
    for library in ("dilim", "torch_fused", "torch", "numpy")
    for threads, environment in ((1, ONE_THREAD), (2, TWO_THREADS))
]

TRAINING = ("dqn", "classify", "regress")
EAGER = [name for name in CASES if name not in "pqr"]
"""The odd architectures are left to the compiled programs."""

Step = Callable[[int], Any]


# ------------------------------------------------------------------ dilim
def dilim_job(name: str) -> Job:
    import dilim

    case, given = CASES[name], data(name)
    to = dilim.asarray
    if case.kind == "logistic":
        return _dilim_logistic(dilim, given)
    if case.kind.startswith("small"):
        return _dilim_small(dilim, case.kind, given)
    if case.kind == "act":
        model = dilim_network(case, given.weights)

        def act(index: int) -> int:
            with dilim.no_grad():
                return int(model(to(given.batches[index][0])).argmax())

        return _training_job(case, act)
    update, batch = dilim_update(case, given), _batches(name, given, to)
    return _training_job(case, lambda index: update(*batch(index)))


def dilim_update(case: Case, given: Data, discount: float = DISCOUNT) -> Callable[..., Any]:
    """A training step as a function from the tensors of a batch to the loss."""
    import dilim
    from dilim.nn import losses

    online = dilim_network(case, given.weights)
    target = dilim_network(case, given.target)
    optimiser = dilim.optim.Adam(online.parameters(), learning_rate=LEARNING_RATE)

    def dqn(observation: Any, action: Any, reward: Any, following: Any, end: Any) -> Any:
        with dilim.no_grad():
            wanted = reward + discount * (1 - end) * target(following).max(axis=1)
        chosen = dilim.take_along_axis(online(observation), action[:, None], axis=1)[:, 0]
        return losses.huber(chosen, wanted)

    def classify(x: Any, label: Any) -> Any:
        return losses.cross_entropy(online(x), label)

    def regress(x: Any, wanted: Any) -> Any:
        return losses.mse(online(x), wanted)

    loss_of = {"dqn": dqn, "classify": classify, "regress": regress}[case.kind]

    def update(*batch: Any) -> Any:
        optimiser.zero_grad()
        loss = loss_of(*batch)
        loss.backward()
        optimiser.step()
        return loss

    return update


def dilim_network(case: Case, weights: list[np.ndarray]) -> Any:
    """The network of a case with these weights."""
    import dilim

    network = dilim.nn.MLP(case.sizes[0], list(case.sizes[1:]), activation="relu")
    with dilim.no_grad():
        for parameter, array in zip(network.parameters(), weights, strict=True):
            parameter[...] = dilim.asarray(array)
    return network


def _dilim_logistic(dilim: Any, given: Data) -> Job:
    rows, labels = map(dilim.asarray, given.batches[0])
    weights = dilim.zeros(rows.shape[1]).requires_grad_()

    def step(_: int) -> None:
        nonlocal weights
        loss = dilim.nn.losses.binary_cross_entropy_with_logits(rows @ weights, labels)
        weights.grad = None
        loss.backward()
        with dilim.no_grad():
            weights -= DESCENT_RATE * weights.grad

    return Job(step, numbers_after(step, CASES["e"].checked, lambda: weights.numpy().tolist()))


def _dilim_small(dilim: Any, kind: str, given: Data) -> Job:
    x, y = (dilim.asarray(array).requires_grad_() for array in given.batches[0])
    return _small_job(kind, x, y, dilim.ones(10))


# ------------------------------------------------------------------ PyTorch
def torch_job(name: str, fused: bool) -> Job:
    import torch
    import torch.nn.functional as functional

    torch.set_num_threads(int(os.environ["OMP_NUM_THREADS"]))
    case, given = CASES[name], data(name)
    if case.kind == "logistic":
        return _torch_logistic(torch, given)
    if case.kind.startswith("small"):
        x, y = (torch.from_numpy(array).requires_grad_() for array in given.batches[0])
        return _small_job(case.kind, x, y, torch.ones(10))
    online, target = (_torch_network(torch, case, w) for w in (given.weights, given.target))
    if case.kind == "act":

        def act(index: int) -> int:
            with torch.inference_mode():
                return int(online(torch.from_numpy(given.batches[index][0])).argmax())

        return _training_job(case, act)

    def dqn_loss(observation: Any, action: Any, reward: Any, following: Any, end: Any) -> Any:
        with torch.no_grad():
            wanted = reward + DISCOUNT * (1 - end) * target(following).max(dim=1).values
        chosen = online(observation).gather(1, action[:, None])[:, 0]
        return functional.smooth_l1_loss(chosen, wanted)

    def class_loss(x: Any, label: Any) -> Any:
        return functional.cross_entropy(online(x), label)

    def square_loss(x: Any, wanted: Any) -> Any:
        return functional.mse_loss(online(x), wanted)

    loss_of = {"dqn": dqn_loss, "classify": class_loss, "regress": square_loss}[case.kind]
    optimiser = torch.optim.Adam(online.parameters(), lr=LEARNING_RATE, fused=fused or None)
    batch = _batches(name, given, torch.from_numpy)

    def step(index: int) -> Any:
        loss = loss_of(*batch(index))
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        return loss

    return _training_job(case, step)


def _torch_network(torch: Any, case: Case, weights: list[np.ndarray]) -> Any:
    layers: list[Any] = []
    for weight, bias in zip(weights[::2], weights[1::2], strict=True):
        linear = torch.nn.Linear(*weight.shape)
        with torch.no_grad():
            linear.weight.copy_(torch.from_numpy(weight.T))
            linear.bias.copy_(torch.from_numpy(bias))
        layers += [linear, torch.nn.ReLU()]
    return torch.nn.Sequential(*layers[:-1])


def _torch_logistic(torch: Any, given: Data) -> Job:
    rows, labels = map(torch.from_numpy, given.batches[0])
    weights = torch.zeros(rows.shape[1], requires_grad=True)

    def step(_: int) -> None:
        loss = torch.nn.functional.binary_cross_entropy_with_logits(rows @ weights, labels)
        weights.grad = None
        loss.backward()
        with torch.no_grad():
            weights.sub_(weights.grad, alpha=DESCENT_RATE)

    return Job(step, numbers_after(step, CASES["e"].checked, lambda: weights.tolist()))


# ------------------------------------------------------------------ for both
def _batches(name: str, given: Data, to: Callable[[np.ndarray], Any]) -> Callable[[int], Any]:
    """Batches made tensors beforehand; in every step where NumPy arrays are handed over."""
    if name == "a_np":
        return lambda index: map(to, given.batches[index])
    return [tuple(map(to, batch)) for batch in given.batches].__getitem__


def _training_job(case: Case, step: Step) -> Job:
    return Job(step, (float(step(index)) for index in range(case.checked)), case.batches)


def _small_job(kind: str, x: Any, y: Any, ones: Any) -> Job:
    """One product of taped tensors; with its backward, whose incoming gradient is ``ones``."""

    def product(_: int) -> Any:
        return x * y

    def gradients(_: int) -> None:
        x.grad = y.grad = None
        (x * y).backward(ones)

    gradients(0)
    numbers = [v for tensor in (x * y, x.grad, y.grad) for v in tensor.tolist()]
    return Job(product if kind == "small" else gradients, numbers)


JOBS: dict[str, Callable[[str], Job]] = {
    "dilim": dilim_job,
    "torch_fused": functools.partial(torch_job, fused=True),
    "torch": functools.partial(torch_job, fused=False),
    "numpy": numpy_job,
}


def _job(peer: str, name: str) -> Job | None:
    """The job of a peer, or None where it would only repeat another peer's."""
    library, threads = peer.rsplit("_", 1)
    kind = CASES[name].kind
    if library == "torch_fused" and kind not in TRAINING:
        return None
    if threads == "2t" and kind.startswith("small"):
        return None
    return JOBS[library](name)


if __name__ == "__main__":
    main(__file__, __doc__, PEERS, EAGER, _job, reference)
