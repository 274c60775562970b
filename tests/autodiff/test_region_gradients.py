"""Derivatives through branches and loops of graphs.

Each function runs eagerly, where `cond` and `loop` are plain Python and the turns lie one after the
other on the tape, and as a graph; both are also compared with central differences in float64.
"""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dilim
from dilim.errors import GradientError
from dilim.ir.structure import walk
from dilim.ir.verify import verify
from dilim.ops.table import OPERATIONS


def as_graph(function, *arrays):
    """The results of a function of tensors, as a graph that the reference executor runs."""
    compiled = dilim.Graph.from_function(function, *arrays).compile(backend="reference")
    verify(compiled.graph, OPERATIONS)
    return compiled, compiled(*arrays)


def central(function, arrays, step=1e-5):
    """Central differences of a function with a single number as result."""
    found = []
    for number, x in enumerate(arrays):
        slopes = np.zeros_like(x)
        for place in np.ndindex(x.shape):
            ends = []
            for sign in (1, -1):
                moved = [np.array(a) for a in arrays]
                moved[number][place] += sign * step
                ends.append(function(*map(dilim.tensor, moved)).item())
            slopes[place] = (ends[0] - ends[1]) / (2 * step)
        found.append(slopes)
    return found


def either(x, w):
    return dilim.cond(x.sum() > 0.0, lambda: (x * w).sum(), lambda: (w * w).sum() - x[0])


def results_that_differ(x, w):
    a, b = dilim.cond(x[0] > w[0], lambda: (x * x, w), lambda: (w.detach() * x, x.sin()))
    return (a * b).sum()


def inner_branch(x, w):
    def deep():
        return dilim.cond(w.sum() > 1.0, lambda: x * w, lambda: x.exp())

    return dilim.cond(x[1] > 0.0, deep, lambda: w * 3.0).sum()


def powers(x, w):
    return dilim.loop(4, x, lambda index, y: (y * w).tanh()).sum()


def exchanged(x, w):
    a, b = dilim.loop(5, (x, w), lambda index, a, b: (b, a * b + 1.0))
    return (a - 2.0 * b).sum()


def counted(x, w):
    """The index takes part, and an integer is carried along."""

    def body(index, y, n):
        return y + w * (index + n).astype(dilim.float64), n + 2

    y, _ = dilim.loop(3, (x, dilim.tensor(1)), body)
    return (y * y).sum()


def until(x, w):
    """The number of turns depends on the numbers."""
    return dilim.loop(
        50, x, lambda index, y: y * 1.5 + w, condition=lambda index, y: (y * y).sum() < 40.0
    ).sum()


def no_turn(x, w):
    return (dilim.loop(0, x, lambda index, y: y * w) * x).sum()


def branch_in_loop(x, w):
    def body(index, y):
        return dilim.cond(y[0] > 0.5, lambda: y * 0.6 - w, lambda: y * w + 0.3)

    return dilim.loop(6, x, body).sum()


def loop_in_branch(x, w):
    return dilim.cond(w[0] > -9.0, lambda: powers(x, w) * 2.0, lambda: x.sum())


def loop_in_loop(x, w):
    def outer(index, y):
        return dilim.loop(3, y, lambda j, z: z * 0.9 + w * y * 0.1, condition=lambda j, z: j < 2)

    return dilim.loop(4, x, outer).sum()


def only_captured(x, w):
    """What begins without a gradient takes one from the first turn on."""
    start = dilim.zeros(3, dtype=dilim.float64)
    return dilim.loop(3, start, lambda index, y: y * y + x * w).sum()


def detached(x, w):
    return dilim.loop(3, x, lambda index, y: y * w.detach() + y.detach() * w).sum()


SMOOTH = [
    either, inner_branch, powers, exchanged, counted, until, no_turn, branch_in_loop,
    loop_in_branch, loop_in_loop, only_captured,
]  # fmt: skip
CASES = [*SMOOTH, results_that_differ, detached]
POINTS = ([0.7, 0.4, -0.3], [0.9, 1.1, -0.5]), ([-0.8, -0.2, 0.3], [0.3, -0.6, 0.8])


@pytest.mark.parametrize("point", POINTS, ids=["one", "other"])
@pytest.mark.parametrize("function", CASES)
def test_gradients_equal_those_of_python(function, point):
    arrays = [np.array(numbers) for numbers in point]
    both = dilim.value_and_grad(function, argnums=(0, 1))
    value, found = both(*map(dilim.tensor, arrays))
    compiled, (got, got_found) = as_graph(both, *arrays)
    assert any(node.regions for node in walk(compiled.graph))
    np.testing.assert_array_equal(got.numpy(), value.numpy())
    for a, b in zip(got_found, found, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-13, atol=1e-15)
    if function in SMOOTH:
        for a, b in zip(got_found, central(function, arrays), strict=True):
            np.testing.assert_allclose(a.numpy(), b, rtol=1e-6, atol=1e-8)


numbers = st.floats(-1.5, 1.5).map(lambda x: round(x, 3))


@settings(max_examples=15)
@given(st.sampled_from(CASES), st.lists(numbers, min_size=6, max_size=6))
def test_gradients_equal_those_of_python_anywhere(function, drawn):
    arrays = [np.array(drawn[:3]), np.array(drawn[3:])]
    both = dilim.value_and_grad(function, argnums=(0, 1))
    value, found = both(*map(dilim.tensor, arrays))
    _, (got, got_found) = as_graph(both, *arrays)
    np.testing.assert_array_equal(got.numpy(), value.numpy())
    for a, b in zip(got_found, found, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("function", [either, inner_branch])
def test_second_derivatives_through_branches(function):
    def curvature(x, w):
        inner = dilim.grad(function, argnums=(0, 1))
        return dilim.grad(lambda *both: sum((g * g).sum() for g in inner(*both)), (0, 1))(x, w)

    arrays = [np.array(values) for values in POINTS[0]]
    found = curvature(*map(dilim.tensor, arrays))
    _, got = as_graph(curvature, *arrays)
    for a, b in zip(got, found, strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-13, atol=1e-15)
    assert max(np.abs(x.numpy()).max() for x in got) > 0.1


def test_turns_that_need_too_much_memory_are_refused():
    def long(x):
        return dilim.loop(10_000_000, x, lambda index, y: y * y).sum()

    with pytest.raises(GradientError, match=r"10000000 turns began with, [\d,]+ bytes, more than"):
        dilim.Graph.from_function(dilim.grad(long), np.zeros((1000,)))


def test_a_loop_of_unknown_length_is_refused():
    def unknown(x, n):
        return dilim.loop(n, x, lambda index, y: y * y).sum()

    with pytest.raises(GradientError, match="it must be known how often the loop runs at most"):
        dilim.Graph.from_function(dilim.grad(unknown), np.zeros(3), np.int64(3))
