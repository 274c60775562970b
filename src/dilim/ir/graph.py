"""A program as data: values, the nodes that make them, and the graph that lists the nodes in order.

Everything is frozen; passes make new graphs. Values are compared by identity (each is assigned
once), graphs by their text (see `dilim.ir.text`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dilim.dtypes import DType
from dilim.ir.types import Type
from dilim.shapes import Shape


@dataclass(frozen=True, slots=True, eq=False)
class Value:
    """An input of a graph or a result of a node.

    Attributes:
        type: its shape and dtype.
        name: a name for people; need not be unique.
    """

    type: Type
    name: str = ""

    @property
    def shape(self) -> Shape:
        """Sizes."""
        return self.type.shape

    @property
    def dtype(self) -> DType:
        """Element type."""
        return self.type.dtype


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One operation, applied.

    Attributes:
        op: name of the operation.
        inputs: values made earlier.
        params: static parameters: numbers, strings, dtypes, None, and tuples of them.
        results: the values it makes; one for every primitive.
    """

    op: str
    inputs: tuple[Value, ...]
    params: Mapping[str, Any]
    results: tuple[Value, ...]


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A program without side effects.

    Attributes:
        inputs: what it is given.
        nodes: in an order in which they can run.
        outputs: what it gives back; any values, repeated or not.
    """

    inputs: tuple[Value, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Value, ...]


@dataclass(slots=True)
class GraphBuilder:
    """A graph in the making.

    Example:
        >>> from dilim import dtypes
        >>> builder = GraphBuilder()
        >>> x = builder.input(Type((3,), dtypes.float32), "x")
        >>> graph = builder.build([builder.add("exp", [x], {}, x.type)])
        >>> [node.op for node in graph.nodes]
        ['exp']
    """

    inputs: list[Value] = field(default_factory=list)
    nodes: list[Node] = field(default_factory=list)

    def input(self, type: Type, name: str = "") -> Value:
        """Declare one more input."""
        value = Value(type, name)
        self.inputs.append(value)
        return value

    def add(
        self, op: str, inputs: Sequence[Value], params: Mapping[str, Any], result: Type
    ) -> Value:
        """Append a node with one result of the given type; its value."""
        value = Value(result)
        self.nodes.append(Node(op, tuple(inputs), dict(params), (value,)))
        return value

    def build(self, outputs: Sequence[Value]) -> Graph:
        """The graph so far."""
        return Graph(tuple(self.inputs), tuple(self.nodes), tuple(outputs))
