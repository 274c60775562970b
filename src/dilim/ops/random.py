"""Random numbers as operations: pure functions of a state, a uint32 tensor of shape (6,).

Drawing does not change the state; `random_advance` gives the state for the next draw. The streams
are defined in `dilim.ops.philox`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import DtypeError, ShapeError
from dilim.ir.types import Type, Typed
from dilim.ops import philox
from dilim.ops.opdef import OpDef, Sample
from dilim.ops.primitives import Expr, cast, constant, load, select
from dilim.ops.recipe import Map, flat_index, loop_indices
from dilim.shapes import Shape

UINT32: Final = (dtypes.uint32,)


def _check_state(operation: str, state: Typed) -> None:
    if state.dtype is not dtypes.uint32 or state.shape != (philox.STATE_SIZE,):
        raise DtypeError(
            f"{operation}: expected a random state, uint32 of shape (6,), received "
            f"{state.dtype.name} of shape {state.shape}"
        )


def _states(rng: np.random.Generator) -> Iterator[np.ndarray]:
    yield philox.seed_state(0)
    yield philox.seed_state(int(rng.integers(2**62)))
    carry = philox.seed_state(5)
    carry[2:5] = 2**32 - 1  # the next block carries over 96 bits
    yield carry


def _samples(params: list[dict[str, Any]]) -> Callable[..., Iterator[Sample]]:
    def samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
        for state in _states(rng):
            for entry in params:
                yield Sample((state,), entry)

    return samples


# --- the words, as a recipe -----------------------------------------------------------------

_SHAPES: Final = [(), (3,), (0,), (2, 5), (9,)]


def _word(position: Expr) -> Expr:
    """Word number ``position`` of the stream of input 0, as uint64 below 2**32."""
    block = cast(position // 4, dtypes.uint64)
    state = [
        cast(load(0, dtypes.uint32, constant(i, dtypes.INDEX)), dtypes.uint64) for i in range(6)
    ]
    counter = []
    carry = block
    for word in state[2:]:
        total = word + carry
        counter.append(total & philox.MASK)
        carry = total >> 32
    c0, c1, c2, c3 = counter
    key_low, key_high = state[0], state[1]
    for _ in range(philox.ROUNDS):
        product0, product1 = c0 * philox.MULTIPLIERS[0], c2 * philox.MULTIPLIERS[1]
        c0, c1 = (product1 >> 32) ^ c1 ^ key_low, product1 & philox.MASK
        c2, c3 = (product0 >> 32) ^ c3 ^ key_high, product0 & philox.MASK
        key_low = (key_low + philox.KEY_STEPS[0]) & philox.MASK
        key_high = (key_high + philox.KEY_STEPS[1]) & philox.MASK
    lane = position % 4
    return select(lane < 2, select(lane < 1, c0, c1), select(lane < 3, c2, c3))


def _bits_recipe(state: Type, *, shape: Shape) -> Map:
    position = flat_index(loop_indices(len(shape)), shape)
    return Map(shape, cast(_word(position), dtypes.uint32))


def _uniform_recipe(state: Type, *, shape: Shape, dtype: DType) -> Map:
    position = flat_index(loop_indices(len(shape)), shape)
    if dtype is dtypes.float32:
        return Map(shape, cast(_word(position) >> 8, dtype) * 2.0**-24)
    low, high = _word(position * 2), _word(position * 2 + 1)
    return Map(shape, cast((low | (high << 32)) >> 11, dtype) * 2.0**-53)


def _state_infer(operation: str) -> Callable[..., tuple[Shape, DType]]:
    def infer(state: Typed, *, shape: Shape, dtype: DType = dtypes.uint32) -> tuple[Shape, DType]:
        _check_state(operation, state)
        if any(size < 0 for size in shape):
            raise ShapeError(f"{operation}: expected sizes >= 0, received {shape}")
        return shape, dtype

    return infer


random_bits = OpDef(
    name="random_bits",
    doc="Uniform 32-bit words: the stream itself, in row-major order.",
    infer=_state_infer("random_bits"),
    reference=lambda state, *, shape: philox.random_bits(state, shape),
    samples=_samples([{"shape": shape} for shape in _SHAPES]),
    sample_dtypes=UINT32,
    recipe=_bits_recipe,
)

_FLOATS: Final = [
    {"shape": shape, "dtype": dtype} for shape in _SHAPES for dtype in dtypes.FLOATING
]

random_uniform = OpDef(
    name="random_uniform",
    doc="Uniform numbers in [0, 1): multiples of 2**-24 (float32) or 2**-53 (float64).",
    infer=_state_infer("random_uniform"),
    reference=lambda state, *, shape, dtype: philox.uniform(state, shape, dtype.numpy),
    samples=_samples(_FLOATS),
    sample_dtypes=UINT32,
    recipe=_uniform_recipe,
)
random_normal = OpDef(
    name="random_normal",
    doc="Standard normal numbers by Box and Muller, on polynomials that never change.",
    infer=_state_infer("random_normal"),
    reference=lambda state, *, shape, dtype: philox.normal(state, shape, dtype.numpy),
    samples=_samples(_FLOATS),
    sample_dtypes=UINT32,
)


def _integers_infer(
    state: Typed, *, shape: Shape, low: int, high: int, dtype: DType
) -> tuple[Shape, DType]:
    return _state_infer("random_integers")(state, shape=shape, dtype=dtype)


random_integers = OpDef(
    name="random_integers",
    doc="Uniform integers in [low, high); two words each.",
    infer=_integers_infer,
    reference=lambda state, *, shape, low, high, dtype: philox.integers(
        state, shape, low, high, dtype.numpy
    ),
    samples=_samples(
        [
            {"shape": shape, "low": -3, "high": 900, "dtype": dtype}
            for shape in _SHAPES
            for dtype in (dtypes.int64, dtypes.int16)
        ]
    ),
    sample_dtypes=UINT32,
)


def _permutation_infer(state: Typed, *, count: int) -> tuple[Shape, DType]:
    _check_state("random_permutation", state)
    return (count,), dtypes.INDEX


random_permutation = OpDef(
    name="random_permutation",
    doc="A random order of 0 .. count - 1.",
    infer=_permutation_infer,
    reference=lambda state, *, count: philox.permutation(state, count),
    samples=_samples([{"count": count} for count in (0, 1, 5, 40)]),
    sample_dtypes=UINT32,
)

# --- states ---------------------------------------------------------------------------------


def _advance_infer(state: Typed, *, words: int) -> tuple[Shape, DType]:
    _check_state("random_advance", state)
    return state.shape, state.dtype


def _advance_recipe(state: Type, *, words: int) -> Map:
    (position,) = loop_indices(1)
    stored = [
        cast(load(0, dtypes.uint32, constant(i, dtypes.INDEX)), dtypes.uint64) for i in range(6)
    ]
    parts = stored[:2]
    blocks = -(-words // 4)
    carry = constant(0, dtypes.uint64)
    for number, word in enumerate(stored[2:]):
        total = word + (carry + (blocks >> 32 * number & (2**32 - 1)))
        parts.append(total & (2**32 - 1))
        carry = total >> 32
    result = parts[0]
    for number, part in enumerate(parts[1:], 1):
        result = select(position < number, result, part)
    return Map((6,), cast(result, dtypes.uint32))


random_advance = OpDef(
    name="random_advance",
    doc="The state after a draw of so many words: the counter moved by ceil(words / 4).",
    infer=_advance_infer,
    reference=lambda state, *, words: philox.advance(state, words),
    samples=_samples([{"words": words} for words in (0, 1, 4, 5, 2**40)]),
    sample_dtypes=UINT32,
    recipe=_advance_recipe,
)


def _split_infer(state: Typed, *, count: int) -> tuple[Shape, DType]:
    _check_state("random_split", state)
    return (count + 1, philox.STATE_SIZE), dtypes.uint32


def _split_reference(state: np.ndarray, *, count: int) -> np.ndarray:
    children, parent = philox.split_state(state, count)
    return np.concatenate([parent[None], children])


random_split = OpDef(
    name="random_split",
    doc="Row 0: the state after the split; the other rows: states of independent streams.",
    infer=_split_infer,
    reference=_split_reference,
    samples=_samples([{"count": count} for count in (0, 1, 3)]),
    sample_dtypes=UINT32,
)

OPS = (
    random_bits, random_uniform, random_normal, random_integers, random_permutation,
    random_advance, random_split,
)  # fmt: skip
