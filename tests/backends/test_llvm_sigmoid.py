"""Native code for tanh, sigmoid and erf against the interpreter, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from single import FLOATS, SPECIAL, assert_same_bits, numbers, one_node

from dilim.backends.llvm.program import Program
from dilim.backends.reference.executor import by_recipe, execute

NAMES = ("tanh", "sigmoid", "erf")


def check(name, x):
    graph = one_node(name, x)
    program = Program(graph)
    assert_same_bits(program(x)[0], execute(graph, [x], by_recipe)[0])
    return program


@settings(max_examples=20, deadline=None)
@given(st.data(), st.sampled_from([0, 1, 3, 16, 33]), st.sampled_from(FLOATS))
@pytest.mark.parametrize("name", NAMES)
def test_a_few_numbers(name, data, count, dtype):
    check(name, data.draw(numbers((count,), dtype)))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", NAMES)
def test_the_whole_range(name, dtype):
    rng = np.random.default_rng(1)
    x = np.concatenate([rng.uniform(-760, 760, 3000), rng.normal(size=20_000) * 2]).astype(dtype)
    check(name, x)
    with np.errstate(all="ignore"):
        check(name, np.array(SPECIAL, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", NAMES)
def test_the_code_is_strict_and_calls_nothing(name, dtype):
    program = check(name, np.ones(40, dtype))
    assert "fma" not in program.library.optimised
    assembly = program.library.assembly
    for unwanted in ("fmadd", "fmsub", "fmla", "expf", "tanhf", "erff", "@PLT"):
        assert unwanted not in assembly, unwanted
    if dtype is np.float32:
        assert "double" not in program.library.optimised
