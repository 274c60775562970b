"""Runs the random programs of `ir.programs` as machine code."""

import numpy as np

from dilim.runtime.programs import compile_graph
from ir.programs import Run


def native_run(program, **options):
    """What is left of a run on the LLVM back end, with memory poisoned wherever it dies."""
    compiled = compile_graph(program.graph, poison=True, **options)
    variables, host = [np.array(x) for x in program.variables], program.host()
    outputs, error = [], None
    try:
        outputs = compiled.run([np.array(x) for x in program.inputs], variables, host)
    except Exception as caught:
        error = caught
    return Run(outputs, variables, host.sent, error)
