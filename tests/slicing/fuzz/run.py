"""The command line of the fuzzer.

::

    PYTHONPATH=src:tests python -m slicing.fuzz.run --programs 500 --backend reference --seed 0
    PYTHONPATH=src:tests python -m slicing.fuzz.run --replay findings/12.json --backend llvm
"""

import argparse
import sys
import time
from collections import Counter
from pathlib import Path

from slicing.fuzz import running
from slicing.fuzz.compare import report
from slicing.fuzz.compilers import COMPILERS
from slicing.fuzz.tally import Tally
from slicing.fuzz.workers import MOST_OF_A_GROUP, Worker, difference_of, loaded, work


def parsed(arguments=None):
    parser = argparse.ArgumentParser(description="Compare compiled functions with plain ones.")
    add = parser.add_argument
    add("--programs", type=int, default=500, help="how many to compare")
    add("--backend", choices=COMPILERS, default="reference", help="what to compare with")
    add("--seed", type=int, default=0, help="of the first program; the others follow")
    add("--jobs", type=int, default=1, help="processes")
    add("--reduce", type=float, default=30.0, help="seconds to make a finding smaller")
    add("--limit", type=float, default=20.0, help="seconds for a call, compiling included")
    add("--sliceable", action="store_true", help="only programs that must be sliced as a whole")
    add("--keep", type=Path, help="a folder for findings, as text and to be replayed")
    add("--replay", type=Path, help="compare one kept program, and show it")
    add("--work", help=argparse.SUPPRESS)
    add("--seeds", type=int, nargs=2, help=argparse.SUPPRESS)
    return parser.parse_args(arguments)


def main(arguments=None):
    """Run the command; the exit status is 1 where something differs."""
    options = parsed(arguments)
    running.LIMIT = options.limit
    if options.work:
        with open(options.work, "a", encoding="utf-8") as out:
            work(range(*options.seeds), options.backend, options.reduce, options.sliceable, out)
        return 0
    if options.replay:
        return replay(options.replay, options.backend)
    tally = campaign(options)
    print(tally)
    return 1 if tally.differences else 0


def replay(path, backend):
    """Compare a kept program, and show what is found."""
    program = loaded(path.read_text(encoding="utf-8"))
    _, found, difference = difference_of(program, COMPILERS[backend])
    print(report(program, difference) if difference else "no difference")
    for entry in getattr(found.statistics, "fallbacks", ()):
        print("fallback:", *entry)
    return 1 if difference else 0


def campaign(options):
    """Compare many programs in some processes; a `Tally`."""
    tally, groups, began = Tally(), Counter(), time.monotonic()
    passed_on = ["--backend", options.backend, "--reduce", str(options.reduce)]
    passed_on += ["--limit", str(options.limit)]
    passed_on += ["--sliceable"] if options.sliceable else []
    workers = [Worker(seeds, passed_on) for seeds in _shares(options)]
    while workers:
        time.sleep(0.2)
        for worker in list(workers):
            news = worker.news()
            if news is None:
                workers.remove(worker)
            for facts in news or ():
                _take(facts, tally, groups, options.keep)
    seconds = time.monotonic() - began
    print(f"{tally.programs} programs in {seconds:.1f} s", file=sys.stderr)
    return tally


def _shares(options):
    size = -(-options.programs // options.jobs)
    end = options.seed + options.programs
    return [range(i, min(i + size, end)) for i in range(options.seed, end, size)]


def _take(facts, tally, groups, keep):
    """Count what a worker told, and show findings of a new kind."""
    if facts["state"] == "done":
        tally.add(facts["facts"])
    if facts["state"] == "lost":
        tally.programs += 1
        tally.differences[facts["group"]] += 1
    if facts["state"] in ("found", "lost") and groups[facts["group"]] < MOST_OF_A_GROUP:
        groups[facts["group"]] += 1
        print(f"=== seed {facts['seed']}: {facts['group']}\n{facts['text']}\n", flush=True)
        if keep is not None:
            keep.mkdir(parents=True, exist_ok=True)
            (keep / f"{facts['seed']}.json").write_text(facts["program"], encoding="utf-8")
            (keep / f"{facts['seed']}.txt").write_text(facts["text"], encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
