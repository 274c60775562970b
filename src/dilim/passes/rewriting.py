"""What passes share: renaming values, walking a graph while making a new one, scopes of facts."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dilim.ir.graph import NO_SITE, Graph, Node, Value
from dilim.ir.structure import FUSED, STRUCTURAL
from dilim.ir.types import Type
from dilim.ops.table import OPERATIONS

Names = dict[Value, Value]
"""Old value -> the value that stands for it; values that stay are absent."""


def renamed(values: tuple[Value, ...], names: Names) -> tuple[Value, ...]:
    """The values under their new names; the same tuple where nothing changes."""
    for value in values:
        if value in names:
            return tuple([names.get(value, value) for value in values])
    return values


def with_names(graph: Graph, names: Names) -> Graph:
    """The graph with values from outside under their new names, also in its regions."""
    nodes = []
    for node in graph.nodes:
        regions = node.regions
        if regions and node.op != FUSED:
            regions = tuple([with_names(region, names) for region in regions])
        nodes.append(rebuilt(node, renamed(node.inputs, names), regions))
    return with_nodes(graph, nodes, renamed(graph.outputs, names))


def rebuilt(
    node: Node, inputs: tuple[Value, ...], regions: tuple[Graph, ...] | None = None
) -> Node:
    """A node with other inputs and regions, and the same results."""
    if regions is None:
        regions = node.regions
    if inputs is node.inputs and regions is node.regions:
        return node
    return Node(node.op, inputs, node.params, node.results, regions, node.site)


def with_params(node: Node, **params: Any) -> Node:
    """A node with further parameters."""
    return Node(
        node.op, node.inputs, {**node.params, **params}, node.results, node.regions, node.site
    )


def with_nodes(
    graph: Graph, nodes: Iterable[Node], outputs: tuple[Value, ...] | None = None
) -> Graph:
    """The graph with other nodes, and other outputs where they are given."""
    return Graph(
        graph.inputs,
        tuple(nodes),
        graph.outputs if outputs is None else outputs,
        graph.variables,
        graph.sites,
    )


def is_table(node: Node) -> bool:
    """Whether a node applies an operation of the table."""
    return node.op not in STRUCTURAL


def result_type(op: str, inputs: Sequence[Value], params: Mapping[str, Any]) -> Type:
    """The type that an operation of the table gives."""
    return Type(*OPERATIONS[op].infer(*inputs, **params))


_ABSENT: Final = object()


class Scope(dict[Any, Any]):
    """Facts that hold in a block, and in the blocks inside it until they end.

    Entries made after `mark` are taken back by `release`.
    """

    def __init__(self) -> None:
        super().__init__()
        self._log: list[tuple[Any, Any]] = []

    def put(self, key: Any, value: Any) -> None:
        """Set an entry that `release` can take back."""
        self._log.append((key, self.get(key, _ABSENT)))
        self[key] = value

    def mark(self) -> int:
        """The present moment."""
        return len(self._log)

    def release(self, mark: int) -> None:
        """Take back what was put since a moment."""
        while len(self._log) > mark:
            key, before = self._log.pop()
            if before is _ABSENT:
                del self[key]
            else:
                self[key] = before


@dataclass(slots=True)
class Rewriter:
    """One walk through a graph and its regions in order, making a new graph.

    Attributes:
        producers: value -> the node that makes it, for all values visible at this point.
        names: values that were replaced so far.
        nodes: of the block being made.
        site: of the node being looked at; new nodes get it.
        facts: what rules have noted about this block and those around it.
    """

    producers: dict[Value, Node] = field(default_factory=dict)
    names: Names = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    site: int = NO_SITE
    facts: Scope = field(default_factory=Scope)

    def keep(self, node: Node) -> None:
        """Append a node."""
        self.nodes.append(node)
        for result in node.results:
            self.producers[result] = node

    def add(self, op: str, *inputs: Value, **params: Any) -> Value:
        """Append an operation of the table; its value."""
        result = Value(result_type(op, inputs, params))
        self.keep(Node(op, inputs, params, (result,), (), self.site))
        return result

    def constant(self, value: Any, type: Type) -> Value:
        """Append a `full`; its value."""
        return self.add("full", shape=type.shape, value=value, dtype=type.dtype)

    def maker(self, value: Value, op: str) -> Node | None:
        """The node that makes a value if it applies the given operation."""
        node = self.producers.get(value)
        return node if node is not None and node.op == op else None


Simplify = Callable[[Rewriter, Node], Value | None]
"""A value that may replace the only result of a node of the table (made from values visible there,
perhaps after `Rewriter.add`), or None to keep the node."""


def simplify(graph: Graph, rule: Simplify) -> Graph:
    """The graph after one walk in which a rule looks at every operation of the table.

    Regions of control flow are walked in turn; those of kernels are left alone.
    """
    return _simplify(graph, rule, Rewriter())


def _simplify(graph: Graph, rule: Simplify, rewriter: Rewriter) -> Graph:
    outer, rewriter.nodes = rewriter.nodes, []
    mark = rewriter.facts.mark()
    names = rewriter.names
    for node in graph.nodes:
        inputs = renamed(node.inputs, names)
        if node.op in STRUCTURAL:
            regions = node.regions
            if regions and node.op != "fused":
                regions = tuple([_simplify(region, rule, rewriter) for region in regions])
            rewriter.keep(rebuilt(node, inputs, regions))
            continue
        node = rebuilt(node, inputs)
        rewriter.site = node.site
        found = rule(rewriter, node)
        if found is None:
            rewriter.keep(node)
        else:
            names[node.results[0]] = found
    nodes, rewriter.nodes = rewriter.nodes, outer
    rewriter.facts.release(mark)
    return with_nodes(graph, nodes, renamed(graph.outputs, names))


def parameter_key(params: Mapping[str, Any]) -> tuple[Any, ...]:
    """Something hashable that is equal for parameters that mean the same, zeros by their sign."""
    return tuple([(name, _value_key(value)) for name, value in params.items()])


def _value_key(value: Any) -> Any:
    if isinstance(value, float):
        return value.hex()
    if isinstance(value, tuple):
        return tuple([_value_key(item) for item in value])
    return (type(value), value) if isinstance(value, bool) else value
