"""State: written values go straight to later reads, and writes that nobody can see go."""

from __future__ import annotations

from dataclasses import dataclass, field

from dilim.ir.graph import Graph, Node, Value
from dilim.ir.structure import (
    CHANNELS,
    FUSED,
    IF,
    LOOP,
    READ,
    WRITE,
    holds,
    host_may_write,
    walk,
    written,
)
from dilim.passes.raising import may_raise
from dilim.passes.rewriting import Names, rebuilt, renamed, with_nodes


def state(graph: Graph) -> Graph:
    """Forward the contents of variables to reads; drop writes that change or show nothing.

    A write is dropped if the variable holds that value already, or if the next write to it comes
    before anybody can look: no operation that may raise, no channel point and no loop (whose back
    edge is a safepoint) in between. At a channel point the host may write, so nothing is known
    after it.
    """
    return _Walk().block(graph)


@dataclass(slots=True)
class _Walk:
    names: Names = field(default_factory=dict)
    contents: dict[Value, Value] = field(default_factory=dict)  # of variables, where known

    def block(self, graph: Graph) -> Graph:
        names = self.names
        nodes: list[Node | None] = []
        # variable -> place of its last write, seen by nobody, and what it held before that
        unseen: dict[Value, tuple[int, Value | None]] = {}
        for node in graph.nodes:
            node = rebuilt(node, renamed(node.inputs, names))
            if node.op == READ:
                variable, result = node.inputs[0], node.results[0]
                if variable in self.contents:
                    names[result] = self.contents[variable]
                else:
                    self.contents[variable] = result
                    nodes.append(node)
                continue
            if node.op == WRITE:
                variable, value = node.inputs
                before = self.contents.get(variable)
                if before is value:
                    continue
                self.contents[variable] = value
                if variable in unseen:
                    place, before = unseen.pop(variable)
                    nodes[place] = None
                    if before is value:
                        continue
                unseen[variable] = len(nodes), before
            elif node.regions and node.op != FUSED:
                node = self._control(node, unseen)
            elif node.op in CHANNELS:
                unseen.clear()
                if host_may_write(node):
                    self.contents.clear()
            elif may_raise(node):
                unseen.clear()
            nodes.append(node)
        kept = [node for node in nodes if node is not None]
        return with_nodes(graph, kept, renamed(graph.outputs, names))

    def _control(self, node: Node, unseen: dict[Value, tuple[int, Value | None]]) -> Node:
        """A branch or loop: what it does to what is known."""
        changed = written(node)
        all_known = not host_may_write(node)
        if node.op == LOOP:
            self._forget(changed, not all_known)
        before = dict(self.contents)
        regions = []
        for region in node.regions:
            self.contents = dict(before)
            regions.append(self.block(region))
        self.contents = before
        self._forget(changed, not all_known)
        if node.op != IF or holds(node, CHANNELS) or may_raise(node) or _has_loop(node):
            unseen.clear()
        else:
            for variable in changed | _read(node):
                unseen.pop(variable, None)
        return rebuilt(node, node.inputs, tuple(regions))

    def _forget(self, changed: set[Value], everything: bool) -> None:
        if everything:
            self.contents = {}
        for variable in changed:
            self.contents.pop(variable, None)


def _has_loop(node: Node) -> bool:
    return any(inner.op == LOOP for region in node.regions for inner in walk(region))


def _read(node: Node) -> set[Value]:
    return {
        inner.inputs[0] for region in node.regions for inner in walk(region) if inner.op == READ
    }
