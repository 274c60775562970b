"""Graphs as text that a person can read, and back.

::

    graph(%n: int64[], %x: float32[3]; %w: float32[3]) {
      %3: float32[3] = read(%w)
      %4: float32[3] = multiply(%x, %3)
      %5: bool[] = all[axis=(0,), keepdims=False](%4)
      %6: float32[3] = if(%5) {
        %7: float32[3] = exp(%4)
        yield %7
      } else {
        yield %4
      }
      %8: float32[3] = loop(%n, %6) while (%9: int64[], %10: float32[3]) {
        ...
        yield %11
      } do (%12: int64[], %13: float32[3]) {
        ...
        yield %14
      }
      write(%w, %8)
      return %8
    }

Variables stand behind the semicolon. A value without a name, or with one that another value has,
is written as its number. The text is complete except for the places in the user's source: graphs
are the same when their texts are.
"""

from __future__ import annotations

import ast
import hashlib
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import DtypeError, GraphError
from dilim.ir.graph import Graph, Node, Value, Variable
from dilim.ir.structure import IF, LOOP
from dilim.ir.types import Type

_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_DECLARED: Final = r"[%\w:\[\], ]*"
_HEAD: Final = re.compile(rf"graph\(({_DECLARED})(?:; ({_DECLARED}))?\) \{{")
_VALUE: Final = re.compile(r"%(\w+): (\w+)\[((?:\d+(?:,\d+)*)?)\]")
_REGION: Final = rf"(?: \w+)?(?: \(({_DECLARED})\))? \{{"
_CALL: Final = re.compile(rf"(\w+)(?:\[(.*)\])?\(([%\w, ]*)\)(?:({_REGION}))?")
_NEXT: Final = re.compile(rf"\}}{_REGION}")
_NUMBERS: Final = {"inf": math.inf, "nan": math.nan}
_WORDS: Final = {(IF, 2): ("", "else"), (LOOP, 2): ("while", "do")}
"""What is written before each region of a node, by operation and number of regions."""

# --- writing --------------------------------------------------------------------------------


def to_text(graph: Graph) -> str:
    """The text of a graph.

    Raises:
        GraphError: a parameter has a type that cannot be written.
    """
    return _Writer(value_names(graph)).graph(graph)


def digest(graph: Graph) -> str:
    """A fingerprint of what a graph means, as 64 hexadecimal digits (SHA-256).

    Graphs with the same digest have the same inputs, variables, operations and outputs, whatever
    their values are named and whichever lines of source they come from.
    """
    numbers = {value: f"%{number}" for number, value in enumerate(_defined(graph))}
    return hashlib.sha256(_Writer(numbers).graph(graph).encode()).hexdigest()


def value_names(graph: Graph) -> dict[Value, str]:
    """The name of every value as `to_text` writes it: ``%x``, or ``%7`` for one without a name."""
    names: dict[Value, str] = {}
    taken: set[str] = set()
    for number, value in enumerate(_defined(graph)):
        name = value.name
        if not name or name in taken or _NAME.fullmatch(name) is None:
            name = str(number)
        taken.add(name)
        names[value] = f"%{name}"
    return names


def head_text(node: Node, names: Mapping[Value, str]) -> str:
    """The line of a node in the text of a graph whose values have these names, without regions."""
    return _Writer(names).head(node)


def _defined(graph: Graph) -> Iterator[Value]:
    """Every value, in the order in which the text declares them."""
    yield from graph.inputs
    yield from graph.variables
    for node in graph.nodes:
        yield from node.results
        for region in node.regions:
            yield from _defined(region)


class _Writer:
    """Writes graphs whose values have these names."""

    def __init__(self, names: Mapping[Value, str]) -> None:
        self._names = names
        self._types: dict[Type, str] = {}
        self._lines: list[str] = []

    def graph(self, graph: Graph) -> str:
        """All of it."""
        variables = f"; {self._declared(graph.variables)}" if graph.variables else ""
        self._lines.append(f"graph({self._declared(graph.inputs)}{variables}) {{")
        self._body(graph, "  ", "return")
        self._lines.append("}")
        return "\n".join(self._lines)

    def _body(self, graph: Graph, indent: str, last: str) -> None:
        for node in graph.nodes:
            self._node(node, indent)
        outputs = self._used(graph.outputs)
        self._lines.append(f"{indent}{last} {outputs}" if outputs else f"{indent}{last}")

    def head(self, node: Node) -> str:
        """A node without its regions."""
        call = node.op
        if node.params:
            params = ", ".join(f"{key}={literal(value)}" for key, value in node.params.items())
            call = f"{call}[{params}]"
        results = f"{self._declared(node.results)} = " if node.results else ""
        return f"{results}{call}({self._used(node.inputs)})"

    def _node(self, node: Node, indent: str) -> None:
        line = indent + self.head(node)
        words = _WORDS.get((node.op, len(node.regions)), ("",) * len(node.regions))
        for word, region in zip(words, node.regions, strict=True):
            inputs = f"({self._declared(region.inputs)})" if region.inputs else ""
            self._lines.append(" ".join(part for part in (line, word, inputs, "{") if part))
            self._body(region, indent + "  ", "yield")
            line = f"{indent}}}"
        self._lines.append(line)

    def _declared(self, values: Sequence[Value]) -> str:
        return ", ".join(f"{self._names[x]}: {self._type(x.type)}" for x in values)

    def _type(self, type_: Type) -> str:
        text = self._types.get(type_)
        if text is None:
            text = self._types[type_] = str(type_)
        return text

    def _used(self, values: Sequence[Value]) -> str:
        return ", ".join([self._names.get(value, "%undefined") for value in values])


def literal(value: Any) -> str:
    """A parameter as it is written in the text of a graph."""
    if isinstance(value, DType):
        return value.name
    if isinstance(value, tuple):
        items = ", ".join([literal(item) for item in value])
        return f"({items},)" if len(value) == 1 else f"({items})"
    if value is None or type(value) in (bool, int, float, str):
        return repr(value)
    raise GraphError(
        f"graph text: expected parameters made of numbers, strings, dtypes, None and tuples, "
        f"received {type(value).__name__} {value!r:.60}"
    )


# --- reading --------------------------------------------------------------------------------


def from_text(text: str) -> Graph:
    """The graph that `to_text` wrote.

    Raises:
        GraphError: a line is not of that form; it is shown.
    """
    return _Reader(text).graph()


class _Reader:
    """Reads one graph, line by line."""

    def __init__(self, text: str) -> None:
        self._lines = [line.strip() for line in text.strip().splitlines()]
        self._line = 0

    def graph(self) -> Graph:
        """All of it."""
        text = self._next()
        head = _HEAD.fullmatch(text)
        if head is None:
            raise self._error("'graph(%name: dtype[sizes], ...) {'", text)
        inputs = self._declared(head[1], {})
        variables = {
            name: Variable(value.type, value.name)
            for name, value in self._declared(head[2] or "", inputs).items()
        }
        nodes, outputs = self._body(inputs | variables, "return")
        text = self._next()
        if text != "}" or self._line < len(self._lines):
            raise self._error("'}' and the end", text)
        return Graph(tuple(inputs.values()), nodes, outputs, tuple(variables.values()))

    def _next(self) -> str:
        self._line += 1
        return self._lines[self._line - 1] if self._line <= len(self._lines) else ""

    def _error(self, expected: str, received: str) -> GraphError:
        return GraphError(
            f"graph text, line {self._line}: expected {expected}, received {received!r}"
        )

    def _body(
        self, values: dict[str, Value], last: str
    ) -> tuple[tuple[Node, ...], tuple[Value, ...]]:
        nodes: list[Node] = []
        while True:
            text = self._next()
            if text == last or text.startswith(f"{last} "):
                return tuple(nodes), self._use(text.removeprefix(last).strip(), values)
            if not text or text.startswith("}"):
                raise self._error(f"'{last}' and values", text)
            nodes.append(self._node(text, values))

    def _node(self, text: str, values: dict[str, Value]) -> Node:
        left, _, right = text.partition(" = ") if text.startswith("%") else ("", "", text)
        call = _CALL.fullmatch(right)
        if call is None:
            raise self._error("'%name: type = op[parameters](%inputs)'", text)
        inputs = self._use(call[3], values)
        params = self._params(call[2] or "")
        results = self._declared(left, values)
        regions = self._regions(call[5] or "", values) if call[4] else ()
        values.update(results)
        return Node(call[1], inputs, params, tuple(results.values()), regions)

    def _regions(self, inputs: str, values: dict[str, Value]) -> tuple[Graph, ...]:
        """The regions of a node, the head of the first being read; ends behind the last '}'."""
        regions = []
        while True:
            given = self._declared(inputs, values)
            body = self._body(values | given, "yield")
            regions.append(Graph(tuple(given.values()), *body))
            text = self._next()
            if text == "}":
                return tuple(regions)
            following = _NEXT.fullmatch(text)
            if following is None:
                raise self._error("'}' or '} word (%inputs) {'", text)
            inputs = following[1] or ""

    def _declared(self, text: str, known: dict[str, Value]) -> dict[str, Value]:
        """New values, by the names that they have in the text."""
        found: dict[str, Value] = {}
        for part in text.split(", ") if text else ():
            match = _VALUE.fullmatch(part)
            if match is None or match[1] in known or match[1] in found:
                raise self._error("'%name: dtype[sizes]' with a new name", part)
            try:
                dtype = dtypes.as_dtype(match[2])
            except DtypeError as error:
                raise GraphError(f"graph text, line {self._line}: {error}") from error
            shape = tuple(int(size) for size in match[3].split(",") if size)
            found[match[1]] = Value(Type(shape, dtype), "" if match[1].isdigit() else match[1])
        return found

    def _use(self, text: str, values: dict[str, Value]) -> tuple[Value, ...]:
        names = text.split(", ") if text else []
        for name in names:
            if not name.startswith("%") or name[1:] not in values:
                raise self._error("a value that is made above", name)
        return tuple(values[name[1:]] for name in names)

    def _params(self, text: str) -> dict[str, Any]:
        if not text:
            return {}
        try:
            parsed = ast.parse(f"_({text})", mode="eval").body
            if not isinstance(parsed, ast.Call) or parsed.args:
                raise ValueError("expected name=value")
            return {item.arg or "**": _read(item.value) for item in parsed.keywords}
        except (SyntaxError, ValueError, DtypeError) as error:
            raise self._error(f"parameters ({error})", text) from error


def _read(item: ast.expr) -> Any:
    if isinstance(item, ast.Tuple):
        return tuple(_read(element) for element in item.elts)
    if isinstance(item, ast.UnaryOp) and isinstance(item.op, ast.USub):
        return -_read(item.operand)
    if isinstance(item, ast.Name):
        return _NUMBERS[item.id] if item.id in _NUMBERS else dtypes.as_dtype(item.id)
    return ast.literal_eval(item)
