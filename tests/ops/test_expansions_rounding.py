"""Rounding, neighbours, remainders and floor division: exactly NumPy's results."""

from fractions import Fraction

import numpy as np
import pytest
from accuracy import FLOATS, any_bits, assert_same_bits, magnitudes, own, pairs, special

from dilim.ops.binary import floor_divide

ROUNDING = {"floor": np.floor, "ceil": np.ceil, "trunc": np.trunc, "round": np.rint}


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", ROUNDING)
def test_rounding(name, dtype):
    info, rng = np.finfo(dtype), np.random.default_rng(1)
    halves = np.arange(-40, 41) / 4
    borders = magnitudes(dtype, 4000, 2, -2, info.nmant + 3)
    with np.errstate(all="ignore"):
        x = [halves, borders, np.round(borders) + 0.5, special(dtype), any_bits(dtype, 20_000)]
        x = np.concatenate([*x, rng.normal(size=2000)]).astype(dtype)
        assert_same_bits(own(name, x), ROUNDING[name](x))


@pytest.mark.parametrize("dtype", FLOATS)
def test_neighbours(dtype):
    x, y = pairs(special(dtype))
    x = np.concatenate([x, any_bits(dtype, 5000, 3), magnitudes(dtype, 500)])
    y = np.concatenate([y, any_bits(dtype, 5000, 4), magnitudes(dtype, 500)])
    with np.errstate(all="ignore"):
        assert_same_bits(own("nextafter", x, y), np.nextafter(x, y))


def quotients(dtype):
    """Far apart and near, whole and not, denormal ones, all special values."""
    info, rng = np.finfo(dtype), np.random.default_rng(5)
    denormal = info.minexp - info.nmant, info.minexp
    x, y = pairs(special(dtype))
    x = [x, magnitudes(dtype, 3000, 1), rng.normal(size=3000) * 9, magnitudes(dtype, 3000, 2)]
    y = [
        y,
        magnitudes(dtype, 3000, 3),
        rng.normal(size=3000),
        x[3] * 2.0 ** rng.uniform(-60, 1, 3000),
    ]
    x += [np.round(rng.normal(size=2000) * 999), magnitudes(dtype, 1000, 6, *denormal)]
    y += [np.round(rng.normal(size=2000) * 9), magnitudes(dtype, 1000, 7, *denormal)]
    return np.concatenate(x).astype(dtype), np.concatenate(y).astype(dtype)


@pytest.mark.parametrize("dtype", FLOATS)
def test_remainder(dtype):
    x, y = quotients(dtype)
    with np.errstate(all="ignore"):
        assert_same_bits(own("remainder", x, y), np.remainder(x, y))


@pytest.mark.parametrize("dtype", FLOATS)
def test_floor_divide(dtype):
    x, y = quotients(dtype)
    with np.errstate(all="ignore"):
        assert_same_bits(own("floor_divide", x, y), floor_divide.reference(x, y))


@pytest.mark.parametrize("dtype", FLOATS)
def test_remainder_is_exact(dtype):
    x = np.abs(np.concatenate([magnitudes(dtype, 500, 8), magnitudes(dtype, 500, 9, 100)]))
    y = np.abs(magnitudes(dtype, 1000, 10))
    for a, b, rest in zip(x.tolist(), y.tolist(), own("remainder", x, y).tolist(), strict=True):
        assert Fraction(a) % Fraction(b) == Fraction(rest)
