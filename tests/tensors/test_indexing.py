"""Reading, writing and differentiating ``x[key]``, against NumPy on random keys."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from memory_device import MemoryDevice

import dilim
from dilim.errors import DeviceError, DtypeError, GradientError, ShapeError

SHAPES = hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4)
COMMON = settings(max_examples=150, deadline=None, derandomize=True)


def numbers(shape):
    """Distinct float64 values."""
    return np.arange(1.0, np.prod(shape, dtype=int) + 1).reshape(shape)


@st.composite
def advanced_parts(draw, shape):
    """A tuple key with at least one integer array or mask among basic parts."""
    common = draw(hnp.array_shapes(min_dims=0, max_dims=2, min_side=0, max_side=3))
    parts = []
    axis = 0
    while axis < len(shape):
        size = shape[axis]
        rank = draw(st.integers(1, len(shape) - axis))
        options = [st.just(("slice", draw(st.slices(size))))]
        if size:
            options += [
                st.just(("int", draw(st.integers(-size, size - 1)))),
                st.just(("array", draw(_positions(size, common)))),
            ]
        elif 0 in common:
            options.append(st.just(("array", np.zeros(common, np.int64))))
        options.append(st.just(("mask", draw(hnp.arrays(bool, shape[axis : axis + rank])))))
        kind, part = draw(st.sampled_from(options).flatmap(lambda option: option))
        parts.append(part)
        axis += rank if kind == "mask" else 1
        if draw(st.integers(0, 5)) == 0:
            parts.append(None)
    if draw(st.integers(0, 9)) == 0:
        parts.insert(draw(st.integers(0, len(parts))), draw(st.booleans()))
    while parts and isinstance(parts[-1], slice) and draw(st.booleans()):
        parts.pop()
    if draw(st.integers(0, 4)) == 0:
        parts.insert(draw(st.integers(0, len(parts))), Ellipsis)
    return tuple(parts)


@st.composite
def _positions(draw, size, common):
    shape = tuple(n if draw(st.integers(0, 3)) else 1 for n in common)
    dtype = draw(st.sampled_from([np.int64, np.int32, np.int8]))
    return draw(hnp.arrays(dtype, shape, elements=st.integers(-size, size - 1)))


@st.composite
def cases(draw, keys=None):
    """A shape, a key for NumPy, and the same key for dilim."""
    shape = draw(SHAPES)
    basic = hnp.basic_indices(shape, allow_newaxis=True, allow_ellipsis=True)
    key = draw((basic | advanced_parts(shape)) if keys is None else keys(shape))
    form = draw(st.sampled_from(["tensor", "array", "list"]))

    def ours(part):
        if not isinstance(part, np.ndarray):
            return part
        if form == "list" and part.ndim and part.size:
            return part.tolist()
        return part if form == "array" else dilim.asarray(part)

    return shape, key, tuple(map(ours, key)) if isinstance(key, tuple) else ours(key)


def read_by_numpy(array, key):
    """What NumPy reads, or None where it refuses the key."""
    try:
        return array[key]
    except IndexError:
        return None


@COMMON
@given(cases())
def test_reading_equals_numpy(case):
    shape, numpy_key, key = case
    array = numbers(shape)
    want = read_by_numpy(array, numpy_key)
    if want is None:
        with pytest.raises((IndexError, ShapeError)):
            dilim.asarray(array)[key]
        return
    got = dilim.asarray(array)[key]
    assert got.shape == np.shape(want)
    assert got.dtype is dilim.float64
    np.testing.assert_array_equal(got.numpy(), want)


@COMMON
@given(cases(lambda shape: hnp.basic_indices(shape, allow_newaxis=True)))
def test_basic_reading_is_a_view_of_the_same_memory(case):
    shape, numpy_key, key = case
    x = dilim.asarray(numbers(shape), copy=True)
    view = x[key]
    if view.size:
        view += 100
        want = numbers(shape)
        parts = numpy_key if isinstance(numpy_key, tuple) else (numpy_key,)
        region = want[parts if Ellipsis in parts else (*parts, ...)]
        region += 100
        np.testing.assert_array_equal(x.numpy(), want)


@COMMON
@given(cases(), st.data())
def test_writing_equals_numpy(case, data):
    shape, numpy_key, key = case
    array = numbers(shape)
    region = read_by_numpy(array, numpy_key)
    if region is None:
        return
    stretched = data.draw(st.lists(st.booleans(), max_size=np.ndim(region)))
    sizes = np.shape(region)[np.ndim(region) - len(stretched) :]
    wide = tuple(1 if one else n for one, n in zip(stretched, sizes, strict=True))
    value = -numbers(wide)
    x = dilim.asarray(array, copy=True)
    x[key] = dilim.asarray(value)
    array[numpy_key] = value
    np.testing.assert_array_equal(x.numpy(), array)
    x[key] = 7
    array[numpy_key] = 7
    np.testing.assert_array_equal(x.numpy(), array)


@COMMON
@given(cases())
def test_the_gradient_of_reading_adds_up_at_repeated_positions(case):
    shape, numpy_key, key = case
    array = numbers(shape)
    part = read_by_numpy(array, numpy_key)
    if part is None:
        return
    weights = numbers(np.shape(part))
    x = dilim.Tensor(array, requires_grad=True)
    (x[key] * dilim.asarray(weights)).sum().backward()
    want = np.zeros(shape)
    np.add.at(want, numpy_key, weights)
    np.testing.assert_array_equal(x.grad.numpy(), want)


@COMMON
@given(cases())
def test_the_gradients_of_a_recorded_write(case):
    shape, numpy_key, key = case
    array = numbers(shape)
    part = read_by_numpy(array, numpy_key)
    if part is None:
        return
    weights = numbers(shape)
    leaf = dilim.Tensor(array, requires_grad=True)
    value = dilim.Tensor(-numbers(np.shape(part)), requires_grad=True)
    x = leaf * 1.0
    x[key] = value
    (x * dilim.asarray(weights)).sum().backward()
    array[numpy_key] = -numbers(np.shape(part))
    np.testing.assert_array_equal(x.numpy(), array)
    # whoever wrote an element last gets its gradient; the old value gets none
    owner = {}
    places = np.arange(array.size).reshape(shape)[numpy_key]
    for number, place in enumerate(np.asarray(places).reshape(-1)):
        owner[int(place)] = number
    to_value, to_leaf = np.zeros(np.size(part)), weights.reshape(-1).copy()
    for place, number in owner.items():
        to_value[number] = weights.reshape(-1)[place]
        to_leaf[place] = 0
    np.testing.assert_array_equal(leaf.grad.numpy().reshape(-1), to_leaf)
    np.testing.assert_array_equal(value.grad.numpy().reshape(-1), to_value)


def test_second_derivatives_pass_through_advanced_reading():
    x = dilim.Tensor([1.0, 2.0, 3.0], dtype=dilim.float64, requires_grad=True)

    def cubes(x):
        return (x[[0, 2, 2]] ** 3).sum()

    hessian = dilim.hessian(cubes)(x)
    np.testing.assert_allclose(hessian.numpy(), np.diag([6.0, 0.0, 36.0]))


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_take_and_take_along_axis_equal_numpy(axis):
    array = numbers((3, 4))
    x = dilim.Tensor(array, requires_grad=True)
    where = np.array([[2, -1], [0, 0]])
    got = dilim.take(x, dilim.asarray(where), axis=axis)
    np.testing.assert_array_equal(got.numpy(), np.take(array, where, axis=axis))
    order = np.argsort(-array, axis=axis)[:2, :2]
    along = order if axis == 0 else np.concatenate([order, order[:1]])
    along = along[:, :2] if axis else np.concatenate([along, along], axis=1)
    got = dilim.take_along_axis(x, dilim.asarray(along), axis=axis)
    np.testing.assert_array_equal(got.numpy(), np.take_along_axis(array, along, axis))
    got.sum().backward()
    want = np.zeros((3, 4))
    for place in np.ndindex(*along.shape):
        target = list(place)
        target[axis] = along[place]
        want[tuple(target)] += 1
    np.testing.assert_array_equal(x.grad.numpy(), want)


def test_take_along_axis_broadcasts_the_other_axes():
    array = numbers((2, 3))
    got = dilim.take_along_axis(dilim.asarray(array), dilim.asarray([[1]]), axis=1)
    np.testing.assert_array_equal(got.numpy(), array[:, 1:2])


# --- one by one -----------------------------------------------------------------------------


def test_a_mask_of_shape_nothing_adds_an_axis():
    x = dilim.arange(3)
    assert x[True].tolist() == [[0, 1, 2]]
    assert x[dilim.asarray(False)].shape == (0, 3)
    assert x[x > 0].tolist() == [1, 2]


def test_a_key_may_be_a_tensor_of_one_integer():
    x = dilim.arange(6).reshape(2, 3)
    assert x[dilim.asarray(1)].tolist() == [3, 4, 5]
    assert x[np.int32(-1), dilim.asarray(0)].item() == 3


def test_lists_written_take_the_dtype_of_the_tensor():
    x = dilim.zeros(2, dtype=dilim.float64)
    x[:] = [0.1, 1]
    assert x.tolist() == [0.1, 1.0]
    y = dilim.zeros(3, dtype=dilim.int8)
    y[[0, 2]] = [1, -2]
    assert y.tolist() == [1, 0, -2]


def test_a_write_reaches_the_views_and_the_bases():
    base = dilim.zeros((2, 2))
    row = base[0]
    row[dilim.asarray([True, False])] = 5
    base[1, :] = row
    assert base.tolist() == [[5, 0], [5, 0]]


def test_writing_what_overlaps_reads_first():
    x = dilim.arange(5)
    x[1:] = x[:-1]
    assert x.tolist() == [0, 0, 1, 2, 3]


REFUSALS = [
    (lambda x: x[2], IndexError, r"position 2 is out of range for axis 0 of size 2"),
    (lambda x: x[0, -4], IndexError, r"position -4 is out of range for axis 1 of size 3"),
    (lambda x: x[0, 0, 0], IndexError, r"3 indices for a tensor of 2 dimensions \(2, 3\)"),
    (lambda x: x[..., 0, ...], IndexError, r"at most one '\.\.\.', received two"),
    (lambda x: x[[0, 5]], IndexError, r"position 5 is out of range for an axis of size 2"),
    (lambda x: x[[0, 1], [0, 3]], IndexError, r"position 3 is out of range .* of size 3"),
    (lambda x: x[dilim.asarray([True] * 3)], IndexError, r"a mask of shape \(2,\), .* \(3,\)"),
    (lambda x: x[[0, 1], [0, 1, 2]], ShapeError, r"index: shapes .* do not broadcast"),
    (lambda x: x[0.5], DtypeError, r"index: expected integers.* received float"),
    (lambda x: x["a"], DtypeError, r"index: expected integers.* received str"),
    (lambda x: x[dilim.ones(2)], DtypeError, r"received float32; cast positions with"),
    (
        lambda x: dilim.take(x, dilim.asarray([9]), axis=1),
        IndexError,
        r"take: position 9 .* size 3",
    ),
    (lambda x: dilim.take(x, dilim.asarray([0])), ShapeError, r"take: axis is needed"),
    (
        lambda x: dilim.take_along_axis(x, dilim.asarray([[3], [0]])),
        IndexError,
        r"take_along_axis: position 3 .* size 3",
    ),
]


@pytest.mark.parametrize(("use", "error", "match"), REFUSALS)
def test_a_bad_key_is_named(use, error, match):
    with pytest.raises(error, match=match):
        use(dilim.zeros((2, 3)))


def test_unsigned_positions_do_not_wrap():
    x = dilim.arange(3)
    last = dilim.asarray([2**64 - 1], dtype=dilim.uint64)
    for read in (lambda: x[last], lambda: dilim.take(x, last), lambda: x[last, None][[0]]):
        with pytest.raises(IndexError, match=str(2**64 - 1)):
            read()
    assert x[dilim.asarray([2], dtype=dilim.uint8)].tolist() == [2]


WRITES = [
    (lambda x: x.__setitem__(0, dilim.ones(2)), ShapeError, r"x\[\.\.\.\] = value: shapes"),
    (lambda x: x.__setitem__((0, 0), dilim.ones(2)), ShapeError, r"a value that stretches to"),
    (lambda x: x.__setitem__([0], dilim.ones((2, 2))), ShapeError, r"x\[\.\.\.\] = value: shape"),
    (
        lambda x: x.__setitem__(0, dilim.ones(3, dtype=dilim.float64)),
        DtypeError,
        r"a float64 value does not fit in a float32 tensor; cast it with value\.astype",
    ),
    (
        lambda x: x.__setitem__(0, True),
        DtypeError,
        r"the Python bool True does not fit in a float32",
    ),
    (
        lambda x: x.astype(dilim.int64).__setitem__(0, 0.5),
        DtypeError,
        r"the Python float 0\.5 does not fit in a int64 tensor",
    ),
    (
        lambda x: dilim.broadcast_to(x[0], (2, 3)).__setitem__(0, 1.0),
        ValueError,
        r"read-only: .*write into x\.clone\(\)",
    ),
    (lambda x: x.requires_grad_().__setitem__(0, 1.0), GradientError, r"no_grad"),
]


@pytest.mark.parametrize(("use", "error", "match"), WRITES)
def test_a_bad_write_is_named(use, error, match):
    with pytest.raises(error, match=match):
        use(dilim.zeros((2, 3)))


# --- on another device ----------------------------------------------------------------------


@pytest.fixture(params=["elsewhere", "mirrored"])
def place(request):
    """A function that puts a CPU tensor on a second device."""
    device = MemoryDevice()

    def put(x):
        if request.param == "mirrored":
            return dilim.Tensor(x, device=device, mirrored=True)
        return dilim.Tensor(x, device=device)

    return put


KEYS = {
    "list": [2, 0, 2],
    "two lists": ([0, -1], [1, 1]),
    "apart": ([0, 1], slice(None, None, -1), [[1], [0]]),
    "mask": np.arange(12).reshape(3, 4) % 5 == 0,
    "mask of an axis": (slice(1, None), np.array([True, False, False, True])),
    "basic": (slice(None, None, -1), None, -2),
}


@pytest.mark.parametrize("name", KEYS)
def test_keys_on_another_device(name, place):
    key = KEYS[name]
    array = numbers((3, 4, 2)) if name == "apart" else numbers((3, 4))
    x = place(array)
    got = x[key]
    assert got.device is x.device
    np.testing.assert_array_equal(got.numpy(), array[key])
    x[key] = -1.0
    array[key] = -1.0
    np.testing.assert_array_equal(x.numpy(), array)
    x[key] = place(numbers(array[key].shape))
    array[key] = numbers(array[key].shape)
    np.testing.assert_array_equal(x.numpy(), array)


def test_both_sides_of_a_mirrored_tensor_take_values():
    device = MemoryDevice()
    x = dilim.Tensor(numbers((2, 2)), device=device, mirrored=True)
    x[0] = dilim.asarray([-1.0, -2.0]).astype(dilim.float64)
    x[[1]] = dilim.asarray([[-3.0, -4.0]]).astype(dilim.float64)
    assert x.tolist() == [[-1, -2], [-3, -4]]
    x[0, 0] = dilim.Tensor(9.0, dtype=dilim.float64, device=device)
    assert (x * 1).tolist() == [[9, -2], [-3, -4]]
    with pytest.raises(DeviceError, match=r"expected a value on 'cpu', received one on 'memory'"):
        dilim.zeros(2)[[0]] = dilim.ones(1, device=device)


def test_a_key_that_lives_on_the_device(place):
    x = place(numbers((3, 4)))
    assert x[x > 11].tolist() == [12]
    assert x[place(np.array([1]))].tolist() == [[5, 6, 7, 8]]
    x[x > 2] = 0
    assert x.numpy().sum() == 3


@pytest.mark.parametrize("wants_gradient", [False, True])
def test_a_write_at_positions_out_of_range_names_the_first(wants_gradient):
    x = dilim.zeros((2, 3), requires_grad=wants_gradient) * 1
    before = x.tolist()
    for key, text in (
        (dilim.tensor([0, 2]), "position 2 is out of range for an axis of size 2"),
        ((dilim.tensor([1, 0]), dilim.tensor([0, -4])), "position -4 .* an axis of size 3"),
        ((dilim.tensor([2, 0]), dilim.tensor(3)), "position 3 is out of range for axis 1 of size"),
    ):
        with pytest.raises(IndexError, match=f"^index: {text}") as caught:
            x[key] = 1.0
        assert caught.value.__context__ is None
    assert x.tolist() == before
