"""Counts over many programs: how many differ, how much ran native, what fell back and why."""

from collections import Counter
from dataclasses import dataclass, field

_COUNTS = ("calls", "native_calls", "operations", "host", "settled", "settled_host")


@dataclass
class Tally:
    """What happened to programs so far.

    Attributes:
        programs: how many were compared.
        sliceable: how many of them have to be sliced as a whole.
        raising: how many raise an exception in some call.
        calls: of sliceable programs.
        native_calls: those of them that ran native.
        operations: tensor operations that these carry out as they stand.
        host: those of them that were still carried out eagerly, be it by statements of the host or
            because a function was left as it is.
        settled: those of the operations that are in calls in which nothing was sliced.
        settled_host: those of them that were carried out eagerly.
        fallbacks: reason -> number of places, in sliceable programs.
        others: reason -> number of places, in the other ones.
        differences: group -> number of programs.
    """

    programs: int = 0
    sliceable: int = 0
    raising: int = 0
    calls: int = 0
    native_calls: int = 0
    operations: int = 0
    host: int = 0
    settled: int = 0
    settled_host: int = 0
    fallbacks: Counter = field(default_factory=Counter)
    others: Counter = field(default_factory=Counter)
    differences: Counter = field(default_factory=Counter)

    def add(self, facts):
        """Count one program; see `facts_of`."""
        self.programs += 1
        self.raising += facts["raises"]
        if facts["group"]:
            self.differences[facts["group"]] += 1
        reasons = self.fallbacks if facts["sliceable"] else self.others
        reasons.update(facts["fallbacks"])
        if facts["sliceable"]:
            self.sliceable += 1
            for name in _COUNTS:
                setattr(self, name, getattr(self, name) + facts[name])

    @property
    def share(self):
        """The part of the tensor operations of sliceable programs that is native."""
        return 1 - self.host / max(1, self.operations)

    @property
    def settled_share(self):
        """The same in calls in which nothing was sliced: what is to be learned is known then."""
        return 1 - self.settled_host / max(1, self.settled)

    def __str__(self):
        calls = f"{self.native_calls} of {self.calls} calls"
        lines = [
            f"programs      {self.programs} ({self.sliceable} sliceable, {self.raising} raise)",
            f"differences   {sum(self.differences.values())}",
            f"native        {self.share:.1%} of the tensor operations of sliceable programs",
            f"              {self.host} of {self.operations} on the host; {calls} ran native",
            f"              {self.settled_share:.1%} of {self.settled} in calls in which nothing "
            "was sliced",
        ]
        for title, found in (
            ("differences", self.differences),
            ("fallbacks in sliceable programs", self.fallbacks),
            ("fallbacks in other programs", self.others),
        ):
            if found:
                lines += ["", f"{title}:"]
                lines += [f"{count:6}  {text}" for text, count in found.most_common(40)]
        return "\n".join(lines)


def facts_of(program, expected, found, difference):
    """What a `Tally` counts of a program.

    Args:
        program: a `Program`.
        expected: the recording of the plain function.
        found: the recording of the compiled one.
        difference: the first difference, or None.
    """
    statistics = found.statistics
    operations, eager = (sum(x.eager for x in side.moments) for side in (expected, found))
    pairs = list(zip(expected.moments, found.moments, strict=False))
    settled = [(a.eager, b.eager) for a, b in pairs if not b.is_sliced]
    return {
        "sliceable": program.sliceable,
        "raises": any(moment.error for moment in expected.moments),
        "group": difference.group if difference is not None else "",
        "calls": getattr(statistics, "calls", 0),
        "native_calls": getattr(statistics, "native_calls", 0),
        "operations": operations,
        "host": min(operations, eager),
        "settled": sum(a for a, _ in settled),
        "settled_host": sum(min(pair) for pair in settled),
        "fallbacks": [reason for reason, *_ in getattr(statistics, "fallbacks", ())],
    }
