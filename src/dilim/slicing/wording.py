"""The text of a user's function: what is said about a program is said in its own words."""

from __future__ import annotations

import ast
import copy
import linecache
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias

from dilim.slicing.program import Function, Statement, Step, Unit
from dilim.slicing.scopes import inner_blocks

Span: TypeAlias = tuple[int, int, int, int]
"""First line, its column, last line, its column; columns count UTF-8 bytes, as in `ast`."""
_LONGEST: Final = 60  # characters of a quotation


class Source:
    """The source of one function.

    Attributes:
        code: its normal form.
        node: its syntax, None if it cannot be found any more.
        body: its statements; the docstring left out. A lambda has one, a return.
    """

    def __init__(self, code: Function) -> None:
        self.code = code
        lines, first = code.lines
        self._lines = [line.encode() for line in lines]
        self._first = first
        self.node = _parsed(code)
        self.body: list[ast.stmt] = []
        if isinstance(self.node, ast.Lambda):
            value = self.node.body
            self.body = [ast.copy_location(ast.Return(value), value)]
        elif self.node is not None:
            self.body = self.node.body[ast.get_docstring(self.node, clean=False) is not None :]
        self._nodes: dict[Span, ast.AST] = {}
        self._calls: dict[tuple[int, int], ast.AST] = {}
        for statement in self.body:
            for node in ast.walk(statement):
                if hasattr(node, "lineno"):
                    where = span(node)
                    self._nodes.setdefault(where, node)
                    if isinstance(node, ast.Call):
                        self._calls.setdefault(where[2:], node)
        self._makers: dict[str, Statement] = {}
        for made in statements(code.body):
            for name in getattr(made, "writes", ()):
                self._makers.setdefault(name, made)

    # --- text -----------------------------------------------------------------------------

    def text(self, where: Span, replaced: Iterable[tuple[Span, str]] = ()) -> str:
        """The source between two places.

        Args:
            where: from where to where.
            replaced: parts of it, none inside another, with what stands for them.
        """
        line, column, last_line, last = where
        parts = []
        for (from_line, from_column, to_line, to_column), text in sorted(replaced):
            parts += [self._raw(line, column, from_line, from_column), text]
            line, column = to_line, to_column
        parts.append(self._raw(line, column, last_line, last))
        return "".join(parts)

    def _raw(self, line: int, column: int, last_line: int, last: int) -> str:
        if line == last_line:
            return self._line(line)[column:last].decode()
        rows = [self._line(line)[column:]]
        rows += [self._line(k) for k in range(line + 1, last_line)]
        rows.append(self._line(last_line)[:last])
        return b"".join(rows).decode()

    def _line(self, line: int) -> bytes:
        position = line - self._first
        return self._lines[position] if 0 <= position < len(self._lines) else b""

    def head(self) -> str:
        """The line with ``def``; annotations are left out."""
        if self.node is None:
            return "def unknown(*_):"
        parameters = copy.deepcopy(self.node.args)
        for parameter in ast.walk(parameters):
            if isinstance(parameter, ast.arg):
                parameter.annotation = None
        return f"def {getattr(self.node, 'name', 'lambda_')}({ast.unparse(parameters)}):"

    def place(self) -> str:
        """File and line of the function; the file as seen from the working directory."""
        line = self.code.lines[1] if self.node is None else self.node.lineno
        return f"{short_path(self.code.filename)}:{line}"

    def is_exact(self, node: ast.AST) -> bool:
        """Whether the place of an expression is right; in formatted strings it may not be."""
        try:
            again = ast.parse(f"({self.text(span(node))}\n)", mode="eval").body
        except SyntaxError:
            return False
        return ast.dump(again) == ast.dump(node)

    def quote(self, node: ast.AST) -> str:
        """A part of the source on one line, cut where it is long."""
        text = " ".join(self.text(span(node)).split())
        return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 3]}..."

    # --- steps ----------------------------------------------------------------------------

    def node_of(self, statement: Statement) -> ast.AST | None:
        """The user's syntax that a statement of the normal form comes from."""
        at = statement.node if isinstance(statement, Step | Unit) else statement.at
        if at is None:
            return None
        where = span(at)
        return self._nodes.get(where) or self._calls.get(where[2:])

    def maker(self, name: str) -> ast.AST | None:
        """The expression whose value has a name that the slicer made; None for the user's names."""
        made = self._makers.get(name) if name.startswith("%") else None
        return None if made is None else self.node_of(made)

    def label(self, name: str) -> str:
        """What the user knows a value as: its name, or the expression that gives it."""
        node = self.maker(name)
        if node is not None:
            return self.quote(node)
        return name.strip("%0123456789") or "value" if name.startswith("%") else name

    def statement_around(self, where: Span) -> Span:
        """The innermost part around a place that is a statement, or the head of one with a body."""
        found = where
        for statement in self.body:
            for node in ast.walk(statement):
                if isinstance(node, ast.stmt) and within(where, span(node)):
                    heads = [x for x in ast.iter_child_nodes(node) if isinstance(x, ast.expr)]
                    parts = heads if hasattr(node, "body") else [node]
                    found = next((span(x) for x in parts if within(where, span(x))), found)
        return found

    def outermost(self, some: Iterable[Statement]) -> list[ast.AST]:
        """The parts of the source that statements come from, those inside others left out."""
        found = {span(node): node for node in map(self.node_of, some) if node is not None}
        return [
            node
            for where, node in sorted(found.items())
            if not any(other != where and within(where, other) for other in found)
        ]


def rewritten(
    source: Source,
    where: Span,
    parts: Mapping[Span, str] = MappingProxyType({}),
    *,
    one_line: bool = False,
) -> str:
    """A part of the source with other text for parts of it, without its indentation.

    Args:
        source: the function.
        where: the part; an expression if it has to be on one line.
        parts: what is replaced; parts of other parts are left out.
        one_line: whether line breaks are taken out.
    """
    inner = {place: text for place, text in parts.items() if within(place, where)}
    outer = [
        (place, text)
        for place, text in inner.items()
        if not any(place != other and within(place, other) for other in inner)
    ]
    first, *rest = source.text(where, outer).split("\n")
    if rest and one_line:
        return ast.unparse(ast.parse("\n".join(["(", first, *rest, ")"])))
    return "\n".join(
        [first, *(line[min(where[1], len(line) - len(line.lstrip())) :] for line in rest)]
    )


def short_path(file: str) -> str:
    """A file as seen from the working directory, if it is in there."""
    path = Path(file)
    folder = Path.cwd()
    return str(path.relative_to(folder)) if path.is_relative_to(folder) else file


def span(node: ast.AST) -> Span:
    """Where a node stands."""
    return node.lineno, node.col_offset, node.end_lineno, node.end_col_offset  # type: ignore[attr-defined]


def within(inner: Span, outer: Span) -> bool:
    """Whether one part of a file lies in another, or is the same."""
    return outer[:2] <= inner[:2] and inner[2:] <= outer[2:]


def statements(block: Iterable[Statement]) -> Iterator[Statement]:
    """All statements of a block, those inside others included."""
    for statement in block:
        yield statement
        for inner in inner_blocks(statement):
            yield from statements(inner)


_FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda


def _parsed(code: Function) -> _FunctionNode | None:
    """The syntax of a function, with the places of the user's file."""
    lines, first = code.lines
    is_lambda = code.name == "<lambda>"
    if is_lambda:  # its lines need not be whole statements
        text = "".join(linecache.getlines(code.filename))
        shift = 0
    else:
        indented = lines[0][:1].isspace()
        text = ("if 1:\n" if indented else "") + "".join(lines)
        shift = first - 1 - indented
    try:
        tree = ast.parse(text)
    except SyntaxError:  # the file has changed
        return None
    ast.increment_lineno(tree, shift)
    for node in ast.walk(tree):
        if isinstance(node, _FunctionNode) and isinstance(node, ast.Lambda) == is_lambda:
            decorators: list[ast.expr] = getattr(node, "decorator_list", [])
            if min(place.lineno for place in [node, *decorators]) == first:
                return node
    return None
