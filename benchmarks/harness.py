"""Times several libraries side by side, in one run, on a machine that is not quite idle.

How a comparison is made:

- One worker process per peer, told over a pipe what to do. An idle worker sleeps in ``read``.
- Peers are timed in turns, in a new random order each round, in batches of about 80 ms, so that
  slow changes of the machine (temperature, other users) hit everybody alike.
- What other processes used of the CPU during a batch is read from ``/proc/stat``. A sample is
  *quiet* when they used less than a quarter of one core. Medians are over the quiet samples; peers
  with too few of them get more rounds.
- Every peer starts from the same weights and data, and the numbers it computes (first losses, final
  weights, chosen actions) are compared with a NumPy float64 run.

A benchmark is a script that calls :func:`main`; it is started again, with ``--worker PEER``, for
each worker. Results are JSON lines: one for the run (`machine.py`), one per case and
peer.
"""

from __future__ import annotations

import argparse
import functools
import itertools
import json
import math
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ONE_THREAD = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
TWO_THREADS = {name: "2" for name in ONE_THREAD}
# These two choose other kernels than OpenBLAS takes by itself for the CPU at hand.
UNSET = ("OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE")

SOURCE = Path(__file__).resolve().parents[1] / "src"

QUIET_CORES = 0.25
"""Below this use of CPU by other processes, in cores, a sample counts as quiet."""
ENOUGH_QUIET = 5
"""With fewer quiet samples than this the median is taken over all samples."""

Row = dict[str, Any]


@dataclass(frozen=True)
class Peer:
    """A library as it runs in one worker process; ``environment`` is added to the process's own."""

    name: str
    environment: Mapping[str, str] = field(default_factory=lambda: ONE_THREAD)


@dataclass
class Job:
    """What a worker times.

    Attributes:
        step: ``step(i)`` trains on batch ``i``. Its result is read only outside the timed loop.
            With ``arguments`` it is called as ``step(*arguments[i])``, which spares a call.
        check: Numbers to compare with the reference, computed, as they are taken, from the initial
            state on.
        batches: Number of different batches, used in turn.
        arguments: Those of each batch.
        unit: Steps that one call does.
        finish: Waits for what the steps began; part of the timed batch.
        facts: Anything worth keeping in the result, e.g. the number of nodes built.
    """

    step: Callable[[int], Any]
    check: Iterable[float]
    batches: int = 1
    arguments: Sequence[tuple[Any, ...]] = ()
    unit: int = 1
    finish: Callable[[], Any] | None = None
    facts: Row = field(default_factory=dict)

    def run(self, calls: int) -> None:
        """Call so often, batches in turn."""
        step = self.step
        if self.arguments:
            for given in itertools.islice(itertools.cycle(self.arguments), calls):
                step(*given)
        else:
            for index in itertools.islice(itertools.cycle(range(self.batches)), calls):
                step(index)
        if self.finish is not None:
            self.finish()


@dataclass(frozen=True)
class Effort:
    """How long to measure: rounds, seconds per batch, and at most how many times the rounds."""

    rounds: int = 31
    batch_seconds: float = 0.08
    stretch: int = 3

    @classmethod
    def quick(cls) -> Effort:
        """Enough to see that everything runs and roughly where it stands."""
        return cls(rounds=5, batch_seconds=0.02, stretch=2)


# ------------------------------------------------------------------ worker side
def serve(prepare: Callable[[str], Job | None]) -> None:
    """Answer the parent's requests until its pipe closes.

    Args:
        prepare: Makes the job for a case, or None where this peer has no such case. The time it
            takes up to the first number of the check is the case's ``first_call_s``; in a worker's
            first case that includes importing the library.
    """
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # Libraries may print: that goes to the log, not between the answers.
    job: Job | None = None
    for line in sys.stdin:
        request = json.loads(line)
        try:
            if "prepare" in request:
                job = None  # Free the old job before the new one is built.
                started = time.perf_counter()
                job = prepare(request["prepare"])
                answer = {"absent": "no such case"} if job is None else _first_numbers(job, started)
            else:
                answer = _timed_run(job, request["run"])
        except ModuleNotFoundError as error:
            answer = {"absent": f"{error.name} is not installed"}
        except Exception as error:
            traceback.print_exc()
            answer = {"error": f"{type(error).__name__}: {str(error)[:300]}"}
        print(json.dumps(answer), file=answers, flush=True)


def _first_numbers(job: Job, started: float) -> Row:
    numbers = iter(job.check)
    first = next(numbers)
    first_call = time.perf_counter() - started
    return {
        "numbers": [first, *numbers],
        "first_call_s": round(first_call, 3),
        "unit": job.unit,
        "facts": job.facts,
    }


def _timed_run(job: Job | None, calls: int) -> Row:
    if job is None:
        raise RuntimeError("run was asked for before prepare")
    cpu, wall = time.process_time(), time.perf_counter()
    job.run(calls)
    return {"seconds": time.perf_counter() - wall, "cpu_seconds": time.process_time() - cpu}


# ------------------------------------------------------------------ parent side
class Worker:
    """One peer's process."""

    def __init__(self, script: Path, peer: Peer, logs: Path) -> None:
        environment = {**os.environ, "PYTHONWARNINGS": "ignore", "JAX_PLATFORMS": "cpu"}
        for name in UNSET:
            environment.pop(name, None)
        environment.update(peer.environment)
        # Whatever is installed: the code beside the benchmarks is measured.
        paths = [str(SOURCE), os.environ.get("PYTHONPATH", "")]
        environment["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
        self.log = logs / f"{script.stem}-{peer.name}.log"
        with self.log.open("w") as log:
            self.process = subprocess.Popen(
                [sys.executable, str(script), "--worker", peer.name],
                env=environment,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )

    def ask(self, **request: Any) -> Row:
        """Send one request and wait for its answer; a dead worker answers with an error."""
        try:
            self.process.stdin.write(json.dumps(request) + "\n")
            self.process.stdin.flush()
            line = self.process.stdout.readline()
        except BrokenPipeError:
            line = ""
        if not line:
            return {
                "error": f"the worker ended (code {self.process.poll()}); its log is {self.log}"
            }
        return json.loads(line)

    def close(self) -> None:
        """Close the pipe, which ends the worker; kill it if it does not end."""
        self.process.stdin.close()
        try:
            self.process.wait(20)
        except subprocess.TimeoutExpired:
            self.process.kill()


@dataclass(frozen=True)
class Sample:
    """One timed batch: microseconds per step, and cores used by others and by the peer itself."""

    microseconds: float
    others: float
    own: float


def machine_cpu_seconds() -> float:
    """CPU seconds spent by everybody since the machine started; 0 where ``/proc`` is missing."""
    try:
        first_line = Path("/proc/stat").read_text().split("\n", 1)[0]
    except OSError:
        return 0.0
    user, nice, system, _idle, _wait, irq, soft_irq, steal = map(int, first_line.split()[1:9])
    return (user + nice + system + irq + soft_irq + steal) / os.sysconf("SC_CLK_TCK")


def _sample(worker: Worker, calls: int, unit: int) -> Sample | None:
    before = machine_cpu_seconds()
    answer = worker.ask(run=calls)
    if "error" in answer:
        return None
    seconds, own = answer["seconds"], answer["cpu_seconds"]
    others = max(0.0, machine_cpu_seconds() - before - own) / seconds
    return Sample(seconds / (calls * unit) * 1e6, others, own / seconds)


def _batch_length(worker: Worker, seconds: float) -> int:
    """Calls that take about ``seconds``: found by growing a batch, which also warms the peer up."""
    calls = 1
    while True:
        took = min(worker.ask(run=calls).get("seconds", math.inf) for _ in range(2))
        if took >= seconds / 4 or calls >= 1_000_000:
            return max(1, round(calls * seconds / took))
        calls *= 4


def _quiet(samples: Sequence[Sample]) -> list[Sample]:
    return [sample for sample in samples if sample.others < QUIET_CORES]


def compare(
    script: str,
    peers: Sequence[Peer],
    cases: Sequence[str],
    *,
    reference: Callable[[str], Sequence[float]],
    effort: Effort,
    emit: Callable[[Row], None],
) -> None:
    """Time every peer on every case and emit one row for each.

    Args:
        script: Path of the calling script; it is started again as the worker.
        peers: Who takes part.
        cases: Names that the workers' ``prepare`` understands.
        reference: The right numbers of a case (float64); a row's ``max_rel_err`` is against them.
        effort: How long to measure.
        emit: Takes the finished rows.
    """
    path = Path(script)
    logs = Path(tempfile.mkdtemp(prefix="dilim-benchmarks-"))
    workers = {peer.name: Worker(path, peer, logs) for peer in peers}
    order = random.Random(0)
    try:
        for case in cases:
            _compare_case(path.stem, case, workers, reference(case), effort, order, emit)
    finally:
        for worker in workers.values():
            worker.close()


def _compare_case(
    benchmark: str,
    case: str,
    workers: Mapping[str, Worker],
    right: Sequence[float],
    effort: Effort,
    order: random.Random,
    emit: Callable[[Row], None],
) -> None:
    rows: dict[str, Row] = {}
    calls: dict[str, int] = {}
    units: dict[str, int] = {}
    for name, worker in workers.items():
        row: Row = {"benchmark": benchmark, "case": case, "peer": name}
        answer = worker.ask(prepare=case)
        if answer.get("absent") == "no such case":
            continue
        if "numbers" not in answer:
            emit(row | answer)
            continue
        row["first_call_s"] = answer["first_call_s"]
        row["max_rel_err"] = largest_relative_error(answer["numbers"], right)
        rows[name] = row | answer["facts"]
        units[name] = answer["unit"]
        calls[name] = _batch_length(worker, effort.batch_seconds)
    samples: dict[str, list[Sample]] = {name: [] for name in rows}
    for done in range(effort.rounds * effort.stretch):
        wanting = [
            name
            for name in rows
            if done < effort.rounds or 2 * len(_quiet(samples[name])) < effort.rounds
        ]
        order.shuffle(wanting)
        for name in wanting:
            if (sample := _sample(workers[name], calls[name], units[name])) is not None:
                samples[name].append(sample)
    for name, row in rows.items():
        counts = {"steps_per_batch": calls[name] * units[name]}
        emit(row | counts | summarise(samples[name]))


def summarise(samples: Sequence[Sample]) -> Row:
    """Median, least and greatest microseconds per step, and how quiet it was."""
    if not samples:
        return {"error": "no sample was taken"}
    quiet = _quiet(samples)
    used = quiet if len(quiet) >= ENOUGH_QUIET else samples
    return {
        "median_us": round(statistics.median(s.microseconds for s in used), 3),
        "min_us": round(min(s.microseconds for s in used), 3),
        "max_us": round(max(s.microseconds for s in used), 3),
        "all_median_us": round(statistics.median(s.microseconds for s in samples), 3),
        "cores": round(statistics.median(s.own for s in samples), 2),
        "quiet": len(quiet),
        "samples": len(samples),
    }


def largest_relative_error(got: Sequence[float], right: Sequence[float]) -> float:
    """Greatest ``|got - right| / max(|right|, 1e-6)``; infinite if the lengths differ."""
    if len(got) != len(right):
        return math.inf
    worst = max(abs(g - r) / max(abs(r), 1e-6) for g, r in zip(got, right, strict=True))
    return float(f"{worst:.2g}")


def main(
    script: str,
    about: str,
    peers: Sequence[Peer],
    cases: Sequence[str],
    prepare: Callable[[str, str], Job | None],
    reference: Callable[[str], Sequence[float]],
) -> list[Row]:
    """All that a timing script does, as a worker or as the parent of workers.

    Args:
        script: ``__file__``.
        about: ``__doc__``.
        peers: All that there are; the options choose among them.
        cases: Likewise.
        prepare: From peer and case to the job; see :func:`serve`.
        reference: See :func:`compare`.

    Returns:
        The rows; none in a worker.
    """
    options = arguments(about.splitlines()[0], peers, cases)
    if options.worker:
        serve(functools.partial(prepare, options.worker))
        return []
    rows: list[Row] = []
    write = writer(options.out)

    def emit(row: Row) -> None:
        rows.append(row)
        write(row)

    compare(
        script,
        options.peers,
        options.cases,
        reference=reference,
        effort=options.effort,
        emit=emit,
    )
    return rows


# ------------------------------------------------------------------ results
def writer(out: Path | None) -> Callable[[Row], None]:
    """A function that prints a row and, given a file, appends it there as one JSON line."""

    def emit(row: Row) -> None:
        line = json.dumps(row)
        print(line, flush=True)
        if out is not None:
            with out.open("a") as file:
                file.write(line + "\n")

    return emit


def arguments(description: str, peers: Sequence[Peer], cases: Sequence[str]) -> argparse.Namespace:
    """Parse the options all timing scripts share; ``peers`` and ``effort`` come back resolved."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    parser.add_argument("--cases", default=",".join(cases), help="default: %(default)s")
    parser.add_argument(
        "--peers", default=",".join(p.name for p in peers), help="default: %(default)s"
    )
    parser.add_argument("--quick", action="store_true", help="few short samples")
    parser.add_argument("--rounds", type=int, help="timed batches per peer and case")
    parser.add_argument("--out", type=Path, help="append the JSON lines to this file")
    options = parser.parse_args()
    by_name = {peer.name: peer for peer in peers}
    unknown = set(options.peers.split(",")) - set(by_name)
    if unknown:
        parser.error(f"unknown peers: {sorted(unknown)}; there are {', '.join(by_name)}")
    options.peers = [by_name[name] for name in options.peers.split(",")]
    options.cases = options.cases.split(",")
    options.effort = Effort.quick() if options.quick else Effort()
    if options.rounds:
        options.effort = Effort(options.rounds, options.effort.batch_seconds)
    return options
