"""Dead code: nodes go whose results nobody uses, unless they act, may raise, or may never end."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dilim.ir.graph import Graph, Node, Value
from dilim.ir.structure import EFFECTS, FUSED, IF, has_effect
from dilim.passes.raising import may_never_end, may_raise
from dilim.passes.rewriting import with_nodes


def dead_code(graph: Graph) -> Graph:
    """Remove what has no use: nodes, results of branches and loops, carried values.

    What stays though nobody uses it: writes, sends, receives, operations that may raise,
    loops that may never end, and branches and loops that hold one of these.
    """
    return _Sweep().block(graph, graph.outputs)


@dataclass(slots=True)
class _Sweep:
    producers: dict[Value, Node] = field(default_factory=dict)

    def block(self, graph: Graph, outputs: tuple[Value, ...]) -> Graph:
        """The graph with these outputs, without the nodes that they do not need."""
        for node in graph.nodes:
            for result in node.results:
                self.producers[result] = node
        live = set(outputs)
        kept: list[Node] = []
        for node in reversed(graph.nodes):
            if live.isdisjoint(node.results) and not self._must_stay(node):
                continue
            if node.regions and node.op != FUSED:
                node = self._branch(node, live) if node.op == IF else self._loop(node, live)
                for region in node.regions:
                    live.update(region.captured())
            live.update(node.inputs)
            kept.append(node)
        kept.reverse()
        return with_nodes(graph, kept, outputs)

    def _must_stay(self, node: Node) -> bool:
        if node.op in EFFECTS or may_raise(node, self.producers):
            return True
        return has_effect(node) or may_never_end(node, self.producers)

    def _branch(self, node: Node, live: set[Value]) -> Node:
        keep = [k for k, result in enumerate(node.results) if result in live]
        regions = tuple([self.block(r, _pick(r.outputs, keep)) for r in node.regions])
        results = _pick(node.results, keep)
        return Node(node.op, node.inputs, node.params, results, regions, node.site)

    def _loop(self, node: Node, live: set[Value]) -> Node:
        """The loop with the carried values that a result, an effect or one another needs."""
        *conditions, body = node.regions
        conditions = [self.block(region, region.outputs) for region in conditions]
        needed = {k for k, result in enumerate(node.results) if result in live}
        needed = needed.union(*(_used(region) for region in conditions))
        while True:
            keep = sorted(needed)
            swept = self.block(body, _pick(body.outputs, keep))
            needed |= _used(swept)
            if len(needed) == len(keep):
                break
        regions = [
            Graph((region.inputs[0], *_pick(region.inputs[1:], keep)), region.nodes, region.outputs)
            for region in (*conditions, swept)
        ]
        inputs = (node.inputs[0], *_pick(node.inputs[1:], keep))
        results = _pick(node.results, keep)
        return Node(node.op, inputs, node.params, results, tuple(regions), node.site)


def _used(region: Graph) -> set[int]:
    """The carried values that the region of a loop looks at."""
    used = set(Graph((), region.nodes, region.outputs).captured())
    return {k for k, value in enumerate(region.inputs[1:]) if value in used}


def _pick(values: tuple[Value, ...], keep: Iterable[int]) -> tuple[Value, ...]:
    return tuple([values[k] for k in keep])
