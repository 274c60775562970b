"""Functions that move elements: values against NumPy, gradients by following each element."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import dilim
from dilim.errors import AxisError, ShapeError

COMMON = settings(max_examples=60, deadline=None, derandomize=True)
SHAPES = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


def ids(shape):
    """An array whose elements are numbered, so that each can be followed."""
    return np.arange(np.prod(shape, dtype=int), dtype=np.float64).reshape(shape)


def check(ours, theirs, array):
    """The same values as NumPy, and every gradient back where its element came from."""
    want = theirs(array)
    x = dilim.Tensor(array, requires_grad=True)
    got = ours(x)
    assert got.shape == want.shape
    np.testing.assert_array_equal(got.numpy(), want)
    weights = ids(want.shape) + 1
    (got * dilim.asarray(weights)).sum().backward()
    sources = theirs(ids(array.shape)).astype(int).reshape(-1)
    grad = np.bincount(sources, weights.reshape(-1), minlength=array.size)
    np.testing.assert_array_equal(x.grad.numpy().reshape(-1), grad)


def layouts(*shape):
    """The same numbers lying in memory in three ways."""
    array = ids(shape)
    yield array
    yield np.array(array, order="F")
    yield np.repeat(array, 2, axis=-1)[..., ::2] if shape else array


CASES = {
    "reshape": (lambda x: dilim.reshape(x, (-1, 4)), lambda a: a.reshape(-1, 4)),
    "reshape copy": (lambda x: dilim.reshape(x, (4, 6), copy=True), lambda a: a.reshape(4, 6)),
    "permute_dims": (lambda x: dilim.permute_dims(x, (2, 0, -2)), lambda a: a.transpose(2, 0, 1)),
    "transpose": (lambda x: x.transpose(0, -1), lambda a: a.swapaxes(0, -1)),
    "matrix_transpose": (dilim.matrix_transpose, np.matrix_transpose),
    "moveaxis": (lambda x: dilim.moveaxis(x, 0, -1), lambda a: np.moveaxis(a, 0, -1)),
    "moveaxis two": (
        lambda x: dilim.moveaxis(x, (0, 2), (1, 0)),
        lambda a: np.moveaxis(a, (0, 2), (1, 0)),
    ),
    "expand_dims": (lambda x: dilim.expand_dims(x, -1), lambda a: np.expand_dims(a, -1)),
    "expand_dims two": (
        lambda x: dilim.expand_dims(x, (0, 3)),
        lambda a: np.expand_dims(a, (0, 3)),
    ),
    "squeeze": (lambda x: x[None, :, None].squeeze(), lambda a: a),
    "squeeze one": (lambda x: dilim.squeeze(x[None, :, None], (0,)), lambda a: a[:, None]),
    "flatten": (lambda x: dilim.flatten(x, 1), lambda a: a.reshape(2, 12)),
    "flip all": (dilim.flip, np.flip),
    "flip": (lambda x: dilim.flip(x, axis=(0, -1)), lambda a: np.flip(a, (0, -1))),
    "roll": (lambda x: dilim.roll(x, 5), lambda a: np.roll(a, 5)),
    "roll axes": (
        lambda x: dilim.roll(x, (-1, 7), axis=(1, 2)),
        lambda a: np.roll(a, (-1, 7), axis=(1, 2)),
    ),
    "repeat": (lambda x: dilim.repeat(x, 2), lambda a: np.repeat(a, 2)),
    "repeat axis": (
        lambda x: dilim.repeat(x, dilim.asarray([2, 0, 1]), axis=1),
        lambda a: np.repeat(a, [2, 0, 1], axis=1),
    ),
    "tile": (lambda x: dilim.tile(x, (2, 1, 3)), lambda a: np.tile(a, (2, 1, 3))),
    "tile short": (lambda x: dilim.tile(x, (2,)), lambda a: np.tile(a, (2,))),
    "tile long": (lambda x: dilim.tile(x, (2, 1, 1, 1)), lambda a: np.tile(a, (2, 1, 1, 1))),
    "broadcast_to": (
        lambda x: dilim.broadcast_to(x[:, :1], (3, 2, 5, 4)),
        lambda a: np.broadcast_to(a[:, :1], (3, 2, 5, 4)),
    ),
    "expand": (lambda x: x[:, :1].expand(-1, 5, -1), lambda a: np.repeat(a[:, :1], 5, axis=1)),
    "concat": (
        lambda x: dilim.concat([x, x[:, :1], x], axis=-2),
        lambda a: np.concatenate([a, a[:, :1], a], axis=1),
    ),
    "concat flat": (
        lambda x: dilim.concat([x, x[0]], axis=None),
        lambda a: np.concatenate([a, a[0]], axis=None),
    ),
    "stack": (lambda x: dilim.stack([x, x], axis=-1), lambda a: np.stack([a, a], axis=-1)),
    "unstack": (
        lambda x: dilim.concat(dilim.unstack(x, axis=1)[::-1]),
        lambda a: np.concatenate([a[:, 2], a[:, 1], a[:, 0]]),
    ),
    "split": (
        lambda x: dilim.concat(dilim.split(x, 2, axis=1)[::-1], axis=1),
        lambda a: np.concatenate([a[:, 2:], a[:, :2]], axis=1),
    ),
    "split sizes": (lambda x: dilim.split(x, [1, 3], axis=2)[1], lambda a: a[:, :, 1:]),
    "astype": (lambda x: dilim.astype(x, dilim.float32), lambda a: a.astype(np.float32)),
}


@pytest.mark.parametrize("name", CASES)
def test_values_and_gradients(name):
    for array in layouts(2, 3, 4):
        check(*CASES[name], array)


@COMMON
@given(SHAPES, st.data())
def test_any_permutation(shape, data):
    order = data.draw(st.permutations(range(len(shape))))
    check(lambda x: x.permute(*order), lambda a: a.transpose(order), ids(shape))


@COMMON
@given(SHAPES, st.data())
def test_any_reshape(shape, data):
    other = data.draw(st.permutations(shape))
    check(
        lambda x: dilim.reshape(x, tuple(other)), lambda a: a.reshape(other), ids(shape).T.copy().T
    )


@COMMON
@given(hnp.mutually_broadcastable_shapes(num_shapes=3, max_dims=3, max_side=3, min_side=0))
def test_broadcasting(drawn):
    wanted = drawn.result_shape
    assert dilim.broadcast_shapes(*drawn.input_shapes) == wanted
    arrays = [ids(shape) for shape in drawn.input_shapes]
    stretched = dilim.broadcast_arrays(*map(dilim.asarray, arrays))
    assert type(stretched) is tuple
    for got, array in zip(stretched, arrays, strict=True):
        np.testing.assert_array_equal(got.numpy(), np.broadcast_to(array, wanted))
        check(lambda x: dilim.broadcast_to(x, wanted), lambda a: np.broadcast_to(a, wanted), array)


@COMMON
@given(SHAPES, st.data())
def test_roll_and_flip_of_any_axis(shape, data):
    if not shape:
        return
    axis = data.draw(st.integers(-len(shape), len(shape) - 1))
    shift = data.draw(st.integers(-9, 9))
    check(lambda x: dilim.roll(x, shift, axis=axis), lambda a: np.roll(a, shift, axis), ids(shape))
    check(lambda x: x.flip(axis), lambda a: np.flip(a, axis), ids(shape))


@pytest.mark.parametrize("k", [-3, -1, 0, 1, 4])
def test_triangles(k):
    array = ids((2, 3, 4)) + 1
    for ours, theirs in ((dilim.tril, np.tril), (dilim.triu, np.triu)):
        x = dilim.Tensor(array, requires_grad=True)
        got = ours(x, k=k)
        np.testing.assert_array_equal(got.numpy(), theirs(array, k))
        got.sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), theirs(np.ones_like(array), k))
    assert ours(dilim.ones((2, 2), dtype=dilim.bool)).tolist() == [[True, True], [False, True]]


def test_padding():
    x = dilim.Tensor(ids((2, 2)), requires_grad=True)
    got = dilim.pad(x, [(1, 0), (0, 2)], value=-1.0)
    want = np.pad(ids((2, 2)), [(1, 0), (0, 2)], constant_values=-1)
    np.testing.assert_array_equal(got.numpy(), want)
    (got * got).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * ids((2, 2)))


@pytest.mark.parametrize("indexing", ["xy", "ij"])
@pytest.mark.parametrize("sizes", [(), (3,), (2, 3), (2, 3, 4)])
def test_meshgrid(indexing, sizes):
    vectors = [ids((n,)) for n in sizes]
    got = dilim.meshgrid(*map(dilim.asarray, vectors), indexing=indexing)
    want = np.meshgrid(*vectors, indexing=indexing)
    assert type(got) is tuple
    assert [x.tolist() for x in got] == [a.tolist() for a in want]


def test_what_can_be_a_view_is_one():
    base = dilim.zeros((2, 3))
    for view in (
        base.reshape(6),
        base.T,
        base.flip(0),
        base[:, ::2],
        dilim.expand_dims(base, 0),
        dilim.unstack(base)[1],
        dilim.split(base, 1)[0],
    ):
        view += 1
    assert base.tolist() == [[6, 5, 6], [6, 5, 6]]
    for copied in (base.T.reshape(6), dilim.reshape(base, (6,), copy=True), base.clone()):
        copied += 1
    assert base[0, 0].item() == 6


REFUSALS = [
    (
        lambda x: dilim.reshape(x, (4, 2)),
        ShapeError,
        r"reshape: .*\(2, 3\) has 6 elements .*\(4, 2\)",
    ),
    (lambda x: dilim.reshape(x, (-1, -1)), ShapeError, r"reshape: expected .* at most one -1"),
    (
        lambda x: dilim.reshape(x.T, (6,), copy=False),
        ShapeError,
        r"reshape: strides \(1, 3\).*copy",
    ),
    (lambda x: dilim.permute_dims(x, (0, 0)), ShapeError, r"permute: expected a permutation"),
    (lambda x: dilim.squeeze(x, 0), ShapeError, r"squeeze: axis 0 of shape \(2, 3\) has size 2"),
    (lambda x: dilim.expand_dims(x, 5), IndexError, r"expand_dims: axis 5 is out of range"),
    (lambda x: dilim.flip(x, axis=2), AxisError, r"flip: axis 2 is out of range .* 2 dimensions"),
    (lambda x: dilim.sum(x, axis=(0, -2)), ShapeError, r"sum: axes \(0, -2\) name .* twice"),
    (lambda x: dilim.concat([]), ShapeError, r"concat: expected at least one tensor"),
    (
        lambda x: dilim.concat([x, x.T]),
        ShapeError,
        r"concat: expected equal sizes except along axis 0",
    ),
    (lambda x: dilim.stack([x, x[0]]), ShapeError, r"stack: expected equal shapes"),
    (lambda x: dilim.stack([]), ShapeError, r"stack: expected at least one tensor"),
    (lambda x: dilim.split(x, [1, 2]), ShapeError, r"split: sizes \[1, 2\] do not add up to 2"),
    (lambda x: dilim.roll(x, (1, 2)), ShapeError, r"roll: expected one shift"),
    (lambda x: dilim.roll(x, (1, 2), axis=0), ShapeError, r"roll: received 2 shifts for 1 axes"),
    (lambda x: dilim.repeat(x, -1), ShapeError, r"repeat: expected 6 counts >= 0"),
    (lambda x: dilim.broadcast_to(x, (3, 2)), ShapeError, r"expand: shapes"),
    (lambda x: dilim.broadcast_to(x, (3,)), ShapeError, r"expand: shape \(2, 3\) does not stretch"),
    (lambda x: dilim.broadcast_shapes((2,), (3,)), ValueError, r"broadcast_shapes: shapes \(2,\)"),
    (lambda x: dilim.tril(x[0]), ShapeError, r"tril: expected a matrix, received \(3,\)"),
    (lambda x: dilim.pad(x, [(1, 1)]), ShapeError, r"pad: expected 2 pairs of widths, received 1"),
    (lambda x: dilim.meshgrid(x[0], indexing="yx"), ShapeError, r"meshgrid: expected indexing"),
    (lambda x: x[0].T, ShapeError, r"T: expected 2 dimensions.*mT"),
]


@pytest.mark.parametrize(("use", "error", "match"), REFUSALS)
def test_a_bad_argument_is_named(use, error, match):
    with pytest.raises(error, match=match):
        use(dilim.zeros((2, 3)))
