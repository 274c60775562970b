"""Common subexpressions: what was computed before is not computed again."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dilim.ir.graph import Graph, Node, Value
from dilim.ir.structure import FUSED, LOOP, READ, STRUCTURAL, host_may_write, written
from dilim.passes.rewriting import Names, Scope, parameter_key, rebuilt, renamed, with_nodes


def common_subexpressions(graph: Graph) -> Graph:
    """Replace nodes by earlier ones that compute the same.

    Two reads of a variable are the same where no write to it and no channel point (at which the
    host may write) lies between them. Random operations are functions of their state, so they are
    ordinary. A block knows what the blocks around it have computed, not the other way round.
    """
    return _Search().block(graph)


@dataclass(slots=True)
class _Search:
    names: Names = field(default_factory=dict)
    known: Scope = field(default_factory=Scope)
    versions: dict[Value, int] = field(default_factory=dict)  # per variable
    writes: int = 0
    points: int = 0  # channel points so far

    def block(self, graph: Graph) -> Graph:
        """The graph of one block, with the values of enclosing ones known."""
        names, known = self.names, self.known
        mark = known.mark()
        nodes: list[Node] = []
        for node in graph.nodes:
            node = rebuilt(node, renamed(node.inputs, names))
            if node.op in STRUCTURAL and node.op != READ:
                nodes.append(self._structural(node))
                continue
            key = self._key(node)
            before = known.get(key)
            if before is None:
                known.put(key, node.results[0])
                nodes.append(node)
            else:
                names[node.results[0]] = before
        known.release(mark)
        return with_nodes(graph, nodes, renamed(graph.outputs, names))

    def _key(self, node: Node) -> tuple[Any, ...]:
        if node.op == READ:
            variable = node.inputs[0]
            return READ, variable, self.versions.get(variable, 0), self.points
        return node.op, node.inputs, parameter_key(node.params)

    def _structural(self, node: Node) -> Node:
        if node.op == LOOP:
            self._forget(node)  # an iteration begins with what the one before has written
        if node.regions and node.op != FUSED:
            node = rebuilt(node, node.inputs, tuple([self.block(r) for r in node.regions]))
        self._forget(node)
        return node

    def _forget(self, node: Node) -> None:
        """Reads after this node differ from reads before it, where it acts on their variable."""
        for variable in written(node):
            self.writes += 1
            self.versions[variable] = self.writes
        if host_may_write(node):
            self.points += 1
