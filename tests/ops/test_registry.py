"""Every operation of the table: rules against results, derivatives against differences."""

import math

import numpy as np
import pytest
from sampling import (
    DIFFERENTIABLE,
    as_inputs,
    close,
    first_derivative,
    float_positions,
    second_derivative,
    smooth_samples,
)

import dilim
from dilim import dtypes
from dilim.backends.reference.executor import by_recipe, by_reference
from dilim.errors import ShapeError
from dilim.ir.types import Type
from dilim.ops.opdef import OpDef
from dilim.ops.table import OPERATIONS
from dilim.tensors.dispatch import apply
from ir.programs import same_bits

CASES = [(name, dtype) for name, op in OPERATIONS.items() for dtype in op.sample_dtypes]


@pytest.mark.parametrize(("name", "dtype"), CASES, ids=lambda v: getattr(v, "name", v))
def test_eager_result_has_the_inferred_type_and_the_bits_of_the_recipe(name, dtype):
    op = OPERATIONS[name]
    for sample in op.samples(np.random.default_rng(3), dtype):
        arrays = as_inputs(sample, dtype)
        if not arrays:
            continue
        out = apply(op, *(dilim.asarray(x) for x in arrays), **sample.params)
        assert (out.shape, out.dtype) == (out.numpy().shape, dtypes.from_numpy(out.numpy().dtype))
        meaning = by_recipe if op.recipe else by_reference
        want = np.asarray(meaning(op, arrays, sample.params))
        assert same_bits(out.numpy(), want), (out.numpy(), want)


@pytest.mark.parametrize("name", [name for name, op in OPERATIONS.items() if op.formula])
def test_reference_agrees_with_an_independent_formula(name):
    op = OPERATIONS[name]
    dtype = dtypes.float64 if dtypes.float64 in op.sample_dtypes else op.sample_dtypes[-1]
    for sample in op.samples(np.random.default_rng(5), dtype):
        arrays = as_inputs(sample, dtype)
        got = np.asarray(op.reference(*arrays, **sample.params))
        want = formula_value(op, arrays, sample.params)
        np.testing.assert_allclose(got.astype(float), want, rtol=1e-12, atol=1e-13)


def formula_value(op: OpDef, arrays, params):
    try:
        return np.asarray(op.formula(*arrays, **params), float)
    except (TypeError, ValueError):
        assert not params
    scalar = np.vectorize(lambda *xs: float(op.formula(*xs)), otypes=[float])
    lists = [x.astype(object) if x.dtype.kind in "biu" else x for x in arrays]
    return scalar(*lists) if all(x.size for x in arrays) else np.zeros(np.broadcast(*arrays).shape)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_first_derivative_agrees_with_differences(name):
    rng = np.random.default_rng(1)
    pairs = [first_derivative(OPERATIONS[name], s, rng) for s in smooth_samples(OPERATIONS[name])]
    for pair in pairs:
        assert pair is None or close(*pair, 1e-7), pair
    has_smooth = any(s.smooth for s in OPERATIONS[name].samples(rng, dtypes.float64))
    assert not has_smooth or any(pair is not None for pair in pairs)


@pytest.mark.parametrize("name", DIFFERENTIABLE)
def test_second_derivative_agrees_with_differences(name):
    rng = np.random.default_rng(2)
    for sample in smooth_samples(OPERATIONS[name]):
        pair = second_derivative(OPERATIONS[name], sample, rng)
        assert pair is None or close(*pair, 1e-6), pair


def test_every_operation_states_its_parts():
    for name, op in OPERATIONS.items():
        assert op.doc.endswith("."), name
        assert op.recipe or op.backends, f"{name}: neither a recipe nor a back end"
        assert list(op.samples(np.random.default_rng(0), op.sample_dtypes[0])), name


def test_samples_include_the_awkward_layouts():
    for name in ("exp", "add", "sum", "matmul", "where"):
        op = OPERATIONS[name]
        dtype = dtypes.float64
        arrays = [x for s in op.samples(np.random.default_rng(0), dtype) for x in as_inputs(s)]
        assert any(x.size == 0 for x in arrays), name
        assert any(not x.flags.c_contiguous and x.size > 1 for x in arrays), name
        if name != "matmul":
            assert any(x.shape == () for x in arrays), name
        assert any(1 in x.shape for x in arrays), name


# --- the checks are checked -----------------------------------------------------------------


def altered(name: str, **changes) -> OpDef:
    op = OPERATIONS[name]
    fields = {f: getattr(op, f) for f in op.__dataclass_fields__ if f != "eager"}
    return OpDef(**(fields | changes))


def test_a_wrong_derivative_is_caught():
    wrong = altered("tanh", derivative=(lambda b, g, out, x: b.multiply(g, out),))
    rng = np.random.default_rng(0)
    pairs = [first_derivative(wrong, s, rng) for s in smooth_samples(wrong)]
    assert not all(pair is None or close(*pair, 1e-7) for pair in pairs)


def test_a_derivative_that_is_wrong_only_at_second_order_is_caught():
    detached = altered("exp", derivative=(lambda b, g, out, x: b.multiply(g, out.detach()),))
    rng = np.random.default_rng(0)
    firsts = [first_derivative(detached, s, rng) for s in smooth_samples(detached)]
    assert all(pair is None or close(*pair, 1e-7) for pair in firsts)
    seconds = [second_derivative(detached, s, rng) for s in smooth_samples(detached)]
    assert not all(pair is None or close(*pair, 1e-6) for pair in seconds)


def test_a_wrong_shape_rule_is_caught():
    wrong = altered("sum", infer=lambda x, *, axis, keepdims: (x.shape, x.dtype))
    x = np.ones((2, 3))
    out = apply(wrong, dilim.asarray(x), axis=(0,), keepdims=False)
    assert (out.shape, out.dtype) != (out.numpy().shape, dtypes.from_numpy(out.numpy().dtype))


def test_a_wrong_recipe_is_caught():
    from test_recipes import assert_same

    from dilim.backends.reference.interpreter import interpret
    from dilim.ops.primitives import prim
    from dilim.ops.recipe import elementwise

    wrong = altered("exp", recipe=elementwise(lambda x: prim("expm1", x)))
    x = np.array([0.5, 1.0])
    got = interpret(wrong.recipe(Type(x.shape, dtypes.float64)), [x])
    with pytest.raises(AssertionError):
        assert_same(got, wrong.reference(x), wrong.tolerance)


def test_a_wrong_dtype_rule_is_caught():
    wrong = altered("less", infer=OPERATIONS["add"].infer)
    out = apply(wrong, dilim.asarray(np.ones(2)), dilim.asarray(np.ones(2)))
    assert out.dtype is not dtypes.from_numpy(out.numpy().dtype)


def test_formula_table_is_not_empty():
    with_formula = [name for name, op in OPERATIONS.items() if op.formula]
    assert len(with_formula) > 60
    assert math.isclose(OPERATIONS["exp"].formula(1.0), math.e)
    arrays = [np.ones(1, bool), np.ones(1), np.ones(1)]
    assert float_positions(OPERATIONS["where"], arrays) == [1, 2]


@pytest.mark.parametrize("name", [name for name, op in OPERATIONS.items() if not op.is_view])
def test_only_views_share_memory_with_their_input(name):
    op = OPERATIONS[name]
    for sample in op.samples(np.random.default_rng(3), op.sample_dtypes[-1]):
        arrays = [x for x in as_inputs(sample, op.sample_dtypes[-1]) if x.size]
        if len(arrays) == len(sample.inputs) and arrays:
            out = apply(op, *(dilim.asarray(x) for x in arrays), **sample.params)
            assert not any(np.shares_memory(out.numpy(), x) for x in arrays)


FLOATS = Type((3, 4), dtypes.float32)
ROW = Type((4,), dtypes.float32)
INDEX = Type((2,), dtypes.int64)
IMPOSSIBLE = [
    ("sum", (FLOATS,), {"axis": (2,), "keepdims": False}),
    ("max", (FLOATS,), {"axis": (1, 0), "keepdims": False}),
    ("argmax", (FLOATS,), {"axis": (-1,), "keepdims": False}),
    ("flip", (FLOATS,), {"axis": (2,)}),
    ("permute", (FLOATS,), {"order": (0, 2)}),
    ("slice", (FLOATS,), {"index": ((0, 3, 1), (2, 3, 1))}),
    ("slice", (FLOATS,), {"index": ((0, 3, 1),)}),
    ("slice", (ROW,), {"index": ((1, 3, -1),)}),
    ("slice_update", (ROW, ROW), {"index": ((1, 4, 1),)}),
    ("concat", (FLOATS, FLOATS), {"axis": 2}),
    ("take", (FLOATS, INDEX), {"axis": 2}),
    ("take_along_axis", (ROW, INDEX), {"axis": 1}),
    ("cumulative_sum", (FLOATS,), {"axis": 2}),
    ("expand", (FLOATS,), {"shape": (3, 5)}),
    ("reshape", (FLOATS,), {"shape": (5, 3)}),
    ("windows", (FLOATS,), {"size": (4, 4), "stride": (1, 1)}),
    ("matmul", (FLOATS, FLOATS), {}),
]


@pytest.mark.parametrize(("name", "types", "params"), IMPOSSIBLE)
def test_impossible_parameters_are_refused_by_the_rule_itself(name, types, params):
    with pytest.raises(ShapeError, match=f"{name}:"):
        OPERATIONS[name].infer(*types, **params)
