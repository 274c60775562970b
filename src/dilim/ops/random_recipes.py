"""Recipes of random numbers: the streams of `dilim.ops.philox` as expressions.

Word i of a stream is computed from i alone, four words to a block, so recipes are `Blocks`: a back
end computes each block once. Nothing but integers and rounded operations occurs here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from dilim import dtypes, shapes
from dilim.dtypes import DType
from dilim.ir.types import Type
from dilim.ops import box_muller, philox
from dilim.ops.philox import MASK
from dilim.ops.primitives import (
    Expr,
    bitcast,
    cast,
    check,
    constant,
    load,
    loop_index,
    prim,
    select,
)
from dilim.ops.recipe import Blocks, Map, Pick, Sort, flat_index, loop_indices
from dilim.shapes import Shape

WIDE: Final = dtypes.uint64
_BITS: Final = {
    dtypes.float32: (dtypes.uint32, dtypes.int32),
    dtypes.float64: (dtypes.uint64, dtypes.int64),
}


# --- states and words -----------------------------------------------------------------------


def _state() -> list[Expr]:
    """The six words of input 0, as uint64."""
    return [cast(load(0, dtypes.uint32, constant(i, dtypes.INDEX)), WIDE) for i in range(6)]


def _counter_plus(state: Sequence[Expr], steps: Sequence[Expr | int]) -> list[Expr]:
    """The four words of the counter moved on by a number given as words, lowest first."""
    counter = []
    carry: Expr | int = 0
    for word, step in zip(state[2:], steps, strict=True):
        total = word + step + carry
        counter.append(total & MASK)
        carry = total >> 32
    return counter


def _block(number: Expr) -> list[Expr]:
    """The four words of a block of the stream of input 0, as uint64 below 2**32."""
    state = _state()
    number = cast(number, WIDE)
    c0, c1, c2, c3 = _counter_plus(state, [number & MASK, number >> 32, 0, 0])
    key_low, key_high = state[0], state[1]
    for _ in range(philox.ROUNDS):
        product0, product1 = c0 * philox.MULTIPLIERS[0], c2 * philox.MULTIPLIERS[1]
        c0, c1 = (product1 >> 32) ^ c1 ^ key_low, product1 & MASK
        c2, c3 = (product0 >> 32) ^ c3 ^ key_high, product0 & MASK
        key_low = (key_low + philox.KEY_STEPS[0]) & MASK
        key_high = (key_high + philox.KEY_STEPS[1]) & MASK
    return [c0, c1, c2, c3]


def _block64(number: Expr) -> list[Expr]:
    """The two 64-bit words of a block."""
    c0, c1, c2, c3 = _block(number)
    return [c0 | (c1 << 32), c2 | (c3 << 32)]


def _chosen(number: Expr, options: Sequence[Expr]) -> Expr:
    """The option of that number."""
    result = options[-1]
    for place in reversed(range(len(options) - 1)):
        result = select(number <= place, options[place], result)
    return result


def _words(
    shape: Shape, block: Callable[[Expr], list[Expr]], finish: Callable[[Expr], Expr]
) -> Blocks:
    """``finish`` of each word in turn; ``block`` gives the words of a block."""
    parts = block(loop_index(0))
    position = flat_index(loop_indices(len(shape)), shape)
    word = _chosen(position % len(parts), block(position // len(parts)))
    return Blocks(shape, finish(word), tuple(finish(part) for part in parts))


def _word(position: Expr) -> Expr:
    """A word of the stream of input 0."""
    return _chosen(position % 4, _block(position // 4))


def word64(position: Expr) -> Expr:
    """A 64-bit word of the stream of input 0."""
    return _chosen(position % 2, _block64(position // 2))


def bits(state: Type, *, shape: Shape) -> Blocks:
    """The words themselves."""
    return _words(shape, _block, lambda word: cast(word, dtypes.uint32))


# --- distributions --------------------------------------------------------------------------


def fraction(word: Expr, dtype: DType) -> Expr:
    """The number in [0, 1) of a word (float32) or of a 64-bit word (float64)."""
    if dtype is dtypes.float32:  # through int32, which processors convert at once
        return cast(cast(word >> 8, dtypes.int32), dtype) * 2.0**-24
    return cast(cast(word >> 11, dtypes.int64), dtype) * 2.0**-53


def uniform(state: Type, *, shape: Shape, dtype: DType) -> Blocks:
    """One word per float32, two per float64."""
    block = _block if dtype is dtypes.float32 else _block64
    return _words(shape, block, lambda word: fraction(word, dtype))


def integers(state: Type, *, shape: Shape, low: int, high: int, dtype: DType) -> Blocks:
    """``low`` plus the upper 64 bits of word times range."""

    def finish(word: Expr) -> Expr:
        offset = word if high - low == 2**64 else _multiply_high(word, high - low)
        return cast(offset + (low & (2**64 - 1)), dtype)

    return _words(shape, _block64, finish)


def integers_between(state: Type, low: Type, high: Type, *, shape: Shape) -> Blocks:
    """The same with bounds that are inputs, whose difference is checked."""
    lowest, end = load(1, dtypes.int64), load(2, dtypes.int64)
    span = cast(check(prim("less", lowest, end), end - lowest), dtypes.uint64)

    def finish(word: Expr) -> Expr:
        return cast(_multiply_high(word, span) + cast(lowest, dtypes.uint64), dtypes.int64)

    return _words(shape, _block64, finish)


def _multiply_high(word: Expr, factor: int | Expr) -> Expr:
    """The upper 64 bits of a 128-bit product, by halves."""
    factor_high, factor_low = factor >> 32, factor & MASK
    word_high, word_low = word >> 32, word & MASK
    middle = word_high * factor_low + (word_low * factor_low >> 32)
    if isinstance(factor_high, int) and factor_high == 0:
        return middle >> 32
    other_middle = word_low * factor_high + (middle & MASK)
    return word_high * factor_high + (middle >> 32) + (other_middle >> 32)


def categorical(state: Type, logits: Type, *, axis: int) -> Pick:
    """The draw of row i is checked and made with word i."""
    space = shapes.reduced(logits.shape, (axis,), False)
    rank, dtype = len(space), logits.dtype
    outer = loop_indices(rank)
    score = load(1, dtype, *outer[:axis], loop_index(rank), *outer[axis:])
    top = Expr("reduced", (), dtype, 0)
    finite = prim("equal", top - top, 0.0)
    row = check(finite, flat_index(outer, space))
    word = _word(row) if dtype is dtypes.float32 else word64(row)
    return Pick(space, logits.shape[axis], score, prim("exp", score - top), fraction(word, dtype))


def permutation(state: Type, *, count: int) -> Sort:
    """Positions that sort 64-bit words."""
    return Sort((count,), 0, word64(loop_index(0)))


def normal(state: Type, *, shape: Shape, dtype: DType) -> Blocks:
    """Cosine and sine of each pair of numerators in turn."""
    unsigned, _ = _BITS[dtype]

    def numerators(block: Expr) -> list[Expr]:
        if dtype is dtypes.float32:
            return [cast(word >> 8, unsigned) for word in _block(block)]
        return [word >> 11 for word in _block64(block)]

    own = numerators(loop_index(0))
    parts: list[Expr] = []
    for first, second in zip(own[::2], own[1::2], strict=True):
        parts.extend(_normal_pair(first, second, dtype))
    position = flat_index(loop_indices(len(shape)), shape)
    all_of_block = numerators(position // len(parts))
    pair = (position % len(parts)) // 2
    first, second = (_chosen(pair, all_of_block[start::2]) for start in (0, 1))
    body = _chosen(position % 2, _normal_pair(first, second, dtype))
    return Blocks(shape, body, tuple(parts))


def _normal_pair(first: Expr, second: Expr, dtype: DType) -> tuple[Expr, Expr]:
    """`box_muller.normal_pairs` of one pair, operation by operation."""
    radius = prim("sqrt", _log_unit(first + 1, dtype) * -2.0)
    cosine, sine = _cos_sin_turn(second, dtype)
    return radius * cosine, radius * sine


def _log_unit(k: Expr, dtype: DType) -> Expr:
    """`box_muller.log_unit`."""
    c = box_muller.CONSTANTS[dtype.name]
    unsigned, signed = _BITS[dtype]
    mantissa = c.digits - 1
    raw = bitcast(cast(bitcast(k, signed), dtype), unsigned)
    raw = raw + (c.one_bits - c.root_half_bits)
    exponent = bitcast(raw >> mantissa, signed) - ((c.one_bits >> mantissa) + c.digits)
    raw = (raw & ((1 << mantissa) - 1)) + c.root_half_bits
    f = bitcast(raw, dtype) - 1.0
    s = f / (f + 2.0)
    z = s * s
    h = f * f * 0.5
    e = cast(exponent, dtype)
    high, low = c.log_two
    return s * (h + z * _polynomial(c.log, z)) + e * low - h + f + e * high


def _cos_sin_turn(k: Expr, dtype: DType) -> tuple[Expr, Expr]:
    """`box_muller.cos_sin_turn`."""
    c = box_muller.CONSTANTS[dtype.name]
    _, signed = _BITS[dtype]
    shift = c.digits - 2
    quarter = (k + (1 << (shift - 1))) >> shift
    x = cast(bitcast(k - (quarter << shift), signed), dtype) * 2.0**-shift
    z = x * x
    sine = x * _polynomial(c.sine, z)
    cosine = z * _polynomial(c.cosine, z) + 1.0
    even = prim("equal", quarter & 1, 0)
    turned_cosine, turned_sine = select(even, cosine, sine), select(even, sine, cosine)
    return (
        _negated((quarter + 1) & 2, turned_cosine),
        _negated(quarter & 2, turned_sine),
    )


def _negated(flag: Expr, x: Expr) -> Expr:
    """``-x`` where the flag is not 0."""
    return select(prim("equal", flag, 0), x, -x)


def _polynomial(coefficients: tuple[float, ...], z: Expr) -> Expr:
    result = constant(coefficients[-1], z.dtype)
    for coefficient in reversed(coefficients[:-1]):
        result = result * z + coefficient
    return result


# --- states ---------------------------------------------------------------------------------


def _advanced(state: Sequence[Expr], words: int) -> list[Expr]:
    """The six words of the state after a draw of so many words."""
    blocks = -(-words // 4)
    steps = [blocks >> shift & MASK for shift in (0, 32, 64, 96)]
    return [*state[:2], *_counter_plus(state, steps)]


def advance(state: Type, *, words: int) -> Map:
    """Each word of the new state."""
    word = _chosen(loop_index(0), _advanced(_state(), words))
    return Map((philox.STATE_SIZE,), cast(word, dtypes.uint32))


def split(state: Type, *, count: int) -> Map:
    """Row 0: the state after the split; row i + 1: the child made of block i."""
    row, column = loop_indices(2)
    w0, w1, w2, w3 = _block(row - 1)
    zero = constant(0, WIDE)
    child = _chosen(column, [w0, w1, zero, zero, w2, w3])
    parent = _chosen(column, _advanced(_state(), 4 * count))
    word = select(prim("equal", row, 0), parent, child)
    return Map((count + 1, philox.STATE_SIZE), cast(word, dtypes.uint32))
