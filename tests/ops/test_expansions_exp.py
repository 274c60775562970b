"""The own exponential function against the true one, as the interpreter runs it."""

from decimal import Context, Decimal

import numpy as np
import pytest

from dilim import dtypes
from dilim.backends.reference.interpreter import interpret
from dilim.ir.types import Type
from dilim.ops.expansions import expanded
from dilim.ops.expansions_exp import EXP
from dilim.ops.expansions_float import FORMATS
from dilim.ops.table import OPERATIONS

# Results outside of these are 0 or infinite.
RANGE = {"float32": (-103.98, 88.72), "float64": (-745.14, 709.78)}


def own_exp(x):
    recipe = OPERATIONS["exp"].recipe(Type(x.shape, dtypes.from_numpy(x.dtype)))
    return interpret(expanded(recipe), [x])


def arguments(dtype, count):
    """Over the whole range, near 0, among tiny results, and next to half multiples of log 2."""
    rng = np.random.default_rng(3)
    low, high = RANGE[np.dtype(dtype).name]
    halves = (np.arange(2 * int(low * 1.44), 2 * int(high * 1.44)) + 0.5) * np.log(2) / 2
    pieces = (
        rng.uniform(low, high, count),
        rng.normal(size=count) * 10.0 ** rng.uniform(-20, 0, count),
        rng.uniform(low, low * 0.83, count),
        halves,
        np.nextafter(halves, 0),
    )
    return np.concatenate(pieces).astype(dtype)


def test_float32_is_within_one_unit_in_the_last_place():
    x = arguments(np.float32, 200_000)
    want = np.exp(x.astype(np.float64))
    got = own_exp(x).astype(np.float64)
    unit = np.spacing(want.astype(np.float32)).astype(np.float64)
    inside = np.isfinite(unit)
    assert np.max(np.abs(got - want)[inside] / unit[inside]) <= 1.0
    assert np.sum(want[inside] < np.finfo(np.float32).tiny) > 10_000


def test_float64_is_within_one_unit_in_the_last_place():
    x = arguments(np.float64, 1000)
    context = Context(prec=40)
    for argument, result in zip(x.tolist(), own_exp(x).tolist(), strict=True):
        want = context.exp(Decimal(argument))
        unit = Decimal(float(np.spacing(max(float(want), 5e-324))))
        assert abs(Decimal(result) - want) <= unit, argument


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_ends_and_special_values(dtype):
    info = np.finfo(dtype)
    largest = float(np.log(np.longdouble(info.max)))
    low = RANGE[dtype][0]
    x = np.array([np.inf, -np.inf, 0.0, -0.0, largest * 1.001, largest * 0.999, low, 3e38, -3e38])
    got = own_exp(x.astype(dtype))
    with np.errstate(all="ignore"):
        want = np.exp(x.astype(dtype))
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(got[[0, 1, 2, 3, 4, 6, 7, 8]], want[[0, 1, 2, 3, 4, 6, 7, 8]])
    assert np.isfinite(got[5])
    assert np.isnan(own_exp(np.array([np.nan, -np.nan], dtype))).all()
    smallest = own_exp(np.array([low * 0.999], dtype))
    assert 0 < smallest[0] < info.tiny


def test_the_high_part_of_log_two_times_an_exponent_is_exact():
    for dtype, constants in EXP.items():
        layout = FORMATS[dtype]
        digits = layout.mantissa + 1 - layout.bias.bit_length() - 1
        scaled = constants.log_two[0] * 2.0**digits
        assert scaled == int(scaled), dtype
