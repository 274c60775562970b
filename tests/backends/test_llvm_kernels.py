"""Native code for exp, logarithms, sum and matmul against the interpreter, bit for bit."""

import itertools
import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from single import FLOATS, SPECIAL, assert_same_bits, numbers, one_node

from dilim.backends.reference.executor import by_recipe, execute
from dilim.runtime.listing import assembly, llvm_ir
from dilim.runtime.programs import compile_graph

SIZES = st.lists(st.sampled_from([0, 1, 2, 3, 15, 16, 17, 33]), max_size=3).map(tuple)
EXAMPLES = settings(max_examples=20, deadline=None)


def check(name, *arrays, **params):
    graph = one_node(name, *arrays, **params)
    program = compile_graph(graph)
    assert_same_bits(program.run(arrays)[0], execute(graph, arrays, by_recipe)[0])
    return program


OWN = ("exp", "expm1", "log", "log1p")


@pytest.mark.parametrize("name", OWN)
@EXAMPLES
@given(st.data(), SIZES, st.sampled_from(FLOATS))
def test_own_functions(name, data, shape, dtype):
    check(name, data.draw(numbers(shape, dtype)))


@pytest.mark.parametrize("name", OWN)
@pytest.mark.parametrize("dtype", FLOATS)
def test_own_functions_on_any_bits(name, dtype):
    size = np.dtype(dtype).itemsize
    bits = np.random.default_rng(4).bytes(size * 100_000)
    x = np.concatenate([np.frombuffer(bits, dtype), np.array(SPECIAL, dtype)])
    got = check(name, x).run([x])[0]
    with np.errstate(all="ignore"):
        np.testing.assert_array_max_ulp(got, getattr(np, name)(x), 4)


@pytest.mark.parametrize("dtype", FLOATS)
def test_exp_is_within_two_units_in_the_last_place(dtype):
    rng = np.random.default_rng(0)
    low, high = (-103.98, 88.72) if dtype is np.float32 else (-745.14, 709.78)
    x = np.concatenate([rng.uniform(low, high, 50_000), rng.normal(size=50_000)]).astype(dtype)
    got = check("exp", x).run([x])[0]
    want = np.exp(x.astype(np.longdouble))
    unit = np.spacing(want.astype(dtype)).astype(np.longdouble)
    assert np.max(np.abs(got - want) / unit) <= 2.0
    special = np.array(SPECIAL, dtype)
    got = check("exp", special).run([special])[0]
    with np.errstate(all="ignore"):
        np.testing.assert_array_max_ulp(got, np.exp(special), 1)


@EXAMPLES
@given(st.data(), SIZES, st.sampled_from(FLOATS), st.booleans())
def test_sum(data, shape, dtype, keepdims):
    axes = data.draw(st.sets(st.sampled_from(range(len(shape))) if shape else st.nothing()))
    x = data.draw(numbers(shape, dtype))
    check("sum", x, axis=tuple(sorted(axes)), keepdims=keepdims)


@pytest.mark.parametrize("count", [4095, 4096, 4097, 8192, 12_305, 20_500])
def test_sum_over_many_blocks(count):
    rng = np.random.default_rng(count)
    x = (rng.normal(size=(count, 2)) * 10.0 ** rng.integers(-6, 6, (count, 2))).astype(np.float32)
    graph = one_node("sum", x, axis=(0,), keepdims=False)
    got = compile_graph(graph).run([x])[0]
    assert_same_bits(got, execute(graph, [x])[0])
    in_order = np.add.accumulate(x, axis=0)[-1]
    assert np.any(got != in_order)


def test_sum_over_many_blocks_of_two_axes_equals_the_interpreter():
    x = np.random.default_rng(1).normal(size=(3, 83, 2, 61))
    check("sum", x, axis=(1, 3), keepdims=False)


@EXAMPLES
@given(st.data(), st.tuples(*[st.sampled_from([0, 1, 2, 5, 19])] * 3), st.sampled_from(FLOATS))
def test_matmul(data, sizes, dtype):
    n, k, m = sizes
    check("matmul", data.draw(numbers((n, k), dtype)), data.draw(numbers((k, m), dtype)))


def test_matmul_with_broadcast_batches_mixed_dtypes_and_a_long_inner_axis():
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 1, 3, 4)), rng.normal(size=(5, 4, 2))
    check("matmul", x, y)
    check("matmul", x.astype(np.float32), y)
    check("matmul", rng.normal(size=(2, 5000)), rng.normal(size=(5000, 1)))
    small = rng.integers(-128, 128, (3, 40), dtype=np.int8)
    check("matmul", small, small.T.copy())


@EXAMPLES
@given(st.data(), st.sampled_from(["max", "min", "prod"]), st.sampled_from([1, 2, 16, 40]))
def test_other_reductions(data, name, count):
    x = data.draw(numbers((count, 3), np.float32))
    x = x + np.float32(0)  # which zero is the larger one is left open
    check(name, x, axis=(0,), keepdims=True)


INTEGERS = ("int8", "uint8", "int32", "int64", "uint64")


@pytest.mark.parametrize("dtype", INTEGERS)
@pytest.mark.parametrize(
    "name", ["floor_divide", "remainder", "bitwise_left_shift", "bitwise_right_shift", "maximum"]
)
def test_integer_arithmetic_is_defined_everywhere(name, dtype):
    info = np.iinfo(dtype)
    edges = [n for n in (info.min, -7, -2, -1, 0, 1, 2, 7, 8, 31, 64, info.max) if n >= info.min]
    if "shift" in name:
        pairs = [(a, b) for a, b in itertools.product(edges, edges) if b >= 0]
    else:
        pairs = list(itertools.product(edges, edges))
    x, y = (np.array([pair[i] for pair in pairs], dtype) for i in range(2))
    check(name, x, y)


UNWANTED = "fmadd fmsub fmla expf expm1f logf log1pf memset memcpy malloc".split()


def test_the_code_is_strict_and_calls_nothing():
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(32, 40)).astype(np.float32), rng.normal(size=(40, 24))
    for program in (
        check("exp", x),
        check("sum", x, axis=(0, 1), keepdims=False),
        check("matmul", x, w.astype(np.float32)),
        check("exp", w),
        check("log", x),
        check("log1p", x),
        check("expm1", x),
    ):
        text = llvm_ir(program.native.built, program.settings)
        assert not re.search(r" (fast|contract|reassoc|nnan|nsz|arcp|afn) ", text)
        assert re.search(r"<\d+ x (float|double)>", text)
        listing = assembly(program.native.built, program.settings)
        assert not any(word in listing for word in UNWANTED)
        named = set(re.findall(r"\b(?:call\w*\s+|movabs\w*\s+\$)([A-Za-z_]\S*)", listing))
        assert all("k_" in name for name in named), named


def test_fast_numerics_contract_and_are_near():
    x = np.random.default_rng(0).normal(size=(64, 64)).astype(np.float32)
    graph = one_node("matmul", x, x)
    fast, strict = compile_graph(graph, numerics="fast"), compile_graph(graph)
    np.testing.assert_allclose(fast.run([x, x])[0], strict.run([x, x])[0], rtol=1e-4, atol=1e-4)
    assert re.search("fmuladd|contract", llvm_ir(fast.native.built, fast.settings))
    assert not re.search("fmuladd|contract", llvm_ir(strict.native.built, strict.settings))
