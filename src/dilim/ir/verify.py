"""Checks that a graph is well formed: each value made once, before its use, of its true type."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Protocol

from dilim.dtypes import DType
from dilim.errors import GraphError
from dilim.ir.graph import Graph, Node, Value
from dilim.ir.types import Type
from dilim.shapes import Shape


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
        GraphError: a value is made twice or used before it is made, an operation is unknown or
            refuses its inputs, or a result has another type than its operation gives.
    """
    made: set[Value] = set()
    for position, value in enumerate(graph.inputs):
        if value in made:
            raise GraphError(f"graph: input {position} is the same value as an earlier input")
        made.add(value)
    for number, node in enumerate(graph.nodes):
        where = f"graph: node {number} ({node.op})"
        _check_uses(where, node, made)
        _check_types(where, node, operations)
        for result in node.results:
            if result in made:
                raise GraphError(f"{where}: its result was made before, but is assigned once only")
            made.add(result)
    for position, value in enumerate(graph.outputs):
        if value not in made:
            raise GraphError(f"graph: output {position} ({value.type}) is made by no node")


def _check_uses(where: str, node: Node, made: set[Value]) -> None:
    for position, value in enumerate(node.inputs):
        if value not in made:
            raise GraphError(
                f"{where}: input {position} ({value.type}) is used before it is made, or never made"
            )


def _check_types(where: str, node: Node, operations: Mapping[str, Operation]) -> None:
    if node.op not in operations:
        raise GraphError(f"{where}: there is no operation of that name")
    if len(node.results) != 1:
        raise GraphError(f"{where}: expected one result, received {len(node.results)}")
    try:
        expected = Type(*operations[node.op].infer(*node.inputs, **node.params))
    except (TypeError, ValueError, LookupError) as error:
        raise GraphError(f"{where}: the operation refuses its inputs: {error}") from error
    if node.results[0].type != expected:
        raise GraphError(
            f"{where}: expected a result of type {expected}, received {node.results[0].type}"
        )
