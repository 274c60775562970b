"""Sorting, searching, replacing, drawing and checking: recipes against references, at the edges."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from test_recipes import assert_same

from dilim import dtypes
from dilim.backends.reference.interpreter import CheckFailed, interpret
from dilim.errors import DtypeError, NonFiniteError, ShapeError
from dilim.ir.types import Type
from dilim.ops import philox
from dilim.ops.expressions import postorder
from dilim.ops.primitives import Expr, check, load, loop_index
from dilim.ops.recipe import Blocks, Map, Sort
from dilim.ops.table import OPERATIONS

SPECIAL = [0.0, -0.0, 1.0, -1.0, 1e-45, -1e-45, np.inf, -np.inf, np.nan, -np.nan, 3e38, 1.0]
NUMBERS = st.sampled_from(SPECIAL) | st.floats(-2, 2, width=32)


def types_of(arrays):
    return [Type(x.shape, dtypes.from_numpy(x.dtype)) for x in arrays]


def both(name, *arrays, **params):
    """The result by recipe and by reference."""
    op = OPERATIONS[name]
    got = interpret(op.recipe(*types_of(arrays), **params), arrays)
    return got, np.asarray(op.reference(*arrays, **params))


def errors(name, *arrays, **params):
    """What the kernel, the reference and the recipe raise."""
    op, types = OPERATIONS[name], types_of(arrays)
    found = []
    for function in (op.eager, op.reference):
        with pytest.raises((IndexError, NonFiniteError)) as caught:
            function(*arrays, **params)
        found.append(caught.value)
    with pytest.raises(CheckFailed) as caught:
        interpret(op.recipe(*types, **params), arrays)
    return [*found, op.failure(caught.value.value, *types, **params)]


# --- order ----------------------------------------------------------------------------------


@given(
    values=st.lists(NUMBERS, max_size=40),
    dtype=st.sampled_from(dtypes.ALL),
    descending=st.booleans(),
    rows=st.integers(1, 3),
)
def test_sorting_agrees_on_ties_nans_and_zeros(values, dtype, descending, rows):
    with np.errstate(all="ignore"):
        x = np.array(values * rows, np.float64).astype(dtype.numpy).reshape(rows, -1)
    for axis in (0, 1):
        assert_same(*both("argsort", x, axis=axis, descending=descending), 0)


@given(
    known=st.lists(NUMBERS, max_size=33),
    values=st.lists(NUMBERS, max_size=9),
    side=st.sampled_from(["left", "right"]),
    pair=st.sampled_from(
        [("float32", "float32"), ("float64", "float32"), ("int8", "int64"), ("uint8", "int16")]
    ),
)
def test_searching_agrees_on_ties_nans_and_mixed_dtypes(known, values, side, pair):
    with np.errstate(all="ignore"):
        x = np.sort(np.array(known, np.float64).astype(pair[0]))
        wanted = np.array(values, np.float64).astype(pair[1])
    assert_same(*both("searchsorted", x, wanted, side=side), 0)


@given(st.lists(NUMBERS, min_size=1, max_size=20), st.sampled_from(["argmax", "argmin"]))
def test_the_best_position_agrees_on_ties_and_nans(values, name):
    x = np.array(values, np.float32)
    assert_same(*both(name, x, axis=(0,), keepdims=False), 0)


def test_an_unstable_order_would_be_noticed():
    x = np.array([1, 0, 1, 0], np.int64)
    backwards = Sort((4,), 0, load(0, dtypes.int64, loop_index(0)) * 4 - loop_index(0))
    got = interpret(backwards, [x])
    assert got.tolist() != OPERATIONS["argsort"].reference(x, axis=0, descending=False).tolist()


# --- positions ------------------------------------------------------------------------------


def test_the_last_of_equal_positions_stays():
    x, value = np.zeros((3, 2)), np.arange(6.0).reshape(3, 2)
    got, want = both("index_update", x, np.array([1, -1, 1]), value, axis=0)
    assert_same(got, want, 0)
    assert want.tolist() == [[0, 0], [4, 5], [2, 3]]


@given(st.data())
def test_writes_agree_at_any_shape(data):
    sizes = st.integers(0, 4)
    shape = tuple(data.draw(st.lists(sizes, min_size=1, max_size=3)))
    axis = data.draw(st.integers(0, len(shape) - 1))
    inner = tuple(data.draw(st.lists(sizes, max_size=2))) if shape[axis] else (0,)
    rng = np.random.default_rng(data.draw(st.integers(0, 9)))
    x = rng.standard_normal(shape)
    indices = rng.integers(-shape[axis], max(shape[axis], 1), inner)
    value = rng.standard_normal((*shape[:axis], *inner, *shape[axis + 1 :]))
    for name in ("index_update", "index_add"):
        assert_same(*both(name, x, indices, value, axis=axis), 0)


POSITION_ERRORS = [
    ("take", [np.zeros((3, 4)), np.array([[1, 4], [9, -5]])], 1, "position 4 .* of size 4"),
    ("take", [np.zeros(3), np.array([2**64 - 1], np.uint64)], 0, f"position {2**64 - 1} "),
    ("take", [np.zeros(3), np.array([0, 200], np.uint8)], 0, "position 200 .* of size 3"),
    ("take", [np.zeros(3), np.array([0, -4], np.int8)], 0, "position -4 .* of size 3"),
    ("take_along_axis", [np.zeros((2, 2)), np.array([[0], [2]])], 1, "position 2 .* of size 2"),
    ("index_add", [np.zeros(3), np.array([3]), np.zeros(1)], 0, "position 3 .* of size 3"),
    ("index_update", [np.zeros(3), np.array(-4), np.zeros(())], 0, "position -4 .* of size 3"),
    ("index_update", [np.zeros(3), np.array(7, np.uint64), np.zeros(())], 0, "position 7 "),
    ("add_along_axis", [np.zeros(3), np.array([5]), np.zeros(1)], 0, "position 5 .* of size 3"),
]


@pytest.mark.parametrize(("name", "arrays", "axis", "text"), POSITION_ERRORS)
def test_a_position_out_of_range_is_the_same_error_everywhere(name, arrays, axis, text):
    found = errors(name, *arrays, axis=axis)
    assert len({(type(error), str(error)) for error in found}) == 1
    told = "index" if name == "index_update" else name  # only ``x[...] = value`` does it
    with pytest.raises(IndexError, match=f"^{told}: {text}"):
        raise found[0]


def test_every_recipe_that_can_fail_says_what_that_means():
    for name, op in OPERATIONS.items():
        for dtype in op.sample_dtypes if op.recipe else ():
            checks = 0
            for sample in op.samples(np.random.default_rng(0), dtype):
                arrays = [np.asarray(x) for x in sample.inputs]
                recipe = op.recipe(*types_of(arrays), **sample.params)
                fields = [getattr(recipe, field) for field in recipe.__dataclass_fields__]
                flat = [e for f in fields for e in (f if isinstance(f, tuple) else (f,))]
                roots = [e for e in flat if isinstance(e, Expr)]
                checks += sum(part.op == "check" for part in postorder(roots))
            result = op.infer(*types_of(arrays), **sample.params)[1]
            assert (checks > 0) == op.can_fail(result), (name, dtype)


def test_a_check_names_the_first_bad_value_in_row_major_order():
    value = loop_index(0) * 10 + loop_index(1)
    form = Map((4, 5), check(value < 13, value, 3))
    with pytest.raises(CheckFailed) as caught:
        interpret(form, [])
    assert (caught.value.number, caught.value.value) == (3, 13)
    assert interpret(Map((1, 5), check(value < 13, value)), []).tolist() == [[0, 1, 2, 3, 4]]


# --- random numbers -------------------------------------------------------------------------


def wide_state(rng, block):
    state = rng.integers(0, 2**32, 6, dtype=np.uint32)
    state[2:] = [block >> shift & 0xFFFFFFFF for shift in (0, 32, 64, 96)]
    return state


DRAWS = {
    "random_bits": [{}],
    "random_uniform": [{"dtype": dtypes.float32}, {"dtype": dtypes.float64}],
    "random_normal": [{"dtype": dtypes.float32}, {"dtype": dtypes.float64}],
    "random_integers": [
        {"low": low, "high": high, "dtype": dtype}
        for low, high, dtype in (
            (0, 1, dtypes.int8),
            (-128, 128, dtypes.int8),
            (-5, 2**40, dtypes.int64),
            (-(2**63), 2**63, dtypes.int64),
            (0, 2**64, dtypes.uint64),
            (7, 2**32 + 7, dtypes.uint64),
        )
    ],
}
CASES = [(name, params) for name, all_params in DRAWS.items() for params in all_params]


@given(
    case=st.sampled_from(CASES),
    shape=st.lists(st.integers(0, 5), max_size=3).map(tuple),
    block=st.sampled_from([0, 7, 2**32 - 2, 2**64 - 1, 2**96 - 2, 2**128 - 1]),
    seed=st.integers(0, 3),
)
def test_drawing_agrees_wherever_the_counter_is(case, shape, block, seed):
    name, params = case
    state = wide_state(np.random.default_rng(seed), block)
    got, want = both(name, state, shape=shape, **params)
    assert_same(got, want, 0)
    form = OPERATIONS[name].recipe(*types_of([state]), shape=shape, **params)
    assert isinstance(form, Blocks)
    by_element = Map(form.space, form.body)
    np.testing.assert_array_equal(interpret(by_element, [state]), want)


@given(count=st.integers(0, 70), block=st.sampled_from([0, 2**32 - 2, 2**128 - 1]))
def test_permutations_and_splits_agree_wherever_the_counter_is(count, block):
    state = wide_state(np.random.default_rng(count), block)
    assert_same(*both("random_permutation", state, count=count), 0)
    assert_same(*both("random_split", state, count=count % 7), 0)
    assert_same(*both("random_advance", state, words=count * 2**31), 0)


def test_another_constant_would_be_noticed(monkeypatch):
    state = philox.seed_state(1)
    monkeypatch.setattr(philox, "MULTIPLIERS", (philox.MULTIPLIERS[0] + 2, philox.MULTIPLIERS[1]))
    form = OPERATIONS["random_bits"].recipe(*types_of([state]), shape=(8,))
    monkeypatch.undo()
    assert (interpret(form, [state]) != philox.random_bits(state, 8)).any()


# --- categories -----------------------------------------------------------------------------


@given(
    shape=st.lists(st.integers(1, 5), min_size=1, max_size=3).map(tuple),
    dtype=st.sampled_from(dtypes.FLOATING),
    seed=st.integers(0, 5),
    scale=st.sampled_from([0.0, 1.0, 300.0]),
)
def test_categories_agree_at_any_shape(shape, dtype, seed, scale):
    rng = np.random.default_rng(seed)
    logits = (scale * rng.standard_normal(shape)).astype(dtype.numpy)
    for axis in range(len(shape)):
        assert_same(*both("random_categorical", philox.seed_state(seed), logits, axis=axis), 0)


@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf])
def test_a_row_without_a_finite_largest_logit_is_the_same_error_everywhere(bad):
    logits = np.zeros((2, 3, 4), np.float32)
    logits[1, :, 0] = bad
    logits[1, 1, 0] = bad if bad != np.inf else -np.inf
    found = errors("random_categorical", philox.seed_state(0), logits, axis=1)
    assert len({(type(error), str(error)) for error in found}) == 1
    with pytest.raises(NonFiniteError, match=r"^random_categorical: .* in row 4 of shape"):
        raise found[0]


def test_categories_need_floats_and_at_least_one():
    infer = OPERATIONS["random_categorical"].infer
    state = Type((6,), dtypes.uint32)
    with pytest.raises(DtypeError, match="random_categorical: expected a floating dtype"):
        infer(state, Type((3,), dtypes.int64), axis=0)
    with pytest.raises(ShapeError, match=r"\(2, 0\) have no category along axis 1"):
        infer(state, Type((2, 0), dtypes.float32), axis=1)
