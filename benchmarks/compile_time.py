"""How long compiling takes and what it leaves in memory, each time in a fresh process.

Timed is the way from a graph to its first result, and the import of llvmlite, apart. The cache of
compiled code is a folder of its own: empty (``cold``), with the same program (``hit``), or with a
program that differs in one number (``constant``) or lacks an output (``output``), so that most
kernels are found but not the program. In cases called ``loaded`` the process has compiled another
program before: nothing is imported any more.

    python benchmarks/compile_time.py [--quick] [--out FILE]
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from eager_cases import CASES, data
from eager_step import dilim_update
from harness import SOURCE, Row, writer
from scalar_step import compiled_model
from scalar_step import data as scalar_data

SCENARIOS: dict[str, tuple[str | None, str]] = {
    "a cold": (None, "a"),
    "a constant": ("a", "a constant"),
    "a output": ("a", "a output"),
    "a hit": ("a", "a"),
    "a constant loaded": ("a", "a constant"),
    "a output loaded": ("a", "a output"),
    "a hit loaded": ("a", "a"),
    "b cold": (None, "b"),
    "c cold": (None, "c"),
    "d cold": (None, "d"),
    "d hit": ("d", "d"),
    "mlp cold": (None, "mlp"),
    "mlp hit": ("mlp", "mlp"),
    "moons cold": (None, "moons"),
}
"""What is compiled before, in another process, into the same cache; and what is timed."""
COMPILATIONS = 1000
SETTLED = 100
"""Compilations after which memory should no longer grow."""


# ------------------------------------------------------------------ in the fresh process
def child(program: str, loaded: bool) -> Row:
    """Milliseconds of one compilation in this process."""
    began = time.perf_counter()
    import llvmlite.binding  # noqa: F401

    imported = time.perf_counter() - began
    prepare = scalar_program if program in ("mlp", "moons") else tensor_program
    if loaded:
        compile_another(0)
    first_result = prepare(program)
    started = time.perf_counter()
    first_result()
    return {"compile_ms": (time.perf_counter() - started) * 1e3, "import_ms": imported * 1e3}


def tensor_program(program: str) -> Callable[[], Any]:
    """From a graph that is built to its first result."""
    import dilim

    name, _, change = program.partition(" ")
    case, given = CASES[name], data(name)
    update = dilim_update(case, given, *([0.95] if change == "constant" else []))

    def more(*batch: Any) -> tuple[Any, Any]:
        return update(*batch), batch[0].max()

    batch = given.batches[0]
    graph = dilim.Graph.from_function(more if change == "output" else update, *batch)
    return lambda: graph.compile()(*batch)


def scalar_program(program: str) -> Callable[[], Any]:
    points, targets = scalar_data(program)
    return lambda: compiled_model(program).step(points, targets)


def compile_another(number: int) -> None:
    """Compile and run a small program, another one for each number."""
    import dilim

    batch = np.ones((8, 8), np.float32)
    graph = dilim.Graph.from_function(
        lambda x: ((x * (1.0 + number / 7.0)).exp() @ x.T).sum(axis=0), batch
    )
    graph.compile()(batch)


def memory_of_new_programs() -> Row:
    """Resident memory while programs are compiled that are all different, nothing kept."""
    return _growth(compile_another)


def memory_of_hits() -> Row:
    """Resident memory while the small update is loaded from the cache again and again."""
    import dilim

    case, given = CASES["a"], data("a")
    graph = dilim.Graph.from_function(dilim_update(case, given), *given.batches[0])
    return _growth(lambda _: graph.compile()(*given.batches[0]))


def _growth(compile_next: Callable[[int], None]) -> Row:
    settled, started = 0.0, time.perf_counter()
    for number in range(COMPILATIONS):
        if number == SETTLED:
            gc.collect()
            settled = _resident_megabytes()
        compile_next(number)
    seconds = time.perf_counter() - started
    gc.collect()
    end = _resident_megabytes()
    return {
        "compilations": COMPILATIONS,
        "settled_megabytes": round(settled, 1),
        "end_megabytes": round(end, 1),
        "growth_megabytes": round(end - settled, 1),
        "each_ms": round(seconds / COMPILATIONS * 1e3, 2),
    }


def _resident_megabytes() -> float:
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


MEMORY = {"new programs": memory_of_new_programs, "hits": memory_of_hits}


# ------------------------------------------------------------------ outside
def run_child(what: str, cache: Path, loaded: bool = False) -> Row:
    environment = {**os.environ, "DILIM_CACHE": str(cache), "PYTHONPATH": str(SOURCE)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package has its bytecode
    command = [sys.executable, __file__, "--child", what, *["--loaded"] * loaded]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1][:300]}
    answer: Row = json.loads(done.stdout.splitlines()[-1])
    return answer


def timed(scenario: str, rounds: int) -> Row:
    """Medians over processes; before each the cache is made anew."""
    before, program = SCENARIOS[scenario]
    row: Row = {"benchmark": "compile_time", "case": scenario, "peer": "dilim"}
    answers = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            if before is not None:
                run_child(before, Path(folder))
            answer = run_child(program, Path(folder), scenario.endswith(" loaded"))
        if "error" in answer:
            return row | answer
        answers.append(answer)
    totals = [answer["compile_ms"] + answer["import_ms"] for answer in answers]
    medians = {key: statistics.median(a[key] for a in answers) for key in answers[0]}
    row |= {key: round(value, 2) for key, value in medians.items()}
    return row | {"total_ms": round(statistics.median(totals), 2), "rounds": rounds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--child", help=argparse.SUPPRESS)
    parser.add_argument("--loaded", action="store_true", help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="one process each")
    parser.add_argument("--only", default=",".join([*SCENARIOS, *MEMORY]), help="%(default)s")
    parser.add_argument("--out", type=Path, help="append the JSON lines to this file")
    options = parser.parse_args()
    if options.child:
        memory = MEMORY.get(options.child)
        print(json.dumps(memory() if memory else child(options.child, options.loaded)))
        return
    emit = writer(options.out)
    for name in options.only.split(","):
        if name in SCENARIOS:
            emit(timed(name, 1 if options.quick else 3))
        else:
            row = {"benchmark": "compile_time", "case": name, "peer": "dilim"}
            with tempfile.TemporaryDirectory() as folder:
                emit(row | run_child(name, Path(folder)))


if __name__ == "__main__":
    main()
