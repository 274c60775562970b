"""Compares programs in processes of their own, so that a crash or an endless loop is a finding."""

import gc
import json
import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from dataclasses import asdict, dataclass

from slicing.fuzz import running
from slicing.fuzz.compare import compare_recordings, plain, report
from slicing.fuzz.compilers import COMPILERS
from slicing.fuzz.programs import Program, random_program
from slicing.fuzz.reduction import reduce
from slicing.fuzz.running import record
from slicing.fuzz.scenarios import Call
from slicing.fuzz.tally import Tally, facts_of

PATIENCE = 90.0  # seconds without a sign of life, besides those that a call may take
MOST_OF_A_GROUP = 2  # findings that are shown; they may have different causes


def saved(program):
    """A program as text."""
    parts = asdict(program) | {"features": sorted(program.features)}
    return json.dumps(parts, indent=1)


def loaded(text):
    """The program of a text."""
    parts = json.loads(text)
    calls = tuple(Call(**call) for call in parts["calls"])
    return Program(**parts | {"calls": calls, "features": frozenset(parts["features"])})


def difference_of(program, compiler):
    """Recordings of both sides, and the first difference."""
    expected = record(program, plain)
    found = record(program, compiler)
    return expected, found, compare_recordings(expected, found)


def tally_of(seeds, compiler):
    """A `Tally` of the programs of some seeds, compared in this process.

    Args:
        seeds: ints.
        compiler: gives what is called in place of a function.

    Raises:
        AssertionError: a program differs; it shows the program, made smaller, and the difference.
    """
    tally = Tally()
    for seed in seeds:
        program = random_program(seed)
        expected, found, difference = difference_of(program, compiler)
        if difference is not None:
            smaller, difference = _reduced(program, compiler, 30.0, expected, difference)
            raise AssertionError(f"seed {seed}\n{report(smaller, difference)}")
        tally.add(facts_of(program, expected, found, difference))
    return tally


# --- in the worker --------------------------------------------------------------------------


def work(seeds, compiler_name, seconds, only_sliceable, out):
    """Compare the programs of some seeds; a line of JSON for each, before and after.

    Args:
        seeds: a range.
        compiler_name: of `COMPILERS`.
        seconds: how long to make a program with a new difference smaller.
        only_sliceable: leave out the others.
        out: a file.
    """
    compiler = COMPILERS[compiler_name]
    known = Counter()
    for seed in seeds:
        _tell(out, seed=seed, state="begins")
        program = random_program(seed)
        if only_sliceable and not program.sliceable:
            _tell(out, seed=seed, state="left out")
            continue
        expected, found, difference = difference_of(program, compiler)
        facts = facts_of(program, expected, found, difference)
        _tell(out, seed=seed, state="done", facts=facts)
        if seed == seeds.start:  # all is imported; else a seventh of the time goes into its garbage
            gc.collect()
            gc.freeze()
        if difference is not None and known[difference.group] < MOST_OF_A_GROUP:
            known[difference.group] += 1
            smaller, difference = _reduced(program, compiler, seconds, expected, difference)
            group, text = difference.group, report(smaller, difference)
            _tell(out, seed=seed, state="found", group=group, text=text, program=saved(smaller))


def _reduced(program, compiler, seconds, expected, difference):
    """A smaller program with such a difference, and that."""
    signature = _signature(expected, difference)

    def fails(candidate):
        before, _, found = difference_of(candidate, compiler)
        return found is not None and _signature(before, found) == signature

    limit = running.LIMIT
    running.LIMIT = 3.0
    try:
        smaller = reduce(program, fails, seconds)
    finally:
        running.LIMIT = limit
    return smaller, difference_of(smaller, compiler)[2] or difference


def _signature(expected, difference):
    """What stays the same while a program is made smaller: with it, mostly, the cause."""
    moment = expected.moments[max(0, difference.call - 1)]
    raised = moment.error[0][1].split(":")[0] if moment.error else ""
    return difference.group, raised


def _tell(out, **facts):
    out.write(json.dumps(facts) + "\n")
    out.flush()


# --- around it ------------------------------------------------------------------------------


@dataclass
class Worker:
    """A process that compares the programs of some seeds, and is started anew after a crash."""

    seeds: range
    options: list

    def __post_init__(self):
        descriptor, self.path = tempfile.mkstemp(prefix="dilim-fuzz-", suffix=".jsonl")
        os.close(descriptor)
        self._read = 0
        self._current = None
        self._start(self.seeds.start)

    def _start(self, first):
        self._seen = time.monotonic()
        self._current = None
        module = [sys.executable, "-m", "slicing.fuzz.run", "--work", self.path]
        span = [str(first), str(self.seeds.stop)]
        paths = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
        self._process = subprocess.Popen([*module, "--seeds", *span, *self.options], env=paths)

    def news(self):
        """What was told since the last question; None when all is done."""
        ended = self._process.poll()
        told = self._new_lines()
        for facts in told:
            self._current = facts["seed"] if facts["state"] == "begins" else self._current
        if told:
            self._seen = time.monotonic()
        elif ended is not None and ended != 0:
            return [self._lost(f"crash: the process ended with {ended}")]
        elif ended is None and time.monotonic() - self._seen > PATIENCE + running.LIMIT:
            self._process.kill()
            self._process.wait()
            return [self._lost("hang: the native program did not end")]
        elif ended is not None:
            os.remove(self.path)
            return None
        return told

    def _new_lines(self):
        with open(self.path, encoding="utf-8") as file:
            file.seek(self._read)
            lines = file.readlines()
            complete = [line for line in lines if line.endswith("\n")]
            self._read += sum(len(line.encode()) for line in complete)
        return [json.loads(line) for line in complete]

    def _lost(self, group):
        """The finding for a process that is gone; goes on with the next seed."""
        seed = self._current
        if seed is None:
            raise RuntimeError(f"fuzz: the worker for {self.seeds} did not begin: {group}")
        self._start(seed + 1)
        program = random_program(seed)
        text = f"{program!r}\n\n{group}"
        return {"seed": seed, "state": "lost", "group": group, "text": text,
                "program": saved(program)}  # fmt: skip
