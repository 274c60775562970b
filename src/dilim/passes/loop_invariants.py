"""Loop invariants: what is the same in every iteration is computed once, before the loop."""

from __future__ import annotations

from dilim.ir.graph import Graph, Node, Value
from dilim.ir.structure import FUSED, LOOP, READ, host_may_write, written
from dilim.passes.raising import is_movable
from dilim.passes.rewriting import Names, rebuilt, renamed, with_nodes


def loop_invariants(graph: Graph) -> Graph:
    """Move operations, and reads of variables that the loop does not write, out of loops.

    Only what cannot raise moves, for a loop may run no times. A carried value that no iteration
    changes is its initial value. Operations inside branches stay: they may never run.
    """
    return _block(graph, {})


def _block(graph: Graph, names: Names) -> Graph:
    nodes: list[Node] = []
    for node in graph.nodes:
        inputs = renamed(node.inputs, names)
        if not node.regions or node.op == FUSED:
            nodes.append(rebuilt(node, inputs))
            continue
        if node.op == LOOP:
            _settle(node, inputs, names)
        regions = tuple([_block(region, names) for region in node.regions])
        node = rebuilt(node, inputs, regions)
        if node.op == LOOP:
            node = _hoisted(node, nodes)
        nodes.append(node)
    return with_nodes(graph, nodes, renamed(graph.outputs, names))


def _settle(node: Node, inputs: tuple[Value, ...], names: Names) -> None:
    """Give carried values that never change their initial value's name."""
    body = node.regions[-1]
    for k, output in enumerate(body.outputs):
        if output is body.inputs[k + 1]:
            names[node.results[k]] = inputs[k + 1]
            for region in node.regions:
                names[region.inputs[k + 1]] = inputs[k + 1]


def _hoisted(node: Node, before: list[Node]) -> Node:
    """The loop without its invariant nodes, which go to the end of ``before``."""
    made: set[Value] = set()
    for region in node.regions:
        made.update(region.inputs)
        for inner in region.nodes:
            made.update(inner.results)
    changed = written(node)
    all_known = not host_may_write(node)
    regions = []
    for region in node.regions:
        staying: list[Node] = []
        for inner in region.nodes:
            if inner.op == READ:
                moves = all_known and inner.inputs[0] not in changed
            else:
                moves = is_movable(inner)
            if moves and made.isdisjoint(inner.inputs):
                before.append(inner)
                made.difference_update(inner.results)
            else:
                staying.append(inner)
        regions.append(with_nodes(region, staying))
    return rebuilt(node, node.inputs, tuple(regions))
