"""Operations that stop the program where their input may not be as it is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import NonFiniteError
from dilim.ir.types import Type, Typed
from dilim.ops.build import draw, require, unary_samples
from dilim.ops.gather import wrapped
from dilim.ops.opdef import OpDef, Sample
from dilim.ops.primitives import cast, check, constant, load, prim, select
from dilim.ops.recipe import Map, loop_indices
from dilim.shapes import Shape


def _infer(x: Typed, *, message: str) -> tuple[Shape, DType]:
    require("require_finite", x, dtypes.FLOATING, "floating")
    return x.shape, x.dtype


def _reference(x: np.ndarray, *, message: str) -> np.ndarray:
    if not np.isfinite(x).all():
        raise NonFiniteError(message)
    return np.array(x, order="C")


def _recipe(x: Type, *, message: str) -> Map:
    value = load(0, x.dtype, *loop_indices(len(x.shape)))
    finite = prim("less", prim("abs", value), math.inf)
    passed = check(finite, cast(finite, dtypes.INDEX))
    return Map(x.shape, select(passed > 0, value, constant(math.nan, x.dtype)))


def _samples(rng: np.random.Generator, dtype: DType) -> Any:
    for sample in unary_samples()(rng, dtype):
        yield Sample(sample.inputs, {"message": "not finite"})


require_finite = OpDef(
    name="require_finite",
    doc="x itself; the program fails with a message if a number is NaN or infinite.",
    infer=_infer,
    reference=_reference,
    samples=_samples,
    sample_dtypes=dtypes.FLOATING,
    derivative=(lambda b, g, out, x, *, message: g,),
    recipe=_recipe,
    failure=lambda value, x, *, message: NonFiniteError(message),
    formula=lambda x, message: x,
)


# --- positions ------------------------------------------------------------------------------


def _position_infer(x: Typed, *, size: int, axis: int | None) -> tuple[Shape, DType]:
    require("require_position", x, dtypes.INTEGER, "integer index")
    return x.shape, dtypes.INDEX


def outside(position: int, size: int, axis: int | None) -> IndexError:
    """The error of ``x[...]`` at a position that an axis does not have.

    Args:
        position: as the user gave it.
        size: of the axis.
        axis: which one; None where it is not named.
    """
    where = "an axis" if axis is None else f"axis {axis}"
    return IndexError(f"index: position {position} is out of range for {where} of size {size}")


def _position_failure(value: int, x: Typed, *, size: int, axis: int | None) -> Exception:
    return outside(value % 2**64 if x.dtype is dtypes.uint64 else value, size, axis)


def _position_reference(x: np.ndarray, *, size: int, axis: int | None) -> np.ndarray:
    bad = (x < -size) | (x >= size)
    if bad.any():
        raise outside(int(x[bad].flat[0]), size, axis)
    positions = x.astype(dtypes.INDEX.numpy)
    return np.where(positions < 0, positions + size, positions)


def _position_recipe(x: Type, *, size: int, axis: int | None) -> Map:
    return Map(x.shape, wrapped(load(0, x.dtype, *loop_indices(len(x.shape))), size))


def _position_samples(rng: np.random.Generator, dtype: DType) -> Any:
    for shape, axis in (((), 1), ((3, 2), None), ((0,), 0)):
        yield Sample((draw(rng, shape, dtype),), {"size": 5, "axis": axis})


require_position = OpDef(
    name="require_position",
    doc="Positions along an axis, counted from its front; the program fails if one lies outside.",
    infer=_position_infer,
    reference=_position_reference,
    samples=_position_samples,
    sample_dtypes=dtypes.INTEGER,
    recipe=_position_recipe,
    failure=_position_failure,
    formula=lambda x, size, axis: x % size,
)

OPS = (require_finite, require_position)
