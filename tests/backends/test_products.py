import functools
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from product_runner import (
    FAST,
    TARGETS,
    Function,
    Kernel,
    aligned,
    at_an_edge,
    kernel_code,
    run_product,
)
from single import assert_same_bits, numbers

from dilim import dtypes
from dilim.backends.llvm.products import StoreResult
from dilim.backends.llvm.products_forms import load_lanes, store_lanes, vector_type
from dilim.backends.llvm.vectors import element
from dilim.ops.contract import matmul

SIZES = st.sampled_from((1, 2, 3, 4, 5, 7, 8, 9, 10, 13, 16, 17, 24, 31, 33, 64, 67))
DEPTHS = st.sampled_from((0, 1, 2, 3, 4, 7, 8, 9, 11, 16, 31, 64, 70))
DTYPES = st.sampled_from(("f4",) * 4 + ("f8",) * 3 + ("i1", "u1", "i2", "i4", "u4", "i8", "u8"))
LAYOUTS = ("plain", "transposed", "sliced", "reversed", "broadcast rows", "broadcast columns")
CUTS = st.lists(st.floats(0, 1), max_size=3)


def reference(a, b):
    with np.errstate(all="ignore"):
        return matmul.reference(a, b)


@st.composite
def matrices(draw, shape, dtype, layouts=LAYOUTS):
    """An array of the shape, in a layout of memory."""
    *batch, m, n = shape
    layout = draw(st.sampled_from(layouts))
    stored = {
        "transposed": (*batch, n, m),
        "sliced": (*batch, 2 * m, 3 * n),
        "broadcast rows": (*batch, 1, n),
        "broadcast columns": (*batch, m, 1),
    }.get(layout, shape)
    if np.dtype(dtype).kind == "f":
        x = draw(numbers(tuple(stored), dtype))
    else:
        rng = np.random.default_rng(draw(st.integers(0, 2**32)))
        info = np.iinfo(dtype)
        x = rng.integers(info.min, info.max, stored, dtype, endpoint=True)
    if layout == "transposed":
        return x.swapaxes(-1, -2)
    if layout == "sliced":
        return x[..., ::2, ::-3]
    if layout == "reversed":
        return x[..., ::-1, :]
    return np.broadcast_to(x, shape)


@st.composite
def factors(draw, batches=False):
    m, n, k, dtype = draw(SIZES), draw(SIZES), draw(DEPTHS), draw(DTYPES)
    pairs = [((), ())]
    if batches:
        pairs += [((3,), (3,)), ((2, 1), (1, 3)), ((5,), ()), ((), (2,)), ((0,), (1,))]
    left, right = draw(st.sampled_from(pairs))
    return draw(matrices((*left, m, k), dtype)), draw(matrices((*right, k, n), dtype))


@given(factors(batches=True), st.sampled_from(TARGETS), CUTS)
def test_kernel_has_the_bits_of_the_reference(pair, target, cuts):
    got = run_product(*pair, target=target, cuts=cuts)
    assert_same_bits(got, reference(*pair))


@functools.cache
def function(dtype, target="host"):
    return Function(dtype, target=target)


@given(factors(), st.data(), st.sampled_from(TARGETS), CUTS)
def test_function_has_the_bits_of_the_reference(pair, data, target, cuts):
    a, b = pair
    shape = (a.shape[0], b.shape[1])
    c = data.draw(matrices(shape, a.dtype, ("plain", "transposed", "sliced", "reversed")))
    c = c if c.flags.writeable else c.copy()
    function(a.dtype, target)(a, b, c, cuts)
    assert_same_bits(np.ascontiguousarray(c), reference(a, b))


@pytest.mark.parametrize(
    "shape", [(9, 9000, 21), (40, 600, 300), (3, 1025, 140), (64, 64, 4100), (600, 4500, 19)]
)
@pytest.mark.parametrize("layout", ["NN", "TN", "NT"])
def test_blocks_keep_the_bits(shape, layout):
    m, k, n = shape
    rng = np.random.default_rng(0)
    a = rng.normal(size=(m, k)).astype("f4")
    b = rng.normal(size=(k, n)).astype("f4")
    a = np.asfortranarray(a) if layout[0] == "T" else a
    b = np.asfortranarray(b) if layout[1] == "T" else b
    want = reference(a, b)
    assert_same_bits(run_product(a, b, cuts=(0.3, 0.6)), want)
    c = np.empty((m, n), "f4")
    function(a.dtype)(a, b, c, (0.5,))
    assert_same_bits(c, want)


@pytest.mark.skipif(sys.platform != "linux", reason="uses mprotect")
@pytest.mark.parametrize("end", [False, True])
@pytest.mark.parametrize("layout", ["NN", "TN", "NT", "TT"])
@pytest.mark.parametrize("shape", [(5, 7, 9), (1, 4, 3), (33, 19, 2), (17, 64, 65), (64, 300, 200)])
def test_nothing_outside_of_the_factors_is_read(shape, layout, end):
    m, k, n = shape
    rng = np.random.default_rng(6)
    a = rng.normal(size=(m, k) if layout[0] == "N" else (k, m)).astype("f4")
    b = rng.normal(size=(k, n) if layout[1] == "N" else (n, k)).astype("f4")
    a, b = at_an_edge(a, end), at_an_edge(b, end)
    a, b = a if layout[0] == "N" else a.T, b if layout[1] == "N" else b.T
    want = reference(a, b)
    assert_same_bits(run_product(a, b), want)
    c = at_an_edge(np.empty_like(want), end)
    function(a.dtype)(a, b, c)
    assert_same_bits(c.copy(), want)


def test_another_order_of_k_has_other_bits():
    """The comparison by bits can fail: the same numbers added from the other end differ."""
    rng = np.random.default_rng(1)
    a, b = rng.normal(size=(8, 64)).astype("f4"), rng.normal(size=(64, 16)).astype("f4")
    backwards = run_product(a[:, ::-1], b[::-1])
    np.testing.assert_allclose(backwards, reference(a, b), rtol=1e-4, atol=1e-5)
    with pytest.raises(AssertionError):
        assert_same_bits(backwards, reference(a, b))


def test_fast_numbers_fuse_and_are_close():
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=(33, 64)).astype("f4"), rng.normal(size=(64, 40)).astype("f4")
    fast = run_product(a, b, FAST)
    np.testing.assert_allclose(fast, a.astype("f8") @ b.astype("f8"), rtol=2e-4, atol=1e-5)
    assert (fast != reference(a, b)).any()
    c = np.empty_like(fast)
    Function(a.dtype, FAST)(a, b, c)
    assert_same_bits(c, fast)


class BiasAndRelu:
    """Stores ``sums + bias`` and ``relu`` of that; the bias is along n."""

    columns = False

    def __init__(self, n, weight):
        self.weight = weight
        self.results = [StoreResult(name, dtypes.float32, (), n) for name in ("%a3", "%a4")]

    def write(self, text, sums, position):
        lanes, dtype = position.lanes, dtypes.float32
        kind = vector_type(dtype, lanes)
        place = text.at("%a2", text.multiply(position.j, 4))
        bias = load_lanes(text, dtype, place, lanes, position.count)
        total = text.let(f"fadd {kind} {sums}, {bias}")
        zero = "zeroinitializer" if lanes > 1 else "0.0"
        positive = text.let(f"fcmp ogt {kind} {total}, {zero}")
        condition = f"<{lanes} x i1>" if lanes > 1 else "i1"
        relu = text.let(f"select {condition} {positive}, {kind} {total}, {kind} {zero}")
        for result, value in zip(self.results, (total, relu), strict=True):
            result.write(text, value, position)


@pytest.mark.parametrize("weight", [6, 1000])
@pytest.mark.parametrize(("m", "n"), [(32, 64), (19, 21), (1, 10), (7, 1)])
def test_epilogues_get_every_sum_once(m, n, weight):
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(m, 12)).astype("f4"), rng.normal(size=(12, n)).astype("f4")
    bias = rng.normal(size=n).astype("f4")
    total, relu = aligned((m, n), "f4"), aligned((m, n), "f4")
    names = [f"%a{number}" for number in range(5)]
    code = kernel_code(a, b, epilogue=BiasAndRelu(n, weight), arguments=names)
    Kernel(code, a, b, bias, total, relu)()
    want = reference(a, b) + bias
    assert_same_bits(total, want)
    assert_same_bits(relu, np.where(want > 0, want, np.float32(0)))


class AddTo:
    """Adds the sums to the memory of ``%a2``; takes vectors along both axes."""

    weight, columns = 40, True

    def __init__(self, n):
        self.n = n

    def write(self, text, sums, position):
        along_m = position.axis == "m"
        for lane in range(position.count):
            i = text.add(position.i, lane if along_m else 0)
            j = text.add(position.j, 0 if along_m else lane)
            place = text.at("%a2", text.multiply(text.add(text.multiply(i, self.n), j), 4))
            old = load_lanes(text, dtypes.float32, place, 1, 1)
            one = sums
            if position.lanes > 1:
                one = element(text, sums, dtypes.float32, position.lanes, lane)
            new = text.let(f"fadd float {old}, {one}")
            store_lanes(text, dtypes.float32, new, place, 1, 1)


@pytest.mark.parametrize(("m", "n"), [(70, 1), (64, 2), (33, 3), (40, 10), (5, 40)])
def test_epilogues_may_work_in_place_and_along_m(m, n):
    rng = np.random.default_rng(4)
    a, b = rng.normal(size=(m, 20)).astype("f4"), rng.normal(size=(20, n)).astype("f4")
    start = rng.normal(size=(m, n)).astype("f4")
    total = start.copy()
    Kernel(kernel_code(a, b, epilogue=AddTo(n)), a, b, total)()
    assert_same_bits(total, start + reference(a, b))


def test_small_kernels_are_small():
    """Text costs compile time: about 25 microseconds a line."""
    rng = np.random.default_rng(5)
    for m, k, n in ((32, 4, 64), (32, 64, 64), (32, 64, 2), (1, 64, 64), (64, 32, 64)):
        a, b = rng.normal(size=(m, k)).astype("f4"), rng.normal(size=(k, n)).astype("f4")
        assert kernel_code(a, b).text.count("\n") < 320
