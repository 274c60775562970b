"""Every pass, and every mixture of passes, leaves what a program does as it was, bit for bit."""

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dilim.backends.reference.executor import by_recipe
from dilim.ir.structure import FUSED, STRUCTURAL, WRITE, walk
from dilim.ir.verify import verify
from dilim.ops.nest import compose
from dilim.ops.table import OPERATIONS
from dilim.passes import pipeline
from dilim.passes.rewriting import simplify, with_nodes
from ir.programs import Program, programs, same_run
from passes.graphs import body

KNOWN = [name for name, operation in OPERATIONS.items() if operation.recipe is not None]
QUICK = settings(
    max_examples=20, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large]
)
PROGRAMS = programs(operations=KNOWN)
FAILING = programs(operations=KNOWN, errors=True)


def check(program, *passes):
    """Run a program before and after some passes."""
    graph = program.graph
    for one in passes:
        graph = one(graph)
        verify(graph, OPERATIONS)
    same_run(program.on(graph).run(by_recipe), program.run(by_recipe))
    return graph


@pytest.mark.parametrize("one", pipeline.PASSES, ids=lambda one: one.__name__)
@QUICK
@given(PROGRAMS | FAILING)
def test_one_pass(one, program):
    check(program, one)


@QUICK
@given(PROGRAMS | FAILING, st.lists(st.sampled_from(pipeline.SIMPLIFYING), max_size=8))
def test_any_mixture_of_passes(program, passes):
    check(program, *passes, pipeline.fusion)


@QUICK
@given(PROGRAMS | FAILING)
def test_all_passes_give_kernels_that_are_loop_nests(program):
    graph = check(program, *pipeline.PASSES)
    inside = {inner for node in walk(graph) if node.op == FUSED for inner in walk(node.regions[0])}
    for node in walk(graph):
        assert node.op in STRUCTURAL or node in inside
        if node.op == FUSED:
            compose(node.regions[0], OPERATIONS)


@QUICK
@given(PROGRAMS)
def test_passes_find_nothing_new_to_forward_or_remove(program):
    """Dead code and state are settled by one walk."""
    for one in (pipeline.dead_code, pipeline.state, pipeline.common_subexpressions):
        once = one(program.graph)
        assert len(list(walk(one(once)))) == len(list(walk(once)))


def small(lines, inputs, arrays, contents=()):
    return Program(body(lines, inputs), arrays, list(contents), {})


def adds_zero_for_nothing(graph):
    """Wrong for -0.0."""

    def rule(rewriter, node):
        return node.inputs[0] if node.op == "add" else None

    return simplify(graph, rule)


def drops_the_first_write(graph):
    first = next(node for node in graph.nodes if node.op == WRITE)
    return with_nodes(graph, [node for node in graph.nodes if node is not first])


def test_a_pass_that_loses_the_sign_of_zero_is_caught():
    lines = """
        %c: float32[] = full[shape=(), value=0.0, dtype=float32]()
        %y: float32[2] = add(%x, %c)
        return %y"""
    check(small(lines, "%x: float32[2]", [np.array([1.0, 0.0], np.float32)]), adds_zero_for_nothing)
    program = small(lines, "%x: float32[2]", [np.array([1.0, -0.0], np.float32)])
    with pytest.raises(AssertionError, match="output 0"):
        check(program, adds_zero_for_nothing)


def test_a_pass_that_loses_what_was_written_before_an_error_is_caught():
    lines = """
        write(%v, %x)
        %t: float32[1] = take[axis=0](%x, %i)
        write(%v, %y)
        return %t"""
    inputs = "%x: float32[2], %y: float32[2], %i: int64[1]; %v: float32[2]"
    arrays = [np.ones(2, np.float32), np.zeros(2, np.float32), np.array([5])]
    program = small(lines, inputs, arrays, [np.full(2, 3, np.float32)])
    check(program, *pipeline.PASSES)
    with pytest.raises(AssertionError, match="variable 0"):
        check(program, drops_the_first_write)
