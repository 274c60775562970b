"""Fusion: every operation of the table goes into a kernel, a ``fused`` node; as few as possible.

A kernel is what `dilim.ops.nest.compose` accepts: elementwise work around a group of reductions, or
one other form (scatter, scan, sort ...) with elementwise work feeding it. Constants and views are
copied into every kernel that uses them and cost nothing there. Nothing expensive is computed twice.

Rules, in the order in which they are tried:

* *onwards*: work on each element joins the kernel that makes that element (bias, activation,
  derivative mask and optimiser join the matrix product), which may then have several results;
* *inwards*: work whose results only one kernel uses, each once, joins that kernel;
* *together*: reductions over the same axes join (the largest of a row, then the sum of the row's
  exponentials), and a reduction joins the work that spreads it over its row again (softmax);
* *beside*: work on the same elements with a common input joins (moments of an optimiser).

Effects keep their order. What may raise stays between the effects before and after it, and two
operations that may raise never share a kernel, unless the second repeats the test of the first.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final

from dilim.ir.graph import Graph, Node, Value
from dilim.ir.structure import CONTROL, FUSED, LOOP, STRUCTURAL
from dilim.ops.nest import NotOneNest, compose
from dilim.ops.table import OPERATIONS
from dilim.passes.dead_code import dead_code
from dilim.passes.fusion_block import Block, is_inline
from dilim.passes.fusion_rules import join
from dilim.passes.fusion_units import Unit
from dilim.passes.positions import scatter_base
from dilim.passes.rewriting import rebuilt, with_nodes

_MANY: Final = 60
"""Kernels of more operations without a reduction are tried as well, before they are believed."""


def fusion(graph: Graph) -> Graph:
    """Put all operations of the table into ``fused`` nodes; those without use go."""
    graph = dead_code(graph)
    context = _Context()
    context.look_at(graph)
    return context.block(graph)


@dataclass(slots=True)
class _Context:
    """What is known about all blocks.

    Attributes:
        makers: value -> the node that makes it.
        stored: results of views and constants that must lie in memory.
    """

    makers: dict[Value, Node] = field(default_factory=dict)
    stored: set[Value] = field(default_factory=set)

    def look_at(self, graph: Graph) -> None:
        """Find the makers of all values, and what must be stored."""
        for node in graph.nodes:
            for result in node.results:
                self.makers[result] = node
            if node.op in STRUCTURAL:
                self._store(node.inputs)
                if node.op != FUSED:
                    for region in node.regions:
                        self.look_at(region)
            else:
                base = scatter_base(node)
                if base is not None:
                    self._store((base,))
        self._store(graph.outputs)

    def _store(self, values: Iterable[Value]) -> None:
        for value in values:
            node = self.makers.get(value)
            if node is not None and is_inline(node):
                self.stored.add(value)

    def block(self, graph: Graph, is_body: bool = False) -> Graph:
        """The graph of one block, with kernels."""
        block = Block(graph, self.makers, self.stored, is_body)
        join(block, self.composes)
        block.users_first()
        nodes: list[Node] = []
        for unit in block.order:
            if not unit.fixed:
                nodes.extend(self.kernels(block, unit))
                continue
            (node,) = unit.nodes.values()
            if node.op in CONTROL:
                *others, last = node.regions
                regions = (*map(self.block, others), self.block(last, node.op == LOOP))
                node = rebuilt(node, node.inputs, regions)
            nodes.append(node)
        return with_nodes(graph, nodes)

    def kernel(self, block: Block, unit: Unit) -> Node:
        """The ``fused`` node of a unit."""
        return _Kernel(self.makers).build(unit, block.results(unit))

    def kernels(self, block: Block, unit: Unit) -> list[Node]:
        """The ``fused`` node of a unit, or several where it is no loop nest after all.

        None where nobody uses a result: a test that an earlier one has made needless.
        """
        if not block.results(unit):
            return []
        kernel = _Kernel(self.makers)
        node = kernel.build(unit, block.results(unit))
        doubtful = len(kernel.nodes) > (1 if unit.reductions else _MANY)
        if not doubtful or _is_nest(node):
            return [node]
        kernel = _Kernel(self.makers, stores_views=True)
        node = kernel.build(unit, block.results(unit))
        if _is_nest(node):
            return [*kernel.before, node]
        return self._one_by_one(block, unit)

    def _one_by_one(self, block: Block, unit: Unit) -> list[Node]:
        """A kernel for every operation of a unit."""
        repeated = {
            number: node for number, node in unit.nodes.items() if node.results[0] in block.repeated
        }
        nodes: list[Node] = []
        for number in sorted(unit.nodes.keys() - repeated.keys()):
            single = Unit(number, unit.nodes[number], 0)
            single.nodes.update(repeated)
            kernel = _Kernel(self.makers, stores_views=True)
            node = kernel.build(single, unit.nodes[number].results)
            nodes.extend((*kernel.before, node))
        return nodes

    def composes(self, block: Block, unit: Unit) -> bool:
        """Whether a unit is one loop nest."""
        return _is_nest(self.kernel(block, unit))


def _is_nest(kernel: Node) -> bool:
    try:
        compose(kernel.regions[0], OPERATIONS)
    except NotOneNest:
        return False
    return True


def _repeats(node: Node) -> bool:
    """Whether a view or constant has the same elements along an axis."""
    return node.op == "expand" or (node.op == "full" and node.results[0].type.size > 1)


@dataclass(slots=True)
class _Kernel:
    """The region of a kernel in the making.

    Attributes:
        makers: value -> the node that makes it.
        stores_views: whether what repeats elements gets kernels of its own instead of being copied.
        inputs: value outside -> value inside.
        inside: value of the block -> value inside.
        nodes: of the region.
        before: kernels that must run first.
    """

    makers: dict[Value, Node]
    stores_views: bool = False
    inputs: dict[Value, Value] = field(default_factory=dict)
    inside: dict[Value, Value] = field(default_factory=dict)
    nodes: list[Node] = field(default_factory=list)
    before: list[Node] = field(default_factory=list)

    def build(self, unit: Unit, results: tuple[Value, ...]) -> Node:
        """The ``fused`` node of some nodes of a block."""
        members = [unit.nodes[number] for number in sorted(unit.nodes)]
        for node in members:
            if node.results[0] in self.inside:
                continue
            base = scatter_base(node)
            self._add(
                node,
                tuple([self._load(x) if x is base else self._get(x) for x in node.inputs]),
            )
        outputs = tuple([self.inside[value] for value in results])
        return self._node(outputs, results, members[0].site)

    def _node(self, outputs: tuple[Value, ...], results: tuple[Value, ...], site: int) -> Node:
        region = Graph(tuple(self.inputs.values()), tuple(self.nodes), outputs)
        return Node(FUSED, tuple(self.inputs), {}, results, (region,), site)

    def _get(self, value: Value) -> Value:
        """The value inside the kernel: made there, copied there, or an input."""
        found = self.inside.get(value)
        if found is not None:
            return found
        node = self.makers.get(value)
        if node is None or not is_inline(node):
            return self._load(value)
        if self.stores_views and _repeats(node):
            stored = Value(value.type, value.name)
            kernel = _Kernel(self.makers)
            kernel._add(node, tuple([kernel._get(x) for x in node.inputs]))
            self.before.append(kernel._node((kernel.inside[value],), (stored,), node.site))
            self.inside[value] = self._load(stored)
            return self.inside[value]
        return self._add(node, tuple([self._get(x) for x in node.inputs]))

    def _load(self, value: Value) -> Value:
        if value not in self.inputs:
            self.inputs[value] = Value(value.type, value.name)
        return self.inputs[value]

    def _add(self, node: Node, inputs: tuple[Value, ...]) -> Value:
        result = Value(node.results[0].type, node.results[0].name)
        self.inside[node.results[0]] = result
        self.nodes.append(Node(node.op, inputs, node.params, (result,), (), node.site))
        return result
