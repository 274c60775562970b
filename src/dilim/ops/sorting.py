"""Sorting and searching.

Recipes compare integer keys (`sort_key`), which have the order of the elements.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

import numpy as np

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import DtypeError, ShapeError
from dilim.ir.types import Type, Typed
from dilim.ops.build import draw, require, require_axes
from dilim.ops.opdef import OpDef, Sample
from dilim.ops.primitives import Expr, bitcast, cast, constant, load, prim, select
from dilim.ops.recipe import Map, Sort, loop_indices
from dilim.shapes import Shape

# --- order ----------------------------------------------------------------------------------

_BITS: Final = {dtypes.float32: dtypes.int32, dtypes.float64: dtypes.int64}


def sort_key(x: Expr, descending: bool = False) -> Expr:
    """An integer that is in the order of ``x``: NaN is the largest, -0.0 equals 0.0."""
    if x.dtype is dtypes.bool_:
        x = cast(x, dtypes.uint8)
    elif x.dtype.is_floating:
        kind = _BITS[x.dtype]
        limits = np.iinfo(kind.numpy)
        bits = bitcast(x + 0.0, kind)  # turns -0.0 into 0.0
        # The bits of negative floats are in the opposite order.
        bits = bits ^ ((bits >> (8 * kind.itemsize - 1)) & int(limits.max))
        x = select(prim("is_nan", x), int(limits.max), bits)
    ones = -1 if x.dtype.kind == "int" else int(np.iinfo(x.dtype.numpy).max)
    return x ^ ones if descending else x


def _argsort_infer(x: Typed, *, axis: int, descending: bool) -> tuple[Shape, DType]:
    require_axes("argsort", (axis,), len(x.shape))
    return x.shape, dtypes.INDEX


def _argsort_recipe(x: Type, *, axis: int, descending: bool) -> Sort:
    element = load(0, x.dtype, *loop_indices(len(x.shape)))
    return Sort(x.shape, axis, sort_key(element, descending))


def _argsort_reference(x: np.ndarray, *, axis: int, descending: bool) -> np.ndarray:
    if not descending:
        return np.argsort(x, axis=axis, stable=True)
    # reversed twice so that equal elements keep their order
    backwards = np.flip(np.argsort(np.flip(x, axis), axis=axis, stable=True), axis)
    return np.asarray(x.shape[axis] - 1 - backwards)


def _argsort_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for shape, axis, descending in (
        ((7,), 0, False),
        ((3, 5), 1, True),
        ((4, 2), 0, False),
        ((0,), 0, True),
    ):
        yield Sample((draw(rng, shape, dtype),), {"axis": axis, "descending": descending})
    yield Sample((draw(rng, (6, 4), dtype).T[::-2],), {"axis": 1, "descending": True})


def _argsort_formula(x: np.ndarray, axis: int, descending: bool) -> np.ndarray:
    def order(row: np.ndarray) -> np.ndarray:
        keys = sorted(range(len(row)), key=lambda i: row[i], reverse=descending)
        return np.array(keys, np.int64)

    return np.apply_along_axis(order, axis, x) if x.size else np.zeros(x.shape, np.int64)


argsort = OpDef(
    name="argsort",
    doc="Positions that sort x along axis; equal elements keep their order; NaN is the largest.",
    infer=_argsort_infer,
    reference=_argsort_reference,
    recipe=_argsort_recipe,
    samples=_argsort_samples,
    sample_dtypes=dtypes.ALL,
    formula=_argsort_formula,
)

# --- search ---------------------------------------------------------------------------------


def _searchsorted_infer(x: Typed, value: Typed, *, side: str) -> tuple[Shape, DType]:
    if len(x.shape) != 1:
        raise ShapeError(f"searchsorted: expected a vector to search in, received {x.shape}")
    dtypes.promote("searchsorted", x.dtype, value.dtype)
    if side not in ("left", "right"):
        raise DtypeError(f"searchsorted: expected side 'left' or 'right', received {side!r}")
    return value.shape, dtypes.INDEX


def _searchsorted_recipe(x: Type, value: Type, *, side: str) -> Map:
    """A bisection whose steps are the powers of two: the same steps for every value."""
    common = dtypes.promote("searchsorted", x.dtype, value.dtype)
    (size,) = x.shape
    wanted = sort_key(cast(load(1, value.dtype, *loop_indices(len(value.shape))), common))
    place = constant(0, dtypes.INDEX)
    step = 1 << size.bit_length()
    while step := step >> 1:
        further = place + step
        inside = further <= size
        key = sort_key(cast(load(0, x.dtype, further - 1, guard=inside), common))
        before = key < wanted if side == "left" else key <= wanted
        place = select(inside & before, further, place)
    return Map(value.shape, place)


def _searchsorted_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for count, shape, side in ((5, (3,), "left"), (4, (2, 2), "right"), (0, (2,), "left")):
        x = np.sort(draw(rng, (count,), dtype))
        yield Sample((x, draw(rng, shape, dtype)), {"side": side})


searchsorted = OpDef(
    name="searchsorted",
    doc="Where each value would be inserted into the sorted vector x to keep it sorted.",
    infer=_searchsorted_infer,
    reference=lambda x, value, *, side: np.asarray(np.searchsorted(x, value, side), np.int64),
    recipe=_searchsorted_recipe,
    samples=_searchsorted_samples,
    sample_dtypes=dtypes.ALL,
    formula=lambda x, value, side: np.sum(
        x[(...,) + (None,) * value.ndim] < value
        if side == "left"
        else x[(...,) + (None,) * value.ndim] <= value,
        axis=0,
    ),
)

# --- positions whose number depends on the data ---------------------------------------------


def _nonzero_infer(mask: Typed, *, count: int) -> tuple[Shape, DType]:
    require("nonzero", mask, (dtypes.bool_,), "bool")
    return (count,), dtypes.INDEX


def _nonzero_reference(mask: np.ndarray, *, count: int) -> np.ndarray:
    found = np.flatnonzero(mask)
    if len(found) != count:
        raise ShapeError(f"nonzero: expected {count} elements that are True, found {len(found)}")
    return found.astype(np.int64, copy=False)


def _nonzero_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for shape in ((7,), (3, 4), (), (0, 2)):
        mask = draw(rng, shape, dtype)
        yield Sample((mask,), {"count": int(mask.sum())})
    mask = draw(rng, (4, 6), dtype).T[::2]
    yield Sample((mask,), {"count": int(mask.sum())})


nonzero = OpDef(
    name="nonzero",
    doc=(
        "Row-major positions of the True elements. How many there are depends on the data, so "
        "count is read from the mask beforehand: shapes stay static."
    ),
    infer=_nonzero_infer,
    reference=_nonzero_reference,
    samples=_nonzero_samples,
    sample_dtypes=(dtypes.bool_,),
    formula=lambda mask, count: np.array([i for i, hit in enumerate(mask.flat) if hit], np.int64),
)

OPS = (argsort, searchsorted, nonzero)
