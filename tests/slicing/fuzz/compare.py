"""Compares a plain function with a compiled one, in all that can be seen.

A compiler is any function from a function to what is called in its place::

    difference = compare(program, lambda f: dilim.compile(f, compile_after=0))
"""

import re
from dataclasses import dataclass
from itertools import zip_longest

from slicing.fuzz.running import record

MISSING = "nothing"
FAULT = "a fault in dilim"


@dataclass(frozen=True)
class Difference:
    """The first thing that is not the same.

    Attributes:
        kind: "printed", "raised", "line", "result", "state", "memory", "random", "calls"; or
            "fault" where nothing differs and the compiler reports a fault of its own.
        call: the number of the call, from 1.
        path: what differs.
        plain: what the plain function gives.
        compiled: what the compiled one gives.
        origin: where the compiled function raised, if it did.
    """

    kind: str
    call: int
    path: str
    plain: str
    compiled: str
    origin: str = ""

    @property
    def group(self):
        """A text that is alike for differences that probably have one cause."""
        if self.kind == "raised" and self.origin:
            origin = re.sub(r"program_[0-9]+.py:[0-9]+", "the program", self.origin)
            return f"raised at {origin}: {re.sub(r'[0-9]+', 'N', self.compiled)[:80]}"
        return f"{self.kind}: {re.sub(r'[0-9]+', 'N', self.path)}"

    def __str__(self):
        lines = [
            f"call {self.call}: {self.kind} differs: {self.path}",
            f"  plain:    {self.plain}",
            f"  compiled: {self.compiled}",
        ]
        return "\n".join(lines + ([f"  raised in {self.origin}"] if self.origin else []))


def plain(f):
    """The compiler that does nothing."""
    return f


def compare(program, compiler, expected=None):
    """The first difference between a program plain and compiled, or None.

    Args:
        program: a `Program`.
        compiler: gives what is called in place of the function.
        expected: a recording of the plain program, if there is one already.
    """
    return compare_recordings(expected or record(program, plain), record(program, compiler))


def compare_recordings(expected, found):
    """The first difference between two recordings, or None."""
    for number, (want, got) in enumerate(zip_longest(expected.moments, found.moments), 1):
        if want is None or got is None:
            return Difference("calls", number, "end of calls", str(bool(want)), str(bool(got)))
        difference = _compare_moments(number, want, got)
        if difference is not None:
            return difference
    for reason, *_ in getattr(found.statistics, "fallbacks", ()):
        if reason.startswith(FAULT):
            return Difference("fault", 0, re.sub(r"[0-9]+", "N", reason)[:100], "", reason)
    return None


def _compare_moments(number, want, got):
    lines = (
        [("raised", *pair) for pair in _pairs(want.error[:1], got.error[:1])],
        [("printed", *pair) for pair in _printed(want.printed, got.printed)],
        [("line", *pair) for pair in _pairs(want.error[1:], got.error[1:])],
        [(_kind(pair[0]), *pair) for pair in _pairs(want.state, got.state)],
    )
    for found in lines:
        for kind, path, a, b in found:
            if a != b:
                origin = got.origin if kind == "raised" and b != MISSING else ""
                return Difference(kind, number, path, a, b, origin)
    return None


def _pairs(want, got):
    """(path, plain, compiled) of lines that are in one order on both sides."""
    for a, b in zip_longest(want, got):
        if a is None or b is None or a[0] != b[0]:
            path, a_text, b_text = _unlike(a, b, dict(want), dict(got))
            yield path, a_text, b_text
            return
        yield a[0], a[1], b[1]


def _unlike(a, b, want, got):
    """What to tell where the sides go on with different paths."""
    path = next(x[0] for x in (a, b) if x is not None)
    if path in want and path in got and want[path] != got[path]:
        return path, want[path], got[path]
    both = (f"{x[0]} = {x[1]}" if x is not None else MISSING for x in (a, b))
    return path, *both


def _printed(want, got):
    a, b = want.split("\n"), got.split("\n")
    for number, (x, y) in enumerate(zip_longest(a, b), 1):
        yield f"line {number}", repr(x), repr(y)


def _kind(path):
    for start in ("memory", "result"):
        if path.startswith(start):
            return start
    return "random" if "random state" in path else "state"


def report(program, difference):
    """A text that shows a difference with all that is needed to see it again."""
    numbered = "\n".join(
        f"{number:4} {line}" for number, line in enumerate(program.source.splitlines(), 1)
    )
    calls = []
    for number, call in enumerate(program.calls, 1):
        calls += [f"before call {number}: {call.before}"] if call.before else []
        calls.append(f"call {number}: {program.callee}(*{call.arguments}, **{call.keywords})")
        calls += [f"after call {number}: {call.after}"] if call.after else []
    return "\n".join([numbered, "", *calls, "", str(difference)])


def assert_same(program, compiler):
    """Raise an AssertionError that shows the program, its arguments and the first difference."""
    difference = compare(program, compiler)
    if difference is not None:
        raise AssertionError(report(program, difference))
