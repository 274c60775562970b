"""Powers and angles against mpmath, with all special values of IEEE 754."""

import numpy as np
import pytest
from accuracy import FLOATS, assert_same_bits, largest_error, magnitudes, mp, own, pairs, special

# Largest errors measured: pow 0.53 in float32 and 1.26 in float64, atan2 1.40 and 1.50.


def power(x, y):
    """x ** y as far as the exponents of float64 go."""
    sign = -1 if x < 0 and int(y) % 2 else 1
    logarithm = y * mp.log(abs(x), 2)
    return sign * mp.mpf(2) ** max(min(logarithm, 1100), -1200)


def bases(dtype, count):
    """All magnitudes, near 1, between powers of 2, and negative ones for whole exponents."""
    info, rng = np.finfo(dtype), np.random.default_rng(4)
    near = 1 + rng.choice([-1, 1], count) * 2.0 ** rng.uniform(-info.nmant, -1, count)
    return {
        "all": np.abs(magnitudes(dtype, count)),
        "near 1": near.astype(dtype),
        "tame": (2.0 ** rng.uniform(-1, 1, count)).astype(dtype),
    }


@pytest.mark.parametrize("kind", ["all", "near 1", "tame"])
@pytest.mark.parametrize("dtype", FLOATS)
def test_power_over_the_whole_range_of_results(dtype, kind):
    x = bases(dtype, 1200)[kind]
    rng, end = np.random.default_rng(5), float(np.finfo(dtype).maxexp)
    with np.errstate(divide="ignore"):
        y = rng.uniform(-1.16, 1.01, len(x)) * end / np.log2(x.astype(np.float64))
    y = np.where(np.isfinite(y), y, 3).astype(dtype)
    assert largest_error(own("pow", x, y), power, x, y, digits=160) <= 2.0


@pytest.mark.parametrize("dtype", FLOATS)
def test_small_and_whole_exponents(dtype):
    rng = np.random.default_rng(6)
    x = rng.uniform(0, 4, 1000).astype(dtype)
    y = rng.normal(size=1000).astype(dtype)
    assert largest_error(own("pow", x, y), power, x, y, digits=160) <= 2.0
    x, y = -x, np.round(y * 9)
    assert largest_error(own("pow", x, y), power, x, y, digits=160) <= 2.0
    np.testing.assert_array_equal(own("pow", x, np.full_like(x, 2)), x * x)


@pytest.mark.parametrize("dtype", FLOATS)
def test_one_to_a_huge_power(dtype):
    epsilon = np.finfo(dtype).eps
    x = np.array([1 + epsilon, 1 - epsilon / 2, 1 + 3 * epsilon] * 40, dtype)
    y = (np.random.default_rng(7).uniform(-80, 80, 120) / epsilon).astype(dtype)
    assert largest_error(own("pow", x, y), power, x, y, digits=200) <= 2.0
    huge = np.finfo(dtype).max * np.array([1, -1], dtype)
    np.testing.assert_array_equal(own("pow", x[:2], huge), np.full(2, np.inf, dtype))
    np.testing.assert_array_equal(own("pow", x[1::-1], huge), np.zeros(2, dtype))


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values_of_power(dtype):
    x, y = pairs(special(dtype))
    with np.errstate(all="ignore"):
        want = np.power(x.astype(np.float64), y.astype(np.float64)).astype(dtype)
        got = own("pow", x, y)
        ends = ~np.isfinite(want) | (want == 0) | (y == 0) | (np.abs(x) == 1)
        assert_same_bits(got[ends], want[ends])
        np.testing.assert_array_max_ulp(got[~ends], want[~ends], 2)
    assert ends.sum() > 800


# --- angles ---------------------------------------------------------------------------------


def points(dtype, count):
    """Of all magnitudes, in every octant, and where two formulas meet."""
    rng, info = np.random.default_rng(8), np.finfo(dtype)
    y = [magnitudes(dtype, count, 1), rng.normal(size=count), magnitudes(dtype, count, 2)]
    x = [magnitudes(dtype, count, 3), rng.normal(size=count), y[2] * rng.uniform(0.4, 1.1, count)]
    huge, tiny = info.maxexp - 3, info.minexp - info.nmant
    y += [magnitudes(dtype, 200, 4, huge), magnitudes(dtype, 200, 5, tiny, info.minexp)]
    x += [magnitudes(dtype, 200, 6, huge), magnitudes(dtype, 200, 7, tiny, info.minexp)]
    with np.errstate(over="ignore"):
        y, x = (np.concatenate(parts).astype(dtype) for parts in (y, x))
    finite = np.isfinite(x)
    swapped, mirrored = rng.random((2, len(x))) < 0.5
    y, x = np.where(swapped, x, y), np.where(swapped, y, x)
    return y[finite], np.where(mirrored, -x, x)[finite]


@pytest.mark.parametrize("dtype", FLOATS)
def test_angles(dtype):
    y, x = points(dtype, 900)
    assert largest_error(own("atan2", y, x), mp.atan2, y, x, digits=300) <= 2.0


@pytest.mark.parametrize("dtype", FLOATS)
def test_special_values_of_angles(dtype):
    y, x = pairs(special(dtype))
    with np.errstate(all="ignore"):
        want = np.arctan2(y.astype(np.float64), x.astype(np.float64)).astype(dtype)
        got = own("atan2", y, x)
    np.testing.assert_array_equal(np.isnan(got), np.isnan(want))
    numbers = ~np.isnan(want)
    np.testing.assert_array_equal(np.signbit(got[numbers]), np.signbit(want[numbers]))
    np.testing.assert_array_max_ulp(got[numbers], want[numbers], 2)
    np.testing.assert_array_equal(got == 0, want == 0)
