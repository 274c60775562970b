"""What `in_place` permits is harmless: runs in shared memory give what runs in copies give."""

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dilim.backends.reference.executor import by_recipe
from dilim.ops.table import OPERATIONS
from dilim.passes.pipeline import optimise
from ir.programs import Run, programs, same_run
from passes.memory_model import Machine

KNOWN = [name for name, operation in OPERATIONS.items() if operation.recipe is not None]


def run_in_memory(program, graph, backwards=False):
    """A run of the graph in the memory that its permissions describe."""
    variables, host = [np.array(x) for x in program.variables], program.host()
    outputs, error = [], None
    try:
        outputs = Machine(graph, variables, host, backwards).run(program.inputs)
    except Exception as caught:
        error = caught
    return Run(outputs, variables, host.sent, error)


@settings(max_examples=40, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large])
@given(programs(operations=KNOWN) | programs(operations=KNOWN, errors=True), st.booleans())
def test_shared_memory_changes_nothing(program, backwards):
    got = run_in_memory(program, optimise(program.graph), backwards)
    same_run(got, program.run(by_recipe))
