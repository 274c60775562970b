"""Random numbers as operations: pure functions of a state, a uint32 tensor of shape (6,).

Drawing does not change the state; `random_advance` gives the state for the next draw. The streams
are defined in `dilim.ops.philox`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, Final

import numpy as np

from dilim import dtypes, shapes
from dilim.dtypes import DType
from dilim.errors import DtypeError, NonFiniteError, ShapeError
from dilim.ir.types import Typed
from dilim.ops import philox, random_recipes
from dilim.ops.build import draw, require, require_axes
from dilim.ops.opdef import OpDef, Sample
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


# --- draws ---------------------------------------------------------------------------------

_SHAPES: Final = [(), (3,), (0,), (2, 5), (9,)]


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
    recipe=random_recipes.bits,
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
    recipe=random_recipes.uniform,
)
random_normal = OpDef(
    name="random_normal",
    doc="Standard normal numbers by Box and Muller, on polynomials that never change.",
    infer=_state_infer("random_normal"),
    reference=lambda state, *, shape, dtype: philox.normal(state, shape, dtype.numpy),
    recipe=random_recipes.normal,
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
    recipe=random_recipes.integers,
    samples=_samples(
        [
            {"shape": shape, "low": -3, "high": 900, "dtype": dtype}
            for shape in _SHAPES
            for dtype in (dtypes.int64, dtypes.int16)
        ]
    ),
    sample_dtypes=UINT32,
)


def _between_infer(state: Typed, low: Typed, high: Typed, *, shape: Shape) -> tuple[Shape, DType]:
    for bound in (low, high):
        if bound.shape != () or bound.dtype is not dtypes.int64:
            raise DtypeError(
                "random_integers_between: expected bounds of dtype int64 and shape (), received "
                f"{bound.dtype.name} of shape {bound.shape}"
            )
    return _state_infer("random_integers_between")(state, shape=shape, dtype=dtypes.int64)


def _between_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for state in _states(rng):
        for shape in _SHAPES:
            for low, high in ((0, 1), (-3, 900), (-(2**62), 2**62 + 5)):
                yield Sample((state, np.array(low), np.array(high)), {"shape": shape})


random_integers_between = OpDef(
    name="random_integers_between",
    doc="As random_integers, int64, with bounds that are tensors of shape ().",
    infer=_between_infer,
    reference=lambda state, low, high, *, shape: philox.integers(state, shape, int(low), int(high)),
    recipe=random_recipes.integers_between,
    samples=_between_samples,
    sample_dtypes=UINT32,
    failure=lambda size, state, low, high, *, shape: ValueError(philox.EMPTY_RANGE.format(size)),
)


def _permutation_infer(state: Typed, *, count: int) -> tuple[Shape, DType]:
    _check_state("random_permutation", state)
    return (count,), dtypes.INDEX


random_permutation = OpDef(
    name="random_permutation",
    doc="A random order of 0 .. count - 1.",
    infer=_permutation_infer,
    reference=lambda state, *, count: philox.permutation(state, count),
    recipe=random_recipes.permutation,
    samples=_samples([{"count": count} for count in (0, 1, 5, 40)]),
    sample_dtypes=UINT32,
)

# --- categories -----------------------------------------------------------------------------


def _categorical_infer(state: Typed, logits: Typed, *, axis: int) -> tuple[Shape, DType]:
    _check_state("random_categorical", state)
    require("random_categorical", logits, dtypes.FLOATING, "floating")
    require_axes("random_categorical", (axis,), len(logits.shape))
    if logits.shape[axis] == 0:
        raise ShapeError(
            f"random_categorical: logits of shape {logits.shape} have no category along axis {axis}"
        )
    return shapes.reduced(logits.shape, (axis,), False), dtypes.INDEX


def _categorical_failure(row: int, state: Any, logits: Any, *, axis: int) -> Exception:
    return NonFiniteError(
        "random_categorical: expected logits with a finite largest value in every row, received "
        f"NaN, inf or nothing but -inf in row {row} of shape {logits.shape} along axis {axis}"
    )


def _categorical_reference(state: np.ndarray, logits: np.ndarray, *, axis: int) -> np.ndarray:
    rows = logits if axis == logits.ndim - 1 else np.moveaxis(logits, axis, -1)
    with np.errstate(invalid="ignore"):
        weights = np.exp(rows - np.maximum.reduce(rows, axis=-1, keepdims=True))
    totals = np.add.accumulate(weights, axis=-1)
    last = totals[..., -1:]  # NaN exactly where the largest logit is not finite
    if np.isnan(last).any():
        raise _categorical_failure(int(np.isnan(last).argmax()), state, logits, axis=axis)
    # A uniform number is at most 1 - 2**-24 (2**-53 in float64), and that times any sum >= 1 rounds
    # to less than the sum: the draw always falls into a category.
    limits = philox.uniform(state, last.shape, last.dtype) * last
    return np.asarray(np.add.reduce(totals <= limits, axis=-1, dtype=np.int64))


def _categorical_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for state in _states(rng):
        for shape, axis in (((4,), 0), ((1,), 0), ((5, 3), 1), ((3, 6, 2), 1), ((0, 2), 1)):
            yield Sample((state, draw(rng, shape, dtype)), {"axis": axis})
    yield Sample((state, np.array([-np.inf, 3.0, -np.inf], dtype.numpy)), {"axis": 0})
    yield Sample((state, draw(rng, (4, 9), dtype).T[::-2]), {"axis": 0})


random_categorical = OpDef(
    name="random_categorical",
    doc=(
        "One position along axis per row, with probabilities softmax(logits): how many running "
        "sums of exp(logits - max) are <= a uniform number times the last."
    ),
    infer=_categorical_infer,
    reference=_categorical_reference,
    samples=_categorical_samples,
    sample_dtypes=dtypes.FLOATING,
    recipe=random_recipes.categorical,
    failure=_categorical_failure,
)

# --- states ---------------------------------------------------------------------------------


def _advance_infer(state: Typed, *, words: int) -> tuple[Shape, DType]:
    _check_state("random_advance", state)
    return state.shape, state.dtype


random_advance = OpDef(
    name="random_advance",
    doc="The state after a draw of so many words: the counter moved by ceil(words / 4).",
    infer=_advance_infer,
    reference=lambda state, *, words: philox.advance(state, words),
    samples=_samples([{"words": words} for words in (0, 1, 4, 5, 2**40)]),
    sample_dtypes=UINT32,
    recipe=random_recipes.advance,
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
    recipe=random_recipes.split,
    samples=_samples([{"count": count} for count in (0, 1, 3)]),
    sample_dtypes=UINT32,
)

OPS = (
    random_bits, random_uniform, random_normal, random_integers, random_integers_between,
    random_permutation, random_categorical, random_advance, random_split,
)  # fmt: skip
