"""A program as data: values, the nodes that make them, and the graph that lists the nodes in order.

Everything is frozen; passes make new graphs. Values are compared by identity (each is assigned
once), graphs by their text (see `dilim.ir.text`).

Nodes apply an operation of ``dilim.ops.table``, or one of the few structural operations that are
described in `dilim.ir.structure` (``read write if loop send receive fused``). A region is a `Graph`
inside a node; it may use every value that is made before the node, except in ``fused``, whose
region knows its own inputs only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dilim.dtypes import DType
from dilim.ir.types import Type
from dilim.shapes import Shape

NO_SITE = -1


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
class Variable(Value):
    """Memory that outlives a run: a parameter, optimiser or random state, replay storage.

    Only ``read`` and ``write`` take one, as their first input; they act in program order.
    """


@dataclass(frozen=True, slots=True)
class Site:
    """A place in the user's source, for errors.

    Attributes:
        file: path of the source file.
        line: line number, from 1.
    """

    file: str
    line: int

    def __str__(self) -> str:
        return f"{self.file}:{self.line}"


@dataclass(frozen=True, slots=True, eq=False)
class Node:
    """One operation, applied.

    Attributes:
        op: name of the operation.
        inputs: values made earlier.
        params: static parameters: numbers, strings, dtypes, None, and tuples of them.
        results: the values it makes; one for every operation of the table.
        regions: graphs inside the node.
        site: position in the ``sites`` of the outermost graph, or -1; no part of the text.
    """

    op: str
    inputs: tuple[Value, ...]
    params: Mapping[str, Any]
    results: tuple[Value, ...]
    regions: tuple[Graph, ...] = ()
    site: int = NO_SITE


@dataclass(frozen=True, slots=True, eq=False)
class Graph:
    """A program, or a region of one.

    Attributes:
        inputs: what it is given.
        nodes: in the order in which their effects happen.
        outputs: what it gives back; any values, repeated or not.
        variables: memory it reads and writes; empty in regions, which use those of the program.
        sites: places in the user's source that nodes refer to; empty in regions.
    """

    inputs: tuple[Value, ...]
    nodes: tuple[Node, ...]
    outputs: tuple[Value, ...]
    variables: tuple[Variable, ...] = ()
    sites: tuple[Site, ...] = ()
    _captured: tuple[Value, ...] | None = field(default=None, init=False, repr=False)

    def captured(self) -> tuple[Value, ...]:
        """The values (and variables) that it uses and does not make, in order of first use.

        They are found once: passes ask for them again and again, at every depth.
        """
        if self._captured is None:
            made: set[Value] = set(self.inputs)
            used: dict[Value, None] = {}
            for node in self.nodes:
                used.update((value, None) for value in node.inputs if value not in made)
                for region in node.regions:
                    used.update((value, None) for value in region.captured() if value not in made)
                made.update(node.results)
            used.update((value, None) for value in self.outputs if value not in made)
            object.__setattr__(self, "_captured", tuple(used))  # it never changes
        return self._captured  # type: ignore[return-value]


@dataclass(slots=True)
class GraphBuilder:
    """A graph, or a region of one, in the making.

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
    variables: list[Variable] = field(default_factory=list)
    sites: dict[Site, int] = field(default_factory=dict)

    def input(self, type: Type, name: str = "") -> Value:
        """Declare one more input."""
        value = Value(type, name)
        self.inputs.append(value)
        return value

    def variable(self, type: Type, name: str = "") -> Variable:
        """Declare one more variable."""
        variable = Variable(type, name)
        self.variables.append(variable)
        return variable

    def add(
        self,
        op: str,
        inputs: Sequence[Value],
        params: Mapping[str, Any],
        result: Type,
        site: Site | None = None,
    ) -> Value:
        """Append a node with one result of the given type; its value."""
        return self.add_node(op, inputs, params, [result], site=site)[0]

    def add_node(
        self,
        op: str,
        inputs: Sequence[Value],
        params: Mapping[str, Any],
        results: Sequence[Type],
        regions: Sequence[Graph] = (),
        site: Site | None = None,
    ) -> tuple[Value, ...]:
        """Append a node with any number of results and regions; its values."""
        number = NO_SITE if site is None else self.sites.setdefault(site, len(self.sites))
        values = tuple(Value(result) for result in results)
        self.nodes.append(Node(op, tuple(inputs), dict(params), values, tuple(regions), number))
        return values

    def region(self) -> GraphBuilder:
        """A builder for a region of a node to come; it shares the list of sites."""
        return GraphBuilder(sites=self.sites)

    def build(self, outputs: Sequence[Value]) -> Graph:
        """The graph so far."""
        return Graph(
            tuple(self.inputs),
            tuple(self.nodes),
            tuple(outputs),
            tuple(self.variables),
            tuple(self.sites),
        )

    def build_region(self, outputs: Sequence[Value]) -> Graph:
        """The region so far."""
        return Graph(tuple(self.inputs), tuple(self.nodes), tuple(outputs))
