import math
from fractions import Fraction

import numpy as np
import pytest

from dilim.errors import DtypeError, ShapeError
from dilim.ops import philox

MASK = 2**32 - 1


def words(text: str) -> np.ndarray:
    return np.array([int(word, 16) for word in text.split()], np.uint32)


def counter_of(state: np.ndarray) -> int:
    return sum(int(word) << 32 * i for i, word in enumerate(state[2:]))


def state_at(counter: int, seed: int = 7) -> np.ndarray:
    state = philox.seed_state(seed)
    state[2:] = [counter >> shift & MASK for shift in (0, 32, 64, 96)]
    return state


def scalar_philox(counter: int, key: int) -> list[int]:
    """Philox 4x32-10 written once more, on Python integers."""
    x = [counter >> shift & MASK for shift in (0, 32, 64, 96)]
    k = [key & MASK, key >> 32]
    for _ in range(10):
        a, b = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
        x = [(b >> 32) ^ x[1] ^ k[0], b & MASK, (a >> 32) ^ x[3] ^ k[1], a & MASK]
        k = [(k[0] + 0x9E3779B9) & MASK, (k[1] + 0xBB67AE85) & MASK]
    return x


# ----- words --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("counter", "key", "expected"),
    [
        ("0 0 0 0", "0 0", "6627e8d5 e169c58d bc57ac4c 9b00dbd8"),
        (
            "ffffffff ffffffff ffffffff ffffffff",
            "ffffffff ffffffff",
            "408f276d 41c83b0e a20bc7c6 6d5451fd",
        ),
        (
            "243f6a88 85a308d3 13198a2e 03707344",
            "a4093822 299f31d0",
            "d16cfe09 94fdcceb 5001e420 24126ea1",
        ),
    ],
)
def test_known_answers_of_random123(counter, key, expected):
    result = philox.philox_4x32(words(counter), words(key))
    assert result.dtype == np.uint32
    assert np.array_equal(result, words(expected))


def test_philox_keeps_leading_axes():
    counters = np.arange(24, dtype=np.uint32).reshape(2, 3, 4)
    key = words("1 2")
    result = philox.philox_4x32(counters, key)
    assert result.shape == (2, 3, 4)
    for i in range(2):
        for j in range(3):
            assert np.array_equal(result[i, j], philox.philox_4x32(counters[i, j], key))
    assert philox.philox_4x32(np.empty((0, 4), np.uint32), key).shape == (0, 4)


def test_philox_refuses_other_arrays():
    with pytest.raises(DtypeError, match="must be uint32, got int64 and uint32"):
        philox.philox_4x32(np.zeros(4, np.int64), words("0 0"))
    with pytest.raises(ShapeError, match=r"got \(3,\) and \(2,\)"):
        philox.philox_4x32(words("0 0 0"), words("0 0"))


@pytest.mark.parametrize("start", [0, 5, 2**32 - 2, 2**64 - 2, 2**96 - 1, 2**128 - 2])
def test_stream_counts_in_128_bits(start):
    seed = 2**64 - 5
    result = philox.random_bits(state_at(start, seed), 4 * 5)
    expected = [w for b in range(5) for w in scalar_philox((start + b) % 2**128, seed)]
    assert result.tolist() == expected


def test_long_draw_crosses_chunks():
    chunk = philox._BLOCKS_AT_ONCE
    result = philox.random_bits(state_at(2**64 - chunk - 3), 4 * (chunk + 9))
    for block in (chunk - 1, chunk, chunk + 2, chunk + 3, chunk + 8):
        expected = scalar_philox(2**64 - chunk - 3 + block, 7)
        assert result[4 * block : 4 * block + 4].tolist() == expected


def test_shape_does_not_change_the_stream():
    state = philox.seed_state(3)
    flat = philox.random_bits(state, 30)
    assert np.array_equal(philox.random_bits(state, (2, 3, 5)), flat.reshape(2, 3, 5))
    assert philox.random_bits(state, ()).shape == ()
    assert philox.random_bits(state, (0, 3)).shape == (0, 3)
    assert state.tolist() == [3, 0, 0, 0, 0, 0]
    with pytest.raises(ShapeError, match=r"random_bits: .* negative, got shape \(2, -1\)"):
        philox.random_bits(state, (2, -1))


# ----- states -------------------------------------------------------------------------------------


def test_seed_is_the_key():
    assert philox.seed_state(0).tolist() == [0] * 6
    assert philox.seed_state(np.int64(5)).tolist() == [5, 0, 0, 0, 0, 0]
    assert philox.seed_state(2**64 - 2).tolist() == [MASK - 1, MASK, 0, 0, 0, 0]


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_seed_out_of_range(seed):
    with pytest.raises(ValueError, match=rf"expected 0 <= seed < 2\*\*64, got {seed}"):
        philox.seed_state(seed)


def test_seed_must_be_an_integer():
    with pytest.raises(TypeError, match=r"expected an integer, got 1\.5"):
        philox.seed_state(1.5)


@pytest.mark.parametrize("start", [0, 2**32 - 1, 2**64 - 1, 2**128 - 2])
@pytest.mark.parametrize("count", [0, 1, 4, 5, 8, 2**40 + 1])
def test_advance_adds_blocks(start, count):
    state = state_at(start)
    moved = philox.advance(state, count)
    assert moved.dtype == np.uint32
    assert moved[:2].tolist() == [7, 0]
    assert counter_of(moved) == (start + math.ceil(Fraction(count, 4))) % 2**128
    assert counter_of(state) == start


def test_advance_refuses():
    with pytest.raises(ValueError, match="expected words >= 0, got -4"):
        philox.advance(philox.seed_state(0), -4)
    with pytest.raises(ShapeError, match=r"advance: a random state has shape \(6,\), got \(5,\)"):
        philox.advance(np.zeros(5, np.uint32), 4)
    with pytest.raises(DtypeError, match="advance: a random state must be uint32, got int64"):
        philox.advance(np.zeros(6, np.int64), 4)


@pytest.mark.parametrize("first", [4, 40, 4 * philox._BLOCKS_AT_ONCE])
def test_one_long_draw_equals_two(first):
    state = philox.seed_state(11)
    later = philox.advance(state, first)
    for kind, dtype, elements in (
        ("random_bits", None, first),
        ("uniform", np.float32, first),
        ("uniform", np.float64, first // 2),
        ("normal", np.float32, first),
        ("normal", np.float64, first // 2),
    ):
        options = {} if dtype is None else {"dtype": dtype}
        draw = getattr(philox, kind)
        long = draw(state, elements + 10, **options)
        assert np.array_equal(long[:elements], draw(state, elements, **options)), kind
        assert np.array_equal(long[elements:], draw(later, 10, **options)), kind
    long = philox.integers(state, first // 2 + 10, 0, 10**6)
    assert np.array_equal(long[first // 2 :], philox.integers(later, 10, 0, 10**6))


@pytest.mark.parametrize("count", [0, 1, 2, 3, 8, 9])
def test_draw_words_is_what_a_draw_depends_on(count, monkeypatch):
    drawn = []
    original = philox.random_bits

    def recording(state, shape):
        drawn.append(math.prod(shape) if isinstance(shape, tuple) else shape)
        return original(state, shape)

    monkeypatch.setattr(philox, "random_bits", recording)
    state = philox.seed_state(1)
    for dtype in (np.float32, np.float64):
        philox.uniform(state, count, dtype)
        philox.normal(state, count, dtype)
        expected = [philox.draw_words(kind, count, dtype) for kind in ("uniform", "normal")]
        assert drawn == expected
        drawn.clear()
    philox.integers(state, count, 0, 6)
    philox.permutation(state, count)
    expected = [philox.draw_words(kind, count) for kind in ("integers", "permutation")]
    assert drawn == expected == [2 * count, 2 * count]
    assert philox.draw_words("bits", count) == count


def test_split_takes_whole_blocks():
    state = state_at(2**64 - 2)
    children, advanced = philox.split_state(state, 3)
    assert children.shape == (3, 6)
    assert children.dtype == np.uint32
    assert counter_of(advanced) == 2**64 + 1
    for i, child in enumerate(children):
        w0, w1, w2, w3 = scalar_philox(2**64 - 2 + i, 7)
        assert child.tolist() == [w0, w1, 0, 0, w2, w3]
    assert philox.split_state(state, 0)[0].shape == (0, 6)
    with pytest.raises(ShapeError, match=r"negative, got shape \(-1, 4\)"):
        philox.split_state(state, -1)


def test_children_are_distinct_over_generations():
    state = philox.seed_state(0)
    first, state = philox.split_state(state, 2000)
    second, _ = philox.split_state(state, 2000)
    grandchildren = np.concatenate([philox.split_state(child, 20)[0] for child in first[:100]])
    streams = np.concatenate([first, second, grandchildren])
    assert len(np.unique(streams, axis=0)) == 6000


def test_split_streams_are_independent():
    parent = philox.seed_state(5)
    children, parent = philox.split_state(parent, 6)
    count = 40_000
    draws = np.stack([philox.uniform(s, count, np.float64) for s in [*children, parent]])
    correlation = np.corrcoef(draws) - np.eye(7)
    assert np.abs(correlation).max() < 4 / math.sqrt(count)
    shifted = np.corrcoef(draws[:, 1:], draws[:, :-1])
    assert np.abs(shifted - np.diag(np.diag(shifted)))[:7, 7:].max() < 4 / math.sqrt(count)
    assert len(np.unique(draws)) == 7 * count


def test_neighbouring_seeds_are_independent():
    count = 40_000
    draws = np.stack([philox.normal(philox.seed_state(s), count, np.float64) for s in range(6)])
    assert np.abs(np.corrcoef(draws) - np.eye(6)).max() < 4 / math.sqrt(count)


def test_every_bit_is_fair():
    bits = philox.random_bits(philox.seed_state(2), 100_000)
    share = np.array([(bits >> i & 1).mean() for i in range(32)])
    assert np.abs(share - 0.5).max() < 4 * 0.5 / math.sqrt(100_000)


# ----- the stream never changes -------------------------------------------------------------------

GOLDEN_SEED = 0x0123456789ABCDEF


def golden_draws() -> dict[str, list]:
    state = philox.advance(philox.seed_state(GOLDEN_SEED), 40)
    children, advanced = philox.split_state(state, 2)
    return {
        "bits": [f"{w:08x}" for w in philox.random_bits(state, 6)],
        "children": [[f"{w:08x}" for w in child] for child in children],
        "advanced": [f"{w:08x}" for w in advanced],
        "uniform32": [x.hex() for x in philox.uniform(state, 5).tolist()],
        "uniform64": [x.hex() for x in philox.uniform(state, 5, np.float64).tolist()],
        "normal32": [x.hex() for x in philox.normal(state, 5).tolist()],
        "normal64": [x.hex() for x in philox.normal(state, 5, np.float64).tolist()],
        "integers": philox.integers(state, 8, -1000, 1000).tolist(),
        "wide": philox.integers(state, 3, 0, 2**63).tolist(),
        "permutation": philox.permutation(state, 10).tolist(),
    }


GOLDEN: dict[str, list] = {
    "bits": ["bc267bd8", "a0171020", "51398941", "eb58e34f", "6e55720f", "61c0781b"],
    "children": [
        ["bc267bd8", "a0171020", "00000000", "00000000", "51398941", "eb58e34f"],
        ["6e55720f", "61c0781b", "00000000", "00000000", "a57166ca", "b5342041"],
    ],
    "advanced": ["89abcdef", "01234567", "0000000c", "00000000", "00000000", "00000000"],
    "uniform32": [
        "0x1.784cf60000000p-1",
        "0x1.402e200000000p-1",
        "0x1.44e6240000000p-2",
        "0x1.d6b1c60000000p-1",
        "0x1.b955c80000000p-2",
    ],
    "uniform64": [
        "0x1.402e2041784cfp-1",
        "0x1.d6b1c69ea2731p-1",
        "0x1.8701e06db955cp-2",
        "0x1.6a6840834ae2cp-1",
        "0x1.8e8c813c0f3dep-2",
    ],
    "normal32": [
        "-0x1.1b7d7a0000000p-1",
        "-0x1.1cbf1e0000000p-1",
        "0x1.531f4e0000000p+0",
        "-0x1.789f5c0000000p-1",
        "-0x1.e97a2a0000000p-1",
    ],
    "normal64": [
        "0x1.b1b973f5b6851p-1",
        "-0x1.e1af8595e9fe4p-2",
        "-0x1.74213eccea2b4p-2",
        "-0x1.56d50d091f690p+0",
        "0x1.59229434e0763p+0",
    ],
    "integers": [250, 838, -237, 415, -222, 938, -298, -775],
    "wide": [5767853351657225708, 8479277163334124704, 3521880938208999687],
    "permutation": [7, 6, 2, 4, 9, 8, 0, 3, 1, 5],
}


@pytest.mark.parametrize("kind", GOLDEN)
def test_golden_values(kind):
    assert golden_draws()[kind] == GOLDEN[kind]


def test_golden_checksums():
    """Sums over many draws, modulo 2**64, so that no rare branch changes unseen."""
    state = philox.seed_state(GOLDEN_SEED)
    sums = {}
    for name, bits in (("float32", np.uint32), ("float64", np.uint64)):
        sample = philox.normal(state, 100_000, name)
        sums[name] = int(sample.view(bits).sum(dtype=np.uint64))
    sums["permutation"] = int(philox.permutation(state, 1000)[::7].sum())
    assert sums == GOLDEN_SUMS


GOLDEN_SUMS = {"float32": 213295078501707, "float64": 4838995799016076628, "permutation": 71413}
