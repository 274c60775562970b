import math
from fractions import Fraction

import numpy as np
import pytest

from dilim.ops import box_muller, philox


def ulp_errors(result: np.ndarray, wanted: np.ndarray, dtype: type) -> np.ndarray:
    smallest = 2.0**-100
    unit = np.spacing(np.maximum(np.abs(wanted), smallest).astype(dtype)).astype(np.float64)
    return np.abs(result.astype(np.float64) - wanted) / unit


def float32_arguments() -> np.ndarray:
    """A twentieth of all numerators, all near the multiples of an octant and the powers of two."""
    near = [2**24 * i // 8 + d for i in range(9) for d in range(-500, 501)]
    near += [2**i + d for i in range(25) for d in (-2, -1, 0, 1, 2)]
    k = np.concatenate([np.arange(1, 2**24, 19), near, [2**24]])
    return np.unique(k[(k > 0) & (k <= 2**24)]).astype(np.uint32)


def test_float32_logarithm():
    k = float32_arguments()
    result = box_muller.log_unit(k, "float32")
    assert result.dtype == np.float32
    assert ulp_errors(result, np.log(k / 2.0**24), np.float32).max() < 1
    assert result[-1] == 0


def test_float32_cosine_and_sine():
    k = float32_arguments()[:-1]
    cosine, sine = box_muller.cos_sin_turn(k, "float32")
    assert cosine.dtype == sine.dtype == np.float32
    angle = 2 * np.pi * (k / 2.0**24)
    for result, wanted in ((cosine, np.cos(angle)), (sine, np.sin(angle))):
        wanted[np.abs(wanted) < 1e-12] = 0  # float64 pi is not exact at whole half turns
        assert ulp_errors(result, wanted, np.float32).max() < 2


def float64_arguments() -> np.ndarray:
    random = np.random.default_rng(0)
    near = [2**53 * i // 8 + d for i in range(9) for d in range(-100, 101)]
    near += [2**i + d for i in range(54) for d in (-1, 0, 1)]
    spread = random.integers(1, 2**53, 100_000).tolist()
    spread += (2.0 ** random.uniform(0, 53, 20_000)).astype(np.int64).tolist()
    return np.array(sorted(k for k in {*near, *spread} if 0 < k <= 2**53), np.uint64)


# NumPy's own float64 functions are off by up to one unit, hence one more than in float32.


def test_float64_logarithm():
    k = float64_arguments()
    result = box_muller.log_unit(k, "float64")
    assert result.dtype == np.float64
    assert ulp_errors(result, np.log(k * 2.0**-53), np.float64).max() < 2


def test_float64_cosine_and_sine():
    k = float64_arguments()[:-1]
    cosine, sine = box_muller.cos_sin_turn(k, "float64")
    quarter = np.array([(int(i) + 2**50) // 2**51 for i in k])
    rest = np.array([int(i) - int(q) * 2**51 for i, q in zip(k, quarter, strict=True)])
    angle = rest * 2.0**-51 * (np.pi / 2)
    c, s = np.cos(angle), np.sin(angle)
    turn = quarter % 4
    wanted_cosine = np.choose(turn, [c, -s, -c, s])
    wanted_sine = np.choose(turn, [s, c, -s, -c])
    assert ulp_errors(cosine, wanted_cosine, np.float64).max() < 3
    assert ulp_errors(sine, wanted_sine, np.float64).max() < 3


@pytest.mark.parametrize("name", ["float32", "float64"])
def test_constants_are_exact_in_their_precision(name):
    constants = box_muller.CONSTANTS[name]
    for numbers in (constants.log_two, constants.log, constants.sine, constants.cosine):
        assert all(float(constants.float_dtype.type(c)) == c for c in numbers)
    # NumPy's log(2) itself is off by 1e-16.
    assert abs(sum(constants.log_two) - math.log(2)) < max(2.0 ** -(constants.digits + 20), 2e-16)
    high, _ = constants.log_two
    for exponent in range(constants.digits + 1):
        exact = Fraction(high) * exponent
        assert Fraction(float(constants.float_dtype.type(high * exponent))) == exact
    ones = np.array([1, 0.5], constants.float_dtype).view(constants.bits_dtype)
    assert ones[0] == constants.one_bits
    assert ones[1] < constants.root_half_bits < ones[0]


def test_small_polynomials_never_leave_float32(monkeypatch):
    original = box_muller._polynomial
    seen = set()

    def recording(coefficients, z):
        result = original(coefficients, z)
        seen.update({z.dtype.name, result.dtype.name})
        return result

    monkeypatch.setattr(box_muller, "_polynomial", recording)
    philox.normal(philox.seed_state(0), 10, np.float32)
    assert seen == {"float32"}


@pytest.mark.parametrize(("name", "bits"), [("float32", np.uint32), ("float64", np.uint64)])
def test_normal_at_the_edges_is_finite_and_bounded(name, bits):
    digits = box_muller.CONSTANTS[name].digits
    last = 2**digits - 1
    quarters = [2**digits * i // 4 for i in range(4)]
    grid = [[a, b] for a in (0, 1, last - 1, last) for b in [*quarters, last]]
    pairs = box_muller.normal_pairs(np.array(grid, bits), name)
    assert np.isfinite(pairs).all()
    largest = math.sqrt(2 * digits * math.log(2))
    assert pairs[0].tolist() == [pytest.approx(largest, rel=1e-6), 0.0]
    assert np.abs(pairs).max() <= largest * (1 + 2.0 ** (1 - digits))
    assert not pairs[-5:].any()  # the first numerator + 1 is 2**digits: radius 0
