"""Writing a slice of state touches the slice, not the whole.

A `slice_update` is a map over all elements, which goes into kernels with others. Where its base is
the old contents of a variable, or a carried value, that nobody else wants, it becomes a
``slice_write``, which `in_place` lets act on the memory itself.

An `index_update` of something seen in another shape (two axes as one, say) becomes an
``index_write`` of the thing itself, which need not be copied into that shape and back.
"""

from __future__ import annotations

from collections import Counter

from dilim.ir.graph import Graph, Node, Value
from dilim.ir.structure import LOOP, READ, walk
from dilim.passes.rewriting import Rewriter, simplify


def slice_writes(graph: Graph) -> Graph:
    """Let partial writes of state be made in its memory."""
    uses: Counter[Value] = Counter(graph.outputs)
    users: dict[Value, Node] = {}
    state: set[Value] = set()
    for node in walk(graph):
        uses.update(node.inputs)
        users |= dict.fromkeys(node.inputs, node)
        for region in node.regions:
            uses.update(region.outputs)
        if node.op == READ:
            state.update(node.results)
        if node.op == LOOP:
            state.update(node.regions[-1].inputs[1:])

    def rule(rewriter: Rewriter, node: Node) -> Value | None:
        match node.op:
            case "slice_update" if node.inputs[0] in state and uses[node.inputs[0]] == 1:
                return rewriter.add("slice_write", *node.inputs, **node.params)
            case "index_update" if uses[node.results[0]] == 1:
                return _of_the_whole(rewriter, node, users.get(node.results[0]))
            case "reshape" if node.inputs[0].type == node.results[0].type:
                return node.inputs[0]
        return None

    return simplify(graph, rule)


def _of_the_whole(rewriter: Rewriter, node: Node, user: Node | None) -> Value | None:
    """An `index_update` of x seen in another shape, which is taken back, as a write into x."""
    seen = rewriter.maker(node.inputs[0], "reshape")
    if seen is None or user is None or user.op != "reshape":
        return None
    whole, shape = seen.inputs[0], node.inputs[0].shape
    if whole.type != user.results[0].type:
        return None
    return rewriter.add("index_write", whole, *node.inputs[1:], **node.params, shape=shape)
