import math

import numpy as np
import pytest
from central import numeric_gradient

import dilim
from dilim import nn
from dilim.backends.reference.executor import by_kernel, execute
from dilim.errors import DtypeError, ShapeError
from dilim.ir.types import Type
from dilim.nn import losses
from dilim.tensors.symbolic import trace

RNG = np.random.default_rng(4)
P = RNG.normal(0.0, 2.0, (5, 3))
T = RNG.normal(0.0, 2.0, (5, 3))
SIGNS = np.where(RNG.random((5, 3)) < 0.5, -1.0, 1.0)
SHARES = RNG.random((5, 3))
CLASSES = RNG.integers(0, 3, 5)
ROWS = SHARES / SHARES.sum(axis=1, keepdims=True)


def log_softmax(z):
    z = z - z.max(axis=-1, keepdims=True)
    return z - np.log(np.exp(z).sum(axis=-1, keepdims=True))


def huber(p, t, delta=1.0):
    d = np.abs(p - t)
    return np.where(d <= delta, 0.5 * d * d, delta * (d - 0.5 * delta))


# name -> (prediction, target, one loss per element or row in float64)
CLOSED = {
    "mse": [(P, T, (P - T) ** 2)],
    "mae": [(P, T, np.abs(P - T))],
    "huber": [(P, T, huber(P, T))],
    "hinge": [(P, SIGNS, np.maximum(0.0, 1.0 - SIGNS * P))],
    "binary_cross_entropy_with_logits": [
        (P, SHARES, -SHARES * -np.log1p(np.exp(-P)) - (1 - SHARES) * -np.log1p(np.exp(P)))
    ],
    "cross_entropy": [
        (P, CLASSES, -log_softmax(P)[np.arange(5), CLASSES]),
        (P, ROWS, -(ROWS * log_softmax(P)).sum(axis=1)),
    ],
    "nll": [(log_softmax(P), CLASSES, -log_softmax(P)[np.arange(5), CLASSES])],
}
CASES = [
    (name, number, *case) for name, cases in CLOSED.items() for number, case in enumerate(cases)
]
IDS = [f"{name}-{number}" for name, number, *_ in CASES]
every_loss = pytest.mark.parametrize(("name", "number", "p", "t", "wanted"), CASES, ids=IDS)


def test_every_loss_has_a_case():
    assert set(CLOSED) == set(nn.LOSSES)


# ----- what every loss must do --------------------------------------------------------------------


@every_loss
def test_values_of_all_reductions(name, number, p, t, wanted):
    loss = nn.LOSSES[name]
    p, t = dilim.tensor(p), dilim.tensor(t)
    each = loss(p, t, reduction="none")
    assert each.shape == wanted.shape
    np.testing.assert_allclose(each.numpy(), wanted, rtol=1e-12, atol=1e-15)
    assert loss(p, t).item() == pytest.approx(wanted.mean(), rel=1e-12)
    assert loss(p, t, reduction="sum").item() == pytest.approx(wanted.sum(), rel=1e-12)


@every_loss
def test_gradients_equal_central_differences(name, number, p, t, wanted):
    loss = nn.LOSSES[name]
    p, t = dilim.tensor(p, requires_grad=True), dilim.tensor(t)
    loss(p, t).backward()
    numeric = numeric_gradient(lambda: loss(p, t).item(), p)
    np.testing.assert_allclose(p.grad.numpy(), numeric, rtol=1e-6, atol=1e-9)


@every_loss
def test_float32_stays_and_agrees(name, number, p, t, wanted):
    t = t.astype(np.float32) if t.dtype.kind == "f" else t
    result = nn.LOSSES[name](dilim.tensor(p.astype(np.float32)), dilim.tensor(t))
    assert result.dtype is dilim.float32
    assert result.item() == pytest.approx(wanted.mean(), rel=2e-6)


@every_loss
def test_traced_loss_gives_the_bits_of_the_eager_one(name, number, p, t, wanted):
    loss = nn.LOSSES[name]
    p, t = dilim.tensor(p), dilim.tensor(t)
    traced = trace(loss, Type(p.shape, p.dtype), Type(t.shape, t.dtype))
    (got,) = execute(traced.graph, [p.numpy(), t.numpy()], by_kernel)
    assert got == loss(p, t).item()


@every_loss
def test_shapes_that_differ_are_refused(name, number, p, t, wanted):
    p, t = dilim.tensor(p), dilim.tensor(t)
    t = t.reshape(*t.shape, 1)
    cure = ", ".join(map(str, t.shape[:-1]))
    with pytest.raises(ShapeError, match=rf"{name}: prediction .*shapes differ.*reshape\({cure}\)"):
        nn.LOSSES[name](p, t)


@every_loss
def test_bad_arguments_are_refused(name, number, p, t, wanted):
    loss = nn.LOSSES[name]
    p, t = dilim.tensor(p), dilim.tensor(t)
    with pytest.raises(ValueError, match=f"{name}: reduction: expected one of mean, sum, none"):
        loss(p, t, reduction="average")
    with pytest.raises(ShapeError, match=f"{name}: there are no elements to average"):
        loss(p[:0], t[:0])
    assert loss(p[:0], t[:0], reduction="sum").item() == 0.0
    with pytest.raises(DtypeError, match=f"{name}: .*expected a Tensor, received ndarray"):
        loss(p, t.numpy())
    with pytest.raises(DtypeError, match=f"{name}: expected a floating prediction.*received int64"):
        loss(p.astype("int64"), t)


# ----- the silent broadcast -----------------------------------------------------------------------


def test_a_column_against_a_row_is_refused():
    column, row = dilim.tensor([[1.0], [2.0], [3.0]]), dilim.tensor([1.0, 2.0, 3.0])
    text = r"mse: prediction \(3, 1\), target \(3,\): shapes differ; use target.reshape\(3, 1\)"
    with pytest.raises(ShapeError, match=text):
        losses.mse(column, row)
    assert losses.mse(column, row.reshape(3, 1)).item() == 0.0
    with pytest.raises(ShapeError, match=r"target \(4,\): shapes differ$"):
        losses.mse(row, dilim.ones(4))


# ----- extreme values -----------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize(
    ("z", "y", "wanted", "slope"),
    [
        (1000.0, 0.0, 1000.0, 1.0),
        (1000.0, 1.0, 0.0, 0.0),
        (-1000.0, 1.0, 1000.0, -1.0),
        (-1000.0, 0.0, 0.0, 0.0),
        (40.0, 1.0, 4.248354255291589e-18, -4.248354255291589e-18),
        (-40.0, 0.0, 4.248354255291589e-18, 4.248354255291589e-18),
        (0.0, 1.0, math.log(2.0), -0.5),
        (0.0, 0.0, math.log(2.0), 0.5),
    ],
)
def test_binary_cross_entropy_at_extremes(z, y, wanted, slope, dtype):
    logit = dilim.tensor([z], dtype=dtype, requires_grad=True)
    loss = losses.binary_cross_entropy_with_logits(logit, dilim.tensor([y], dtype=dtype))
    loss.backward()
    assert loss.item() == pytest.approx(wanted, rel=1e-6, abs=1e-300)
    assert logit.grad.item() == pytest.approx(slope, rel=1e-6, abs=1e-300)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_cross_entropy_at_extremes(dtype):
    z = dilim.tensor([[1000.0, 0.0, -1000.0]] * 3, dtype=dtype, requires_grad=True)
    loss = losses.cross_entropy(z, dilim.tensor([0, 1, 2]), reduction="none")
    assert loss.tolist() == [0.0, 1000.0, 2000.0]
    loss.sum().backward()
    assert z.grad.tolist() == [[0.0, 0.0, 0.0], [1.0, -1.0, 0.0], [1.0, 0.0, -1.0]]
    one = dilim.tensor([1000.0, 0.0, -1000.0], dtype=dtype)
    assert losses.cross_entropy(one, dilim.tensor(2)).item() == 2000.0


def test_cross_entropy_of_a_class_that_cannot_be():
    z = dilim.tensor([[1.0, -dilim.inf, 2.0]], requires_grad=True)
    wanted = math.log1p(math.exp(-1.0))
    for target in (dilim.tensor([2]), dilim.tensor([[0.0, 0.0, 1.0]])):
        z.grad = None
        loss = losses.cross_entropy(z, target)
        loss.backward()
        assert loss.item() == pytest.approx(wanted, rel=1e-6)
        share = 1.0 / (1.0 + math.e)
        np.testing.assert_allclose(z.grad.numpy(), [[share, 0.0, -share]], rtol=1e-5)


@pytest.mark.parametrize("name", ["mse", "mae", "huber", "hinge"])
def test_regression_losses_at_extremes(name):
    p = dilim.tensor([1000.0, -1000.0], requires_grad=True)
    t = dilim.tensor([-1.0, 1.0])
    loss = nn.LOSSES[name](p, t, reduction="none")
    wanted = {"mse": 1001.0**2, "mae": 1001.0, "huber": 1000.5, "hinge": 1001.0}[name]
    np.testing.assert_allclose(loss.numpy(), [wanted] * 2, rtol=1e-6)
    loss.sum().backward()
    slope = {"mse": 2002.0, "mae": 1.0, "huber": 1.0, "hinge": 1.0}[name]
    assert p.grad.tolist() == [slope, -slope]


def test_huber_delta_and_its_derivatives():
    d = np.array([-3.0, -0.5, -0.2, 0.0, 0.2, 0.5, 3.0])
    p = dilim.tensor(d, requires_grad=True)
    loss = losses.huber(p, dilim.zeros(7, dtype="float64"), delta=0.5, reduction="none")
    np.testing.assert_allclose(loss.numpy(), huber(d, 0.0, 0.5), rtol=1e-12)
    loss.sum().backward(create_graph=True)
    np.testing.assert_allclose(p.grad.numpy(), np.clip(d, -0.5, 0.5), rtol=1e-12)

    def total(x):
        return losses.huber(x, dilim.zeros(7, dtype="float64"), delta=0.5, reduction="sum")

    curvature = np.diagonal(dilim.hessian(total)(dilim.tensor(d)).numpy())
    inside = (np.abs(d) < 0.5) & (d != 0.0)
    np.testing.assert_array_equal(curvature[inside], 1.0)
    np.testing.assert_array_equal(curvature[np.abs(d) > 0.5], 0.0)
    with pytest.raises(ValueError, match="huber: expected delta above 0, received 0"):
        losses.huber(p, p, delta=0)


# ----- targets ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("act", "error", "match"),
    [
        (
            lambda: losses.mse(dilim.ones(3), dilim.ones(3, dtype="int64")),
            DtypeError,
            r"mse: expected a floating target, received int64; cast it with x.astype",
        ),
        (
            lambda: losses.cross_entropy(dilim.ones((2, 3)), dilim.tensor([0, 3])),
            IndexError,
            "cross_entropy: target: 3 is not a class from 0 to 2",
        ),
        (
            lambda: losses.cross_entropy(dilim.ones((2, 3)), dilim.tensor([0, -1])),
            IndexError,
            "-1 is not a class",
        ),
        (
            lambda: losses.cross_entropy(dilim.ones((2, 3)), dilim.tensor([True, False])),
            DtypeError,
            "expected integers, received bool",
        ),
        (
            lambda: losses.cross_entropy(dilim.ones((2, 3)), dilim.tensor([0, 1, 2])),
            ShapeError,
            r"prediction \(2, 3\), target \(3,\): shapes differ, expected one class per row \(2,\)",
        ),
        (
            lambda: losses.nll(dilim.ones((2, 3)), dilim.ones((2, 3))),
            DtypeError,
            "nll: target: expected integers, received float32",
        ),
        (lambda: losses.nll(dilim.tensor(1.0), dilim.tensor(0)), DtypeError, r"\(\.\.\., C\)"),
        (
            lambda: losses.hinge(dilim.ones(2), dilim.tensor([0.0, 1.0])),
            ValueError,
            r"hinge: expected targets -1 and 1, .* 2 \* target - 1",
        ),
        (
            lambda: losses.binary_cross_entropy_with_logits(
                dilim.ones(2), dilim.tensor([-1.0, 1.0])
            ),
            ValueError,
            "expected targets from 0 to 1, received some from -1.0 to 1.0",
        ),
    ],
)
def test_bad_targets_are_named(act, error, match):
    with pytest.raises(error, match=match):
        act()


@pytest.mark.parametrize("backend", ["llvm", "reference"])
@pytest.mark.parametrize("dtype", ["int8", "int64", "uint8", "uint64"])
@pytest.mark.parametrize("loss", [losses.cross_entropy, losses.nll])
def test_a_compiled_loss_refuses_what_is_no_class(loss, dtype, backend):
    x = dilim.tensor(np.arange(6, dtype=np.float32).reshape(2, 3))
    right = dilim.tensor([2, 0], dtype=dtype)
    compiled = dilim.Graph.from_function(loss, x, right).compile(backend=backend)
    assert compiled(x, right).item() == loss(x, right).item()
    for number in [3, 255] if dtype.startswith("u") else [3, -1, -3, -4, -128]:
        wrong = dilim.tensor(np.array([0, number % 256]).astype("uint8").astype(dtype))
        with pytest.raises(IndexError, match="is out of range for an axis of size 3"):
            compiled(x, wrong)
