"""What ``f.explain()`` gives: which line is on which side, what is handed over, and why."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dilim.slicing.actions import BIND, CHECK, END, FRAGMENT, LEAVE, RECEIVE, TRIED, TURN, WRITE
from dilim.slicing.findings import Findings, Point
from dilim.slicing.wording import Source, short_path

if TYPE_CHECKING:
    from dilim.slicing.statistics import Statistics

_MOST_TYPES: Final = 4  # of one transfer that are named


@dataclass(slots=True)
class Transfer:
    """Values that one program hands to the other at a line.

    Attributes:
        file: of the user.
        line: in it.
        to_host: whether the graph sends and the host receives.
        values: what the user knows them as.
        types: their shapes and dtypes.
        bytes: their size.
        in_loop: whether it is in a loop.
        runs: how often it happened so far; None if the programs were not run.
        points: in how many places; a loop that is laid out flat has one for each turn.
        reason: why it is needed.
    """

    file: str
    line: int
    to_host: bool
    values: tuple[str, ...]
    types: tuple[str, ...]
    bytes: int
    in_loop: bool
    runs: int | None
    points: int
    reason: str


class Explanation:
    """How a function was sliced, in words.

    ``str()`` gives the source with a mark for each line (graph, host, both, or none for what is
    known when the program is made), the transfers, what runs as plain Python and why, and counts.

    Attributes:
        marks: (file, line) -> "graph", "host" or "both".
        transfers: see `Transfer`, in the order of the source.
        reasons: (file, line, reason) for lines of the host.
        fallbacks: (file, line, reason) for what could not be sliced at all.
    """

    def __init__(
        self,
        name: str,
        found: Sequence[Findings],
        statistics: Statistics,
        remarks: Sequence[str] = (),
    ) -> None:
        self.name = name
        self._found = found
        self._statistics = statistics
        self._remarks = list(remarks)
        self.marks = _marks(found)
        self.transfers = sorted(
            (transfer for findings in found for transfer in _transfers(findings)),
            key=lambda transfer: (self._file_order(transfer.file), transfer.line),
        )
        self.reasons = [
            (*line, reason)
            for findings in found
            for line, reasons in sorted(findings.host.items())
            for reason in reasons
        ]
        self.fallbacks = [(file, line, reason) for reason, file, line in statistics.fallbacks]

    def __str__(self) -> str:
        parts = ["\n".join([f"{self.name}: {self._headline()}", *self._remarks])]
        parts += ["\n".join(self._source(source)) for source in self._sources()]
        for title, lines in (
            ("Handed over", self._handed_over()),
            ("On the host", self._with_places(self.reasons)),
            ("Plain Python", self._plain()),
            ("Counts", self._counts()),
        ):
            if lines:
                parts.append("\n".join([title, *(f"  {line}" for line in lines)]))
        return "\n\n".join(parts)

    __repr__ = __str__

    def _headline(self) -> str:
        if not self._found:
            return "plain Python"
        if all(findings.region.after is not None for findings in self._found):
            lines = sorted({findings.region.code.body[0].line for findings in self._found})
            word = "loop at line" if len(lines) == 1 else "loops at lines"
            return f"the {word} {', '.join(map(str, lines))} became a graph and a host program"
        return "a graph program and a host program"

    # --- the source -------------------------------------------------------------------------

    def _sources(self) -> Iterator[Source]:
        known = set()
        for findings in self._found:
            for source in findings.sources:
                place = source.code.filename, source.code.lines[1]
                if place not in known:
                    known.add(place)
                    yield source

    def _source(self, source: Source) -> Iterator[str]:
        lines, first = source.code.lines
        yield f"{source.code.name}, {source.place()}"
        width = len(str(first + len(lines) - 1))
        for number, line in enumerate(lines, first):
            mark = self.marks.get((source.code.filename, number), "")
            yield f"  {mark:<5}  {number:>{width}} | {line.rstrip()}".rstrip()

    def _place(self, file: str, line: int) -> str:
        """A line; with its file if that is another one."""
        own = self._found[0].region.code.filename if self._found else ""
        return f"line {line}" if file == own else f"{short_path(file)}:{line}"

    def _file_order(self, file: str) -> tuple[bool, str]:
        """The function's own file first."""
        return file != self._found[0].region.code.filename, file

    def _with_places(self, reasons: Sequence[tuple[str, int, str]]) -> list[str]:
        by_place: dict[str, list[str]] = {}
        for file, line, reason in reasons:
            by_place.setdefault(self._place(file, line), []).append(reason)
        return [f"{place}  {'; '.join(of_place)}" for place, of_place in by_place.items()]

    # --- tables -----------------------------------------------------------------------------

    def _handed_over(self) -> list[str]:
        lines = []
        for transfer in self.transfers:
            side = "host" if transfer.to_host else "graph"
            place = self._place(transfer.file, transfer.line)
            facts = [_types(transfer.types), _count(transfer.bytes, "byte")]
            facts += ["in a loop"] if transfer.in_loop else []
            facts += [f"in {transfer.points} places"] if transfer.points > 1 else []
            facts += [] if transfer.runs is None else [f"ran {_times(transfer.runs)}"]
            lines += [
                f"{place}  to the {side}: {', '.join(transfer.values)}",
                f"    {', '.join(facts)}",
                f"    because {transfer.reason}",
            ]
        for letter, what in ((CHECK, "might change something"), (TRIED, "might fail")):
            count = sum(findings.count(letter) for findings in self._found)
            if count:
                lines.append(
                    f"Also 1 byte to the graph after host code that {what}: whether it may go on, "
                    f"ran {_times(count)}"
                )
        return lines

    def _plain(self) -> list[str]:
        lines = self._with_places(self.fallbacks)
        left = self._statistics.left.items()
        lines += [f"the rest of a run, {_times(count)}: {reason}" for reason, count in left]
        for findings in self._found:
            trial = findings.region.trial
            if trial is not None and trial.is_lost:
                lines.append(
                    f"calls for these arguments: {seconds_in_words(trial.plain)} as it stands, "
                    f"{seconds_in_words(trial.native)} as two programs"
                )
        return lines

    def _counts(self) -> list[str]:
        numbers = self._statistics
        hits = sum(findings.region.cache_hits for findings in self._found)
        pieces = hits + sum(findings.region.cache_misses for findings in self._found)
        cached = (
            f"; {hits} of {_count(pieces, 'piece')} of code found in the cache" if pieces else ""
        )
        made = _count(numbers.variants, "program")
        lines = [f"{_count(numbers.calls, 'call')}, {_count(numbers.native_calls, 'native run')}"]
        if numbers.compile_seconds:
            seconds = f"sliced and compiled in {numbers.compile_seconds:.3g} s"
            lines.append(f"{made} made, {seconds}{cached}")
        return lines


# --- what it is made from -------------------------------------------------------------------


def _marks(found: Sequence[Findings]) -> dict[tuple[str, int], str]:
    sides: dict[tuple[str, int], set[str]] = {}
    for findings in found:
        for line in {*findings.graph, *findings.host}:
            sides.setdefault(line, set()).add(findings.mark(line))
    return {line: marks.pop() if len(marks) == 1 else "both" for line, marks in sides.items()}


def _transfers(findings: Findings) -> list[Transfer]:
    runs = findings.runs()
    shown: dict[tuple[object, ...], Transfer] = {}
    for point in findings.points:
        if point.letter in (CHECK, TRIED, LEAVE) or not point.types:
            continue
        transfer = _transfer(point, bool(runs))
        key = (transfer.file, transfer.line, transfer.values, transfer.types, transfer.reason)
        known = shown.setdefault((*key, transfer.to_host, transfer.in_loop), transfer)
        known.points += 1
        if known.runs is not None:
            known.runs += runs.get(point.channel, 0)
    return list(shown.values())


def _transfer(point: Point, was_run: bool) -> Transfer:
    """A transfer that has not happened yet."""
    return Transfer(
        file=point.line[0],
        line=point.line[1],
        to_host=point.is_send,
        values=tuple(point.labels()),
        types=tuple(map(str, point.types)),
        bytes=point.bytes,
        in_loop=point.loops > 0,
        runs=0 if was_run else None,
        points=0,
        reason=_reason(point),
    )


def _reason(point: Point) -> str:
    if point.letter == FRAGMENT and point.source is not None:
        parts = point.source.outermost(point.action.statements)
        return f"the host runs {'; '.join(map(point.source.quote, parts))}"
    return {
        BIND: "the host binds the name itself on another path",
        RECEIVE: "the graph goes on with it",
        TURN: "the host has the items",
        END: "it is used after the graph program",
        WRITE: "an operation follows that may raise, and what was done before must be seen",
    }.get(point.letter, "the host needs it")


# --- words ----------------------------------------------------------------------------------


def _types(types: Sequence[str]) -> str:
    if len(types) > _MOST_TYPES:
        return f"{', '.join(types[: _MOST_TYPES - 1])} and {len(types) - _MOST_TYPES + 1} more"
    return ", ".join(types)


def seconds_in_words(seconds: float) -> str:
    """A time, in the unit that fits."""
    for size, unit in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if seconds >= size:
            return f"{seconds / size:.3g} {unit}"
    return f"{seconds * 1e9:.3g} ns"


def _count(number: int, word: str) -> str:
    return f"{number:,} {word}{'' if number == 1 else 's'}"


def _times(number: int) -> str:
    return {0: "never", 1: "once"}.get(number, f"{number:,} times")
