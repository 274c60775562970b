import math

import numpy as np
import pytest

from dilim.errors import DtypeError, ShapeError
from dilim.ops import philox


def kolmogorov_smirnov(sample: np.ndarray, cumulative: np.ndarray) -> float:
    """sqrt(n) times the largest gap between the sample's steps and the distribution.

    Above 1.95 with probability 0.001.
    """
    order = np.argsort(sample)
    expected = cumulative[order]
    steps = np.arange(len(sample) + 1) / len(sample)
    gap = max(np.max(steps[1:] - expected), np.max(expected - steps[:-1]))
    return float(gap) * math.sqrt(len(sample))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_uniform_is_the_upper_bits(dtype):
    state = philox.seed_state(9)
    sample = philox.uniform(state, (50, 2), dtype)
    assert sample.dtype == dtype
    if dtype == np.float32:
        expected = [[(w >> 8) / 2**24 for w in row] for row in philox.random_bits(state, (50, 2))]
    else:
        pairs = philox.random_bits(state, (100, 2)).tolist()
        expected = np.reshape([((h << 32 | lo) >> 11) / 2**53 for lo, h in pairs], (50, 2)).tolist()
    assert sample.tolist() == expected


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_uniform_distribution(dtype):
    count = 200_000
    sample = philox.uniform(philox.seed_state(4), count, dtype).astype(np.float64)
    assert 0 <= sample.min() < 1e-4
    assert 1 - 1e-4 < sample.max() < 1
    assert abs(sample.mean() - 1 / 2) < 4 * math.sqrt(1 / 12 / count)
    assert abs(sample.var() - 1 / 12) < 4 * math.sqrt(1 / 180 / count)
    assert kolmogorov_smirnov(sample, sample) < 1.95


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_normal_distribution(dtype):
    count = 100_000
    sample = philox.normal(philox.seed_state(4), count, dtype).astype(np.float64)
    assert abs(sample.mean()) < 4 / math.sqrt(count)
    assert abs(sample.var() - 1) < 4 * math.sqrt(2 / count)
    assert abs((sample**3).mean()) < 4 * math.sqrt(15 / count)
    assert abs((sample**4).mean() - 3) < 4 * math.sqrt(96 / count)
    beyond_three = 2 * 0.0013498980316300933
    expected_spread = math.sqrt(beyond_three / count)
    assert abs((np.abs(sample) > 3).mean() - beyond_three) < 4 * expected_spread
    part = sample[:20_000]
    cumulative = np.array([0.5 * math.erfc(-x / math.sqrt(2)) for x in part])
    assert kolmogorov_smirnov(part, cumulative) < 1.95
    assert abs(np.corrcoef(sample[0::2], sample[1::2])[0, 1]) < 4 / math.sqrt(count / 2)
    assert abs(np.corrcoef(sample[0::2] ** 2, sample[1::2] ** 2)[0, 1]) < 4 / math.sqrt(count / 2)


@pytest.mark.parametrize(("dtype", "digits"), [(np.float32, 24), (np.float64, 53)])
def test_normal_is_box_muller_of_the_uniforms(dtype, digits):
    state = philox.seed_state(8)
    u = philox.uniform(state, 2000, dtype).astype(np.float64)
    radius = np.sqrt(-2 * np.log(u[0::2] + 2.0**-digits))
    expected = np.stack(
        [radius * np.cos(2 * np.pi * u[1::2]), radius * np.sin(2 * np.pi * u[1::2])], axis=1
    )
    sample = philox.normal(state, 2000, dtype)
    assert sample.dtype == dtype
    tolerance = 32 * 2.0**-digits  # mostly of the rounded 2 pi u here
    np.testing.assert_allclose(sample, expected.ravel(), rtol=tolerance, atol=tolerance)
    odd = philox.normal(state, (3, 333), dtype)
    assert np.array_equal(odd.ravel(), sample[:999])


def test_integers_are_the_exact_multiply_high():
    state = philox.seed_state(6)
    pairs = philox.random_bits(state, (300, 2)).tolist()
    raw = [high << 32 | low for low, high in pairs]
    cases = [
        (0, 1, np.int64),
        (-5, 5, np.int8),
        (-128, 128, np.int8),
        (0, 256, np.uint8),
        (-(2**31), 2**31, np.int32),
        (3, 2**32 + 2, np.int64),
        (-(2**62), 2**63 - 7, np.int64),
        (1, 2**64, np.uint64),
        (-(2**63), 2**63, np.int64),
        (0, 2**64, np.uint64),
    ]
    for low, high, dtype in cases:
        sample = philox.integers(state, 300, low, high, dtype)
        assert sample.dtype == dtype
        assert sample.tolist() == [low + (x * (high - low) >> 64) for x in raw], (low, high)


def test_integers_are_even():
    count = 60_000
    sample = philox.integers(philox.seed_state(1), (count // 10, 10), -2, 4)
    assert sample.shape == (count // 10, 10)
    observed = np.bincount(sample.ravel() + 2)
    assert len(observed) == 6
    chi_square = ((observed - count / 6) ** 2 / (count / 6)).sum()
    assert chi_square < 20.5  # 5 degrees of freedom: exceeded with probability 0.001


def test_integers_refuse():
    state = philox.seed_state(0)
    with pytest.raises(ValueError, match="low < high, received bounds with high - low = 0"):
        philox.integers(state, 2, 3, 3)
    with pytest.raises(ValueError, match=r"uint8 does not hold \[-1, 5\); pass a wider dtype"):
        philox.integers(state, 2, -1, 5, np.uint8)
    with pytest.raises(ValueError, match=r"int8 does not hold \[0, 129\)"):
        philox.integers(state, 2, 0, 129, np.int8)
    with pytest.raises(DtypeError, match="expected an integer dtype, got float32"):
        philox.integers(state, 2, 0, 5, np.float32)


@pytest.mark.parametrize("draw", [philox.uniform, philox.normal])
def test_floats_refuse_other_dtypes(draw):
    with pytest.raises(DtypeError, match=f"{draw.__name__}: expected float32 or float64, got int3"):
        draw(philox.seed_state(0), 3, np.int32)


def test_permutation_sorts_the_words():
    state = philox.seed_state(12)
    pairs = philox.random_bits(state, (1000, 2)).tolist()
    raw = [high << 32 | low for low, high in pairs]
    result = philox.permutation(state, 1000)
    assert result.dtype == np.int64
    assert result.tolist() == sorted(range(1000), key=lambda i: raw[i])
    assert philox.permutation(state, 0).tolist() == []
    assert philox.permutation(state, 1).tolist() == [0]
    with pytest.raises(ShapeError, match="permutation: sizes must not be negative"):
        philox.permutation(state, -1)


def test_permutation_breaks_ties_by_index(monkeypatch):
    tied = np.array([5, 1, 5, 1, 0, 5], np.uint64)
    monkeypatch.setattr(philox, "_words64", lambda state, count: tied[:count])
    assert philox.permutation(philox.seed_state(0), 6).tolist() == [4, 1, 3, 0, 2, 5]


def test_permutations_are_even():
    count = 12_000
    state = philox.seed_state(3)
    seen: dict[tuple[int, ...], int] = {}
    for _ in range(count):
        order = tuple(philox.permutation(state, 3).tolist())
        seen[order] = seen.get(order, 0) + 1
        state = philox.advance(state, 6)
    assert len(seen) == 6
    assert sum((n - count / 6) ** 2 / (count / 6) for n in seen.values()) < 20.5
