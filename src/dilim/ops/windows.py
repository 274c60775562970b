"""Sliding windows and their transpose, for convolution and pooling."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import ShapeError
from dilim.ir.types import Type, Typed
from dilim.ops.build import draw
from dilim.ops.opdef import OpDef, Sample
from dilim.ops.primitives import load, loop_index
from dilim.ops.recipe import Map, Scatter, loop_indices
from dilim.shapes import Shape

ANY = dtypes.ALL

# --- windows (convolution, pooling) ---------------------------------------------------------


def window_counts(shape: Shape, size: Shape, stride: Shape) -> Shape:
    """Numbers of windows over the last two axes."""
    return tuple(max((n - w) // s + 1, 0) for n, w, s in zip(shape[-2:], size, stride, strict=True))


def _windows_infer(x: Typed, *, size: Shape, stride: Shape) -> tuple[Shape, DType]:
    if len(x.shape) < 2 or any(n < w for n, w in zip(x.shape[-2:], size, strict=True)):
        raise ShapeError(f"windows: a window of {size} does not fit in shape {x.shape}")
    return (*x.shape[:-2], *window_counts(x.shape, size, stride), *size), x.dtype


def _windows_reference(x: np.ndarray, *, size: Shape, stride: Shape) -> np.ndarray:
    views = np.lib.stride_tricks.sliding_window_view(x, size, axis=(-2, -1))
    return views[..., :: stride[0], :: stride[1], :, :]


def _windows_recipe(x: Type, *, size: Shape, stride: Shape) -> Map:
    shape, _ = _windows_infer(x, size=size, stride=stride)
    lead = len(x.shape) - 2
    row = loop_index(lead) * stride[0] + loop_index(lead + 2)
    column = loop_index(lead + 1) * stride[1] + loop_index(lead + 3)
    return Map(shape, load(0, x.dtype, *loop_indices(lead), row, column))


def _fold_reference(x: np.ndarray, *, shape: Shape, stride: Shape) -> np.ndarray:
    out = np.zeros(shape, x.dtype)
    rows, columns, height, width = x.shape[-4:]
    for i in range(height):
        for j in range(width):
            bottom, right = i + rows * stride[0], j + columns * stride[1]
            out[..., i : bottom : stride[0], j : right : stride[1]] += x[..., i, j]
    return out


def _fold_recipe(x: Type, *, shape: Shape, stride: Shape) -> Scatter:
    lead = len(shape) - 2
    rows, columns, height, width = x.shape[-4:]
    space = (*x.shape[:-4], height, width, rows, columns)
    i, j, row, column = loop_indices(4, lead)
    target = (*loop_indices(lead), row * stride[0] + i, column * stride[1] + j)
    body = load(0, x.dtype, *loop_indices(lead), row, column, i, j)
    return Scatter(space, target, body, "add", base=None, shape=shape)


def _windows_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for shape, size, stride in (
        ((4, 5), (2, 3), (1, 1)),
        ((2, 1, 5, 5), (3, 2), (2, 3)),
        ((3, 4), (1, 1), (1, 2)),
    ):
        yield Sample((draw(rng, shape, dtype),), {"size": size, "stride": stride})


def _fold_samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
    for sample in _windows_samples(rng, dtype):
        params = sample.params
        shape = sample.inputs[0].shape
        counts = window_counts(shape, params["size"], params["stride"])
        x = draw(rng, (*shape[:-2], *counts, *params["size"]), dtype)
        yield Sample((x,), {"shape": shape, "stride": params["stride"]})


windows = OpDef(
    name="windows",
    doc="Sliding windows over the last two axes: (..., H, W) to (..., rows, columns, h, w).",
    infer=_windows_infer,
    reference=_windows_reference,
    samples=_windows_samples,
    sample_dtypes=dtypes.NUMERIC,
    derivative=(lambda b, g, out, x, *, size, stride: b.fold(g, shape=x.shape, stride=stride),),
    recipe=_windows_recipe,
    is_view=True,
)
fold = OpDef(
    name="fold",
    doc="The transpose of `windows`: overlapping windows added back into (..., H, W).",
    infer=lambda x, *, shape, stride: (shape, x.dtype),
    reference=_fold_reference,
    samples=_fold_samples,
    sample_dtypes=dtypes.NUMERIC,
    derivative=(
        lambda b, g, out, x, *, shape, stride: b.windows(g, size=x.shape[-2:], stride=stride),
    ),
    recipe=_fold_recipe,
)

OPS = (
    windows, fold,
)  # fmt: skip
