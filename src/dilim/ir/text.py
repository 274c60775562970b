"""Graphs as text that a person can read, and back.

::

    graph(%x: float32[2,3], %w: float32[3,4]) {
      %2: float32[2,4] = matmul(%x, %w)
      %3: float32[2] = sum[axis=(1,), keepdims=False](%2)
      return %3
    }

A value without a name, or with one that another value has, is written as its number. The text is
complete: graphs are the same when their texts are.
"""

from __future__ import annotations

import ast
import math
import re
from collections.abc import Iterator
from typing import Any, Final

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import DtypeError, GraphError
from dilim.ir.graph import Graph, Node, Value
from dilim.ir.types import Type

_NAME: Final = re.compile(r"[A-Za-z_]\w*")
_HEAD: Final = re.compile(r"graph\((.*)\) \{")
_VALUE: Final = re.compile(r"%(\w+): (\w+)\[((?:\d+(?:,\d+)*)?)\]")
_CALL: Final = re.compile(r"(\w+)(?:\[(.*)\])?\(([%\w, ]*)\)")
_NUMBERS: Final = {"inf": math.inf, "nan": math.nan}

# --- writing --------------------------------------------------------------------------------


def to_text(graph: Graph) -> str:
    """The text of a graph.

    Raises:
        GraphError: a parameter has a type that cannot be written.
    """
    names = _names(graph)

    def declared(values: tuple[Value, ...]) -> str:
        return ", ".join(f"{names[value]}: {value.type}" for value in values)

    def used(values: tuple[Value, ...]) -> str:
        return ", ".join(names.get(value, "%undefined") for value in values)

    lines = [f"graph({declared(graph.inputs)}) {{"]
    for node in graph.nodes:
        params = ", ".join(f"{key}={_literal(value)}" for key, value in node.params.items())
        call = f"{node.op}[{params}]" if params else node.op
        lines.append(f"  {declared(node.results)} = {call}({used(node.inputs)})")
    return "\n".join([*lines, f"  return {used(graph.outputs)}".rstrip(), "}"])


def _names(graph: Graph) -> dict[Value, str]:
    results = (value for node in graph.nodes for value in node.results)
    names: dict[Value, str] = {}
    taken: set[str] = set()
    for number, value in enumerate((*graph.inputs, *results)):
        usable = _NAME.fullmatch(value.name) is not None and value.name not in taken
        name = value.name if usable else str(number)
        taken.add(name)
        names[value] = f"%{name}"
    return names


def _literal(value: Any) -> str:
    if isinstance(value, DType):
        return value.name
    if isinstance(value, tuple):
        items = ", ".join(_literal(item) for item in value)
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
    lines = [line.strip() for line in text.strip().splitlines()]
    head = _HEAD.fullmatch(lines[0]) if lines else None
    if head is None or len(lines) < 3 or lines[-1] != "}":
        raise GraphError("graph text: expected 'graph(...) {', nodes, 'return ...' and '}'")
    values: dict[str, Value] = {}
    inputs = tuple(_declare(head[1], values, 1))
    nodes = tuple(_node(line, values, i) for i, line in enumerate(lines[1:-2], 2))
    last = len(lines) - 1
    if not lines[-2].startswith("return"):
        raise _unreadable(last, "'return' and values", lines[-2])
    return Graph(inputs, nodes, _use(lines[-2].removeprefix("return").strip(), values, last))


def _declare(text: str, values: dict[str, Value], line: int) -> Iterator[Value]:
    for part in text.split(", ") if text else ():
        match = _VALUE.fullmatch(part)
        if match is None or match[1] in values:
            raise _unreadable(line, "'%name: dtype[sizes]' with a new name", part)
        try:
            dtype = dtypes.as_dtype(match[2])
        except DtypeError as error:
            raise GraphError(f"graph text, line {line}: {error}") from error
        shape = tuple(int(size) for size in match[3].split(",") if size)
        name = "" if match[1].isdigit() else match[1]
        values[match[1]] = Value(Type(shape, dtype), name)
        yield values[match[1]]


def _use(text: str, values: dict[str, Value], line: int) -> tuple[Value, ...]:
    names = text.split(", ") if text else []
    for name in names:
        if not name.startswith("%") or name[1:] not in values:
            raise _unreadable(line, "a value that is made above", name)
    return tuple(values[name[1:]] for name in names)


def _node(text: str, values: dict[str, Value], line: int) -> Node:
    left, _, right = text.partition(" = ")
    call = _CALL.fullmatch(right)
    if call is None:
        raise _unreadable(line, "'%name: type = op[parameters](%inputs)'", text)
    inputs = _use(call[3], values, line)
    try:
        parsed = ast.parse(f"_({call[2] or ''})", mode="eval").body
        if not isinstance(parsed, ast.Call) or parsed.args:
            raise ValueError("expected name=value")
        params = {item.arg or "**": _read(item.value) for item in parsed.keywords}
    except (SyntaxError, ValueError, DtypeError) as error:
        raise _unreadable(line, f"parameters ({error})", call[2]) from error
    return Node(call[1], inputs, params, tuple(_declare(left, values, line)))


def _read(item: ast.expr) -> Any:
    if isinstance(item, ast.Tuple):
        return tuple(_read(element) for element in item.elts)
    if isinstance(item, ast.UnaryOp) and isinstance(item.op, ast.USub):
        return -_read(item.operand)
    if isinstance(item, ast.Name):
        return _NUMBERS[item.id] if item.id in _NUMBERS else dtypes.as_dtype(item.id)
    return ast.literal_eval(item)


def _unreadable(line: int, expected: str, received: str) -> GraphError:
    return GraphError(f"graph text, line {line}: expected {expected}, received {received!r}")
