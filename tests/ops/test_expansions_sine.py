"""Sine and cosine against mpmath, for small and for the largest arguments."""

import numpy as np
import pytest
from accuracy import FLOATS, largest_error, magnitudes, mp, own

from dilim.ops.expansions_sine import STARTS, TWO_OVER_PI, TWO_OVER_PI_BITS

# Largest errors measured: float32 1.57, float64 1.85 (80,000 numbers).
FUNCTIONS = {"sin": mp.sin, "cos": mp.cos}


def nearest_multiples(dtype, step):
    """The floats that are nearest to multiples of pi/2 among those of an exponent, all exponents.

    They are the significands in the denominators of the continued fraction of 2**e / (pi / 2).
    """
    info = np.finfo(dtype)
    found = []
    with mp.workprec(1500):
        for exponent in range(-info.nmant - 1, info.maxexp - info.nmant, step):
            rest = mp.mpf(2) ** exponent / (mp.pi / 2)
            before, denominator = 0, 1
            rest -= int(rest)
            while denominator < 2 ** (info.nmant + 1):
                found.append(float(mp.ldexp(denominator, exponent)))
                rest = 1 / rest
                digit = int(rest)
                rest -= digit
                before, denominator = denominator, digit * denominator + before
    x = np.array(found)
    return x[x <= info.max].astype(dtype)


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize(("dtype", "step"), [("float32", 2), ("float64", 11)])
def test_next_to_multiples_of_half_pi(name, dtype, step):
    x = nearest_multiples(dtype, step)
    assert len(x) > 500
    assert largest_error(own(name, x), FUNCTIONS[name], x) <= 2.0


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("dtype", FLOATS)
def test_all_magnitudes(name, dtype):
    limits = 2.0 ** np.array([*STARTS[1:], 16, 17, 53, 100]).astype(dtype)
    x = [magnitudes(dtype, 500), magnitudes(dtype, 700, 1, -4, 24), limits]
    x = np.concatenate([*x, np.nextafter(limits, 0), np.finfo(dtype).max.reshape(1)])
    assert largest_error(own(name, x), FUNCTIONS[name], x) <= 2.0


@pytest.mark.parametrize("name", FUNCTIONS)
def test_many_float32_against_double_precision(name):
    x = np.arange(7, 2**32, 65_521, dtype=np.uint32).view(np.float32)
    x = x[np.abs(x) < 1e6]
    want = getattr(np, name)(x.astype(np.float64))
    unit = np.spacing(np.abs(want).astype(np.float32)).astype(np.float64)
    assert np.max(np.abs(own(name, x) - want) / unit) <= 2.0


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values(dtype):
    tiny = np.finfo(dtype).smallest_subnormal
    x = np.array([0.0, -0.0, tiny, -tiny, 1e-30], dtype)
    np.testing.assert_array_equal(own("sin", x), x)
    np.testing.assert_array_equal(np.signbit(own("sin", x)), np.signbit(x))
    np.testing.assert_array_equal(own("cos", x), np.ones(5, dtype))
    wrong = np.array([np.inf, -np.inf, np.nan], dtype)
    assert np.isnan(own("sin", wrong)).all()
    assert np.isnan(own("cos", wrong)).all()


@pytest.mark.parametrize("dtype", FLOATS)
def test_odd_and_even(dtype):
    x = magnitudes(dtype, 2000)
    np.testing.assert_array_equal(own("sin", -x), -own("sin", x))
    np.testing.assert_array_equal(own("cos", -x), own("cos", x))


def test_digits_of_two_over_pi():
    with mp.workprec(TWO_OVER_PI_BITS + 50):
        assert int(2 / mp.pi * mp.mpf(2) ** TWO_OVER_PI_BITS) == TWO_OVER_PI
