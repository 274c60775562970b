"""How long the first call of a compiled function takes, each time in a fresh process.

The functions are the linear classifier, 3,001 epochs in one call, and the DQN update of case a of
eager_cases.py. The cache of compiled code is a folder of its own: empty (``cold``), or filled by
the same call in another process (``warm``). ``dilim`` compiles when it finds that it is worth it,
as `dilim.compile` does by default; ``dilim_at_once`` with ``compile_after=0``; ``dilim_eager`` is
the plain function, whose kernels are cached in that folder too. What the first call imports counts;
`import dilim` does not. A compiled function that did not run native is an error.

    python benchmarks/first_call.py [--quick] [--only "classifier warm"] [--out FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from harness import SOURCE, UNSET, Row, writer

PEERS = {
    "classifier": ("dilim_eager", "dilim", "dilim_at_once"),
    "update": ("dilim_eager", "dilim_at_once"),
}
SCENARIOS = [f"{program} {cache}" for program in PEERS for cache in ("cold", "warm")]
STEADY_CALLS = 5


# ------------------------------------------------------------------ in the fresh process
def child(program: str, peer: str) -> Row:
    """Milliseconds of the first call, of slicing and compiling in it, and of a later call."""
    from slicing_cases import EPOCHS, survey
    from slicing_programs import dqn_update, require_native, train

    import dilim

    function: Any = train
    arguments: tuple[Any, ...] = (*map(dilim.asarray, survey()), EPOCHS)
    if program == "update":
        function, (arguments, *_) = dqn_update("a")
    if peer != "dilim_eager":
        function = dilim.compile(function, compile_after=0 if peer == "dilim_at_once" else None)
    seconds = []
    facts: Row = {}
    for turn in range(1 + STEADY_CALLS):
        started = time.perf_counter()
        function(*arguments)
        seconds.append(time.perf_counter() - started)
        if turn == 0 and peer != "dilim_eager":
            require_native(function)
            facts = {"compile_ms": function.statistics.compile_seconds * 1e3}
    return {"first_ms": seconds[0] * 1e3, "later_ms": min(seconds[1:]) * 1e3} | facts


# ------------------------------------------------------------------ outside
def run_child(program: str, peer: str, cache: Path) -> Row:
    environment = {**os.environ, "DILIM_CACHE": str(cache), "PYTHONPATH": str(SOURCE)}
    for name in (*UNSET, "PYTHONDONTWRITEBYTECODE"):  # an installed package has its bytecode
        environment.pop(name, None)
    command = [sys.executable, __file__, "--child", program, peer]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    if done.returncode:
        return {"error": done.stderr.strip().splitlines()[-1][:300]}
    answer: Row = json.loads(done.stdout.splitlines()[-1])
    return answer


def timed(scenario: str, peer: str, rounds: int) -> Row:
    """Medians over processes; before each the cache is made anew."""
    program, state = scenario.split()
    row: Row = {"benchmark": "first_call", "case": scenario, "peer": peer}
    answers = []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as folder:
            if state == "warm":
                run_child(program, peer, Path(folder))
            answer = run_child(program, peer, Path(folder))
        if "error" in answer:
            return row | answer
        answers.append(answer)
    medians = {key: statistics.median(a[key] for a in answers) for key in answers[0]}
    return row | {key: round(value, 3) for key, value in medians.items()} | {"rounds": rounds}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--child", nargs=2, help=argparse.SUPPRESS)
    parser.add_argument("--quick", action="store_true", help="one process each")
    parser.add_argument("--only", default=",".join(SCENARIOS), help="default: %(default)s")
    parser.add_argument("--out", type=Path, help="append the JSON lines to this file")
    options = parser.parse_args()
    if options.child:
        print(json.dumps(child(*options.child)))
        return
    emit = writer(options.out)
    for scenario in options.only.split(","):
        for peer in PEERS[scenario.split()[0]]:
            emit(timed(scenario, peer, 1 if options.quick else 3))


if __name__ == "__main__":
    main()
