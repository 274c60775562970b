"""Graphs that NumPy runs node by node."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from dilim.backends.reference.executor import Evaluate, Handler, Host, execute
from dilim.ir.graph import Graph
from dilim.runtime.arguments import check_inputs, check_variables


class ReferenceProgram:
    """A graph that NumPy runs. See `dilim.runtime.programs.Program`.

    Args:
        graph: a well-formed graph.
        evaluate: how each operation is carried out, with strict bits: ``by_kernel`` as eager
            execution does it, or ``by_recipe``, which is slow, for comparison.
    """

    def __init__(self, graph: Graph, evaluate: Evaluate) -> None:
        self.graph = graph
        self._evaluate = evaluate

    def run(
        self,
        inputs: Sequence[np.ndarray],
        variables: Sequence[np.ndarray] = (),
        host: Host | None = None,
        at_safepoint: Callable[[], None] | None = None,
        handlers: Mapping[str, Handler] | None = None,
    ) -> list[np.ndarray]:
        """See `dilim.runtime.programs.Program`; ``handlers`` may stand in place of a host."""
        arrays = check_inputs(self.graph, inputs)
        check_variables(self.graph, variables)
        return execute(
            self.graph,
            arrays,
            self._evaluate,
            variables=variables,
            host=host,
            handlers=handlers,
            safepoint=at_safepoint,
        )
