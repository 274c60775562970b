"""The part of a graph that is needed for some of its values."""

from __future__ import annotations

from collections.abc import Sequence

from dilim.ir.graph import Graph, Node, Value
from dilim.ir.structure import READ, free_values, has_effect, walk, written


def needed(graph: Graph, outputs: Sequence[Value], effects: bool = True) -> Graph:
    """The graph that gives these values.

    Args:
        graph: a whole program.
        outputs: some of its values.
        effects: whether writes, sends and receives stay. Without, only those writes stay that a
            later read for an output can see.

    Returns:
        A graph with the inputs and variables that it uses, in their order.
    """
    wanted: set[Value] = set(outputs)
    observed: set[Value] = set()
    kept: list[Node] = []
    for node in reversed(graph.nodes):
        changes = written(node)
        if not (
            any(result in wanted for result in node.results)
            or (effects and has_effect(node))
            or changes & observed
        ):
            continue
        kept.append(node)
        wanted.update(free_values(node))
        observed |= _read(node)
    kept.reverse()
    return Graph(
        tuple(value for value in graph.inputs if value in wanted),
        tuple(kept),
        tuple(outputs),
        tuple(value for value in graph.variables if value in wanted),
        graph.sites,
    )


def _read(node: Node) -> set[Value]:
    """The variables that a node, or one in its regions, reads."""
    found = {node.inputs[0]} if node.op == READ else set()
    for region in node.regions:
        found |= {inner.inputs[0] for inner in walk(region) if inner.op == READ}
    return found
