"""Regions composed into one loop nest: what is accepted, what the nest means."""

import numpy as np
import pytest

from backends.kernels import Region, assert_same
from dilim import dtypes
from dilim.backends.reference.executor import by_recipe, execute
from dilim.backends.reference.nests import interpret_form
from dilim.ops.affine import Interner
from dilim.ops.nest import Nest, NotOneNest, compose, form_of
from dilim.ops.table import OPERATIONS

RNG = np.random.default_rng(0)


def normal(*shape):
    return RNG.normal(size=shape).astype(np.float32)


def composed(build, *arrays):
    """The form of a region, after comparing its meaning with one operation at a time."""
    region = Region()
    outputs = build(region, *(region.input(array) for array in arrays))
    graph = region.builder.build_region(outputs)
    form = compose(graph, OPERATIONS)
    got = interpret_form(form, region.arrays, [value.type for value in outputs])
    for a, b in zip(got, execute(graph, region.arrays, by_recipe), strict=True):
        assert_same(a, b)
    return form


def softmax(r, x):
    top = r.max(x, axis=(1,), keepdims=True)
    e = r.exp(r.subtract(x, r.expand(top, shape=x.shape)))
    total = r.sum(e, axis=(1,), keepdims=True)
    return [r.divide(e, r.expand(total, shape=x.shape))]


def test_softmax_is_one_nest_of_two_reductions():
    form = composed(softmax, normal(5, 7))
    assert form.space == (5, 7)
    assert [reduction.combine for reduction in form.reductions] == ["maximum", "add"]
    assert form.reductions[0].first == form.reductions[1].first


def test_equal_parts_are_one_object():
    def build(r, x):
        return [r.multiply(r.exp(x), r.exp(x))]

    body = composed(build, normal(3)).outputs[0]
    assert body.args[0] is body.args[1]


def test_outputs_may_have_different_shapes_of_one_size():
    def build(r, x):
        total = r.sum(x, axis=(1,), keepdims=True)
        return [total, r.exp(r.reshape(total, shape=(6,))), r.reshape(total, shape=(2, 3))]

    assert composed(build, normal(6, 5)).space == (2, 3)


def test_views_become_plain_indices():
    def build(r, x):
        return [r.reshape(r.permute(r.reshape(x, shape=(4, 6)), order=(1, 0)), shape=(24,))]

    form = composed(build, normal(2, 3, 4))
    assert form.outputs[0].op == "load"


def test_a_slice_of_a_join_reads_one_part():
    def build(r, x, y):
        return [r.slice(r.concat(x, y, axis=0), index=((4, 3, 1),))]

    form = composed(build, normal(4), normal(5))
    assert (form.outputs[0].op, form.outputs[0].guarded) == ("load", False)


@pytest.mark.parametrize(
    ("build", "reason"),
    [
        (lambda r, x: [r.sum(x, axis=(0,), keepdims=False), r.exp(x)], "different sizes"),
        (
            lambda r, x: [
                r.subtract(x, r.expand(r.sum(x, axis=(0,), keepdims=True), shape=x.shape))
            ],
            "computed repeatedly",
        ),
        (
            lambda r, x: [r.sum(r.sum(x, axis=(1,), keepdims=False), axis=(0,), keepdims=False)],
            "inside another reduction",
        ),
        (
            lambda r, x: [
                r.exp(r.astype(r.argmax(x, axis=(1,), keepdims=False), dtype=dtypes.float32))
            ],
            "feeds another operation",
        ),
    ],
)
def test_what_is_no_nest_says_why(build, reason):
    region = Region()
    outputs = build(region, region.input(normal(3, 4)))
    with pytest.raises(NotOneNest, match=reason):
        compose(region.builder.build_region(outputs), OPERATIONS)


def test_forms_take_their_producers_in():
    def build(r, x):
        return [r.argmax(r.negative(x), axis=(1,), keepdims=False)]

    form = composed(build, normal(3, 4))
    assert not isinstance(form, Nest)
    assert form.body.op == "negative"


def test_form_of_an_operation():
    region = Region()
    x = region.input(normal(3, 4))
    region.exp(x)
    region.sum(x, axis=(0,), keepdims=False)
    region.argmax(x, axis=(0,), keepdims=False)
    forms = [form_of(node, OPERATIONS) for node in region.builder.nodes]
    assert forms == ["map", "reduce", "other"]


def test_index_arithmetic_agrees_with_numbers():
    """The normal form has the value of the expression at every position."""
    rng = np.random.default_rng(3)
    for _ in range(200):
        sizes = [int(n) for n in rng.integers(2, 6, 3)]
        interner = Interner(sizes)
        grids = np.indices(sizes)
        expr, value = interner.index(0), grids[0]
        for _ in range(6):
            kind, number = rng.choice(["+", "*", "//", "%", "axis"]), int(rng.integers(1, 7))
            if kind == "axis":
                axis = int(rng.integers(0, 3))
                expr, value = interner.apply("add", expr, interner.index(axis)), value + grids[axis]
                continue
            name = {"+": "add", "*": "multiply", "//": "floor_divide", "%": "remainder"}[kind]
            expr = interner.apply(name, expr, interner.constant(number))
            value = {
                "+": value + number, "*": value * number,
                "//": value // number, "%": value % number,
            }[kind]  # fmt: skip
        low, high = interner.bounds(interner.form(expr))
        assert low <= value.min() <= value.max() <= high
        assert np.array_equal(np.broadcast_to(_evaluated(expr, grids), value.shape), value)


def test_index_arithmetic_wraps_as_int64_does():
    interner = Interner([5])
    square = interner.constant(2)
    for _ in range(5):
        square = interner.apply("multiply", square, square)
    assert square.value == 2**32
    assert interner.apply("multiply", square, square).value == 0
    largest = interner.constant(2**63 - 1)
    assert interner.apply("add", largest, interner.constant(1)).value == -(2**63)
    wide = interner.apply("multiply", interner.index(0), interner.constant(2**62))
    four = interner.constant(4)
    halved = interner.apply("floor_divide", interner.apply("multiply", wide, four), four)
    grid = np.arange(5)
    assert np.array_equal(_evaluated(halved, [grid]), (grid * 2**62 * 4) // 4)


def test_a_reduction_over_nothing_is_a_number():
    def build(r, x):
        return [r.sum(r.reshape(x, shape=(3, 0)), axis=(1,), keepdims=False)]

    form = composed(build, normal(0, 3))
    assert form.reductions == ()
    assert form.outputs[0].value == 0.0


def _evaluated(expr, grids):
    if expr.op == "index":
        return grids[expr.value]
    if expr.op == "constant":
        return np.asarray(expr.value)
    a, b = (_evaluated(arg, grids) for arg in expr.args)
    return {
        "add": np.add, "multiply": np.multiply,
        "floor_divide": np.floor_divide, "remainder": np.remainder,
    }[expr.op](a, b)  # fmt: skip
