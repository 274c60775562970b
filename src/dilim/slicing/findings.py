"""What there is to tell about a region: its points of exchange, and on which side each line is."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from dilim.ir.graph import NO_SITE, Graph, Node, Site
from dilim.ir.structure import CHANNELS, IF, LOOP, SEND, walk
from dilim.ir.types import Type
from dilim.slicing.actions import BIND, END, FRAGMENT, LEAVE, RECEIVE, TURN, WRITE, Action
from dilim.slicing.program import Statement, Unit
from dilim.slicing.report import RAISES, Line
from dilim.slicing.wording import Source

if TYPE_CHECKING:
    from dilim.slicing.region import Region

RESULT: Final = "return"
"""The name under which an action has the result of the function."""
TRANSFERS: Final = (FRAGMENT, RECEIVE, BIND, WRITE)
"""Points at which something that the user wrote is handed over."""
_SHIFTS: Final = frozenset({"full", "astype", "reshape", "expand", "permute", "read"})
"""Operations that bring a value into the form in which it is sent; they compute nothing."""
# What the code of actions has in it; see `Action`.
_VALUE: Final = re.compile(r"\bv\[([0-9]+)\]")
_OBJECT: Final = re.compile(r"\bO\[([0-9]+)\]")
_MADE: Final = re.compile(r"^R\.\w+\(([0-9]+), v\[([0-9]+)\]\)$", re.MULTILINE)


@dataclass(frozen=True, slots=True, eq=False)
class Point:
    """A point at which the two programs meet.

    Attributes:
        action: what the host does there.
        node: the send or receive.
        line: of the user's file that it belongs to.
        source: the function there; None where that is not known.
        loops: how many loops of the graph it is in.
        each_turn: whether it is in a loop, and no branch there leads around it.
    """

    action: Action
    node: Node
    line: Line
    source: Source | None
    loops: int
    each_turn: bool

    @property
    def channel(self) -> str:
        """Its name."""
        return self.action.channel

    @property
    def letter(self) -> str:
        """What it is for: the first letter of the channel."""
        return self.action.channel[0]

    @property
    def is_send(self) -> bool:
        """Whether values go from the graph to the host."""
        return self.node.op == SEND

    @property
    def types(self) -> tuple[Type, ...]:
        """Of the values that are handed over; the bool that tells of a wrong type is left out."""
        if self.is_send:
            return tuple(value.type for value in self.node.inputs)
        results = tuple(value.type for value in self.node.results)
        return results[1:] if self.letter == RECEIVE and len(results) > 1 else results

    @property
    def bytes(self) -> int:
        """Size of the values."""
        return sum(kind.size * kind.dtype.itemsize for kind in self.types)

    @property
    def names(self) -> list[str]:
        """Local names, or made ones, whose values are handed over."""
        if not self.is_send:
            return list(self.action.names)
        return [name for name, code in self.action.names.items() if self._sent(code)]

    @property
    def has_state(self) -> bool:
        """Whether it sends values that have no name: contents of tensors, attributes."""
        named = {k for code in self.action.names.values() for k in self._sent(code)}
        return self.is_send and len(named) < len(self.node.inputs)

    def labels(self) -> list[str]:
        """What the user knows the values as."""
        found = [
            name if self.source is None else self.source.label(name)
            for name in self.names
            if name != RESULT
        ]
        found += ["the result"] if RESULT in self.names else []
        found += ["changed state"] if self.has_state else []
        return list(dict.fromkeys(found))

    def _sent(self, code: str) -> set[str]:
        """The numbers of the sent values that the code of the action uses."""
        made = dict(_MADE.findall("\n".join(self.action.prelude)))
        objects = {made[number] for number in _OBJECT.findall(code) if number in made}
        return objects | set(_VALUE.findall(code))


class Findings:
    """Everything that listings and explanations of a region are made from.

    Attributes:
        region: what it is about.
        sources: the functions of the user in it, its own first.
        points: where the programs meet, in the order of the graph; those left out at which the
            host raises an error that the graph has seen coming.
        graph: lines whose work the graph program does.
        host: lines whose work the host program does, with the reasons.
        calls: lines with a call of a function that has host statements.
    """

    def __init__(self, region: Region) -> None:
        self.region = region
        self._raising = {
            line for line, reasons in region.notes.on_host.items() if reasons == [RAISES]
        }
        codes = [region.code, *(code for code in region.notes.reached if code is not region.code)]
        self.sources = [Source(code) for code in codes]
        self.points = list(self._points(region.graph))
        self.calls = {
            (file, line)
            for point in self.points
            for _, file, line, *_ in point.action.callers
            if point.letter in (FRAGMENT, RECEIVE, TURN)
        }
        self.host = self._host_lines()
        self.graph = self._graph_lines()

    def source_at(self, line: Line) -> Source | None:
        """The innermost function that a line belongs to."""
        file, number = line
        around = [
            source
            for source in self.sources
            if source.code.filename == file
            and 0 <= number - source.code.lines[1] < len(source.code.lines[0])
        ]
        return min(around, key=lambda source: len(source.code.lines[0]), default=None)

    def mark(self, line: Line) -> str:
        """On which side a line is: "graph", "host", "both" or "" for neither."""
        if line in self.host:
            return "both" if line in self.graph else "host"
        return "graph" if line in self.graph else ""

    def runs(self) -> dict[str, int]:
        """How often the program came to the point of each channel."""
        return self.region.served()

    def count(self, letter: str) -> int:
        """How often the program came to points for one purpose."""
        runs = self.runs()
        return sum(runs.get(p.channel, 0) for p in self.points if p.letter == letter)

    def hosted(self, source: Source) -> list[Statement]:
        """The statements of a function that the host runs."""
        found: dict[Statement, None] = {}
        for point in self.points:
            if point.action.code is source.code:
                found.update(dict.fromkeys(point.action.statements))
        return list(found)

    # --- how it is found --------------------------------------------------------------------

    def _points(self, graph: Graph) -> Iterator[Point]:
        actions = {action.channel: action for action in self.region.actions}
        for node, loops, each_turn in _with_loops(graph, 0, False):
            if node.op not in CHANNELS or node.params.get("stop"):
                continue
            action = actions[node.params["channel"]]
            site = _site(self.region.graph, node)
            line = ("", 0) if site is None else (site.file, site.line)
            source = self.source_at(line)
            if action.code is not None and action.statements:
                line = action.code.filename, action.statements[0].line
                if line in self._raising:
                    continue
                source = next((x for x in self.sources if x.code is action.code), None)
            elif source is None and action.channel[0] == END:
                source, line = self.sources[0], self._last_line()
            yield Point(action, node, line, source, loops, each_turn)

    def _last_line(self) -> Line:
        """Where the graph program ends if no statement ends it."""
        code = self.region.code
        if self.region.after is not None:
            return code.filename, code.body[0].line
        return code.filename, code.lines[1] + len(code.lines[0]) - 1

    def _host_lines(self) -> dict[Line, list[str]]:
        notes = self.region.notes
        found: dict[Line, list[str]] = {}
        for point in self.points:
            code = point.action.code
            if code is not None:
                for statement in point.action.statements:
                    line = code.filename, statement.line
                    found[line] = notes.on_host.get(line, [])
                    if isinstance(statement, Unit):  # it has a block
                        last = statement.node.end_lineno or statement.line
                        for number in range(statement.line + 1, last + 1):
                            found.setdefault((code.filename, number), [])
            elif point.letter == TURN:
                found.setdefault(point.line, [])
        for line in self.calls:
            found.setdefault(line, [])
        return found

    def _graph_lines(self) -> set[Line]:
        found: dict[Line, set[str]] = {line: set() for line in self.region.notes.on_graph}
        for node in walk(self.region.graph):
            is_ours = node.op in CHANNELS or _leaves(node)
            site = None if is_ours else _site(self.region.graph, node)
            if site is not None:
                place = site.file, site.line
                for line in (place, *(caller[1:3] for caller in self.region.callers_of(place))):
                    found.setdefault(line, set()).add(node.op)
        return {line for line, ops in found.items() if line not in self.host or ops - _SHIFTS}


def _leaves(node: Node) -> bool:
    """Whether a branch is there to leave the rest to the host, for something is not as it was."""
    return any(
        inner.params["channel"][0] == LEAVE
        for region in node.regions
        if node.op == IF
        for inner in region.nodes
        if inner.op in CHANNELS
    )


def in_loops(region: Region) -> dict[str, int]:
    """The channels of transfers in loops of a region, and how many bytes each hands over."""
    return {
        node.params["channel"]: sum(x.type.size * x.type.dtype.itemsize for x in values)
        for node, loops, _ in _with_loops(region.graph, 0, False)
        if loops and node.op in CHANNELS and node.params["channel"][0] in TRANSFERS
        for values in [node.inputs or node.results]
        if values
    }


def _with_loops(graph: Graph, loops: int, each_turn: bool) -> Iterator[tuple[Node, int, bool]]:
    """All nodes, with the number of loops around each, and whether each turn comes to it."""
    for node in graph.nodes:
        yield node, loops, each_turn
        is_loop = node.op == LOOP
        for region in node.regions:
            yield from _with_loops(
                region, loops + is_loop, is_loop or (each_turn and node.op != IF)
            )


def _site(graph: Graph, node: Node) -> Site | None:
    sites: Sequence[Site] = graph.sites
    return None if node.site == NO_SITE else sites[node.site]
