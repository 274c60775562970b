"""Where values are handed over in a function, written as ``send(...)`` and ``receive()``."""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final

from dilim.slicing.actions import BIND, END, FRAGMENT, RECEIVE, TURN, WRITE
from dilim.slicing.findings import RESULT, Findings, Point
from dilim.slicing.rows import Pair, Row
from dilim.slicing.wording import Source, Span, rewritten, span, within

_SHOWN: Final = frozenset({FRAGMENT, RECEIVE, BIND, TURN, END, WRITE})
_RECEIVED: Final = "receive()"
_STATE: Final = "state"
"""How contents of tensors and attributes are called that are brought up to date for the host."""


@dataclass(slots=True)
class Exchange:
    """Points that are one in the source: a loop that is laid out flat has one for each turn.

    Attributes:
        letter: what they are for.
        names: of the values.
        channels: of the points.
        has_state: see `Point.has_state`.
        is_result: whether the result of the function is sent.
        is_hosted: whether the result of the function is known to the host only.
    """

    letter: str
    names: list[str] = field(default_factory=list)
    channels: tuple[str, ...] = ()
    has_state: bool = False
    is_result: bool = False
    is_hosted: bool = False

    def add(self, point: Point) -> None:
        """Take in one more point."""
        self.names += [name for name in point.names if name not in (*self.names, RESULT)]
        self.channels += (point.channel,)
        self.has_state |= point.has_state
        self.is_result |= RESULT in point.names
        self.is_hosted |= point.action.names.get(RESULT, "").startswith("F[")


@dataclass(slots=True)
class Sides:
    """A statement or expression being written for both programs.

    Attributes:
        before: rows before it.
        graph_parts: what stands for parts of it in the graph program.
        host_parts: what stands for parts of it in the host program.
        graph_channels: points of exchange inside it in the graph program.
        host_channels: points of exchange inside it in the host program.
    """

    before: Pair = field(default_factory=Pair)
    graph_parts: dict[Span, str] = field(default_factory=dict)
    host_parts: dict[Span, str] = field(default_factory=dict)
    graph_channels: tuple[str, ...] = ()
    host_channels: tuple[str, ...] = ()


def _is_inner(point: Point) -> bool:
    """Whether the host is only told of a part of an expression, for which it has no use."""
    names = point.names
    return point.letter == BIND and bool(names) and all(name.startswith("%") for name in names)


class Exchanges:
    """The points of exchange of one function, taken one by one as its statements are written.

    Attributes:
        known: names that the host is told of without being sent anything.
    """

    def __init__(self, findings: Findings, source: Source) -> None:
        self._source = source
        self._points = [
            point
            for point in findings.points
            if point.source is source and point.letter in _SHOWN and not _is_inner(point)
        ]
        self.known = {
            name
            for point in self._points
            if point.is_send
            for name in point.action.names
            if name not in point.names
        }

    # --- finding them -----------------------------------------------------------------------

    def rest(self) -> list[Exchange]:
        """All that are left."""
        return self._take(lambda point: True)

    def inside(self, where: Span, letters: str) -> list[Exchange]:
        """Take those for some purposes in a part of the source."""
        return self._take(lambda point: point.letter in letters and self._is_in(point, where))

    def has_send(self, where: Span) -> bool:
        """Whether values are sent in a part of the source."""
        return any(
            point.letter in (FRAGMENT, BIND, WRITE) and point.types and self._is_in(point, where)
            for point in self._points
        )

    def _take(self, belongs: Callable[[Point], bool]) -> list[Exchange]:
        taken = [point for point in self._points if belongs(point)]
        self._points = [point for point in self._points if point not in taken]
        found: dict[tuple[object, ...], Exchange] = {}
        for point in taken:
            names = [name for name in point.names if name != RESULT]
            key = (point.letter, *(point.action.statements[:1] or names))
            found.setdefault(key, Exchange(point.letter)).add(point)
        return list(found.values())

    def _is_in(self, point: Point, where: Span) -> bool:
        node: ast.AST | None = None
        if point.action.statements:
            node = self._source.node_of(point.action.statements[0])
        elif not point.is_send and point.names:
            node = self._source.maker(point.names[0])
        if node is None:
            return where[0] <= point.line[1] <= where[2]
        return within(span(node), where)

    # --- writing them -----------------------------------------------------------------------

    def statement(self, where: Span, depth: int) -> Sides:
        """Write the exchanges of a statement: before it, and in its parts."""
        sides = Sides()
        for exchange in self.inside(where, FRAGMENT + RECEIVE + BIND + WRITE):
            if exchange.letter == RECEIVE:
                self._receive(exchange, sides, where, depth)
            elif exchange.names or exchange.has_state:
                self._send(exchange, sides, where, depth)
        return sides

    def test(self, node: ast.expr, depth: int) -> Sides:
        """Write those of the head of an ``if`` or a loop: what is received stands inside it."""
        sides, where = Sides(), span(node)
        for exchange in self.inside(where, FRAGMENT + RECEIVE + BIND + WRITE):
            if exchange.letter != RECEIVE:
                if exchange.names or exchange.has_state:
                    self._send(exchange, sides, where, depth)
                continue
            maker = self._source.maker(exchange.names[0])
            places = [
                span(part)
                for part in ([maker] if maker is not None else ast.walk(node))
                if part is maker or (isinstance(part, ast.Name) and part.id in exchange.names)
            ]
            for place in places:
                if sides.graph_parts.get(place) != _RECEIVED:
                    text = rewritten(self._source, place, sides.host_parts)
                    sides.host_parts[place] = f"send({text})"
                    sides.graph_parts[place] = _RECEIVED
            sides.graph_channels += exchange.channels
            sides.host_channels += exchange.channels
        return sides

    def end(self, exchange: Exchange, depth: int, pair: Pair) -> None:
        """Write what the host is given at the end of the graph program, the result left out."""
        names = [self._source.label(name) for name in exchange.names]
        names += [_STATE] if exchange.has_state else []
        if names:
            text = ", ".join(names)
            pair.graph.append(Row(f"send({text})", depth, channels=exchange.channels))
            pair.host.append(Row(f"{text} = receive()", depth, channels=exchange.channels))

    def _send(self, exchange: Exchange, sides: Sides, where: Span, depth: int) -> None:
        sent: list[str] = []
        received: list[str] = []
        inline: list[Span] = []
        for name in exchange.names:
            maker = self._source.maker(name)
            if maker is None:
                sent.append(self._source.label(name))
                received.append(self._source.label(name))
                continue
            place = span(maker)
            sent.append(rewritten(self._source, place, sides.graph_parts))
            received.append(f"value{len(received)}" if "value" in received else "value")
            if within(place, where) and self._source.is_exact(maker):
                inline.append(place)
                sides.host_parts[place] = received[-1]
        if exchange.has_state:
            sent.append(_STATE)
            received.append(_STATE)
        sides.before.graph.append(
            Row(f"send({', '.join(sent)})", depth, channels=exchange.channels)
        )
        if len(received) == len(inline) == 1:
            sides.host_parts[inline[0]] = "receive()"
            sides.host_channels += exchange.channels
        else:
            text = f"{', '.join(received)} = receive()"
            sides.before.host.append(Row(text, depth, channels=exchange.channels))

    def _receive(self, exchange: Exchange, sides: Sides, where: Span, depth: int) -> None:
        name = exchange.names[0]
        maker = self._source.maker(name)
        row = Row("", depth, channels=exchange.channels)
        if maker is not None and within(span(maker), where) and self._source.is_exact(maker):
            text = rewritten(self._source, span(maker), sides.host_parts)
            sides.graph_parts[span(maker)] = "receive()"
            sides.graph_channels += exchange.channels
            if any(within(part, span(maker)) for part in sides.host_parts):
                row.channels += sides.host_channels
        else:
            text = self._source.label(name)
            given = text if text.isidentifier() else "value"
            sides.before.graph.append(
                Row(f"{given} = receive()", depth, channels=exchange.channels)
            )
        row.text = f"send({text})"
        sides.before.host.append(row)
