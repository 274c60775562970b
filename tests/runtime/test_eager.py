"""Eager kernels of our own: the bits of the recipes, for any strides, with and without LLVM."""

import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import dilim
from dilim import dtypes
from dilim.backends.reference.executor import by_recipe
from dilim.ops.table import OPERATIONS
from dilim.runtime import eager
from dilim.tensors import dispatch
from ir.programs import same_bits

assert dispatch.apply, "importing it makes the kernels known"
SPECIAL = [0.0, -0.0, 1.0, -1.0, np.inf, -np.inf, np.nan, 1e-42, 3e38, -745.0, 0.5, 1e-310]
OWN = [op for op in OPERATIONS.values() if eager._is_open(op)]
KINDS = ["float32", "float64"]


def views(x):
    """The same numbers behind other strides."""
    wide = np.zeros((*x.shape, 3), x.dtype)
    wide[..., 1] = x
    return [x, x[::-1].copy()[::-1], wide[..., 1], np.asfortranarray(x)]


def operands(op, x):
    return [x] if len(op.derivative) < 2 else [x, np.flip(x).copy()]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("op", OWN, ids=lambda op: op.name)
def test_every_layout_has_the_bits_of_the_recipe(op, kind):
    rng = np.random.default_rng(0)
    for shape in [(), (1,), (15,), (16,), (33,), (4, 5), (0, 3)]:
        x = (rng.standard_normal(shape) * 10).astype(kind)
        want = by_recipe(op, operands(op, x), {})
        for view in views(x) if x.ndim else [x]:
            with np.errstate(all="ignore"):
                got = np.asarray(op.eager(*operands(op, view)))
            assert same_bits(got, want)


@pytest.mark.parametrize("op", OWN, ids=lambda op: op.name)
def test_special_values_have_the_bits_of_the_recipe(op):
    for kind in KINDS:
        with np.errstate(all="ignore"):
            x = np.array(SPECIAL).astype(kind)
            pairs = [a.ravel().copy() for a in np.meshgrid(x, x)]
            arrays = pairs[: len(operands(op, x))]
            got = np.asarray(op.eager(*arrays))
        assert same_bits(got, by_recipe(op, arrays, {}))


@pytest.mark.parametrize("target", dtypes.INTEGER, ids=lambda dtype: dtype.name)
@pytest.mark.parametrize("kind", KINDS)
def test_conversions_stop_at_the_ends_of_the_range(kind, target):
    x = np.array([1.9, -1.9, 3e38, -3e38, np.inf, -np.inf, np.nan, 254.5, -0.0], kind)
    got = dilim.asarray(x).astype(target).numpy()
    ends = np.iinfo(target.numpy)
    wanted = [0 if np.isnan(v) else int(min(max(v, ends.min), ends.max)) for v in x.tolist()]
    assert got.tolist() == wanted


@settings(max_examples=60)
@given(
    st.sampled_from(KINDS),
    st.tuples(*[st.integers(0, 19)] * 3),
    st.integers(0, 3),
    st.integers(0, 2),
)
def test_products_add_in_order_for_any_strides(kind, sizes, seed, form):
    m, k, n = sizes
    rng = np.random.default_rng(seed)
    x, y = rng.standard_normal((2, m, k)).astype(kind), rng.standard_normal((k, n)).astype(kind)
    if form == 1:
        x = x.transpose(0, 2, 1).copy().transpose(0, 2, 1)
        y = np.asfortranarray(y)
    if form == 2:
        x, y = np.repeat(x, 2, axis=2)[..., ::2], y[::-1].copy()[::-1]
    want = by_recipe(OPERATIONS["matmul"], [x, y], {})
    assert same_bits((dilim.asarray(x) @ dilim.asarray(y)).numpy(), want)


def test_large_products_are_the_same_on_many_threads_at_once():
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((2, 301, 307)).astype(np.float32)
    want = (dilim.asarray(x) @ dilim.asarray(y.T)).numpy()
    np.testing.assert_allclose(want, x.astype(float) @ y.T.astype(float), atol=1e-3)
    found = []

    def work():
        for _ in range(5):
            found.append((dilim.asarray(x) @ dilim.asarray(y.T)).numpy())

    workers = [threading.Thread(target=work) for _ in range(12)]  # more than scratch areas
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert len(found) == 60
    assert all(np.array_equal(product, want) for product in found)


@pytest.mark.parametrize("name", ["tanh", "pow", "matmul", "astype"])
def test_without_llvm_the_bits_are_the_same(name, monkeypatch):
    monkeypatch.setattr(eager, "native", lambda: False)
    op = OPERATIONS[name]
    x = np.random.default_rng(0).standard_normal((3, 3)).astype(np.float32)
    params = {"dtype": dtypes.int32} if name == "astype" else {}
    arrays = [x, x] if name in ("pow", "matmul") else [x]
    want = op.eager(*arrays, **params)
    kept = op.eager
    try:
        eager.install()
        got = np.asarray(op.eager(*arrays, **params))
    finally:
        eager._set(op, kept)
    assert same_bits(got, np.asarray(want))
