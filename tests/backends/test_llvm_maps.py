"""Native maps, and every operation on its samples, against the interpreter, bit for bit."""

import re

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import Region, check_region, run_kernel, type_of, usable
from single import SPECIAL, numbers

from dilim import dtypes
from dilim.backends.llvm.binding import emit_assembly
from dilim.backends.llvm.kernel import KernelOptions, write_kernel
from dilim.ops.nest import compose
from dilim.ops.table import OPERATIONS

RNG = np.random.default_rng(0)
WIDTHS = [width for width in (16, 32, 64) if usable(width)]
SIZES = [0, 1, 2, 3, 7, 16, 17, 33, 100]
F32 = dtypes.float32


def normal(*shape, dtype=np.float32):
    return RNG.normal(size=shape).astype(dtype)


def samples(name, dtype):
    for sample in OPERATIONS[name].samples(np.random.default_rng(7), dtype):
        tensors = [x for x in sample.inputs if isinstance(x, np.ndarray)]
        scalar = tensors[-1].dtype if tensors else dtype.numpy
        arrays = [np.asarray(x, None if isinstance(x, np.ndarray) else scalar)
                  for x in sample.inputs]  # fmt: skip
        yield arrays, sample.params


@pytest.mark.parametrize("name", [name for name, op in OPERATIONS.items() if op.recipe])
def test_every_operation_on_its_samples(name):
    for number, dtype in enumerate(OPERATIONS[name].sample_dtypes):
        for arrays, params in samples(name, dtype):
            region = Region()
            values = [region.input(array) for array in arrays]
            output = getattr(region, name)(*values, **params)
            check_region(region, [output], WIDTHS[number % len(WIDTHS)])


CHAINS = {
    "affine": lambda r, x, y: r.relu(r.add(r.multiply(x, y), y)),
    "functions": lambda r, x, y: r.tanh(r.subtract(r.exp(x), r.sqrt(r.abs(y)))),
    "choice": lambda r, x, y: r.where(r.greater(x, y), r.divide(x, y), r.maximum(y, x)),
    "views": lambda r, x, y: r.add(r.flip(x, axis=tuple(range(len(x.shape)))), y),
}


@pytest.mark.parametrize("chain", CHAINS)
@settings(max_examples=15, deadline=None)
@given(st.data(), st.lists(st.sampled_from(SIZES), max_size=3).map(tuple))
def test_chains_on_any_shapes_and_special_numbers(chain, data, shape):
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    region = Region()
    other = data.draw(st.sampled_from([shape, shape[1:], ()]))
    x = region.input(data.draw(numbers(shape, dtype)))
    y = region.input(data.draw(numbers(other, dtype)))
    check_region(region, [CHAINS[chain](region, x, y)], data.draw(st.sampled_from(WIDTHS)))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("size", [5, 64, 4099])
def test_an_update_in_place_of_three_states(width, size):
    region = Region()
    p, m, v, g = (region.input(np.abs(normal(size))) for _ in range(4))
    decay = region.full(shape=(), value=0.9, dtype=F32)
    new_m = region.add(region.multiply(m, decay), g)
    new_v = region.add(region.multiply(v, decay), region.multiply(g, g))
    new_p = region.subtract(p, region.divide(new_m, region.sqrt(new_v)))
    check_region(region, [new_p, new_m, new_v], width, aliases={0: 0, 1: 1, 2: 2})


@st.composite
def some_slices(draw, shape):
    index = []
    for size in shape:
        step = draw(st.sampled_from([1, 1, 2, 3, -1, -2]))
        count = draw(st.integers(0, -(-size // abs(step))))
        reach = max(count - 1, 0) * abs(step)
        start = draw(st.integers(0, max(size - 1 - reach, 0))) if count else 0
        index.append((start + (reach if step < 0 else 0), count, step))
    return tuple(index)


SHAPES = st.lists(st.sampled_from([1, 2, 7, 12, 33]), min_size=1, max_size=3).map(tuple)


@given(st.data(), SHAPES, st.sampled_from(["own", "flat", "deep"]), st.sampled_from([1, 2]))
def test_a_partial_write_in_place(data, shape, seen, states):
    """Memory of one shape, perhaps seen as another, of one or two states."""
    flat = (int(np.prod(shape)),)
    memory, view = {"own": (shape, shape), "flat": (flat, shape), "deep": (shape, flat)}[seen]
    index = data.draw(some_slices(view))
    region = Region()
    outputs = []
    olds = [region.input(normal(*memory)) for _ in range(states)]
    for old in olds:
        value = region.exp(region.input(normal(*(count for _, count, _ in index))))
        new = region.slice_update(region.reshape(old, shape=view), value, index=index)
        outputs.append(region.reshape(new, shape=memory))
    width = data.draw(st.sampled_from(WIDTHS))
    check_region(region, outputs, width, aliases={k: k for k in range(states)})


def test_a_partial_write_in_place_visits_what_changes():
    region = Region()
    x, y = region.input(normal(1000, 64)), region.input(normal(1, 64))
    output = region.slice_update(x, y, index=((3, 1, 1), (0, 64, 1)))
    form = compose(region.builder.build_region([output]), OPERATIONS)
    types = [type_of(array) for array in region.arrays]
    assert "phi" in write_kernel("k", form, types, [x.type]).text
    assert "phi" not in write_kernel("k", form, types, [x.type], {0: 0}).text


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "uint32", "int64", "uint64", "bool"])
@pytest.mark.parametrize("source", [np.float32, np.float64])
def test_casts_saturate(dtype, source):
    info = None if dtype == "bool" else np.iinfo(dtype)
    edges = [0.5, -0.5, 1e30, -1e30, 127.5, 255.9, -128.9, 2.0**31, -(2.0**31), 2.0**63, 2.0**64]
    x = np.array([*SPECIAL, *edges], source)
    region = Region()
    output = region.astype(region.input(x), dtype=dtypes.as_dtype(dtype))
    form = compose(region.builder.build_region([output]), OPERATIONS)
    for width in WIDTHS:
        got = run_kernel(form, region.arrays, [output.type], width)[0]
        for number, result in zip(x.tolist(), got.tolist(), strict=True):
            if info is None:
                assert result == (number != 0)
            elif number != number:
                assert result == 0
            else:
                inside = min(max(number, info.min), info.max)
                assert result == min(max(int(inside), info.min), info.max)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_position_out_of_range_fails_before_anything_is_written(width):
    region = Region()
    x, i = region.input(normal(4, 20)), region.input(np.array([0, 3, -5, 9]))
    output = region.exp(region.take(x, i, axis=0))
    form = compose(region.builder.build_region([output]), OPERATIONS)
    assert run_kernel(form, region.arrays, [output.type], width) == (1, -5)
    region.arrays[1] = np.array([0, 3, -4, 2])
    assert len(run_kernel(form, region.arrays, [output.type], width)) == 1


def test_large_maps_split_into_chunks():
    region = Region()
    output = region.exp(region.input(normal(100_003)))
    form = compose(region.builder.build_region([output]), OPERATIONS)
    kernel = write_kernel("k", form, [output.type], [output.type])
    assert kernel.chunks > 1
    check_region(region, [output], WIDTHS[-1])


UNWANTED = "fmadd fmsub expf memset memcpy malloc call".split()


def test_the_code_is_vectors_and_calls_nothing():
    region = Region()
    x, b = region.input(normal(32, 64)), region.input(normal(64))
    output = region.exp(region.relu(region.add(x, b)))
    form = compose(region.builder.build_region([output]), OPERATIONS)
    types = [type_of(array) for array in region.arrays]
    for width in WIDTHS:
        text = write_kernel("k", form, types, [output.type], {}, KernelOptions(width)).text
        assert "fast" not in text
        assert "contract" not in text
        assembly = emit_assembly(text, usable(width))
        assert re.search(
            {16: r"addps.*xmm", 32: r"vaddps.*ymm", 64: r"vaddps.*zmm"}[width], assembly
        )
        for unwanted in UNWANTED:
            assert unwanted not in assembly, unwanted
    fast = KernelOptions(64, "fast")
    assert "contract" in write_kernel("k", form, types, [output.type], {}, fast).text


def test_the_comparison_sees_one_wrong_bit():
    region = Region()
    output = region.add(region.input(normal(33)), region.input(normal(33)))
    form = compose(region.builder.build_region([output]), OPERATIONS)
    got = run_kernel(form, region.arrays, [output.type], WIDTHS[-1])[0]
    want = region.arrays[0] + region.arrays[1]
    np.testing.assert_array_equal(got, want)
    wrong = want.copy()
    wrong.view(np.uint32)[32] ^= 1
    with pytest.raises(AssertionError):
        np.testing.assert_array_equal(got, wrong)
