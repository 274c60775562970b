"""The own tanh, sigmoid and erf against the true ones, as the interpreter runs them."""

import math
from decimal import Decimal, localcontext

import numpy as np
import pytest

from dilim import dtypes
from dilim.backends.reference.interpreter import interpret
from dilim.ir.types import Type
from dilim.ops.expansions import expanded
from dilim.ops.expansions_sigmoid import ERF
from dilim.ops.table import OPERATIONS

NAMES = ("tanh", "sigmoid", "erf")
DTYPES = ("float32", "float64")
# From here on tanh and erf are 1; below minus that sigmoid is 0.
ENDS = {
    "float32": {"tanh": 9.02, "sigmoid": 103.98, "erf": 3.92},
    "float64": {"tanh": 19.07, "sigmoid": 745.14, "erf": 5.93},
}
TINIEST = {"float32": 2.0**-149, "float64": 2.0**-1074}


def recipe_of(name, x):
    return expanded(OPERATIONS[name].recipe(Type(x.shape, dtypes.from_numpy(x.dtype))))


def own(name, x):
    return interpret(recipe_of(name, x), [x])


def arguments(name, dtype, count):
    """Over the whole range, of all magnitudes, and around the places where a formula changes."""
    rng = np.random.default_rng(5)
    end = ENDS[dtype][name] * 1.02
    smallest = np.log2(np.finfo(dtype).tiny)
    places = np.array([0.26, 0.607, 0.7, 1.0, ERF[dtypes.float32].highest, 6.0, np.log(2)])
    x = np.concatenate(
        [
            rng.uniform(-end, end, count),
            rng.uniform(-2.5, 2.5, count),
            rng.choice([-1, 1], count) * 2.0 ** rng.uniform(-60, np.log2(end), count),
            rng.choice([-1, 1], count) * 2.0 ** rng.uniform(smallest, 0, count),
            np.outer([1, -1], np.outer(places, 1 + rng.normal(size=20) * 1e-6)).ravel(),
        ]
    ).astype(dtype)
    places = places.astype(dtype)
    edges = [places, *(np.nextafter(places, np.dtype(dtype).type(n)) for n in (0, 9))]
    return np.concatenate([x, *edges, *(-edge for edge in edges)])


def true_erf(x):
    """Its power series; in 60 digits the cancellation up to 6 leaves 40."""
    term = total = x
    n = 0
    while abs(term) > Decimal(10) ** -50 * abs(total):
        n += 1
        term = -term * x * x / n
        total += term / (2 * n + 1)
    pi = Decimal("3.14159265358979323846264338327950288419716939937510582097494459")
    return 2 * total / pi.sqrt()


def true(name, x):
    """The value as a decimal number; it is exact to 35 digits."""
    if name == "erf":
        return true_erf(x) if abs(x) < 7 else Decimal(1).copy_sign(x)
    if name == "sigmoid":
        return 1 / (1 + (-x).exp())
    if abs(x) < Decimal(10) ** -18:
        return x - x**3 / 3
    return 1 - 2 / ((2 * x).exp() + 1)


def in_double(name, x):
    with np.errstate(over="ignore"):
        if name == "sigmoid":
            e = np.exp(-np.abs(x))
            return np.where(x < 0, e, 1) / (1 + e)
        return np.tanh(x) if name == "tanh" else np.array([math.erf(v) for v in x.tolist()])


@pytest.mark.parametrize("name", NAMES)
def test_float32_is_within_two_units_in_the_last_place(name):
    x = arguments(name, "float32", 50_000)
    want = in_double(name, x.astype(np.float64))
    got = own(name, x)
    assert got.dtype == np.float32
    unit = np.spacing(np.abs(want).astype(np.float32)).astype(np.float64)
    assert np.max(np.abs(got.astype(np.float64) - want) / unit) <= 2.0
    assert np.sum(np.abs(x) < 1e-30) > 1000


@pytest.mark.parametrize("name", NAMES)
def test_float64_is_within_two_units_in_the_last_place(name):
    x = arguments(name, "float64", 500)
    got = own(name, x)
    assert got.dtype == np.float64
    with localcontext(prec=60):
        for argument, result in zip(x.tolist(), got.tolist(), strict=True):
            want = true(name, Decimal(argument))
            unit = Decimal(float(np.spacing(abs(float(want)))))
            assert abs(Decimal(result) - want) <= 2 * unit, argument


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ["tanh", "erf"])
def test_odd_functions(name, dtype):
    x = np.abs(arguments(name, dtype, 300))
    got = own(name, x)
    np.testing.assert_array_equal(own(name, -x), -got)
    assert np.all(got <= 1)
    end = ENDS[dtype][name]
    large = np.array([end, 2 * end, 40.0, 1e3, np.finfo(dtype).max, np.inf], dtype)
    np.testing.assert_array_equal(own(name, large), np.ones_like(large))
    np.testing.assert_array_equal(own(name, -large), -np.ones_like(large))
    assert own(name, np.array([end * 0.9], dtype))[0] < 1


@pytest.mark.parametrize("dtype", DTYPES)
def test_zeros_and_tiny_arguments(dtype):
    tiniest = TINIEST[dtype]
    x = np.array([0.0, tiniest, 5 * tiniest, np.finfo(dtype).tiny, 1e-20], dtype)
    for signed in (x, -x):
        np.testing.assert_array_equal(own("tanh", signed), signed)
        assert np.signbit(own("tanh", signed))[0] == np.signbit(own("erf", signed))[0]
        assert np.signbit(own("erf", signed)[0]) == np.signbit(signed[0])
        want = signed.astype(np.longdouble) * 2 / np.sqrt(np.longdouble(np.pi))
        np.testing.assert_array_max_ulp(own("erf", signed), want.astype(dtype), 1)
        np.testing.assert_array_equal(own("sigmoid", signed), np.full(5, 0.5, dtype))


@pytest.mark.parametrize("dtype", DTYPES)
def test_the_ends_of_sigmoid(dtype):
    end = ENDS[dtype]["sigmoid"]
    huge = np.finfo(dtype).max
    got = own(
        "sigmoid", np.array([-np.inf, -huge, -1000, -end * 1.002, 40, 1000, huge, np.inf], dtype)
    )
    np.testing.assert_array_equal(got, np.array([0, 0, 0, 0, 1, 1, 1, 1], dtype))
    assert not np.signbit(got).any()
    falling = own("sigmoid", -np.linspace(end * 0.85, end * 0.9999, 500).astype(dtype))
    assert np.all(np.diff(falling) <= 0)
    assert 0 < falling[-1] == TINIEST[dtype]


def test_a_denormal_result_of_sigmoid():
    assert own("sigmoid", np.array([-745.0]))[0] == 5e-324
    assert own("sigmoid", np.array([-740.0]))[0] == float(Decimal(-740).exp())
    assert own("sigmoid", np.array([-100.0], np.float32))[0] == np.float32(np.exp(-100.0))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", NAMES)
def test_nan_stays_nan(name, dtype):
    assert np.isnan(own(name, np.array([np.nan, -np.nan], dtype))).all()
