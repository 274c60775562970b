"""Views as chains of operations: strides, and the way back from a view to the whole.

A graph has values, not memory. A view of a symbolic tensor is remembered as the operation that
takes it, and a write through it replaces the whole by the whole with that part changed.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from dilim import shapes
from dilim.shapes import Shape


class Step(NamedTuple):
    """One operation that takes a view.

    Attributes:
        op: reshape, permute, expand, flip, slice or windows.
        params: its parameters.
    """

    op: str
    params: dict[str, Any]


READ_ONLY = frozenset({"expand", "windows"})
"""Views in which elements share memory: they cannot be written."""


def changes_nothing(step: Step, shape: Shape) -> bool:
    """Whether a view is all of what it is taken from, as it is."""
    params = step.params
    match step.op:
        case "reshape" | "expand":
            return bool(params["shape"] == shape)
        case "permute":
            return bool(params["order"] == tuple(range(len(shape))))
        case "slice":
            return all(s == (0, n, 1) for s, n in zip(params["index"], shape, strict=True))
        case "flip":
            return not params["axis"]
        case _:
            return False


def strides_after(step: Step, shape: Shape, strides: Shape, result: Shape) -> Shape | None:
    """Strides of a view of memory with these strides; None where a copy would be needed.

    Args:
        step: what takes the view.
        shape: sizes before.
        strides: elements to step, before.
        result: sizes after.
    """
    params = step.params
    match step.op:
        case "reshape":
            return _reshaped(shape, strides, result)
        case "permute":
            return tuple(strides[axis] for axis in params["order"])
        case "expand":
            lead = len(result) - len(shape)
            kept = zip(shape, strides, result[lead:], strict=True)
            return (0,) * lead + tuple(0 if n != m else s for n, s, m in kept)
        case "flip":
            return tuple(-s if a in params["axis"] else s for a, s in enumerate(strides))
        case "slice":
            return tuple(s * step for s, (_, _, step) in zip(strides, params["index"], strict=True))
        case _:
            down, right = strides[-2:]
            by_row, by_column = params["stride"]
            return (*strides[:-2], down * by_row, right * by_column, down, right)


def _reshaped(shape: Shape, strides: Shape, result: Shape) -> Shape | None:
    """The strides that reach the same elements in the same order under another shape, if any."""
    if 0 in result:
        return shapes.row_major_strides(result)
    runs = _runs(shape, strides)
    found: list[int] = []
    remaining = step = 1
    for size in reversed(result):
        if size == 1:
            found.append(step * remaining)
            continue
        if remaining == 1:
            if not runs:
                return None
            remaining, step = runs.pop()
        if remaining % size:
            return None
        found.append(step)
        step *= size
        remaining //= size
    return tuple(reversed(found))


def _runs(shape: Shape, strides: Shape) -> list[tuple[int, int]]:
    """Neighbouring axes that lie end to end in memory, joined: (elements, step) of each run."""
    runs: list[tuple[int, int]] = []
    for size, step in zip(shape, strides, strict=True):
        if size == 1:
            continue
        if runs and runs[-1][1] == size * step:
            runs[-1] = (runs[-1][0] * size, step)
        else:
            runs.append((size, step))
    return runs


Emit = Callable[..., Any]


def written_back(emit: Emit, step: Step, base: Callable[[], Any], shape: Shape, part: Any) -> Any:
    """The whole with one part changed.

    Args:
        emit: ``emit(op, values, params)`` applies an operation to values.
        step: how the part is taken from the whole; not one of `READ_ONLY`.
        base: gives the whole as it was, if that is needed.
        shape: sizes of the whole.
        part: what the part becomes.
    """
    params = step.params
    match step.op:
        case "reshape":
            return emit("reshape", [part], {"shape": shape})
        case "permute":
            order = params["order"]
            back = tuple(order.index(axis) for axis in range(len(order)))
            return emit("permute", [part], {"order": back})
        case "flip":
            return emit("flip", [part], params)
        case _:
            return emit("slice_update", [base(), part], params)


# --- from memory to steps -------------------------------------------------------------------


def steps_to(view: np.ndarray, root: np.ndarray) -> list[Step] | None:
    """The operations that take a view of an array, or None where it is no such view.

    Args:
        view: an array over memory of ``root``.
        root: an array without repeated elements.
    """
    is_begin = view.size == 0 or _address(view) == _address(root)
    if is_begin and _layout(view) == _layout(root):
        return _reshape(root.shape, view.shape)
    if view.size == 0:
        empty = [*_joined(root.shape), Step("slice", {"index": ((0, 0, 1),)})]
        return [*empty, *_reshape((0,), view.shape)]
    if view.flags.c_contiguous and root.flags.c_contiguous:
        return _range_of(view, root)
    steps = _axes_of(view, root)
    return _cut_to_fit(view, root) if steps is None and root.flags.c_contiguous else steps


def _address(array: np.ndarray) -> int:
    return int(array.__array_interface__["data"][0])


def _layout(array: np.ndarray) -> list[tuple[int, int]]:
    return [(n, s) for n, s in zip(array.shape, array.strides, strict=True) if n != 1]


def _reshape(old: Shape, new: Shape) -> list[Step]:
    return [] if old == new else [Step("reshape", {"shape": new})]


def _joined(shape: Shape) -> list[Step]:
    return _reshape(shape, (math.prod(shape),))


def _range_of(view: np.ndarray, root: np.ndarray) -> list[Step] | None:
    """A view of neighbouring elements in row-major order."""
    start = (_address(view) - _address(root)) // root.itemsize
    if start < 0 or start + view.size > root.size:
        return None
    steps = _joined(root.shape)
    if view.size != root.size:
        steps.append(Step("slice", {"index": ((start, view.size, 1),)}))
    return [*steps, *_reshape((view.size,), view.shape)]


def _axes_of(view: np.ndarray, root: np.ndarray) -> list[Step] | None:
    """A view each of whose axes runs along one axis of the root, in steps."""
    offset = _address(view) - _address(root)
    offset += sum(s * (n - 1) for n, s in zip(view.shape, view.strides, strict=True) if s < 0)
    spans: dict[int, tuple[int, int, int]] = {}
    for axis in sorted(range(root.ndim), key=lambda a: -abs(root.strides[a])):
        stride = root.strides[axis]
        if root.shape[axis] == 1 or stride <= 0:
            spans[axis] = (0, 1, 1)
            continue
        spans[axis] = (offset // stride, 1, 1)
        offset %= stride
    if offset:
        return None
    kept = [a for a in range(view.ndim) if view.shape[a] != 1 and view.strides[a] != 0]
    found: dict[int, int] = {}
    for a in sorted(kept, key=lambda a: -abs(view.strides[a])):
        count = view.shape[a]
        place = _matching_axis(count, view.strides[a], root, spans, [*found.values()])
        if place is None:
            return None
        start, step = spans[place][0], view.strides[a] // root.strides[place]
        spans[place] = (start if step > 0 else start - step * (count - 1), count, step)
        found[a] = place
    return _assembled(view, root, spans, [found[a] for a in kept])


def _cut_to_fit(view: np.ndarray, root: np.ndarray) -> list[Step] | None:
    """A view of row-major memory that the axes of a view cut otherwise than those of the root."""
    axes = [(abs(s) // root.itemsize, n) for n, s in _layout(view) if s != 0]
    axes.sort(reverse=True)
    if not axes:
        return None
    unit = math.gcd(*(step for step, _ in axes))
    offset = (np.lib.array_utils.byte_bounds(view)[0] - _address(root)) // root.itemsize
    flat = root.reshape(-1)[offset % unit :: unit]
    length = axes[0][0] // unit * axes[0][1]
    for first, size in ((0, flat.size), (min(offset // unit, flat.size - length), length)):
        if first < 0:
            continue
        sizes, rest = [], size
        for step, _ in axes:
            block = math.gcd(step // unit, rest)
            sizes.append(rest // block)
            rest = block
        steps = _axes_of(view, flat[first : first + size].reshape(sizes))
        if steps is not None:
            cut = Step("slice", {"index": ((offset % unit + first * unit, size, unit),)})
            cuts = [] if size == root.size else [cut]
            return [*_joined(root.shape), *cuts, *_reshape((size,), tuple(sizes)), *steps]
    return None


def _matching_axis(
    count: int,
    stride: int,
    root: np.ndarray,
    spans: dict[int, tuple[int, int, int]],
    taken: list[int],
) -> int | None:
    for axis in sorted(range(root.ndim), key=lambda a: -abs(root.strides[a])):
        own = root.strides[axis]
        if axis in taken or own <= 0 or root.shape[axis] == 1 or stride % own:
            continue
        if spans[axis][0] + (count - 1) * (abs(stride) // own) < root.shape[axis]:
            return axis
    return None


def _assembled(
    view: np.ndarray, root: np.ndarray, spans: dict[int, tuple[int, int, int]], axes: list[int]
) -> list[Step]:
    """Slices, then the chosen axes in the view's order, then its unit and repeated axes."""
    index = tuple(spans[axis] for axis in range(root.ndim))
    steps = [Step("slice", {"index": index})]
    sizes = tuple(count for _, count, _ in index)
    order = (*axes, *(axis for axis in range(root.ndim) if axis not in axes))
    if order != tuple(range(root.ndim)):
        steps.append(Step("permute", {"order": order}))
        sizes = tuple(sizes[axis] for axis in order)
    bare = tuple(
        1 if s == 0 else n for n, s in zip(view.shape, view.strides, strict=True)
    )  # fmt: skip
    steps += _reshape(sizes, bare)
    if bare != view.shape:
        steps.append(Step("expand", {"shape": view.shape}))
    return steps
