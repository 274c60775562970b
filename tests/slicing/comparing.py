"""Checks programs, written as text: compiled as plain, run native, with so many transfers.

::

    def test_scaled():
        check(
            '''
            def f(x):
                return x * 2
            ''',
            Call("[dilim.ones(3)]"),
            sends=0,
            receives=0,
        )
"""

import itertools
import re
import textwrap
from collections import Counter
from dataclasses import dataclass, replace

import dilim
from slicing.fuzz.compare import compare_recordings, plain, report
from slicing.fuzz.programs import Program
from slicing.fuzz.running import Recording, record
from slicing.fuzz.scenarios import Call

__all__ = ["Call", "Checked", "check", "check_program"]

IMPORTS = """\
import math
import random

import numpy as np

import dilim
from dilim import nn, optim
"""
MARK = "__mark__"


@dataclass(frozen=True)
class Checked:
    """What was seen of a program that is right.

    Attributes:
        plain: the `Recording` of the plain function; that of the compiled one is the same.
        compiled: the `Sliced` function.
        transfers: (sends, receives) of each call.
    """

    plain: Recording
    compiled: object
    transfers: list

    def printed(self, call):
        """The lines that a call, from 1, printed."""
        return self.plain.moments[call - 1].printed.splitlines()

    def error(self, call):
        """Type and message of what a call raised; an empty text if it returned."""
        error = self.plain.moments[call - 1].error
        return error[0][1] if error else ""

    def line(self, call):
        """The user's line at which a call raised, from 1 in the text given to `check`."""
        return int(self.plain.moments[call - 1].error[1][1]) - IMPORTS.count("\n")

    def value(self, path, call=None):
        """The description of an object after a call; by default the last."""
        return dict(self.plain.moments[(call or 0) - 1].state)[path]


def check(source, *calls, callee="f", owner="", **expectations):
    """Check a program whose text gets the usual imports; see `check_program`."""
    text = textwrap.dedent(source).strip("\n") + "\n"
    return check_program(Program(IMPORTS + text, calls, owner, callee), **expectations)


def check_program(
    program,
    *,
    sends=None,
    receives=None,
    native=None,
    fallback=None,
    variants=None,
    raises=(),
    may_leave=False,
    backend="reference",
):
    """Compare a program plain and compiled in all that can be seen, and how it ran.

    Args:
        program: a `Program`.
        sends: points of the last call at which the graph sent values to the host.
        receives: points of the last call at which it took one.
        native: calls that ran native; by default all.
        fallback: pattern of the reason why something fell back; by default nothing may.
        variants: programs that may be kept at the end.
        raises: which calls raise an exception, plain as compiled.
        may_leave: whether the rest of the last call may be left to the host.
        backend: of `dilim.compile`.
    """
    marked = tuple(replace(call, before=f"{MARK}()\n{call.before}") for call in program.calls)
    running = replace(program, calls=marked)
    made, totals, left, regions = [], [], [], {}

    def compiler(f):
        compiled = dilim.compile(f, backend=backend, compile_after=0)
        made.append(compiled)

        def mark():
            totals.append(transfers(compiled, regions))
            left.append(exits(compiled))

        f.__globals__[MARK] = mark
        return compiled

    def without(f):
        f.__globals__[MARK] = lambda: None
        return plain(f)

    expected = record(running, without)
    errors = {n: moment.error for n, moment in enumerate(expected.moments, 1) if moment.error}
    assert list(errors) == list(raises), f"the plain program raises {errors}"
    found = record(running, compiler)
    difference = compare_recordings(expected, found)
    assert difference is None, report(program, difference)
    [compiled] = made
    totals.append(transfers(compiled, regions))
    late = [reason for reason, count in exits(compiled).items() if count > left[-1][reason]]
    counted = [(b[0] - a[0], b[1] - a[1]) for a, b in itertools.pairwise(totals)]
    _check_how(compiled.statistics, fallback, native)
    assert fallback is not None or may_leave or not late, (
        f"left to the host in the last call: {late}"
    )
    if variants is not None:
        count = compiled.statistics.variants
        assert count <= variants, f"{count} variants, expected at most {variants}"
    if sends is not None or receives is not None:
        wanted = tuple(
            got if want is None else want
            for want, got in zip((sends, receives), counted[-1], strict=True)
        )
        assert counted[-1] == wanted, f"(sends, receives) per call: {counted}, expected {wanted}"
    return Checked(expected, compiled, counted)


def _check_how(statistics, fallback, native):
    reasons = [reason for reason, *_ in statistics.fallbacks]
    if fallback is None:
        assert reasons == [], f"fell back: {statistics.fallbacks}"
        wanted = statistics.calls if native is None else native
        assert statistics.native_calls == wanted, f"ran native {statistics.native_calls} times"
    else:
        assert reasons, f"no reason for a fallback, expected {fallback!r}"
        for reason in reasons:
            assert re.search(fallback, reason), f"fell back: {reason!r}, not {fallback!r}"
        if native is not None:
            assert statistics.native_calls == native, f"{statistics.native_calls} native calls"


def transfers(compiled, regions):
    """How many points with values a compiled function came to so far: (sends, receives)."""
    statistics = compiled.statistics
    if statistics.sends or statistics.receives:
        return statistics.sends, statistics.receives
    sends = receives = 0
    regions.update(dict.fromkeys(compiled._variants))
    for region in regions:
        sent = {action.channel: bool(action.sent) for action in region.actions}
        for runner in region._free:
            for channel, count in runner.session.served().items():
                receives += count * (channel[0] in "rn")
                sends += count * (sent[channel] and channel[0] not in "e")
    return sends, receives


def exits(compiled):
    """Why, and how often, the rest of a run was left to the host."""
    return Counter(compiled.statistics.left)
