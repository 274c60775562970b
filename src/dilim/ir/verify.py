"""Checks that a graph is well formed: each value made once, before its use, of its true type.

The rules of the structural operations are those of `dilim.ir.structure`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, Protocol

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import GraphError
from dilim.ir.graph import NO_SITE, Graph, Node, Value, Variable
from dilim.ir.plan import bytes_of
from dilim.ir.structure import FUSED, IF, LOOP, READ, RECEIVE, SEND, STRUCTURAL, WRITE
from dilim.ir.types import Type
from dilim.shapes import Shape

_CONDITION: Final = Type((), dtypes.bool_)
_COUNT: Final = Type((), dtypes.INDEX)
_PERMISSIONS: Final = {
    READ: ("copy",),
    WRITE: ("in_place",),
    IF: ("in_place",),
    LOOP: ("in_place", "reuse"),
    FUSED: ("alias",),
}
_REGION_NAMES: Final = {
    (IF, 2): ("then", "else"),
    (LOOP, 1): ("body",),
    (LOOP, 2): ("condition", "body"),
    (FUSED, 1): ("body",),
}
"""Operations that have regions, with how many and what they are called."""


class Operation(Protocol):
    """What the verifier has to know of an operation: its shape and dtype rule."""

    @property
    def infer(self) -> Callable[..., tuple[Shape, DType]]:
        """``infer(*inputs, **params) -> (shape, dtype)``; raises where it does not apply."""


def verify(graph: Graph, operations: Mapping[str, Operation]) -> None:
    """Raise a GraphError at the first fault of a graph.

    Args:
        graph: what to look at.
        operations: name -> operation, for example ``dilim.ops.table.OPERATIONS``.

    Raises:
        GraphError: a value is made twice, or used before it is made or where it cannot be seen; a
            variable is used as a value; an operation is unknown or refuses its inputs; a result
            or a region has another type than its operation gives. The message starts with the
            way to the node: ``graph: node 3 (loop), body, node 0 (exp): ...``.
    """
    _Verifier(operations, len(graph.sites)).program(graph)


class _Verifier:
    """A walk over a graph that knows what is made and what can be seen."""

    def __init__(self, operations: Mapping[str, Operation], site_count: int) -> None:
        self._operations = operations
        self._site_count = site_count
        self._made: set[Value] = set()
        self._visible: set[Value] = set()
        self._variables: set[Value] = set()

    def program(self, graph: Graph) -> None:
        """Check the outermost graph."""
        for position, variable in enumerate(graph.variables):
            if not isinstance(variable, Variable):
                raise GraphError(f"graph: variable {position} is a plain value, not a Variable")
            if variable in self._variables:
                raise GraphError(f"graph: variable {position} is declared twice")
            self._variables.add(variable)
        self._body("graph", graph)

    def _body(self, where: str, graph: Graph) -> list[Value]:
        """Check inputs, nodes and outputs; the values made, which stay visible."""
        made: list[Value] = []
        for position, value in enumerate(graph.inputs):
            if isinstance(value, Variable):
                raise GraphError(f"{where}: input {position} is a variable; list it as one")
            if value in self._made:
                raise GraphError(
                    f"{where}: input {position} is the same value as an earlier input or result"
                )
            self._make(value, made)
        separator = ": " if where == "graph" else ", "
        for number, node in enumerate(graph.nodes):
            path = f"{where}{separator}node {number} ({node.op})"
            self._node(path, node)
            for result in node.results:
                if result in self._made:
                    raise GraphError(
                        f"{path}: its result was made before, but is assigned once only"
                    )
                self._make(result, made)
        for position, value in enumerate(graph.outputs):
            self._use(f"{where}: output {position}", value)
        return made

    def _make(self, value: Value, made: list[Value]) -> None:
        self._made.add(value)
        self._visible.add(value)
        made.append(value)

    def _use(self, what: str, value: Value) -> None:
        if value in self._visible:
            return
        if isinstance(value, Variable):
            raise GraphError(
                f"{what} is the variable {value.name!r}; only read and write take one, first"
            )
        if value in self._made:
            raise GraphError(
                f"{what} ({value.type}) cannot be seen from here: it is made in another region, "
                "or outside a kernel, which knows its own inputs only"
            )
        raise GraphError(f"{what} ({value.type}) is used before it is made, or never made")

    def _node(self, path: str, node: Node) -> None:
        if not NO_SITE <= node.site < self._site_count:
            raise GraphError(
                f"{path}: expected a site below {self._site_count}, received {node.site}"
            )
        _check_params(path, node.params)
        for position, value in enumerate(node.inputs):
            if position == 0 and node.op in (READ, WRITE):
                self._check_variable(path, value)
            else:
                self._use(f"{path}: input {position}", value)
        if node.op in STRUCTURAL:
            _RULES[node.op](path, node)
        else:
            self._check_operation(path, node)
        self._regions(path, node)

    def _check_variable(self, path: str, value: Value) -> None:
        if not isinstance(value, Variable):
            raise GraphError(f"{path}: expected a variable as first input, received a plain value")
        if value not in self._variables:
            raise GraphError(f"{path}: the variable {value.name!r} is not declared by the graph")

    def _regions(self, path: str, node: Node) -> None:
        names = _REGION_NAMES.get((node.op, len(node.regions)), ())
        closed = node.op == FUSED
        for name, region in zip(names, node.regions, strict=True):
            if region.variables or region.sites:
                raise GraphError(
                    f"{path}, {name}: regions have no variables and sites of their own; those of "
                    "the outermost graph serve them"
                )
            outside = self._visible
            if closed:
                _check_kernel(f"{path}, {name}", region)
                self._visible = set()
            made = self._body(f"{path}, {name}", region)
            self._visible = outside
            self._visible.difference_update(made)

    def _check_operation(self, path: str, node: Node) -> None:
        if node.op not in self._operations:
            raise GraphError(f"{path}: there is no operation of that name")
        if len(node.results) != 1:
            raise GraphError(f"{path}: expected one result, received {len(node.results)}")
        _expect(path, "regions", len(node.regions), 0)
        try:
            expected = Type(*self._operations[node.op].infer(*node.inputs, **node.params))
        except (TypeError, ValueError, LookupError) as error:
            raise GraphError(f"{path}: the operation refuses its inputs: {error}") from error
        _same_type(path, "a result", node.results[0], expected)


# --- rules of single nodes --------------------------------------------------------------------


def _expect(path: str, what: str, received: int, *allowed: int) -> None:
    if received not in allowed:
        wanted = " or ".join(map(str, allowed))
        raise GraphError(f"{path}: expected {wanted} {what}, received {received}")


def _same_type(path: str, what: str, value: Value, expected: Type) -> None:
    if value.type != expected:
        raise GraphError(f"{path}: expected {what} of type {expected}, received {value.type}")


def _same_types(path: str, what: str, values: Sequence[Value], expected: Sequence[Type]) -> None:
    _expect(path, f"{what}s", len(values), len(expected))
    for position, (value, type_) in enumerate(zip(values, expected, strict=True)):
        _same_type(path, f"{what} {position}", value, type_)


def _types(values: Sequence[Value]) -> list[Type]:
    return [value.type for value in values]


def _check_params(path: str, params: Mapping[str, Any]) -> None:
    for name, value in params.items():
        if not _is_literal(value):
            raise GraphError(
                f"{path}: expected parameters made of numbers, strings, dtypes, None and tuples, "
                f"received {name}={value!r:.60} of type {type(value).__name__}"
            )


def _is_literal(value: Any) -> bool:
    if isinstance(value, tuple):
        return all(map(_is_literal, value))
    return value is None or type(value) in (bool, int, float, str, DType)


def _check_kernel(path: str, region: Graph) -> None:
    for number, node in enumerate(region.nodes):
        if node.op in STRUCTURAL:
            raise GraphError(
                f"{path}, node {number} ({node.op}): a kernel has operations of the table only"
            )


def _read_rule(path: str, node: Node) -> None:
    _check_permissions(path, node)
    _expect(path, "inputs", len(node.inputs), 1)
    _expect(path, "regions", len(node.regions), 0)
    _same_types(path, "result", node.results, _types(node.inputs))


def _write_rule(path: str, node: Node) -> None:
    _check_permissions(path, node)
    _expect(path, "inputs", len(node.inputs), 2)
    _expect(path, "results", len(node.results), 0)
    _expect(path, "regions", len(node.regions), 0)
    _same_type(path, "a value", node.inputs[1], node.inputs[0].type)


def _if_rule(path: str, node: Node) -> None:
    _check_permissions(path, node)
    _expect(path, "inputs", len(node.inputs), 1)
    _same_type(path, "a condition", node.inputs[0], _CONDITION)
    _expect(path, "regions", len(node.regions), 2)
    for name, region in zip(("then", "else"), node.regions, strict=True):
        _expect(f"{path}, {name}", "inputs", len(region.inputs), 0)
        _same_types(f"{path}, {name}", "output", region.outputs, _types(node.results))


def _loop_rule(path: str, node: Node) -> None:
    _check_permissions(path, node)
    if not node.inputs:
        raise GraphError(f"{path}: expected a limit as first input, received no inputs")
    _same_type(path, "a limit", node.inputs[0], _COUNT)
    carried = _types(node.inputs[1:])
    _same_types(path, "result", node.results, carried)
    _expect(path, "regions", len(node.regions), 1, 2)
    for name, region in zip(_REGION_NAMES[LOOP, len(node.regions)], node.regions, strict=True):
        _same_types(f"{path}, {name}", "input", region.inputs, [_COUNT, *carried])
        wanted = [_CONDITION] if name == "condition" else carried
        _same_types(f"{path}, {name}", "output", region.outputs, wanted)


def _fused_rule(path: str, node: Node) -> None:
    _check_permissions(path, node)
    _expect(path, "regions", len(node.regions), 1)
    (body,) = node.regions
    _same_types(f"{path}, body", "input", body.inputs, _types(node.inputs))
    _same_types(f"{path}, body", "output", body.outputs, _types(node.results))
    _check_alias(path, node)


def _channel_rule(path: str, node: Node) -> None:
    flags = {"final", "quiet", "stop"} if node.op == SEND else {"quiet"}
    names = set(node.params) - {name for name in flags if node.params.get(name) is True}
    if names != {"channel"} or not isinstance(node.params["channel"], str):
        raise GraphError(
            f"{path}: expected a parameter channel='name', received {dict(node.params)}"
        )
    _expect(path, "regions", len(node.regions), 0)
    if node.op == SEND:
        _expect(path, "results", len(node.results), 0)
    else:
        _expect(path, "inputs", len(node.inputs), 0)


def _check_permissions(path: str, node: Node) -> None:
    """The only parameters of these nodes are what the in-place pass has proven of their memory."""
    allowed = _PERMISSIONS.get(node.op, ())
    for name, value in node.params.items():
        if name not in allowed:
            known = " and ".join(allowed) or "none"
            raise GraphError(
                f"{path}: expected no parameters but {known}, received {name}={value!r}"
            )


def _check_alias(path: str, node: Node) -> None:
    for result, operand in node.params.get("alias", ()):
        if not (0 <= result < len(node.results) and 0 <= operand < len(node.inputs)):
            raise GraphError(f"{path}: alias has no result {result} or no input {operand}")
        over, under = node.results[result].type, node.inputs[operand].type
        if bytes_of(over) != bytes_of(under):
            raise GraphError(
                f"{path}: result {result} of type {over} cannot lie in the memory of input "
                f"{operand} of type {under}"
            )


_RULES: Final[Mapping[str, Callable[[str, Node], None]]] = {
    READ: _read_rule,
    WRITE: _write_rule,
    IF: _if_rule,
    LOOP: _loop_rule,
    FUSED: _fused_rule,
    SEND: _channel_rule,
    RECEIVE: _channel_rule,
}
