"""The reference executor: one-node graphs, in all three ways, and its errors."""

import dataclasses
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from single import FLOATS, assert_same_bits, numbers, one_node

import dilim.tensors.dispatch  # noqa: F401 (installs the kernels of eager execution)
from dilim import dtypes
from dilim.backends.reference.executor import by_kernel, by_recipe, by_reference, execute
from dilim.errors import ShapeError, UnsupportedError
from dilim.ir.graph import GraphBuilder
from dilim.ir.types import Type
from dilim.ops.table import OPERATIONS

SIZES = st.lists(st.sampled_from([0, 1, 2, 3, 17]), max_size=3).map(tuple)


@settings(max_examples=30, deadline=None)
@given(st.data(), SIZES, st.sampled_from(FLOATS))
def test_exp(data, shape, dtype):
    x = data.draw(numbers(shape, dtype))
    graph = one_node("exp", x)
    with np.errstate(all="ignore"):
        assert_same_bits(execute(graph, [x])[0], np.exp(x))
        exact = np.exp(x.astype(np.longdouble)).astype(dtype)
    own = execute(graph, [x], by_recipe)[0]
    assert_same_bits(execute(graph, [x], by_kernel)[0], own)
    np.testing.assert_array_max_ulp(own, exact, 1)


@settings(max_examples=30, deadline=None)
@given(st.data(), SIZES, st.sampled_from(FLOATS), st.booleans())
def test_sum(data, shape, dtype, keepdims):
    axes = data.draw(st.sets(st.sampled_from(range(len(shape))) if shape else st.nothing()))
    x = data.draw(numbers(shape, dtype))
    graph = one_node("sum", x, axis=tuple(sorted(axes)), keepdims=keepdims)
    want = execute(graph, [x])[0]
    assert_same_bits(execute(graph, [x], by_recipe)[0], want)
    assert_same_bits(execute(graph, [x], by_kernel)[0], want)
    y = np.where(np.isfinite(x) & (np.abs(x) < 1e9), x, 0)
    exact = np.sum(y, axis=tuple(axes), keepdims=keepdims, dtype=np.longdouble)
    bound = np.sum(np.abs(y), axis=tuple(axes), keepdims=keepdims, dtype=np.longdouble)
    error = np.abs(execute(graph, [y.astype(dtype)])[0] - exact)
    assert np.all(error <= 40 * np.finfo(dtype).eps * bound)


@settings(max_examples=30, deadline=None)
@given(st.data(), st.tuples(*[st.sampled_from([0, 1, 2, 5])] * 3), st.sampled_from(FLOATS))
def test_matmul(data, sizes, dtype):
    n, k, m = sizes
    x, y = data.draw(numbers((n, k), dtype)), data.draw(numbers((k, m), dtype))
    graph = one_node("matmul", x, y)
    want = execute(graph, [x, y])[0]
    assert_same_bits(execute(graph, [x, y], by_recipe)[0], want)
    x, y = np.ones((n, k), dtype) * 3, np.ones((k, m), dtype)
    np.testing.assert_array_equal(execute(graph, [x, y])[0], np.full((n, m), 3 * k))


def test_outputs_are_copies_in_row_major_order():
    builder = GraphBuilder()
    x = builder.input(Type((2, 3), dtypes.float32))
    turned = builder.add("permute", [x], {"order": (1, 0)}, Type((3, 2), dtypes.float32))
    given_array = np.arange(6, dtype=np.float32).reshape(2, 3)
    results = execute(builder.build([turned, x, turned]), [given_array])
    assert all(r.flags.c_contiguous and r.flags.writeable for r in results)
    for result in results:
        assert not np.shares_memory(result, given_array)
    assert not np.shares_memory(results[0], results[2])
    np.testing.assert_array_equal(results[0], given_array.T)


def test_inputs_of_another_type_are_refused():
    graph = one_node("exp", np.zeros(3, np.float32))
    with pytest.raises(ShapeError, match="expected 1 inputs, received 0"):
        execute(graph, [])
    with pytest.raises(ShapeError, match=r"input 0 of type float32\[3\], received shape \(4,\)"):
        execute(graph, [np.zeros(4, np.float32)])
    with pytest.raises(ShapeError, match="dtype float64"):
        execute(graph, [np.zeros(3)])


def test_an_operation_without_recipe_cannot_run_by_recipe():
    without = dataclasses.replace(OPERATIONS["exp"], recipe=None)
    assert by_reference(without, [np.zeros(2)], {}).tolist() == [1.0, 1.0]
    with pytest.raises(UnsupportedError, match="exp: it has no recipe"):
        by_recipe(without, [np.zeros(2)], {})


def test_tracing_and_the_reference_back_end_do_not_load_llvm():
    code = (
        "import sys, dilim, dilim.tensors.symbolic, dilim.backends.reference.executor;"
        "dilim.sqrt(dilim.tensor(1.0)) + 2;"
        "sys.exit(any(name.startswith('llvmlite') for name in sys.modules))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
