"""Branch sinking: what one branch alone looks at is computed in it, when it is taken.

A loss that is printed at each hundredth epoch is such a value: the other epochs do not need it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dilim.ir.graph import Graph, Node, Value
from dilim.ir.structure import FUSED, IF, STRUCTURAL, captured, free_values
from dilim.passes.raising import may_raise
from dilim.passes.rewriting import rebuilt, with_nodes

_Branch = tuple[Node, int]
_SHARED: Final = None
"""In place of a branch: the value is used by more than one branch, or by none."""


def branch_sinking(graph: Graph) -> Graph:
    """Move operations into the branches that alone use them.

    Only operations that cannot raise move.
    """
    graph = into_branches(graph)
    nodes = [
        rebuilt(node, node.inputs, tuple([branch_sinking(x) for x in node.regions]))
        if node.regions and node.op != FUSED
        else node
        for node in graph.nodes
    ]
    return with_nodes(graph, nodes)


def into_branches(graph: Graph) -> Graph:
    """The same for the branches that stand in a graph itself, not in its regions."""
    if not any(node.op == IF for node in graph.nodes):
        return graph
    moved = _moved(graph)
    if not moved:
        return graph
    gone = {node for nodes in moved.values() for node in nodes}
    kept = []
    for node in graph.nodes:
        if node in gone:
            continue
        if node.op == IF:
            regions = [
                Graph((), (*reversed(moved.get((node, k), ())), *region.nodes), region.outputs)
                for k, region in enumerate(node.regions)
            ]
            node = rebuilt(node, node.inputs, tuple(regions))
        kept.append(node)
    return with_nodes(graph, kept)


def is_movable(node: Node) -> bool:
    """Whether an operation may be computed elsewhere, or not at all."""
    return node.op not in STRUCTURAL and not may_raise(node)


def _moved(graph: Graph) -> dict[_Branch, list[Node]]:
    """The nodes that each branch alone uses, the last first."""
    users: dict[Value, _Branch | None] = dict.fromkeys(graph.outputs, _SHARED)
    moved: dict[_Branch, list[Node]] = {}

    def use(values: Iterable[Value], branch: _Branch | None) -> None:
        for value in values:
            users[value] = branch if users.get(value, branch) == branch else _SHARED

    for node in reversed(graph.nodes):
        if node.op == IF:
            use(node.inputs, _SHARED)
            for k, region in enumerate(node.regions):
                use(captured(region), (node, k))
            continue
        branch = _branch_of(node, users)
        if branch is None:
            use(free_values(node), _SHARED)
        else:
            moved.setdefault(branch, []).append(node)
            use(node.inputs, branch)
    return moved


def _branch_of(node: Node, users: dict[Value, _Branch | None]) -> _Branch | None:
    """The branch that alone uses what an operation computes, if it may move there."""
    branches = {users[x] for x in node.results if x in users}
    return branches.pop() if len(branches) == 1 and is_movable(node) else _SHARED
