"""The hand-written steps of floor.c as a peer: strict arithmetic, one core, built by gcc.

The Python call is no part of the floor: one call does many steps.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from eager_cases import CASES, DESCENT_RATE, Data, data
from harness import Job

STRICT = ("-O3", "-march=native", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
STEPS = 100
DESCENTS = 1000
PASSES = 50
ROUNDED_ROWS = 16


def floor_job(name: str) -> Job | None:
    """The case in C, or None where floor.c does not have it."""
    if name not in ("a", "b", "e", "act"):
        return None
    sizes = CASES[name].sizes if name != "e" else CASES["a"].sizes
    library = built(sizes, CASES[name].batch if name in "ab" else 1)
    given = data(name)
    return {"dqn": _dqn, "logistic": _logistic, "act": _act}[CASES[name].kind](library, given)


def built(sizes: Sequence[int], batch: int) -> ctypes.CDLL:
    """floor.c compiled for a network and a batch size."""
    compiler = shutil.which("gcc")
    if compiler is None:
        raise ModuleNotFoundError("gcc is not installed", name="gcc")
    names = ("IN", "H1", "H2", "OUT", "BATCH")
    defined = [f"-D{key}={value}" for key, value in zip(names, (*sizes, batch), strict=True)]
    with tempfile.TemporaryDirectory() as folder:
        library = Path(folder) / "floor.so"
        source = Path(__file__).with_name("floor.c")
        files = ["-shared", "-fPIC", "-o", str(library), str(source), "-lm"]
        subprocess.run([compiler, *STRICT, *defined, *files], check=True)
        return ctypes.CDLL(str(library))


class _Call:
    """A C function with the arrays and numbers it is called with."""

    def __init__(self, function: Callable[..., Any], *arguments: Any) -> None:
        self.arrays = [x for x in arguments if isinstance(x, np.ndarray)]  # kept alive
        self.function = function
        self.arguments = [
            ctypes.c_void_p(x.ctypes.data) if isinstance(x, np.ndarray) else x for x in arguments
        ]

    def __call__(self, _: int = 0) -> None:
        self.function(*self.arguments)


def _dqn(library: ctypes.CDLL, given: Data) -> Job:
    parameters, target = (
        np.concatenate([w.ravel() for w in weights]) for weights in (given.weights, given.target)
    )
    moments = np.zeros_like(parameters), np.zeros_like(parameters)
    stacked = [np.stack(arrays) for arrays in zip(*given.batches, strict=True)]
    losses, done = np.zeros(STEPS, np.float32), ctypes.c_long(0)
    counts = done, ctypes.c_long(STEPS), ctypes.c_long(len(given.batches))
    call = _Call(library.dqn, parameters, *moments, target, *counts, *stacked, losses)

    def step(_: int) -> None:
        call()
        done.value += STEPS

    step(0)
    return Job(step, losses[:20].tolist(), unit=STEPS)


def _logistic(library: ctypes.CDLL, given: Data) -> Job:
    ((rows, labels),) = given.batches
    room = -(-len(rows) // ROUNDED_ROWS) * ROUNDED_ROWS
    columns, wanted, counts = (np.zeros(s, np.float32) for s in ((3, room), room, room))
    columns[:, : len(rows)], wanted[: len(rows)], counts[: len(rows)] = rows.T, labels, 1
    weights = np.zeros(3, np.float32)
    numbers = ctypes.c_long(room), ctypes.c_float(DESCENT_RATE / len(rows)), ctypes.c_long(DESCENTS)
    step = _Call(library.logistic, weights, columns, wanted, counts, *numbers)
    step()
    return Job(step, weights.tolist(), unit=DESCENTS)


def _act(library: ctypes.CDLL, given: Data) -> Job:
    parameters = np.concatenate([w.ravel() for w in given.weights])
    observations = np.concatenate([batch[0] for batch in given.batches])
    chosen = np.zeros(len(observations), np.int64)
    numbers = ctypes.c_long(len(observations)), ctypes.c_long(PASSES)
    step = _Call(library.actions, parameters, observations, *numbers, chosen)
    step()
    return Job(step, chosen.tolist(), unit=len(observations) * PASSES)
