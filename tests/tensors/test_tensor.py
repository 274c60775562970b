"""The tensor itself: memory, views, copies, names, threads."""

import copy
import pickle
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dilim
from dilim.errors import GradientError, ShapeError


def test_attributes():
    x = dilim.tensor([[1, 2, 3], [4, 5, 6]], dtype=dilim.int16, name="x")
    assert (x.shape, x.ndim, x.size, x.itemsize, x.nbytes) == ((2, 3), 2, 6, 2, 12)
    assert (x.strides, x.T.strides, x[::-1, ::2].strides) == ((3, 1), (1, 3), (-3, 2))
    assert x.is_contiguous
    assert not x.T.is_contiguous
    assert x.T.contiguous().is_contiguous
    assert x.contiguous() is x


@pytest.mark.parametrize("name", ["shape", "dtype", "device", "strides", "uid"])
def test_attributes_cannot_be_set(name):
    with pytest.raises(AttributeError):
        setattr(dilim.ones(2), name, (2,))


def test_every_tensor_has_a_uid_of_its_own():
    x = dilim.ones(2)
    others = [x[:], x.detach(), x * 1.0, copy.deepcopy(x)]
    uids = [x.uid, *(y.uid for y in others)]
    assert len(set(uids)) == len(uids)
    assert x.uid == x.uid


def test_views_share_memory_and_copies_do_not():
    x = dilim.arange(12.0).reshape(3, 4)
    views = [
        x.reshape(4, 3), x.permute(1, 0), x.flip(axis=0), x[1:, ::2], x.detach(), x.unsqueeze(0),
        x.T.mT, x.flatten(), dilim.squeeze(x[None]), *x.split(1), *dilim.unstack(x),
    ]  # fmt: skip
    copies = [x.clone(), x * 1.0, x[[0, 1]], x.T.flatten(), dilim.Tensor(x), copy.deepcopy(x)]
    x.fill_(7.0)
    assert all((view == 7.0).all() for view in views)
    assert not any((other == 7.0).any() and not (other != 7.0).any() for other in copies)


def test_a_stretched_view_cannot_be_written():
    x = dilim.ones(1).expand(3)
    assert x.strides == (0,)
    with pytest.raises(ValueError, match=r"read-only.*clone\(\)"):
        x[0] = 5.0
    y = x.clone()
    y[0] = 5.0
    assert y.tolist() == [5, 1, 1]


def test_names_show_up_in_texts():
    x = dilim.tensor([1.5], name="speed", requires_grad=True)
    assert repr(x) == "tensor([1.5], name='speed', requires_grad=True)"
    assert "made_by=exp" in repr(x.exp())
    assert f"{x.sum():.2f}" == "1.50"
    assert repr(dilim.zeros((0, 3))) == "tensor([], dtype=float32, shape=(0, 3))"


def test_numbers_out_of_tensors():
    x = dilim.tensor([[2.5]])
    assert (float(x), int(x), bool(x), x.item(), x.tolist()) == (2.5, 2, True, 2.5, [[2.5]])
    assert [1, 2, 3][dilim.tensor(1)] == 2
    assert [row.tolist() for row in dilim.tensor([[1, 2], [3, 4]])] == [[1, 2], [3, 4]]
    assert len(dilim.zeros((3, 2))) == 3
    with pytest.raises(ShapeError, match=r"bool\(\).*any\(\) or x\.all\(\)"):
        bool(dilim.ones(2))
    with pytest.raises(ShapeError, match="exactly one element"):
        dilim.ones(2).item()
    with pytest.raises(TypeError, match="float32"):
        range(dilim.ones(()))
    with pytest.raises(TypeError, match="no length"):
        len(dilim.ones(()))


def test_deepcopy_keeps_what_belongs_to_a_leaf():
    x = dilim.tensor([1.0, 2.0], requires_grad=True, name="w")
    (x * x).sum().backward()
    model = {"w": x, "again": x}
    twin = copy.deepcopy(model)
    assert twin["w"] is twin["again"]
    assert (twin["w"].tolist(), twin["w"].grad.tolist(), twin["w"].name) == ([1, 2], [2, 4], "w")
    with dilim.no_grad():
        twin["w"].zero_()
    assert x.tolist() == [1, 2]
    with pytest.raises(GradientError, match=r"x\.detach\(\)"):
        copy.deepcopy(x * 2.0)


def test_pickle_is_refused_with_the_way_to_save():
    with pytest.raises(TypeError, match=r"dilim\.save"):
        pickle.dumps(dilim.ones(2))


def test_threads_have_their_own_mode_and_generator():
    seen = {}

    def work():
        seen["recording"] = (dilim.ones(1, requires_grad=True) * 1.0).requires_grad
        seen["draw"] = dilim.default_generator().uniform(2).tolist()

    with dilim.no_grad():
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    assert seen["recording"]
    assert seen["draw"] == dilim.Generator(0).uniform(2).tolist()


def test_many_threads_differentiate_at_once():
    results = {}

    def work(number):
        x = dilim.tensor(float(number), dtype=dilim.float64, requires_grad=True)
        for _ in range(50):
            x.grad = None
            (dilim.log(x) * x * x).backward()
        results[number] = x.grad.item()

    threads = [threading.Thread(target=work, args=(n,)) for n in range(1, 9)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for n in range(1, 9):
        assert results[n] == pytest.approx(2 * n * np.log(n) + n)


# --- random programs of differentiable operations -------------------------------------------

UNARY = ("tanh", "sigmoid", "exp", "sin", "square", "negative", "softplus")
BINARY = ("add", "subtract", "multiply", "maximum", "logaddexp", "hypot")
SHAPES = ((), (3,), (1, 3), (2, 1), (2, 3))


@st.composite
def programs(draw):
    """(leaf shapes, steps): each step applies an operation to earlier values."""
    leaves = draw(st.lists(st.sampled_from(SHAPES), min_size=1, max_size=3))
    steps = []
    for number in range(draw(st.integers(1, 6))):
        known = st.integers(0, len(leaves) + number - 1)
        kind = draw(st.sampled_from(("unary", "binary", "sum", "mean", "flip", "softmax")))
        name = draw(st.sampled_from(UNARY if kind == "unary" else BINARY))
        steps.append((kind, name, draw(known), draw(known)))
    return leaves, steps


def run(steps, values):
    values = list(values)
    for kind, name, first, second in steps:
        x = values[first]
        if kind == "unary":
            values.append(getattr(dilim, name)(x * 0.5))
        elif kind == "binary":
            values.append(getattr(dilim, name)(x, values[second]))
        elif kind == "sum" or not x.shape:
            values.append(x.sum())
        else:
            axis = -1
            values.append(
                dilim.flip(x) if kind == "flip"
                else dilim.softmax(x, axis=axis) if kind == "softmax"
                else x.mean(axis=axis, keepdims=True)
            )  # fmt: skip
    return sum((v * v).sum() for v in values)


@given(programs(), st.integers(0, 2**31))
@settings(max_examples=60, deadline=None)
def test_gradients_of_random_programs_agree_with_differences(program, seed):
    shapes, steps = program
    rng = np.random.default_rng(seed)
    arrays = [np.asarray(rng.uniform(0.2, 1.5, shape)) for shape in shapes]
    leaves = [dilim.Tensor(a, requires_grad=True) for a in arrays]
    run(steps, leaves).backward()
    directions = [np.asarray(rng.standard_normal(shape)) for shape in shapes]
    analytic = sum(
        float(np.sum(x.grad.numpy() * d)) for x, d in zip(leaves, directions, strict=True)
    )

    def at(step):
        moved = (a + step * d for a, d in zip(arrays, directions, strict=True))
        return run(steps, [dilim.Tensor(a) for a in moved]).item()

    numeric = (at(1e-6) - at(-1e-6)) / 2e-6
    coarse = (at(1e-5) - at(-1e-5)) / 2e-5
    if abs(numeric - coarse) < 1e-4 * (1 + abs(numeric)):  # else a kink of maximum is near
        assert analytic == pytest.approx(numeric, rel=1e-5, abs=1e-5)
