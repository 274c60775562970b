"""The fixed order of summation, in NumPy: 16 lanes in blocks of 4,096 (see `recipe`)."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from dilim.ops.recipe import BLOCK, LANES
from dilim.shapes import Shape


def _tree(combine: np.ufunc, parts: np.ndarray) -> np.ndarray:
    """Combine along axis 1 by halving; a middle part without partner waits a round."""
    count = parts.shape[1]
    while count > 1:
        half = (count + 1) // 2
        pairs = combine(parts[:, : count - half], parts[:, half:count])
        if 2 * half == count:
            parts = pairs
        else:
            parts = np.concatenate([pairs, parts[:, count - half : half]], axis=1)
        count = half
    return parts[:, 0]


def _tree_of_lanes(combine: np.ufunc, lanes: np.ndarray, count: int) -> np.ndarray:
    """Combine up to 16 lanes along the axis before the last (which may be left out)."""
    half = LANES // 2
    while half:
        if count > half:
            pairs = combine(lanes[:, : count - half], lanes[:, half:count])
            if count < 2 * half:
                pairs = np.concatenate([pairs, lanes[:, count - half : half]], axis=1)
            lanes = pairs
            count = half
        half //= 2
    return lanes[:, 0]


def _block(combine: np.ufunc, rows: np.ndarray) -> np.ndarray:
    """Reduce axis 1 of (outer, count, inner) for one block, or for many full ones."""
    outer, count, inner = rows.shape
    steps, rest = divmod(count, LANES)
    if steps == 0:
        return _tree_of_lanes(combine, rows, count)
    if steps == 1:
        total = rows[:, :LANES]
    else:
        lanes = rows[:, : steps * LANES] if rest else rows
        # The lanes are the inner loop of this sum: NumPy adds the steps one after another.
        total = combine.reduce(
            lanes.reshape((outer, steps, LANES, inner)), axis=1, dtype=rows.dtype
        )
    if rest:
        total = np.array(total)
        total[:, :rest] = combine(total[:, :rest], rows[:, steps * LANES :])
    return _tree_of_lanes(combine, total, LANES)


@functools.lru_cache(maxsize=1024)
def _plan(shape: Shape, axes: Shape) -> tuple[Shape, int, int, int, Shape | None]:
    """Kept sizes; the shape as (outer, count, inner); the axes' order if they have to move."""
    kept = tuple(axis for axis in range(len(shape)) if axis not in axes)
    sizes = tuple(shape[axis] for axis in kept)
    count = math.prod(shape[axis] for axis in axes)
    first = axes[0] if axes else 0
    if axes == tuple(range(first, first + len(axes))):
        inner = math.prod(shape[first + len(axes) :])
        return sizes, math.prod(shape[:first]), count, inner, None
    return sizes, 1, count, math.prod(sizes), (*axes, *kept)


def lane_reduce(combine: np.ufunc, identity: Any, x: np.ndarray, axes: Shape) -> np.ndarray:
    """Reduce ``axes`` of ``x`` with 16 lanes in blocks of 4,096 elements (see `recipe`)."""
    sizes, outer, count, inner, order = _plan(x.shape, axes)
    if count == 0:
        return np.full(sizes, identity, x.dtype)
    if count == 1:
        return np.array(x, order="C").reshape(sizes)  # never the memory of x itself
    if order is not None:
        x = x.transpose(order)
    if not x.flags.c_contiguous:
        x = np.ascontiguousarray(x)
    rows = x.reshape((outer, count, inner))
    full = count // BLOCK
    if count <= BLOCK:
        return _block(combine, rows).reshape(sizes)
    blocks = rows[:, : full * BLOCK].reshape((outer * full, BLOCK, rows.shape[2]))
    parts = _block(combine, blocks).reshape((outer, full, rows.shape[2]))
    if count > full * BLOCK:
        tail = _block(combine, rows[:, full * BLOCK :])
        parts = np.concatenate([parts, tail[:, None]], axis=1)
    return _tree(combine, parts).reshape(sizes)
