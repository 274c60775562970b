"""Operations that stop the program where their input may not be as it is."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import NonFiniteError
from dilim.ir.types import Type, Typed
from dilim.ops.build import require, unary_samples
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

OPS = (require_finite,)
