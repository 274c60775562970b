"""All passes on real training steps: the same bits, few kernels, in place, in little time."""

import time

import numpy as np
import pytest

from dilim import dtypes
from dilim.backends.reference.executor import by_recipe, execute
from dilim.errors import GraphError
from dilim.ir.structure import FUSED, STRUCTURAL, WRITE
from dilim.ir.verify import verify
from dilim.ops.nest import compose
from dilim.ops.table import OPERATIONS
from dilim.passes import pipeline
from dilim.passes.pipeline import optimise
from dilim.passes.rewriting import with_nodes
from passes.graphs import find
from passes.memory_model import Machine
from passes.models import PROGRAMS

KERNELS = {"dqn": 19, "logistic": 3, "sigmoid": 3, "classifier": 13}
"""Most kernels of each program."""


@pytest.fixture(scope="module")
def programs():
    return {name: make() for name, make in PROGRAMS.items()}


def arrays(values):
    """Numbers for inputs or variables; integers are 0 or 1, which are inside every axis."""
    rng = np.random.default_rng(7)
    numbers = (np.abs(rng.normal(size=value.shape)) for value in values)
    return [
        np.asarray(x % 2 if value.dtype is dtypes.int64 else x, value.dtype.numpy)
        for x, value in zip(numbers, values, strict=True)
    ]


@pytest.mark.parametrize("name", PROGRAMS)
def test_training_steps_keep_their_bits(name, programs):
    graph = programs[name]
    optimised = optimise(graph, lambda made: verify(made, OPERATIONS))
    inputs, before = arrays(graph.inputs), arrays(graph.variables)
    runs = []
    for chosen in (graph, optimised):
        state = [x.copy() for x in before]
        outputs = execute(chosen, inputs, by_recipe, variables=state)
        runs.append([x.tobytes() for x in (*outputs, *state)])
    assert runs[0] == runs[1]
    assert _is_in_place(optimised)


def _is_in_place(graph):
    """Whether every variable that is written is written in place, and no read is a copy."""
    return all(node.params.get("in_place") for node in find(graph, WRITE)) and not any(
        node.params.get("copy") for node in find(graph, "read")
    )


@pytest.mark.parametrize("name", PROGRAMS)
def test_number_of_kernels(name, programs):
    graph = optimise(programs[name])
    assert all(node.op in STRUCTURAL for node in graph.nodes)
    kernels = find(graph, FUSED)
    assert len(kernels) <= KERNELS[name]
    for node in kernels:
        compose(node.regions[0], OPERATIONS)


def test_a_small_step_in_shared_memory(programs):
    graph = programs["sigmoid"]
    inputs, state = arrays(graph.inputs), arrays(graph.variables)
    wanted_state = [x.copy() for x in state]
    wanted = execute(graph, inputs, by_recipe, variables=wanted_state)
    got = Machine(optimise(graph), state, None).run(inputs)
    for a, b in zip([*got, *state], [*wanted, *wanted_state], strict=True):
        assert a.tobytes() == b.tobytes()


def test_passes_are_quick(programs):
    graph = programs["dqn"]
    optimise(graph)
    best = np.inf
    for _ in range(5):
        start = time.perf_counter()
        optimise(graph)
        best = min(best, time.perf_counter() - start)
    assert best < 0.04


def test_the_hook_sees_the_work_of_every_pass(programs):
    seen = []
    optimise(programs["logistic"], seen.append)
    assert len(seen) == len(pipeline.PASSES)


def test_a_wrong_pass_is_caught_by_the_verifier(programs, monkeypatch):
    def forgets_the_first_node(graph):
        return with_nodes(graph, graph.nodes[1:])

    monkeypatch.setattr(pipeline, "PASSES", (*pipeline.PASSES[:2], forgets_the_first_node))
    with pytest.raises(GraphError, match="never made"):
        optimise(programs["logistic"], lambda made: verify(made, OPERATIONS))
