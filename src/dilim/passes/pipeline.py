"""The passes in their order."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dilim.ir.graph import Graph
from dilim.passes.branch_sinking import branch_sinking
from dilim.passes.common_subexpressions import common_subexpressions
from dilim.passes.constant_folding import constant_folding
from dilim.passes.dead_code import dead_code
from dilim.passes.fusion import fusion
from dilim.passes.identities import identities
from dilim.passes.in_place import in_place
from dilim.passes.layout import layout
from dilim.passes.loop_invariants import loop_invariants
from dilim.passes.sinking import sinking
from dilim.passes.slice_writes import slice_writes
from dilim.passes.state import state

Pass = Callable[[Graph], Graph]

SIMPLIFYING: Final[tuple[Pass, ...]] = (
    state,
    constant_folding,
    identities,
    layout,
    common_subexpressions,
    loop_invariants,
    sinking,
    branch_sinking,
    dead_code,
)
PASSES: Final[tuple[Pass, ...]] = (*SIMPLIFYING, slice_writes, fusion, in_place)


def optimise(graph: Graph, check: Callable[[Graph], object] | None = None) -> Graph:
    """The graph after all passes, ready for the memory plan: its operations are all in kernels.

    Args:
        graph: a well-formed graph.
        check: called after every pass, for example to verify the graph.
    """
    for run in PASSES:
        graph = run(graph)
        if check is not None:
            check(graph)
    return graph
