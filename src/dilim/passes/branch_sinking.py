"""Branch sinking: what one branch alone looks at is computed in it, when it is taken.

A loss that is printed at each hundredth epoch is such a value: the other epochs do not need it.
Variables are read in the branches that look at them, as long as they are the same there: a branch
that reads and writes a variable can do it in its memory.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dilim.ir.graph import Graph, Node, Value
from dilim.ir.structure import (
    FUSED,
    IF,
    READ,
    free_values,
    host_may_write,
    written,
)
from dilim.passes.raising import is_movable
from dilim.passes.rewriting import rebuilt, with_names, with_nodes

_Branch = tuple[Node, int]
_SHARED: Final = None
"""In place of a branch: the value is used by more than one branch, or by none."""


def branch_sinking(graph: Graph) -> Graph:
    """Move operations into the branches that alone use them, and let branches read variables.

    Only operations that cannot raise move.
    """
    graph = _reads_in_branches(into_branches(graph))
    nodes = [
        rebuilt(node, node.inputs, tuple([branch_sinking(x) for x in node.regions]))
        if node.regions and node.op != FUSED
        else node
        for node in graph.nodes
    ]
    return with_nodes(graph, nodes)


def into_branches(graph: Graph) -> Graph:
    """Move operations into the branches that stand in a graph itself, not in its regions."""
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
                _begun(region, reversed(moved.get((node, k), ())))
                for k, region in enumerate(node.regions)
            ]
            node = rebuilt(node, node.inputs, tuple(regions))
        kept.append(node)
    return with_nodes(graph, kept)


def _begun(region: Graph, nodes: Iterable[Node]) -> Graph:
    return with_nodes(region, (*nodes, *region.nodes))


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
                use(region.captured(), (node, k))
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


def _reads_in_branches(graph: Graph) -> Graph:
    """Let branches read what was read before them and has not changed since."""
    current: dict[Value, Node] = {}  # what was read -> how
    nodes = []
    for node in graph.nodes:
        if node.op == IF and current:
            regions = tuple([_reading(region, current) for region in node.regions])
            node = rebuilt(node, node.inputs, regions)
        nodes.append(node)
        if node.op == READ:
            current[node.results[0]] = node
        elif host_may_write(node):
            current.clear()
        elif changed := written(node):
            current = {x: read for x, read in current.items() if read.inputs[0] not in changed}
    return with_nodes(graph, nodes)


def _reading(region: Graph, current: dict[Value, Node]) -> Graph:
    reads = [current[x] for x in region.captured() if x in current]
    if not reads:
        return region
    names = {read.results[0]: Value(read.results[0].type) for read in reads}
    again = [Node(READ, x.inputs, x.params, (names[x.results[0]],), (), x.site) for x in reads]
    return _begun(with_names(region, names), again)
