"""The own logarithms and exp(x) - 1 against the true ones, as the interpreter runs them."""

from decimal import Context, Decimal

import numpy as np
import pytest

from dilim import dtypes
from dilim.backends.reference.interpreter import interpret
from dilim.ir.types import Type
from dilim.ops.expansions import expanded
from dilim.ops.table import OPERATIONS

NAMES = ("log", "log1p", "expm1")
FLOATS = ("float32", "float64")
# Up to these exp(x) - 1 is finite.
HIGHEST = {"float32": 88.72, "float64": 709.78}
# Largest errors measured in float32: 0.96, 0.93, 1.28.
LARGEST_ALLOWED_ULP = {"log": 1.0, "log1p": 1.0, "expm1": 1.5}
PRECISE = Context(prec=400)  # 1 + the smallest float64 takes 324 digits


def own(name, x):
    recipe = OPERATIONS[name].recipe(Type(x.shape, dtypes.from_numpy(x.dtype)))
    return interpret(expanded(recipe), [x])


def true(name, x):
    """One float64 as a Decimal of more than 30 right digits."""
    number = Decimal(x)
    if name == "log":
        return Context(prec=50).ln(number)
    context = Context(prec=50) if abs(x) > 1e-12 else PRECISE
    if name == "expm1":
        return context.subtract(context.exp(number), 1)
    return context.ln(PRECISE.add(number, 1))


def arguments(name, dtype, count):
    """All magnitudes, denormal ones, next to zeros, and where two pieces of a function meet."""
    rng = np.random.default_rng(5)
    info = np.finfo(dtype)
    sign = rng.choice([-1.0, 1.0], count)
    near = sign * 10.0 ** rng.uniform(np.log10(info.eps) - 1, -0.5, count)
    anywhere = 2.0 ** rng.uniform(info.minexp - info.nmant, info.maxexp - 0.01, count)
    ends = [info.smallest_subnormal, info.tiny, np.nextafter(info.tiny, 0), info.max]
    if name == "expm1":
        high = HIGHEST[np.dtype(dtype).name]
        halves = (np.arange(-60, int(high * 2.88)) + 0.5) * np.log(2) / 2
        small = sign * 2.0 ** rng.uniform(info.minexp - info.nmant, 0, count)
        spread = rng.uniform(-40, high, count), rng.uniform(0.3, 0.7, count)
        return np.concatenate([near, small, halves, *spread, ends[:3]]).astype(dtype)
    borders = 2.0 ** (np.arange(-20, 20) + 0.5)
    borders = np.concatenate([borders, np.nextafter(borders.astype(dtype), 0), 2.0 * borders**2])
    shift = 1.0 if name == "log1p" else 0.0
    around_one = np.concatenate([near, rng.uniform(-0.7, 2, count)]) + (1.0 - shift)
    x = np.concatenate([anywhere, borders - shift, around_one, ends]).astype(dtype)
    return np.concatenate([x, -x[(x > 0) & (x < 1)]]) if name == "log1p" else x[x > 0]


@pytest.mark.parametrize("name", NAMES)
def test_float32_is_close_to_the_true_value(name):
    x = arguments(name, np.float32, 100_000)
    x = x[x > -1] if name == "log1p" else x
    want = getattr(np, name)(x.astype(np.float64))
    got = own(name, x)
    assert got.dtype == np.float32
    assert np.isfinite(got).all()
    unit = np.spacing(np.abs(want.astype(np.float32))).astype(np.float64)
    error = np.abs(got.astype(np.float64) - want) / unit
    assert np.max(error) <= LARGEST_ALLOWED_ULP[name], x[np.argmax(error)]


@pytest.mark.parametrize("name", NAMES)
def test_float64_is_close_to_the_true_value(name):
    x = arguments(name, np.float64, 250)
    x = x[x > -1] if name == "log1p" else x
    for argument, result in zip(x.tolist(), own(name, x).tolist(), strict=True):
        want = true(name, argument)
        unit = Decimal(float(np.spacing(abs(float(want)))))
        assert abs(Decimal(result) - want) <= unit * Decimal(LARGEST_ALLOWED_ULP[name]), argument


# Arguments and results.
SPECIAL = {
    "log": ([0.0, -0.0, 1.0, np.inf], [-np.inf, -np.inf, 0.0, np.inf]),
    "log1p": ([-1.0, 0.0, -0.0, np.inf], [-np.inf, 0.0, -0.0, np.inf]),
    "expm1": (
        [-np.inf, -3e38, -50.0, 0.0, -0.0, 3e38, np.inf],
        [-1.0, -1.0, -1.0, 0.0, -0.0, np.inf, np.inf],
    ),
}
NOT_A_NUMBER = {
    "log": [np.nan, -np.nan, -1.0, -1e-45, -1e-320, -3e38, -np.inf],
    "log1p": [np.nan, -np.nan, -1.0000002, -2.0, -3e38, -np.inf],
    "expm1": [np.nan, -np.nan],
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", NAMES)
def test_special_values(name, dtype):
    x, want = (np.array(numbers, dtype) for numbers in SPECIAL[name])
    got = own(name, x)
    assert got.dtype == np.dtype(dtype)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    wrong = np.array(NOT_A_NUMBER[name]).astype(dtype)
    wrong = wrong[wrong != 0]  # float32 has no -1e-320
    assert np.isnan(own(name, wrong)).all()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ["log1p", "expm1"])
def test_a_tiny_argument_is_its_own_result(name, dtype):
    info = np.finfo(dtype)
    x = 2.0 ** np.arange(info.minexp - info.nmant, np.log2(info.eps) - 1)
    x = np.concatenate([x, 0.75 * x[info.nmant :]]).astype(dtype)
    np.testing.assert_array_equal(own(name, x), x)
    np.testing.assert_array_equal(own(name, -x), -x)


@pytest.mark.parametrize("dtype", FLOATS)
def test_where_expm1_leaves_the_finite_numbers(dtype):
    largest = np.log(np.finfo(dtype).max.astype(np.longdouble))
    below, above = (np.array([largest * f], dtype) for f in (0.9999, 1.0001))
    assert np.isfinite(own("expm1", below)[0])
    assert own("expm1", above)[0] == np.inf
