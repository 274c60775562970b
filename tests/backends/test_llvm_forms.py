"""Native kernels of every form but nests: the bits of the interpreter, at any shape and target."""

from dataclasses import replace

import numpy as np
import pytest
from forms_runner import KernelFailed, NativeForm
from hypothesis import given, settings
from hypothesis import strategies as st

from dilim import dtypes
from dilim.backends.llvm.sorts import NETWORK, RUN
from dilim.backends.reference.interpreter import CheckFailed, interpret
from dilim.errors import NonFiniteError
from dilim.ir.types import Type
from dilim.ops import philox
from dilim.ops.expansions import expanded
from dilim.ops.primitives import load, loop_index, prim
from dilim.ops.recipe import ArgReduce, Blocks, Pick, Scan, Scatter, Sort
from dilim.ops.table import OPERATIONS

FORMS = (ArgReduce, Blocks, Pick, Scan, Scatter, Sort)
SPECIAL = [0.0, -0.0, 1.0, -1.0, 1e-45, np.inf, -np.inf, np.nan, 3e38]
NUMBERS = st.sampled_from(SPECIAL) | st.floats(-2, 2, width=32)
TARGETS = st.sampled_from([None, "x86-64", "x86-64-v3"])
few = settings(max_examples=25)


def types_of(arrays):
    return [Type(x.shape, dtypes.from_numpy(x.dtype)) for x in arrays]


def compiled(name, arrays, params, **options):
    """The form of an operation, and its native kernel."""
    op, types = OPERATIONS[name], types_of(arrays)
    form = op.recipe(*types, **params)
    return form, NativeForm(form, types, Type(*op.infer(*types, **params)), **options)


def agree(name, *arrays, target=None, **params):
    """The native result, which must have the bits of the interpreted one."""
    form, native = compiled(name, arrays, params, target=target)
    got = native(*arrays)
    same_bits(got, interpret(expanded(form), arrays))
    return got


def same_bits(got, want):
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if got.dtype.kind == "f":  # NaNs are equal whatever their payload
        np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
        got, want = np.where(np.isnan(got), 0, got), np.where(np.isnan(want), 0, want)
    assert got.tobytes() == want.tobytes()


def form_of(name):
    op = OPERATIONS[name]
    sample = next(op.samples(np.random.default_rng(0), op.sample_dtypes[0]))
    return op.recipe(*types_of([np.asarray(x) for x in sample.inputs]), **sample.params)


NAMES = [name for name, op in OPERATIONS.items() if op.recipe and isinstance(form_of(name), FORMS)]


@pytest.mark.parametrize("name", NAMES)
def test_every_operation_runs_with_the_bits_of_its_recipe(name):
    op = OPERATIONS[name]
    for dtype in op.sample_dtypes:
        for sample in op.samples(np.random.default_rng(7), dtype):
            agree(name, *(np.array(x, order="C") for x in sample.inputs), **sample.params)


@pytest.mark.parametrize("target", ["generic", "x86-64", "x86-64-v3"])
@pytest.mark.parametrize("name", NAMES)
def test_smaller_vectors_give_the_same_bits(name, target):
    op = OPERATIONS[name]
    for sample in list(op.samples(np.random.default_rng(9), op.sample_dtypes[-1]))[:4]:
        arrays = [np.array(x, order="C") for x in sample.inputs]
        agree(name, *arrays, target=target, **sample.params)


def test_all_forms_are_tested():
    assert {type(form_of(name)) for name in NAMES} == set(FORMS)


# --- positions of the best ------------------------------------------------------------------


@few
@given(
    values=st.lists(NUMBERS, min_size=1, max_size=9),
    shape=st.lists(st.sampled_from([1, 2, 5, 37, 70]), min_size=1, max_size=3).map(tuple),
    dtype=st.sampled_from([dtypes.float32, dtypes.float64, dtypes.int8, dtypes.uint64]),
    name=st.sampled_from(["argmax", "argmin"]),
    target=TARGETS,
    data=st.data(),
)
def test_the_first_of_the_best_is_found_in_rows_and_columns(
    values, shape, dtype, name, target, data
):
    axes = st.lists(st.integers(0, len(shape) - 1), unique=True, max_size=len(shape))
    axis = tuple(sorted(data.draw(axes)))
    with np.errstate(all="ignore"):
        x = np.resize(np.array(values), shape).astype(dtype.numpy)
    agree(name, x, axis=axis, keepdims=data.draw(st.booleans()), target=target)


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int8, np.uint64])
@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("length", [32, 33, 70])
def test_elements_that_are_all_as_bad_as_can_be(length, name, dtype):
    limits = np.iinfo if np.dtype(dtype).kind in "iu" else lambda t: np.finfo(t)
    edges = [-np.inf, np.inf] if limits is not np.iinfo else [limits(dtype).min, limits(dtype).max]
    worst, best = edges if name == "argmax" else edges[::-1]
    x = np.full((3, length), worst, dtype)
    assert agree(name, x, axis=(1,), keepdims=False).tolist() == [0, 0, 0]
    assert agree(name, x, axis=(0, 1), keepdims=False) == 0
    x[1, -1] = best
    assert agree(name, x, axis=(1,), keepdims=False).tolist() == [0, length - 1, 0]


def test_nan_wins_in_any_lane():
    for place in range(70):
        x = np.zeros((1, 70), np.float32)
        x[0, place:] = np.nan
        assert agree("argmax", x, axis=(1,), keepdims=False) == [place]


# --- scans ----------------------------------------------------------------------------------


@few
@given(
    shape=st.lists(st.sampled_from([0, 1, 2, 5, 19]), min_size=1, max_size=3).map(tuple),
    name=st.sampled_from(["cumulative_sum", "cumulative_prod"]),
    dtype=st.sampled_from([dtypes.float32, dtypes.float64, dtypes.int16]),
    target=TARGETS,
    data=st.data(),
)
def test_running_values_along_any_axis(shape, name, dtype, target, data):
    x = (np.random.default_rng(0).standard_normal(shape) * 3).astype(dtype.numpy)
    agree(name, x, axis=data.draw(st.integers(0, len(shape) - 1)), target=target)


@pytest.mark.parametrize("axis", [0, 1])
def test_a_costly_body_is_computed_inside_a_scan(axis):
    x = np.random.default_rng(1).standard_normal((21, 35)).astype(np.float32)
    body = prim("exp", load(0, dtypes.float32, loop_index(0), loop_index(1)))
    form = Scan(x.shape, axis, body, "add")
    native = NativeForm(form, types_of([x]), *types_of([x]))
    same_bits(native(x), interpret(expanded(form), [x]))


# --- order ----------------------------------------------------------------------------------


@few
@given(
    length=st.sampled_from([0, 1, 2, 7, 8, 9, 15, 16, 17, 40, 65, 129, 300]),
    rows=st.integers(0, 3),
    dtype=st.sampled_from(dtypes.ALL),
    axis=st.integers(0, 1),
    descending=st.booleans(),
    seed=st.integers(0, 9),
    target=TARGETS,
)
def test_sorting_any_number_of_elements(length, rows, dtype, axis, descending, seed, target):
    shape = (length, rows) if axis == 0 else (rows, length)
    rng = np.random.default_rng(seed)
    with np.errstate(all="ignore"):
        x = rng.choice([*SPECIAL, *rng.standard_normal(20)], shape).astype(dtype.numpy)
    agree("argsort", x, axis=axis, descending=descending, target=target)


def test_the_network_sorts_every_pattern_of_zeros_and_ones():
    for count in range(RUN + 1):
        for pattern in range(2**count):
            values = [pattern >> i & 1 for i in range(count)]
            for low, high in NETWORK:
                if high < count and values[low] > values[high]:
                    values[low], values[high] = values[high], values[low]
            assert values == sorted(values)


# --- writes ---------------------------------------------------------------------------------

WRITES = ["index_add", "index_update"]


@few
@given(
    name=st.sampled_from(WRITES),
    shape=st.lists(st.sampled_from([1, 2, 3, 18]), min_size=1, max_size=3).map(tuple),
    inner=st.lists(st.integers(0, 4), max_size=2).map(tuple),
    dtype=st.sampled_from([dtypes.float32, dtypes.float64, dtypes.int32]),
    in_place=st.booleans(),
    target=TARGETS,
    data=st.data(),
)
def test_writes_at_positions(name, shape, inner, dtype, in_place, target, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    x, value = (
        np.asarray(rng.standard_normal(size) * 9).astype(dtype.numpy)
        for size in (shape, (*shape[:axis], *inner, *shape[axis + 1 :]))
    )
    indices = np.asarray(rng.integers(-shape[axis], shape[axis], inner))
    base = 0 if in_place else None
    form, native = compiled(name, [x, indices, value], {"axis": axis}, base=base, target=target)
    want = interpret(expanded(form), [x, indices, value])
    same_bits(native(x, indices, value), want)


@pytest.mark.parametrize("name", WRITES)
def test_in_place_nothing_is_written_when_a_position_is_out_of_range(name):
    x, indices = np.zeros((4, 3)), np.array([0, 1, 4, -9])
    value = np.ones((4, 3))
    _, native = compiled(name, [x, indices, value], {"axis": 0}, base=0)
    with pytest.raises(KernelFailed) as caught:
        native(x, indices, value)
    assert (caught.value.number, caught.value.value) == (0, 4)
    assert not x.any()


def test_a_value_that_is_read_from_what_is_written():
    x = np.arange(12.0)
    place = prim("remainder", loop_index(0) * 5 + 1, 12)
    body = load(0, dtypes.float64, prim("remainder", loop_index(0) + 1, 12)) * 2.0
    form = Scatter((12,), (place,), body, "add", base=0, shape=(12,))
    want = interpret(form, [x])
    same_bits(NativeForm(form, types_of([x]), *types_of([x]), base=0)(x), want)


def test_replacing_is_not_adding():
    x, indices, value = np.ones(3), np.array([1, 1]), np.array([2.0, 3.0])
    form, native = compiled("index_update", [x, indices, value], {"axis": 0})
    assert native(x, indices, value).tolist() == [1, 3, 1]
    added = NativeForm(replace(form, combine="add"), types_of([x, indices, value]), *types_of([x]))
    assert added(x, indices, value).tolist() == [1, 6, 1]


# --- errors ---------------------------------------------------------------------------------

FAILURES = [
    ("index_add", [np.zeros((2, 3)), np.array([[0], [3]]), np.zeros((2, 2, 1))], {"axis": 1}),
    ("index_update", [np.zeros(3), np.array(7, np.uint64), np.zeros(())], {"axis": 0}),
    ("index_update", [np.zeros(3), np.array([0, -128], np.int8), np.zeros(2)], {"axis": 0}),
    ("add_along_axis", [np.zeros((2, 3)), np.array([[0], [-4]]), np.zeros((2, 1))], {"axis": 1}),
    (
        "random_categorical",
        [philox.seed_state(0), np.array([[0, 1], [0, np.nan], [0, np.inf]], np.float32)],
        {"axis": 1},
    ),
    ("random_categorical", [philox.seed_state(0), np.full((2, 30), -np.inf)], {"axis": 1}),
    *(
        (
            "random_integers_between",
            [philox.seed_state(0), *map(np.array, bounds)],
            {"shape": shape},
        )
        for bounds in ((3, 3), (4, -1))
        for shape in ((), (3,), (50, 7))
    ),
]


@pytest.mark.parametrize(("name", "arrays", "params"), FAILURES)
def test_a_failed_check_is_the_error_of_eager_execution(name, arrays, params):
    form, native = compiled(name, arrays, params)
    op = OPERATIONS[name]
    with pytest.raises(KernelFailed) as caught:
        native(*arrays)
    with pytest.raises(CheckFailed) as interpreted:
        interpret(expanded(form), arrays)
    assert caught.value.value == interpreted.value.value
    with pytest.raises((IndexError, NonFiniteError, ValueError)) as eager:
        op.eager(*arrays, **params)
    error = op.failure(caught.value.value, *types_of(arrays), **params)
    assert (type(error), str(error)) == (type(eager.value), str(eager.value))


# --- random numbers -------------------------------------------------------------------------


@few
@given(
    name=st.sampled_from(["random_bits", "random_uniform", "random_normal", "random_integers"]),
    dtype=st.sampled_from(dtypes.FLOATING),
    shape=st.lists(st.sampled_from([0, 1, 2, 3, 7, 33]), max_size=3).map(tuple),
    block=st.sampled_from([0, 2**32 - 2, 2**64 - 1, 2**128 - 1]),
    target=TARGETS,
)
def test_random_numbers_of_any_shape(name, dtype, shape, block, target):
    state = np.array([3, 4, *(block >> shift & 0xFFFFFFFF for shift in (0, 32, 64, 96))], np.uint32)
    params = {
        "random_bits": {},
        "random_integers": {"low": -5, "high": 2**40, "dtype": dtypes.int64},
    }.get(name, {"dtype": dtype})
    agree(name, state, shape=shape, target=target, **params)


@few
@given(
    shape=st.lists(st.sampled_from([1, 2, 4, 9, 33]), min_size=1, max_size=3).map(tuple),
    dtype=st.sampled_from(dtypes.FLOATING),
    scale=st.sampled_from([0.0, 1.0, 200.0]),
    target=TARGETS,
    data=st.data(),
)
def test_categories_of_any_shape(shape, dtype, scale, target, data):
    axis = data.draw(st.integers(0, len(shape) - 1))
    logits = (scale * np.random.default_rng(0).standard_normal(shape)).astype(dtype.numpy)
    logits[logits < -scale] = -np.inf
    lowest = np.isneginf(logits).all(axis=axis, keepdims=True)
    logits = np.where(lowest, dtype.numpy.type(0), logits)
    agree("random_categorical", philox.seed_state(5), logits, axis=axis, target=target)


# --- threads --------------------------------------------------------------------------------

LARGE = [
    ("random_uniform", [philox.seed_state(1)], {"shape": (300_001,), "dtype": dtypes.float32}),
    ("argsort", [np.random.default_rng(0).random((100, 80))], {"axis": 1, "descending": True}),
    ("cumulative_sum", [np.random.default_rng(0).random((700, 90))], {"axis": 1}),
    ("argmax", [np.random.default_rng(0).random((900, 900))], {"axis": (1,), "keepdims": False}),
]


@pytest.mark.parametrize(("name", "arrays", "params"), LARGE)
@pytest.mark.parametrize("pieces", [2, 3, 7])
def test_work_can_be_divided(name, arrays, params, pieces):
    _, native = compiled(name, arrays, params)
    assert native.form.chunks >= pieces
    same_bits(native(*arrays, pieces=pieces), native(*arrays))


def test_a_part_that_is_left_out_would_be_noticed():
    name, arrays, params = LARGE[0]
    _, native = compiled(name, arrays, params)
    whole = native(*arrays)
    native.form = replace(native.form, chunks=native.form.chunks - 1)
    assert native(*arrays).tobytes() != whole.tobytes()
