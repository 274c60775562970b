"""Random numbers from a counter: the stream that every back end reproduces bit for bit.

Philox 4x32-10 turns a 128-bit counter and a 64-bit key into four 32-bit words. There is no hidden
state: word ``i`` of a stream is computed from ``i`` alone, in any order, on any machine. What is
built on the words (uniform, integers, normal, permutation) uses integer operations, sorting, exact
conversions and the rounded operations of `dilim.ops.box_muller`: nothing that differs between
platforms.

**State.** A stream is a uint32 array of shape (6,)::

    [key low, key high, counter 0 (lowest), counter 1, counter 2, counter 3 (highest)]

**Order.** Block ``b`` of a draw is Philox of ``counter + b`` (mod 2**128) and gives words
``4b .. 4b + 3``. A draw of ``n`` words uses the first ``n`` of its blocks' words; afterwards the
counter has moved by ``ceil(n / 4)``, so every draw begins with a fresh block. The drawing functions
do not change the state they are given: ``advance(state, draw_words(kind, count, dtype))`` is the
state for the next draw. A 64-bit word is two consecutive words, the low half first.

Source: Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC'11.
"""

import math
import operator
from collections.abc import Sequence
from typing import Any, Final, Literal

import numpy as np
import numpy.typing as npt

from dilim.errors import DtypeError, ShapeError
from dilim.ops import box_muller

Words = npt.NDArray[np.uint32]
Words64 = npt.NDArray[Any]  # uint64; NumPy's stubs take `uint64 array & int` for a signed array
Floats = box_muller.Floats
Shape = int | Sequence[int]
Kind = Literal["bits", "uniform", "integers", "normal", "permutation"]

EMPTY_RANGE: Final = "integers: expected low < high, received bounds with high - low = {}"
STATE_SIZE: Final = 6
ROUNDS: Final = 10
MULTIPLIERS: Final = (0xD2511F53, 0xCD9E8D57)
KEY_STEPS: Final = (0x9E3779B9, 0xBB67AE85)
MASK: Final = 2**32 - 1
_FLOAT_NAMES: Final[dict[Any, str]] = {np.dtype(name): name for name in ("float32", "float64")}
_BLOCKS_IN_PYTHON: Final = 8  # below, Python's integers are faster than small arrays
_BLOCKS_AT_ONCE: Final = 2**14  # temporaries of one chunk stay in the second-level cache


# ----- words and states ---------------------------------------------------------------------------


def philox_4x32(counter: Words, key: Words) -> Words:
    """Philox 4x32-10 of each counter.

    Args:
        counter: uint32, shape (..., 4), lowest word first.
        key: uint32, shape (2,), low word first.

    Returns:
        uint32, shape (..., 4). For one key, different counters give different results.

    Raises:
        DtypeError, ShapeError: other dtypes or shapes.

    Example:
        >>> import numpy as np
        >>> block = philox_4x32(np.zeros(4, np.uint32), np.zeros(2, np.uint32))
        >>> [f"{word:08x}" for word in block]
        ['6627e8d5', 'e169c58d', 'bc57ac4c', '9b00dbd8']
    """
    if counter.dtype != np.uint32 or key.dtype != np.uint32:
        raise DtypeError(
            f"philox_4x32: counter and key must be uint32, got {counter.dtype} and {key.dtype}"
        )
    if counter.shape[-1:] != (4,) or key.shape != (2,):
        raise ShapeError(
            "philox_4x32: expected shapes (..., 4) for counter and (2,) for key, "
            f"got {counter.shape} and {key.shape}"
        )
    wide = counter.astype(np.uint64)
    words = _rounds(wide[..., 0], wide[..., 1], wide[..., 2], wide[..., 3], key)
    return np.stack(words, axis=-1).astype(np.uint32)


def _rounds(c0: Any, c1: Any, c2: Any, c3: Any, key: Words) -> tuple[Any, Any, Any, Any]:
    """The ten rounds on words below 2**32, held in uint64 arrays or in Python's integers."""
    key_low, key_high = int(key[0]), int(key[1])
    for _ in range(ROUNDS):
        product0, product1 = c0 * MULTIPLIERS[0], c2 * MULTIPLIERS[1]
        c0, c1 = (product1 >> 32) ^ c1 ^ key_low, product1 & MASK
        c2, c3 = (product0 >> 32) ^ c3 ^ key_high, product0 & MASK
        key_low = (key_low + KEY_STEPS[0]) & MASK
        key_high = (key_high + KEY_STEPS[1]) & MASK
    return c0, c1, c2, c3


def seed_state(seed: int) -> Words:
    """The stream of a seed: its 64 bits are the key, the counter is 0.

    Different seeds share no (key, counter) pair.

    Args:
        seed: 0 <= seed < 2**64.

    Returns:
        A state: uint32, shape (6,).

    Raises:
        TypeError: the seed is not an integer.
        ValueError: the seed is out of range.
    """
    try:
        number = operator.index(seed)
    except TypeError:
        raise TypeError(f"seed: expected an integer, got {seed!r}") from None
    if not 0 <= number < 2**64:
        raise ValueError(f"seed: expected 0 <= seed < 2**64, got {number}")
    return np.array([number & MASK, number >> 32, 0, 0, 0, 0], np.uint32)


def advance(state: Words, words: int) -> Words:
    """The state after a draw of `words` words: the counter moved by ceil(words / 4), mod 2**128.

    Args:
        state: uint32, shape (6,).
        words: how many words were drawn, >= 0.

    Returns:
        A new state: uint32, shape (6,).

    Raises:
        DtypeError, ShapeError: `state` is not a state.
        ValueError: `words` is negative.
    """
    _check_state("advance", state)
    if words < 0:
        raise ValueError(f"advance: expected words >= 0, got {words}")
    moved = state.copy()
    blocks = -(-int(words) // 4)
    if int(state[2]) + blocks <= MASK:
        moved[2] += blocks
    else:
        moved[2:] = _parts(_counter(state) + blocks)
    return moved


def split_state(state: Words, count: int) -> tuple[Words, Words]:
    """Child streams, and the parent's state after they were taken from it.

    Block ``i`` of the parent, words w0 w1 w2 w3, becomes the child ``[w0, w1, 0, 0, w2, w3]``: key
    and upper half of the counter. Philox is one to one for a fixed key, so children taken at
    different counters of one key never share a (key, counter) pair within 2**64 blocks each,
    however often the parent is split. Any other two streams meet with probability 2**-128.

    Args:
        state: uint32, shape (6,).
        count: the number of children, >= 0.

    Returns:
        children: uint32, shape (count, 6); each row is a state.
        advanced: the parent's next state, uint32, shape (6,).

    Raises:
        DtypeError, ShapeError: `state` is not a state, or `count` is negative.
    """
    _check_state("split_state", state)
    blocks = random_bits(state, (count, 4))
    children = np.zeros((count, STATE_SIZE), np.uint32)
    children[:, :2] = blocks[:, :2]
    children[:, 4:] = blocks[:, 2:]
    return children, advance(state, 4 * count)


def draw_words(kind: Kind, count: int, dtype: npt.DTypeLike = np.float32) -> int:
    """How many 32-bit words a draw of `count` elements uses; it depends on nothing else.

    ===========  =======================  =======================
    kind         float32                  float64
    ===========  =======================  =======================
    bits         count                    count
    uniform      count                    2 count
    normal       2 ceil(count / 2)        4 ceil(count / 2)
    others       2 count                  2 count
    ===========  =======================  =======================

    Args:
        kind: the drawing function, "bits" for `random_bits`.
        count: the number of elements.
        dtype: float32 or float64; matters for uniform and normal only (else a DtypeError).
    """
    if kind in ("bits", "integers", "permutation"):
        return count if kind == "bits" else 2 * count
    words_per_float = 2 if _float_name(kind, dtype) == "float64" else 1
    return words_per_float * (count + count % 2 if kind == "normal" else count)


def random_bits(state: Words, shape: Shape) -> Words:
    """Uniform 32-bit words: the stream itself, in C order; uint32 of the given shape.

    Args:
        state: uint32, shape (6,); not changed.
        shape: shape of the result.

    Raises:
        DtypeError, ShapeError: not a state, or a negative size.
    """
    sizes = _sizes("random_bits", shape)
    _check_state("random_bits", state)
    count = math.prod(sizes)
    blocks = -(-count // 4)
    counter = _counter(state)
    if blocks <= _BLOCKS_IN_PYTHON:
        each = (_rounds(*_parts(counter + block), state[:2]) for block in range(blocks))
        known = [word for block in each for word in block]
        return np.array(known[:count], np.uint32).reshape(sizes)
    words = np.empty((blocks, 4), np.uint32)
    for start in range(0, blocks, _BLOCKS_AT_ONCE):
        stop = min(start + _BLOCKS_AT_ONCE, blocks)
        counters = _count_up(counter + start, stop - start)
        for column, word in enumerate(_rounds(*counters, state[:2])):
            words[start:stop, column] = word
    return words.reshape(-1)[:count].reshape(sizes)


def _count_up(first: int, blocks: int) -> tuple[Words64, Words64, Words64, Words64]:
    """`blocks` consecutive counters from `first`, mod 2**128, as four columns."""
    steps = np.arange(blocks, dtype=np.uint64)
    low = steps + (first & (2**64 - 1))
    high = np.full(blocks, first >> 64 & (2**64 - 1), np.uint64)
    high += low < steps  # the carry
    return low & MASK, low >> 32, high & MASK, high >> 32


def _counter(state: Words) -> int:
    return sum(int(word) << 32 * i for i, word in enumerate(state[2:]))


def _parts(counter: int) -> tuple[int, int, int, int]:
    """The words of a counter, mod 2**128."""
    return counter & MASK, counter >> 32 & MASK, counter >> 64 & MASK, counter >> 96 & MASK


def _words64(state: Words, count: int) -> Words64:
    halves = random_bits(state, (count, 2)).astype(np.uint64)
    return halves[:, 0] | halves[:, 1] << 32


# ----- distributions ------------------------------------------------------------------------------


def uniform(state: Words, shape: Shape, dtype: npt.DTypeLike = np.float32) -> Floats:
    """Uniform numbers in [0, 1), multiples of 2**-24 (float32) or 2**-53 (float64).

    ``(word >> 8) * 2**-24``, or ``(word64 >> 11) * 2**-53``.

    Args:
        state: uint32, shape (6,); not changed.
        shape: shape of the result.
        dtype: float32 (one word per element) or float64 (two).

    Returns:
        Array of that shape and dtype.

    Raises:
        DtypeError, ShapeError: another dtype, `state` is not a state, or a size is negative.
    """
    sizes = _sizes("uniform", shape)
    constants = box_muller.CONSTANTS[_float_name("uniform", dtype)]
    numerators = _numerators(state, math.prod(sizes), constants)
    fractions = numerators.astype(constants.float_dtype) * 2.0**-constants.digits
    return fractions.reshape(sizes)


def integers(
    state: Words, shape: Shape, low: int, high: int, dtype: npt.DTypeLike = np.int64
) -> npt.NDArray[np.integer[Any]]:
    """Uniform integers in [low, high): ``low + floor(word64 * (high - low) / 2**64)``.

    Nothing is rejected, so a draw always uses two words per element. A value's probability differs
    from ``1 / (high - low)`` by less than 2**-64: relatively, by less than 2**-32 up to ranges of
    2**32, and by up to a factor of two as ranges near 2**64. Powers of two are exact.

    Args:
        state: uint32, shape (6,); not changed.
        shape: shape of the result.
        low: smallest value.
        high: one more than the largest value.
        dtype: any integer dtype that holds both.

    Returns:
        Array of that shape and dtype.

    Raises:
        DtypeError, ShapeError: not an integer dtype, not a state, or a negative size.
        ValueError: the range is empty, or the dtype does not hold it.

    Source: Lemire, "Fast random integer generation in an interval", 2019, without rejection.
    """
    sizes = _sizes("integers", shape)
    result_dtype = np.dtype(dtype)
    if result_dtype.kind not in "iu":
        raise DtypeError(f"integers: expected an integer dtype, got {result_dtype}")
    limits = np.iinfo(result_dtype)
    low, high = operator.index(low), operator.index(high)
    if low >= high:
        raise ValueError(EMPTY_RANGE.format(high - low))
    if low < int(limits.min) or high > int(limits.max) + 1:
        raise ValueError(
            f"integers: {result_dtype} does not hold [{low}, {high}); pass a wider dtype"
        )
    offsets = _words64(state, math.prod(sizes))
    if high - low < 2**64:
        offsets = _multiply_high(offsets, high - low)
    # Sum and narrowing wrap around, which makes negative `low` right in two's complement.
    return (offsets + (low & (2**64 - 1))).astype(result_dtype).reshape(sizes)


def _multiply_high(words: Words64, factor: int) -> Words64:
    """The upper 64 bits of each 128-bit product, by halves; no step overflows."""
    word_high, word_low = words >> 32, words & MASK
    factor_high, factor_low = factor >> 32, factor & MASK
    middle = word_high * factor_low + (word_low * factor_low >> 32)
    other_middle = word_low * factor_high + (middle & MASK)
    upper: Words64 = word_high * factor_high + (middle >> 32) + (other_middle >> 32)
    return upper


def permutation(state: Words, count: int) -> npt.NDArray[np.int64]:
    """A random order of 0 .. count - 1: the stable argsort of `count` 64-bit words.

    Equal words (probability below ``count**2 / 2**65``) keep index order.

    Args:
        state: uint32, shape (6,); not changed.
        count: how many, >= 0.

    Returns:
        int64, shape (count,). Uses two words per element.

    Raises:
        DtypeError, ShapeError: `state` is not a state, or `count` is negative.
    """
    (size,) = _sizes("permutation", count)
    return np.argsort(_words64(state, size), kind="stable").astype(np.int64)


def normal(state: Words, shape: Shape, dtype: npt.DTypeLike = np.float32) -> Floats:
    """Standard normal numbers: `dilim.ops.box_muller.normal_pairs` of the numerators of `uniform`.

    Elements 2j and 2j + 1, in C order, are the cosine and the sine of the pair of numerators 2j
    and 2j + 1; an odd last element is a cosine, its sine is dropped. No result lies beyond
    sqrt(48 log 2) = 5.77 (float32) or sqrt(106 log 2) = 8.57 (float64).

    Args:
        state: uint32, shape (6,); not changed.
        shape: shape of the result.
        dtype: float32 or float64; all arithmetic is done in it.

    Returns:
        Array of that shape and dtype. Uses `draw_words` words.

    Raises:
        DtypeError, ShapeError: another dtype, `state` is not a state, or a size is negative.
    """
    sizes = _sizes("normal", shape)
    name = _float_name("normal", dtype)
    constants = box_muller.CONSTANTS[name]
    count = math.prod(sizes)
    numerators = _numerators(state, count + count % 2, constants)
    pairs = box_muller.normal_pairs(numerators.reshape(-1, 2), name)
    return pairs.reshape(-1)[:count].reshape(sizes)


def _numerators(state: Words, count: int, constants: box_muller.Constants) -> npt.NDArray[Any]:
    """Uniform integers below 2**digits: the upper bits of a word, or of a 64-bit word."""
    if constants.digits == 24:
        return random_bits(state, count) >> 8
    return _words64(state, count) >> 11


def _check_state(operation: str, state: Words) -> None:
    if state.dtype != np.uint32:
        raise DtypeError(f"{operation}: a random state must be uint32, got {state.dtype}")
    if state.shape != (STATE_SIZE,):
        raise ShapeError(f"{operation}: a random state has shape (6,), got {state.shape}")


def _float_name(operation: str, dtype: npt.DTypeLike) -> str:
    name = _FLOAT_NAMES.get(np.dtype(dtype))
    if name is None:
        raise DtypeError(f"{operation}: expected float32 or float64, got {np.dtype(dtype).name}")
    return name


def _sizes(operation: str, shape: Shape) -> tuple[int, ...]:
    sizes = tuple(shape) if isinstance(shape, Sequence) else (operator.index(shape),)
    if any(size < 0 for size in sizes):
        raise ShapeError(f"{operation}: sizes must not be negative, got shape {sizes}")
    return sizes
