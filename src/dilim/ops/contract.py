"""Matrix products."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from dilim import dtypes, shapes
from dilim.dtypes import DType
from dilim.errors import ShapeError
from dilim.ir.types import Type, Typed
from dilim.ops.build import draw, require
from dilim.ops.opdef import OpDef, Sample
from dilim.ops.primitives import Expr, cast, constant, load, loop_index, prim
from dilim.ops.recipe import Reduce
from dilim.shapes import Shape


def _matmul_infer(x: Typed, y: Typed) -> tuple[Shape, DType]:
    dtype = dtypes.promote("matmul", x.dtype, y.dtype)
    require("matmul", x, dtypes.NUMERIC, "numeric")
    a, c = x.shape, y.shape
    if len(a) < 2 or len(c) < 2 or a[-1] != c[-2]:
        raise ShapeError(
            f"matmul: inner sizes differ: expected x.shape[-1] == y.shape[-2], received {a} @ {c}"
        )
    return (*shapes.broadcast("matmul", a[:-2], c[:-2]), a[-2], c[-1]), dtype


def _matmul_reference(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    """k ascending in one accumulator per output, each product rounded before it is added."""
    dtype = np.result_type(x, y)
    batch = np.broadcast_shapes(x.shape[:-2], y.shape[:-2])
    total = np.zeros((*batch, x.shape[-2], y.shape[-1]), dtype)
    for k in range(x.shape[-1]):
        total = total + x[..., :, k, None].astype(dtype) * y[..., None, k, :].astype(dtype)
    return total


def _matmul_kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return np.asarray(np.matmul(x, y))


def _matmul_recipe(x: Type, y: Type) -> Reduce:
    shape, dtype = _matmul_infer(x, y)
    rank = len(shape)
    k = loop_index(rank)

    def batch_index(value: Type) -> list[Expr]:
        sizes = value.shape[:-2]
        offset = rank - 2 - len(sizes)
        zero = constant(0, dtypes.INDEX)
        return [loop_index(offset + a) if size != 1 else zero for a, size in enumerate(sizes)]

    left = load(0, x.dtype, *batch_index(x), loop_index(rank - 2), k)
    right = load(1, y.dtype, *batch_index(y), k, loop_index(rank - 1))
    body = prim("multiply", cast(left, dtype), cast(right, dtype))
    return Reduce(shape, (x.shape[-1],), body, "add", 0, order="ascending")


def _transpose(b: Any, x: Any) -> Any:
    rank = len(x.shape)
    return b.permute(x, order=(*range(rank - 2), rank - 1, rank - 2))


def _matmul_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for a, c in (
        ((2, 3), (3, 4)),
        ((1, 1), (1, 1)),
        ((0, 3), (3, 2)),
        ((2, 0), (0, 2)),
        ((2, 2, 3), (3, 2)),
        ((2, 1, 2, 3), (4, 3, 1)),
        ((5, 37), (37, 3)),
    ):
        yield Sample((draw(rng, a, dtype), draw(rng, c, dtype)), {})
    yield Sample((draw(rng, (3, 2), dtype).T, draw(rng, (6, 8), dtype)[::2, ::-3]), {})


matmul = OpDef(
    name="matmul",
    doc="Matrix product over the last two axes; leading axes broadcast. k is summed ascending.",
    infer=_matmul_infer,
    reference=_matmul_reference,
    kernel=_matmul_kernel,
    samples=_matmul_samples,
    sample_dtypes=dtypes.NUMERIC,
    derivative=(
        lambda b, g, out, x, y: b.matmul(g, _transpose(b, y)),
        lambda b, g, out, x, y: b.matmul(_transpose(b, x), g),
    ),
    recipe=_matmul_recipe,
    formula=lambda x, y: np.einsum("...ik,...kj->...ij", x, y),
)

OPS = (matmul,)
