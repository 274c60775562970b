"""Writing a slice of state touches the slice, not the whole.

A `slice_update` is a map over all elements, which goes into kernels with others. Where its base is
the old contents of a variable, or a carried value, that nobody else wants, it becomes a
``slice_write``, which `in_place` lets act on the memory itself.
"""

from __future__ import annotations

from collections import Counter

from dilim.ir.graph import Graph, Node, Value
from dilim.ir.structure import LOOP, READ, walk
from dilim.passes.rewriting import Rewriter, simplify


def slice_writes(graph: Graph) -> Graph:
    """Let partial writes of state be made in its memory."""
    uses: Counter[Value] = Counter(graph.outputs)
    state: set[Value] = set()
    for node in walk(graph):
        uses.update(node.inputs)
        for region in node.regions:
            uses.update(region.outputs)
        if node.op == READ:
            state.update(node.results)
        if node.op == LOOP:
            state.update(node.regions[-1].inputs[1:])

    def rule(rewriter: Rewriter, node: Node) -> Value | None:
        base = node.inputs[0] if node.op == "slice_update" else None
        if base is None or base not in state or uses[base] > 1:
            return None
        return rewriter.add("slice_write", *node.inputs, **node.params)

    return simplify(graph, rule)
