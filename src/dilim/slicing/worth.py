"""Whether a graph program has work of its own."""

from __future__ import annotations

from dilim.ir.graph import Graph
from dilim.ir.structure import LOOP, RECEIVE, SEND, STRUCTURAL, walk


def is_idle(graph: Graph) -> bool:
    """Whether a program only counts turns for the host: no tensors, but channel points in loops.

    The host does such work quicker alone.
    """
    if any(x.shape for node in walk(graph) if node.op not in STRUCTURAL for x in node.results):
        return False
    loops = (node for node in walk(graph) if node.op == LOOP)
    return any(
        inner.op in (SEND, RECEIVE)
        for loop in loops
        for region in loop.regions
        for inner in walk(region)
    )


def has_loop(graph: Graph) -> bool:
    """Whether a program may take long to run node by node."""
    return any(node.op == LOOP for node in walk(graph))
