"""Operations whose recipes are made of expansions, over the whole range, against mpmath."""

import numpy as np
import pytest
from accuracy import FLOATS, largest_error, magnitudes, mp

from dilim import dtypes
from dilim.backends.reference.interpreter import interpret
from dilim.ir.types import Type
from dilim.ops.expansions import expanded
from dilim.ops.table import OPERATIONS

# Largest errors measured: log2 1.26 and log10 1.20 (float32, every number from 0.3 to 3), and in
# float64 tan 2.62, acos 1.85, hypot 1.84, the others less.
FUNCTIONS = {
    "log2": lambda x: mp.log(x, 2),
    "log10": mp.log10,
    "tan": mp.tan,
    "asin": mp.asin,
    "acos": mp.acos,
    "atan": mp.atan,
    "sinh": mp.sinh,
    "cosh": mp.cosh,
    "asinh": mp.asinh,
    "acosh": mp.acosh,
    "atanh": mp.atanh,
    "hypot": mp.hypot,
}
LARGEST_ALLOWED = {name: 2.0 for name in FUNCTIONS} | {"tan": 3.0, "log2": 1.5, "log10": 1.5}


def own(name, *arrays):
    types = [Type(x.shape, dtypes.from_numpy(x.dtype)) for x in arrays]
    return interpret(expanded(OPERATIONS[name].recipe(*types)), arrays)


def arguments(name, dtype, count=400):
    """All magnitudes, numbers near 1, and the whole range of finite results."""
    info, rng = np.finfo(dtype), np.random.default_rng(3)
    every = [magnitudes(dtype, count), magnitudes(dtype, count, 1, -30, 6)]
    near = 1 + magnitudes(dtype, count, 2, -info.nmant, -1)
    x = np.concatenate([*every, near])
    if name == "hypot":
        return [x, rng.permutation(x)]
    if name in ("sinh", "cosh"):
        end = np.log(info.max.astype(np.longdouble)) + 0.69
        x = np.concatenate([x, rng.uniform(-end, end, count), np.array([end, -end])])
        return [x[np.abs(x) <= end].astype(dtype)]
    if name in ("asin", "acos", "atanh"):
        return [x[np.abs(x) < 1]]
    return [np.abs(x) + 1 if name == "acosh" else np.abs(x) if name.startswith("log") else x]


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_close_to_the_true_value(name, dtype):
    arrays = arguments(name, dtype)
    digits = 1400 if name == "tan" else 2300 if name in ("hypot", "acosh", "asinh") else 300
    error = largest_error(own(name, *arrays), FUNCTIONS[name], *arrays, digits=digits)
    assert error <= LARGEST_ALLOWED[name]


@pytest.mark.parametrize("dtype", FLOATS)
def test_powers_of_two_and_ten(dtype):
    info = np.finfo(dtype)
    powers = np.arange(info.minexp - info.nmant, info.maxexp)
    np.testing.assert_array_equal(own("log2", np.ldexp(1.0, powers).astype(dtype)), powers)
    tens = np.arange(11 if dtype == "float32" else 23)  # as long as they are exact
    np.testing.assert_array_equal(own("log10", (10.0**tens).astype(dtype)), tens)


# Arguments and results.
SPECIAL = {
    "log2": ([0, -0.0, np.inf, -1, np.nan], [-np.inf, -np.inf, np.inf, np.nan, np.nan]),
    "log10": ([0, -0.0, np.inf, -1, np.nan], [-np.inf, -np.inf, np.inf, np.nan, np.nan]),
    "asin": ([-0.0, 1.5, np.nan], [-0.0, np.nan, np.nan]),
    "acos": ([1, 1.5, np.nan], [0, np.nan, np.nan]),
    "sinh": ([-0.0, 800, np.inf, -np.inf, np.nan], [-0.0, np.inf, np.inf, -np.inf, np.nan]),
    "cosh": ([-0.0, 800, np.inf, -np.inf, np.nan], [1, np.inf, np.inf, np.inf, np.nan]),
    "asinh": ([-0.0, np.inf, -np.inf, np.nan], [-0.0, np.inf, -np.inf, np.nan]),
    "acosh": ([1, 0.5, np.inf, np.nan], [0, np.nan, np.inf, np.nan]),
    "atanh": ([-0.0, 1, -1, 2, np.nan], [-0.0, np.inf, -np.inf, np.nan, np.nan]),
}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", SPECIAL)
def test_special_values(name, dtype):
    x, want = (np.array(numbers, dtype) for numbers in SPECIAL[name])
    got = own(name, x)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(np.signbit(got[want == 0]), np.signbit(want[want == 0]))
