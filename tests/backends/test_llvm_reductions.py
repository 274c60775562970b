"""Native reductions in the fixed order, with what is fused into them, bit for bit."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from kernels import Region, check_region, usable
from single import numbers

from dilim import dtypes

RNG = np.random.default_rng(0)
WIDTHS = [width for width in (16, 32, 64) if usable(width)]
SIZES = [0, 1, 2, 3, 8, 15, 16, 17, 33, 64]


def normal(*shape, dtype=np.float32):
    return (RNG.normal(size=shape) * 10.0 ** RNG.integers(-3, 3, shape)).astype(dtype)


@settings(max_examples=40, deadline=None)
@given(st.data(), st.lists(st.sampled_from(SIZES), min_size=1, max_size=3).map(tuple))
def test_sums_over_any_axes(data, shape):
    axes = data.draw(st.sets(st.sampled_from(range(len(shape)))))
    dtype = data.draw(st.sampled_from([np.float32, np.float64]))
    region = Region()
    x = region.input(data.draw(numbers(shape, dtype)))
    params = {"axis": tuple(sorted(axes)), "keepdims": data.draw(st.booleans())}
    output = region.sum(region.multiply(x, x), **params)
    check_region(region, [output, region.exp(output)], data.draw(st.sampled_from(WIDTHS)))


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("name", ["max", "min", "prod"])
@pytest.mark.parametrize(("shape", "axis"), [((9, 40), 1), ((40, 9), 0), ((3, 17, 5), 1)])
def test_other_reductions_with_special_numbers(width, name, shape, axis):
    x = normal(*shape)
    x.flat[::7] = RNG.choice(np.array([0.0, -0.0, np.inf, np.nan], np.float32), x.flat[::7].shape)
    region = Region()
    value = region.input(x)
    check_region(region, [getattr(region, name)(value, axis=(axis,), keepdims=False)], width)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("shape", [(32, 10), (3, 64), (5, 100), (7, 1), (1, 5), (2, 5000)])
def test_softmax_is_one_kernel(width, shape):
    region = Region()
    x = region.input(normal(*shape))
    top = region.max(x, axis=(1,), keepdims=True)
    e = region.exp(region.subtract(x, region.expand(top, shape=x.shape)))
    total = region.sum(e, axis=(1,), keepdims=True)
    form = check_region(region, [region.divide(e, region.expand(total, shape=x.shape))], width)
    assert len(form.reductions) == 2


@pytest.mark.parametrize(
    ("shape", "axis"),
    [((90, 137), (0, 1)), ((5000, 3), (0,)), ((130, 3, 64), (0, 2)), ((13, 7, 30), (0, 2)),
     ((2, 9000), (1,)), ((3, 4096), (1,)), ((12_305,), (0,))],
)  # fmt: skip
def test_many_elements_and_blocks(shape, axis):
    region = Region()
    x = region.input(normal(*shape))
    check_region(region, [region.sum(x, axis=axis, keepdims=False)], WIDTHS[-1])


@pytest.mark.parametrize("width", WIDTHS)
def test_two_reductions_of_one_space(width):
    region = Region()
    x = region.input(normal(9, 40))
    total = region.sum(x, axis=(1,), keepdims=False)
    squares = region.sum(region.multiply(x, x), axis=(1,), keepdims=False)
    check_region(region, [total, region.subtract(squares, region.multiply(total, total))], width)


@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize(
    ("a", "b"), [((32, 4), (4, 64)), ((53, 3), (3, 1)), ((3, 5, 7), (7, 6)), ((2, 0), (0, 3))]
)
def test_a_product_with_bias_and_activation(width, a, b):
    region = Region()
    x, w, bias = (region.input(normal(*shape)) for shape in (a, b, b[-1:]))
    sums = region.add(region.matmul(x, w), bias)
    check_region(region, [sums, region.tanh(sums)], width)


@pytest.mark.parametrize("dtype", ["bool", "int8", "int64", "uint16"])
def test_integers_and_bools(dtype):
    region = Region()
    x = region.input(RNG.integers(0, 2, (10, 300)).astype(dtype))
    if dtype == "bool":
        outputs = [getattr(region, name)(x, axis=(1,), keepdims=False) for name in ("any", "all")]
    else:
        outputs = [getattr(region, name)(x, axis=(1,), keepdims=False) for name in ("sum", "max")]
    check_region(region, outputs, WIDTHS[-1])
    count = region.sum(region.astype(x, dtype=dtypes.int64), axis=(0,), keepdims=False)
    check_region(region, [count], WIDTHS[-1])
