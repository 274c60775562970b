"""Writes a function of the user as the two programs that it became.

Each statement of the user is shown on both sides: as it stands where its work is done, and as a
comment on the other side. Where values are handed over, ``send(...)`` and ``receive()`` stand for
what only the other side knows.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dilim.slicing.actions import END, TURN
from dilim.slicing.exchanges import Exchanges, Sides
from dilim.slicing.findings import Findings
from dilim.slicing.rows import FLOW, Listing, Pair, Row, fill, graph_of, has_code, host_of, note
from dilim.slicing.wording import Source, Span, rewritten, span, statements, within

_DECIDED: Final = "  # the graph decides"


@dataclass(slots=True)
class _Part:
    """A head with its block.

    Attributes:
        graph: the head in the graph program.
        host: the head in the host program.
        plain: the head as the user wrote it.
        pairs: the block.
    """

    graph: Row
    host: Row
    plain: str
    pairs: list[Pair]


class Writer:
    """Writes one function.

    Args:
        findings: what is known about the region.
        source: the function.
        is_main: whether it is the one that was compiled.
    """

    def __init__(self, findings: Findings, source: Source, is_main: bool) -> None:
        self._findings = findings
        self._source = source
        self._is_main = is_main
        self._exchanges = Exchanges(findings, source)
        self._hosted = [span(node) for node in source.outermost(findings.hosted(source))]
        self._loop = _loop_of(findings) if is_main else None
        self._all = _spans(source, statements(source.code.body))
        self._reached = _spans(source, findings.region.notes.reached.get(source.code, ()))

    def listing(self) -> Listing:
        """The function in both programs."""
        code, source = self._source.code, self._source
        pairs = self._body(source.body, 1)
        if self._is_main and self._loop is None:
            pairs = [_start(1), *pairs, self._end(1)]
        in_graph, on_host = has_code(graph_of(pairs)), has_code(host_of(pairs))
        fill(pairs, 1)
        head = source.head()
        pairs.insert(0, Pair([Row(head, 0)], [Row(head, 0)]))
        main = self._is_main
        return Listing(code.name, source.place(), pairs, in_graph or main, on_host or main)

    # --- statements -------------------------------------------------------------------------

    def _body(self, body: Sequence[ast.stmt], depth: int) -> list[Pair]:
        return [pair for statement in body for pair in self._statement(statement, depth)]

    def _statement(self, statement: ast.stmt, depth: int) -> list[Pair]:
        where = span(statement)
        text = rewritten(self._source, where)
        if self._loop == where:
            pairs = self._compound(statement, depth) or [self._simple(statement, depth)]
            return [_start(depth), *pairs, self._end(depth)]
        if self._is_outside(where):
            return [Pair([], [Row(text, depth)])]
        if not self._is_reached(statement):
            return [Pair([note("not reached", text, depth)], [])]
        if self._is_hosted(where):
            return [self._simple(statement, depth)]
        return self._compound(statement, depth) or [self._simple(statement, depth)]

    def _compound(self, statement: ast.stmt, depth: int) -> list[Pair]:
        """Statements of which more is known; nothing for others."""
        match statement:
            case ast.If():
                return self._if(statement, depth)
            case ast.While():
                return self._while(statement, depth)
            case ast.For():
                return self._for(statement, depth)
            case ast.With():
                return self._with(statement, depth)
            case ast.Return():
                return [self._return(statement, depth)]
            case ast.Pass() | ast.Break() | ast.Continue() | ast.Global() | ast.Nonlocal():
                text = rewritten(self._source, span(statement))
                return [Pair([Row(text, depth)], [Row(text, depth, FLOW)])]
        return []

    def _end(self, depth: int) -> Pair:
        """What is handed over at the end of the graph program."""
        pair = Pair()
        for exchange in self._exchanges.rest():
            self._exchanges.end(exchange, depth, pair)
        return pair

    def _is_outside(self, where: Span) -> bool:
        """Whether a statement is not in the loop that was compiled, nor around it."""
        loop = self._loop
        return loop is not None and not within(where, loop) and not within(loop, where)

    def _is_reached(self, statement: ast.stmt) -> bool:
        where = span(statement)
        if any(within(reached, where) for reached in self._reached):
            return True
        return not any(within(other, where) for other in self._all)

    def _is_hosted(self, where: Span) -> bool:
        return any(within(where, hosted) for hosted in self._hosted)

    def _simple(self, statement: ast.stmt, depth: int) -> Pair:
        """A statement without blocks, or one that the host runs as a whole."""
        where = span(statement)
        sides = self._exchanges.statement(where, depth)
        pair = sides.before
        main = _main_parts(statement)
        if isinstance(statement, ast.Assert) and self._decided(statement):
            pair.graph.append(self._graph_row(where, sides, depth))
            row = self._host_row(where, sides, depth)
            row.text += _DECIDED
            pair.host.append(row)
            return pair
        if any(self._is_hosted(span(part)) for part in main):
            if sides.graph_channels:  # a condition inside it that the graph has to know
                pair.graph.append(Row("receive()", depth, channels=sides.graph_channels))
            pair.graph.append(note("host", rewritten(self._source, where), depth))
            pair.host.append(self._host_row(where, sides, depth))
            return pair
        choices = self._choices(statement)
        if choices:
            is_hosted = all(map(self._is_hosted, choices))
            text = rewritten(self._source, where)
            graph = note("host", text, depth) if is_hosted else self._graph_row(where, sides, depth)
            pair.graph.append(graph)
            pair.host.append(self._host_row(where, sides, depth))
            pair.host[-1].text += "" if sides.host_channels else self._decided(statement)
            return pair
        pair.graph.append(self._graph_row(where, sides, depth))
        parts = self._host_parts(where, sides, depth)
        pair.host += parts
        if not parts and self._is_on_host_too(statement):
            pair.host.append(self._host_row(where, sides, depth))
        else:
            pair.host.append(note("graph", rewritten(self._source, where), depth))
        return pair

    def _graph_row(self, where: Span, sides: Sides, depth: int, before: str = "") -> Row:
        text = before + rewritten(self._source, where, sides.graph_parts)
        return Row(text, depth, channels=sides.graph_channels)

    def _host_row(self, where: Span, sides: Sides, depth: int, before: str = "") -> Row:
        text = before + rewritten(self._source, where, sides.host_parts)
        return Row(text, depth, channels=sides.host_channels)

    def _host_parts(self, where: Span, sides: Sides, depth: int) -> list[Row]:
        """Host parts of a statement of the graph whose value nobody receives."""
        return [
            self._host_row(hosted, sides, depth)
            for hosted in self._hosted
            if within(hosted, where)
            and not any(within(hosted, part) or within(part, hosted) for part in sides.graph_parts)
        ]

    def _choices(self, statement: ast.stmt) -> list[Span]:
        """The sides of an expression that chooses, if the host has to do something for one."""
        for node in ast.walk(statement):
            if isinstance(node, ast.IfExp):
                sides = [span(node.body), span(node.orelse)]
                if any(within(hosted, side) for hosted in self._hosted for side in sides):
                    return sides
        return []

    def _is_on_host_too(self, statement: ast.stmt) -> bool:
        """Whether the host does something for a statement of the graph, or knows what it binds."""
        file, where = self._source.code.filename, span(statement)
        lines = [(file, line) for line in range(where[0], where[2] + 1)]
        if any(line in self._findings.calls for line in lines):
            return True
        if any(line in self._findings.graph for line in lines):
            return False
        known = self._exchanges.known
        return any(
            isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store) and node.id in known
            for node in ast.walk(statement)
        )

    def _return(self, statement: ast.Return, depth: int) -> Pair:
        where = span(statement)
        word = "return " if isinstance(self._source.node, ast.Lambda) else ""
        plain = word + rewritten(self._source, where)
        sides = self._exchanges.statement(where, depth)
        ends = self._exchanges.inside(where, END)
        pair = sides.before
        for end in ends:
            self._exchanges.end(end, depth, pair)
        main = where if statement.value is None else span(statement.value)
        channels = tuple(channel for end in ends if end.is_result for channel in end.channels)
        if not channels and (self._is_hosted(main) or any(end.is_hosted for end in ends)):
            if sides.graph_channels:
                pair.graph.append(Row("receive()", depth, channels=sides.graph_channels))
            pair.graph.append(note("host", plain, depth))
            pair.host.append(self._host_row(where, sides, depth, word))
            return pair
        row = self._graph_row(where, sides, depth, word)
        row.channels += channels
        pair.graph.append(row)
        pair.host += self._host_parts(where, sides, depth)
        if channels:
            pair.host.append(Row("return receive()", depth, channels=channels))
        elif self._is_main:
            pair.host.append(self._host_row(where, sides, depth, word))
        else:
            pair.host.append(note("graph", plain, depth))
        return pair

    # --- control flow -----------------------------------------------------------------------

    def _if(self, statement: ast.If, depth: int) -> list[Pair]:
        sides = self._exchanges.test(statement.test, depth)
        parts = [self._part("if", statement.test, sides, statement.body, depth)]
        rest = statement.orelse
        while rest:
            inner = rest[0]
            if isinstance(inner, ast.If) and self._is_elif(inner):
                others = self._exchanges.test(inner.test, depth)
                parts.append(self._part("elif", inner.test, others, inner.body, depth))
                rest = inner.orelse
            else:
                parts.append(self._else(rest, depth))
                rest = []
        return self._joined(statement, sides.before, parts, depth)

    def _is_elif(self, statement: ast.If) -> bool:
        """Whether it was written as elif, and can be: nothing is sent before it."""
        return (
            self._source.text(span(statement)).startswith("elif")
            and self._is_reached(statement)
            and not self._exchanges.has_send(span(statement.test))
        )

    def _part(
        self, word: str, test: ast.expr, sides: Sides, body: Sequence[ast.stmt], depth: int
    ) -> _Part:
        where = span(test)
        graph, host = (
            f"{word} {rewritten(self._source, where, parts, one_line=True)}:"
            for parts in (sides.graph_parts, sides.host_parts)
        )
        comment = "" if sides.host_channels else self._decided(test)
        return _Part(
            Row(graph, depth, channels=sides.graph_channels),
            Row(host + comment, depth, channels=sides.host_channels),
            f"{word} {rewritten(self._source, where, one_line=True)}:",
            self._body(body, depth + 1),
        )

    def _decided(self, head: ast.AST) -> str:
        line = self._source.code.filename, span(head)[0]
        return _DECIDED if line in self._findings.graph else ""

    def _else(self, body: Sequence[ast.stmt], depth: int) -> _Part:
        pairs = self._body(body, depth + 1)
        return _Part(Row("else:", depth), Row("else:", depth), "else:", pairs)

    def _joined(
        self, statement: ast.stmt, before: Pair, parts: Sequence[_Part], depth: int
    ) -> list[Pair]:
        """Blocks under their heads; a comment on the side of the host if it has nothing to do."""
        where = span(statement)
        shown = (
            (self._loop is not None and where != self._loop and within(self._loop, where))
            or has_code(before.host)
            or any(part.host.channels for part in parts)
            or any(has_code(host_of(part.pairs)) for part in parts)
        )
        pairs = [before]
        for part in parts:
            host = part.host if shown else note("graph", part.plain, depth)
            pairs.append(Pair([part.graph], [host]))
            fill(part.pairs, depth + 1, shown)
            pairs += part.pairs
        return pairs

    def _while(self, statement: ast.While, depth: int) -> list[Pair]:
        sides = self._exchanges.test(statement.test, depth + 1)
        part = self._part("while", statement.test, sides, statement.body, depth)
        first = sides.before
        for rows, head in ((first.graph, part.graph), (first.host, part.host)):
            if rows:  # what is handed over is so in each turn
                test = head.text.removeprefix("while ").partition("  #")[0].removesuffix(":")
                test = test if test == "receive()" else f"({test})"
                rows.append(Row(f"if not {test}:\n    break", depth + 1, channels=head.channels))
                head.text, head.channels = "while True:", ()
        part.pairs.insert(0, first)
        parts = [part, self._else(statement.orelse, depth)] if statement.orelse else [part]
        return self._joined(statement, Pair(), parts, depth)

    def _for(self, statement: ast.For, depth: int) -> list[Pair]:
        source, items = self._source, span(statement.iter)
        turns = self._exchanges.inside((statement.lineno, 0, items[2], items[3]), TURN)
        sides = self._exchanges.statement(items, depth)
        target = rewritten(source, span(statement.target), one_line=True)
        graph, host, plain = (
            f"for {target} in {rewritten(source, items, parts, one_line=True)}:"
            for parts in (sides.graph_parts, sides.host_parts, {})
        )
        pairs = self._body(statement.body, depth + 1)
        channels = tuple(channel for turn in turns for channel in turn.channels)
        after: list[Pair] = []
        if channels:
            graph = f"while receive():  # {plain.removesuffix(':')}"
            pairs.insert(0, Pair([], [Row("send(True)", depth + 1, channels=channels)]))
            after = [Pair([], [Row("send(False)", depth)])]
        part = _Part(
            Row(graph, depth, channels=sides.graph_channels + channels),
            Row(
                host + ("" if channels else self._decided(statement)),
                depth,
                channels=sides.host_channels,
            ),
            plain,
            pairs,
        )
        parts = [part, self._else(statement.orelse, depth)] if statement.orelse else [part]
        return self._joined(statement, sides.before, parts, depth) + after

    def _with(self, statement: ast.With, depth: int) -> list[Pair]:
        items = statement.items
        before = self._exchanges.statement(
            (*span(items[0].context_expr)[:2], *span(items[-1].context_expr)[2:]), depth
        ).before
        head = f"with {', '.join(map(ast.unparse, items))}:"
        part = _Part(
            Row(head, depth), Row(head, depth), head, self._body(statement.body, depth + 1)
        )
        return self._joined(statement, before, [part], depth)


def _main_parts(statement: ast.stmt) -> list[ast.AST]:
    """The parts of a statement of which one is on the host if what it does is done there."""
    match statement:
        case ast.Assign(targets=targets, value=value):
            places: list[ast.expr] = [part for part in targets if not isinstance(part, ast.Name)]
            return [value, *places]
        case ast.AnnAssign(value=ast.expr() as value):
            return [statement, value]
        case ast.Expr(value=value):
            return [value]
    return [statement]


def _start(depth: int) -> Pair:
    return Pair([], [Row("start_graph()", depth)])


def _loop_of(findings: Findings) -> Span | None:
    """Where the loop stands that a region is; None for one that is a function."""
    if findings.region.after is None:
        return None
    node = findings.sources[0].node_of(findings.region.code.body[0])
    return None if node is None else span(node)


def _spans(source: Source, some: Iterable[object]) -> list[Span]:
    nodes = map(source.node_of, some)  # type: ignore[arg-type]
    return [span(node) for node in nodes if node is not None]
