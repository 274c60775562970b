"""Running sums and products."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import ShapeError
from dilim.ir.types import Typed
from dilim.ops.build import draw, require, require_axes
from dilim.ops.opdef import OpDef, Sample
from dilim.ops.primitives import load
from dilim.ops.recipe import Scan, loop_indices
from dilim.shapes import Shape


def _scan_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for shape, axis in (((5,), 0), ((3, 4), 0), ((3, 4), 1), ((2, 0), 1), ((1,), 0)):
        yield Sample((draw(rng, shape, dtype, 0.2),), {"axis": axis})
    yield Sample((draw(rng, (4, 6), dtype, 0.2).T[::2],), {"axis": 1})


def _scan(name: str, doc: str, ufunc: np.ufunc, primitive: str, rule: Callable[..., Any]) -> OpDef:
    def infer(x: Typed, *, axis: int) -> tuple[Shape, DType]:
        require(name, x, dtypes.NUMERIC, "numeric")
        if not x.shape:
            raise ShapeError(f"{name}: expected at least one dimension, received shape ()")
        require_axes(name, (axis,), len(x.shape))
        return x.shape, x.dtype

    def formula(x: np.ndarray, axis: int) -> np.ndarray:
        rows = np.moveaxis(x, axis, 0)
        results = [ufunc.reduce(rows[: i + 1], axis=0) for i in range(len(rows))]
        return np.moveaxis(np.array(results).reshape(rows.shape), 0, axis)

    return OpDef(
        name=name,
        doc=doc,
        infer=infer,
        reference=lambda x, *, axis: ufunc.accumulate(x, axis=axis, dtype=x.dtype),
        samples=_scan_samples,
        sample_dtypes=dtypes.NUMERIC,
        derivative=(rule,),
        recipe=lambda x, *, axis: Scan(
            x.shape, axis, load(0, x.dtype, *loop_indices(len(x.shape))), primitive
        ),
        formula=formula,
    )


def _cumulative_sum_rule(b: Any, g: Any, out: Any, x: Any, *, axis: int) -> Any:
    return b.flip(b.cumulative_sum(b.flip(g, axis=(axis,)), axis=axis), axis=(axis,))


def _cumulative_prod_rule(b: Any, g: Any, out: Any, x: Any, *, axis: int) -> Any:
    """Without division, so that zeros are right; takes size**2 memory along the axis.

    Row k holds the cumulative products of x with element k replaced by 1; from position k on they
    are the derivatives of the outputs with respect to x[k].
    """
    rank, size = len(x.shape), x.shape[axis]
    order = (*(a for a in range(rank) if a != axis), axis)
    lead = tuple(x.shape[a] for a in order[:-1])
    rows = b.expand(
        b.reshape(b.permute(x, order=order), shape=(*lead, 1, size)), shape=(*lead, size, size)
    )
    one = b.full(shape=(size, size), value=1.0, dtype=x.dtype)
    column = b.cumulative_sum(one, axis=1)
    row = b.permute(column, order=(1, 0))
    products = b.cumulative_prod(b.where(b.equal(row, column), 1.0, rows), axis=rank)
    reached = b.where(b.greater_equal(column, row), products, 0.0)
    upstream = b.reshape(b.permute(g, order=order), shape=(*lead, 1, size))
    total = b.sum(b.multiply(reached, upstream), axis=(rank,), keepdims=False)
    return b.permute(total, order=tuple(order.index(a) for a in range(rank)))


cumulative_sum = _scan(
    "cumulative_sum", "Running sums along axis, in order.", np.add, "add", _cumulative_sum_rule
)
cumulative_prod = _scan(
    "cumulative_prod",
    "Running products along axis, in order; the derivative takes size**2 memory along it.",
    np.multiply,
    "multiply",
    _cumulative_prod_rule,
)

OPS = (cumulative_sum, cumulative_prod)
