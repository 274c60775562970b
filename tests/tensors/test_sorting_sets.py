"""Sorting, searching, sets, running sums and differences, against NumPy or plain Python."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from memory_device import MemoryDevice

import dilim
from dilim.errors import DtypeError, ShapeError

COMMON = settings(max_examples=80, deadline=None, derandomize=True)
SHAPES = hnp.array_shapes(min_dims=1, max_dims=3, min_side=0, max_side=5)
FEW = st.sampled_from([-2.0, -0.0, 0.0, 1.0, 3.5, math.inf, -math.inf, math.nan])
DTYPES = [bool, np.int8, np.uint64, np.int64, np.float32]


def few(shape, dtype=np.float64):
    """Arrays with many equal elements, and for floats NaN, infinities and both zeros."""
    elements = FEW if np.dtype(dtype).kind == "f" else st.integers(0, 1 if dtype is bool else 3)
    return hnp.arrays(dtype, shape, elements=elements)


@st.composite
def arrays(draw):
    return draw(few(draw(SHAPES), draw(st.sampled_from([*DTYPES, np.float64]))))


def order_of(row, descending):
    """A stable order by plain Python; NaN is the largest number."""

    def larger_last(i):
        return (math.isnan(row[i]), 0.0 if math.isnan(row[i]) else row[i])

    if descending:
        return sorted(range(len(row)), key=lambda i: tuple(-v for v in larger_last(i)))
    return sorted(range(len(row)), key=larger_last)


@COMMON
@given(arrays(), st.data(), st.booleans())
def test_argsort_is_stable_in_both_directions_and_sort_follows_it(array, data, descending):
    axis = data.draw(st.integers(-array.ndim, array.ndim - 1))
    order = dilim.argsort(dilim.asarray(array), axis=axis, descending=descending)
    assert order.dtype is dilim.int64
    assert order.shape == array.shape
    rows, got = np.moveaxis(array, axis, -1), np.moveaxis(order.numpy(), axis, -1)
    for place in np.ndindex(rows.shape[:-1]):
        assert got[place].tolist() == order_of(rows[place].tolist(), descending)
    values = dilim.sort(dilim.asarray(array), axis=axis, descending=descending)
    np.testing.assert_array_equal(values.numpy(), np.take_along_axis(array, order.numpy(), axis))


def test_the_gradient_of_sort_goes_where_the_elements_came_from():
    x = dilim.Tensor([[3.0, 1.0, 2.0], [1.0, 1.0, 0.0]], requires_grad=True)
    (dilim.sort(x, axis=1) * dilim.asarray([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [[100, 1, 10], [10, 100, 1]]


@COMMON
@given(arrays(), st.sampled_from(["left", "right"]), st.data())
def test_searchsorted_equals_numpy(array, side, data):
    known = np.sort(array.reshape(-1))
    values = data.draw(few((2, 3), array.dtype.type if array.dtype != bool else bool))
    want = np.searchsorted(known, values, side)
    got = dilim.searchsorted(dilim.asarray(known), dilim.asarray(values), side=side)
    np.testing.assert_array_equal(got.numpy(), want)
    flat = array.reshape(-1)
    sorter = dilim.argsort(dilim.asarray(flat))
    again = dilim.searchsorted(dilim.asarray(flat), dilim.asarray(values), side=side, sorter=sorter)
    np.testing.assert_array_equal(again.numpy(), want)
    if values.dtype.kind == "f":
        one = dilim.searchsorted(dilim.asarray(known), float(values[0, 0]), side=side)
        assert one.item() == want[0, 0]


# --- sets -----------------------------------------------------------------------------------


@COMMON
@given(arrays())
def test_unique_by_its_definition(array):
    x = dilim.asarray(array)
    flat = array.reshape(-1).tolist()
    values, indices, inverse, counts = dilim.unique_all(x)
    want = []
    for element in flat:  # NaN equals nothing, so each is new; -0.0 equals 0.0
        if not any(element == known for known in want):
            want.append(element)
    got = values.tolist()
    assert len(got) == len(want)
    assert sorted(map(str, {abs(v) if v == 0 else v for v in got if v == v})) == sorted(
        map(str, {abs(v) if v == 0 else v for v in want if v == v})
    )
    np.testing.assert_array_equal(values.numpy(), np.sort(values.numpy()))
    assert inverse.shape == array.shape
    assert indices.dtype is inverse.dtype is counts.dtype is dilim.int64
    for value, first, count in zip(got, indices.tolist(), counts.tolist(), strict=True):
        hits = [i for i, element in enumerate(flat) if element == value]
        assert (first, count) == ((hits[0], len(hits)) if hits else (first, 1))
        assert str(flat[first]) == str(value)
    for element, number in zip(flat, inverse.numpy().reshape(-1).tolist(), strict=True):
        assert got[number] == element or (element != element and got[number] != got[number])


@COMMON
@given(arrays())
def test_the_smaller_functions_give_parts_of_unique_all(array):
    x = dilim.asarray(array)
    everything = dilim.unique_all(x)
    for result in (dilim.unique_counts(x), dilim.unique_inverse(x)):
        for field, value in result._asdict().items():
            np.testing.assert_array_equal(value.numpy(), getattr(everything, field).numpy())
    np.testing.assert_array_equal(dilim.unique_values(x).numpy(), everything.values.numpy())


def test_unique_fields_and_gradient():
    x = dilim.Tensor([[2.0, 1.0], [2.0, 3.0]], requires_grad=True)
    result = dilim.unique_all(x)
    assert result._fields == ("values", "indices", "inverse_indices", "counts")
    assert dilim.unique_counts(x)._fields == ("values", "counts")
    assert dilim.unique_inverse(x)._fields == ("values", "inverse_indices")
    (result.values * dilim.asarray([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [[10, 1], [0, 100]]
    assert dilim.unique_values(dilim.asarray(7)).tolist() == [7]


@COMMON
@given(arrays(), st.data(), st.booleans())
def test_isin_by_its_definition(array, data, invert):
    other = data.draw(few(data.draw(SHAPES), array.dtype.type if array.dtype != bool else bool))
    got = dilim.isin(dilim.asarray(array), dilim.asarray(other), invert=invert)
    pool = other.reshape(-1).tolist()
    want = [any(v == w for w in pool) != invert for v in array.reshape(-1).tolist()]
    assert got.dtype is dilim.bool
    assert got.shape == array.shape
    assert got.numpy().reshape(-1).tolist() == want


def test_isin_with_python_numbers():
    x = dilim.asarray([1, 2, 3])
    assert dilim.isin(x, 2).tolist() == [False, True, False]
    assert dilim.isin(x, 2, invert=True).tolist() == [True, False, True]
    assert dilim.isin(3, x).item() is True
    assert dilim.isin(4, x, invert=True).item() is True


@COMMON
@given(arrays())
def test_nonzero_equals_numpy(array):
    got = dilim.nonzero(dilim.asarray(array))
    assert type(got) is tuple
    for ours, theirs in zip(got, np.nonzero(array), strict=True):
        assert ours.dtype is dilim.int64
        np.testing.assert_array_equal(ours.numpy(), theirs)
    np.testing.assert_array_equal(dilim.asarray(array)[got].numpy(), array[np.nonzero(array)])


# --- running sums and differences -----------------------------------------------------------


@COMMON
@given(SHAPES, st.data(), st.booleans())
def test_running_sums_and_products(shape, data, include_initial):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    array = data.draw(hnp.arrays(np.int16, shape, elements=st.integers(-3, 3)))
    for ours, theirs, initial in (
        (dilim.cumulative_sum, np.cumsum, 0),
        (dilim.cumulative_prod, np.cumprod, 1),
    ):
        want = theirs(array, axis=axis)
        if include_initial:
            sizes = list(shape)
            sizes[axis] = 1
            first = np.full(sizes, initial)
            want = np.concatenate([first, want], axis=axis)
        got = ours(dilim.asarray(array), axis=axis, include_initial=include_initial)
        assert got.dtype is dilim.int64
        np.testing.assert_array_equal(got.numpy(), want)


def test_gradients_of_running_sums_and_products():
    x = dilim.Tensor([2.0, 0.0, 3.0], dtype=dilim.float64, requires_grad=True)
    weights = dilim.asarray([5.0, 1.0, 10.0, 100.0]).astype(dilim.float64)
    (dilim.cumulative_sum(x, include_initial=True) * weights).sum().backward()
    assert x.grad.tolist() == [111, 110, 100]
    x.zero_grad()
    (dilim.cumulative_prod(x, include_initial=True) * weights).sum().backward()
    # 2 + 10 * 2 * 0 + 100 * 2 * 0 * 3, differentiated by hand
    assert x.grad.tolist() == [1, 10 * 2 + 100 * 6, 0]


def test_running_sums_in_another_dtype():
    x = dilim.asarray([200, 100], dtype=dilim.uint8)
    assert dilim.cumulative_sum(x).dtype is dilim.uint64
    assert dilim.cumulative_sum(x, dtype=dilim.uint8).tolist() == [200, 44]
    assert dilim.cumulative_prod(x, dtype=dilim.float32).tolist() == [200, 20000]


@COMMON
@given(SHAPES, st.data(), st.integers(0, 3))
def test_differences_equal_numpy(shape, data, n):
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    array = data.draw(hnp.arrays(np.int32, shape, elements=st.integers(-9, 9)))
    got = dilim.diff(dilim.asarray(array), axis=axis, n=n)
    want = array
    for _ in range(n):
        length = want.shape[axis]
        later = np.take(want, range(1, length), axis=axis)
        want = later - np.take(want, range(max(length - 1, 0)), axis=axis)
    np.testing.assert_array_equal(got.numpy(), want)
    if n:
        more = dilim.diff(
            dilim.asarray(array),
            axis=axis,
            prepend=dilim.asarray(array),
            append=dilim.asarray(array),
        )
        np.testing.assert_array_equal(
            more.numpy(), np.diff(array, axis=axis, prepend=array, append=array)
        )


def test_the_gradient_of_differences():
    x = dilim.Tensor([1.0, 4.0, 9.0], requires_grad=True)
    (dilim.diff(x) * dilim.asarray([1.0, 10.0])).sum().backward()
    assert x.grad.tolist() == [-1, -9, 10]


REFUSALS = [
    (lambda: dilim.sort(dilim.asarray(1)), ShapeError, r"argsort: expected at least one dimension"),
    (lambda: dilim.argsort(dilim.ones(2), axis=1), IndexError, r"argsort: axis 1 is out of range"),
    (lambda: dilim.nonzero(dilim.asarray(1)), ShapeError, r"nonzero: .*compare with x != 0"),
    (lambda: dilim.isin(1, 2), DtypeError, r"isin: expected at least one tensor"),
    (
        lambda: dilim.isin(dilim.ones(1), dilim.arange(1)),
        DtypeError,
        r"isin: dtypes float32 and int64",
    ),
    (lambda: dilim.isin(0.5, dilim.arange(1)), DtypeError, r"Python float 0\.5 does not mix"),
    (
        lambda: dilim.searchsorted(dilim.ones((1, 1)), dilim.ones(1)),
        ShapeError,
        r"searchsorted: expected a vector to search in, received \(1, 1\)",
    ),
    (
        lambda: dilim.searchsorted(dilim.ones(1), dilim.ones(1), side="middle"),
        DtypeError,
        r"searchsorted: expected side 'left' or 'right', received 'middle'",
    ),
    (lambda: dilim.searchsorted(dilim.arange(2), 0.5), DtypeError, r"float 0\.5 does not mix"),
    (
        lambda: dilim.cumulative_sum(dilim.ones((1, 2))),
        ShapeError,
        r"cumulative_sum: axis is needed",
    ),
    (lambda: dilim.diff(dilim.ones(2), n=-1), ShapeError, r"diff: expected n >= 0, received -1"),
    (lambda: dilim.diff(dilim.asarray(1.0)), IndexError, r"diff: axis -1 is out of range"),
]


@pytest.mark.parametrize(("use", "error", "match"), REFUSALS)
def test_a_bad_argument_is_named(use, error, match):
    with pytest.raises(error, match=match):
        use()


ON_DEVICES = {
    "sort": lambda x: dilim.sort(x, descending=True),
    "unique_all": dilim.unique_all,
    "nonzero": lambda x: dilim.nonzero(x - 3),
    "isin": lambda x: dilim.isin(x, x[:2]),
    "searchsorted": lambda x: dilim.searchsorted(dilim.sort(x), 2.5),
    "cumulative_sum": lambda x: dilim.cumulative_sum(x, include_initial=True),
    "diff": lambda x: dilim.diff(x, append=x[:1]),
    "repeat": lambda x: dilim.repeat(x, 2),
    "tril": lambda x: dilim.tril(x.reshape(2, 2)),
    "pad": lambda x: dilim.pad(x, [(1, 1)]),
    "roll": lambda x: dilim.roll(x, 1),
    "imag": dilim.imag,
}


@pytest.mark.parametrize("name", ON_DEVICES)
def test_results_on_another_device_are_those_on_the_cpu(name):
    device = MemoryDevice()
    x = dilim.asarray([3.0, 1.0, 3.0, 2.0])
    here, there = ON_DEVICES[name](x), ON_DEVICES[name](x.to(device))
    if not isinstance(here, tuple):
        here, there = (here,), (there,)
    for a, b in zip(here, there, strict=True):
        assert b.device is device
        assert (a.dtype, a.tolist()) == (b.dtype, b.tolist())
