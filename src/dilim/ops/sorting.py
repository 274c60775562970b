"""Sorting and searching: no loop form fits, so each back end serves them by hand or not at all."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import DtypeError, ShapeError
from dilim.ir.types import Typed
from dilim.ops.build import draw, require
from dilim.ops.opdef import OpDef, Sample
from dilim.shapes import Shape

# --- order ----------------------------------------------------------------------------------


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
    infer=lambda x, *, axis, descending: (x.shape, dtypes.INDEX),
    reference=_argsort_reference,
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


def _searchsorted_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for count, shape, side in ((5, (3,), "left"), (4, (2, 2), "right"), (0, (2,), "left")):
        x = np.sort(draw(rng, (count,), dtype))
        yield Sample((x, draw(rng, shape, dtype)), {"side": side})


searchsorted = OpDef(
    name="searchsorted",
    doc="Where each value would be inserted into the sorted vector x to keep it sorted.",
    infer=_searchsorted_infer,
    reference=lambda x, value, *, side: np.asarray(np.searchsorted(x, value, side), np.int64),
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
