"""Functions that make tensors."""

from __future__ import annotations

from collections.abc import Sequence
from operator import index
from typing import Any

import numpy as np

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import DtypeError, ShapeError
from dilim.runtime.devices import CPU, Device, as_device, quiet
from dilim.tensors.elementwise import where
from dilim.tensors.manipulation import broadcast_to, reshape, tril, triu
from dilim.tensors.tensor import Tensor, host_array

DTypeLike = DType | str | None
DeviceLike = Device | str | None
Sizes = int | Sequence[int]


def _finish(
    array: np.ndarray, device: DeviceLike, requires_grad: bool = False, name: str | None = None
) -> Tensor:
    result = Tensor._from_array(array)
    target = as_device(device)
    if target is not CPU:
        result.move_(target)
    result.name = name
    return result.requires_grad_() if requires_grad else result


def tensor(
    data: Any,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    name: str | None = None,
) -> Tensor:
    """A new tensor with a copy of ``data``; see `Tensor`."""
    return Tensor(data, dtype, device, requires_grad, name)


def asarray(
    obj: Any,
    /,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    copy: bool | None = None,
) -> Tensor:
    """A tensor of ``obj``, sharing its memory when possible.

    Args:
        obj: a number, nested sequences, a NumPy array, anything with DLPack or the buffer
            protocol, or a Tensor.
        dtype: element type; by default that of the data (float32 for Python floats).
        device: where to put it.
        copy: None copies only when needed, True always, False never.

    Raises:
        ValueError: copy=False and a copy is needed.
    """
    if isinstance(obj, Tensor):
        return _as_tensor(obj, dtype, device, copy)
    if not isinstance(obj, np.ndarray) and hasattr(obj, "__dlpack__"):
        return _as_tensor(from_dlpack(obj), dtype, device, copy)
    source = _over_buffer(obj)
    array = _whole_steps(host_array(source, dtype))
    shared = array is source
    if copy is False and not shared:
        raise ValueError("asarray: copy=False, but this input has to be copied")
    if copy and shared:
        array = np.array(array, order="C")
    return _finish(array, device)


def _over_buffer(obj: Any) -> Any:
    """An array over the memory of anything with the buffer protocol; other objects as they are."""
    if isinstance(obj, (list, tuple, int, float)):
        return obj
    try:
        return np.asarray(obj if isinstance(obj, np.ndarray) else memoryview(obj))
    except TypeError:
        return obj


def _whole_steps(array: np.ndarray) -> np.ndarray:
    """The array, copied if its elements do not lie a whole number of elements apart."""
    if all(step % array.itemsize == 0 for step in array.strides):
        return array
    return np.array(array, order="C")


def _as_tensor(x: Tensor, dtype: DTypeLike, device: DeviceLike, copy: bool | None) -> Tensor:
    result = x
    if dtype is not None:
        result = result.astype(dtype, copy=False)
    if device is not None:
        result = result.to(as_device(device))
    if copy is False and result is not x:
        raise ValueError("asarray: copy=False, but this dtype or device needs a copy")
    return result.clone() if copy and result is x else result


def from_numpy(array: np.ndarray) -> Tensor:
    """A tensor that shares the memory of a NumPy array."""
    return asarray(array)


def from_dlpack(x: Any, /, *, device: DeviceLike = None, copy: bool | None = None) -> Tensor:
    """A tensor over the memory of any object that speaks DLPack.

    Writes made through the other library are not seen by the tape: do not write into memory that
    a pending ``backward()`` needs.
    """
    if isinstance(x, Tensor):
        return _as_tensor(x, None, device, copy)
    array = np.from_dlpack(x)
    if copy:
        array = np.array(array)
    dtypes.from_numpy(array.dtype)
    return _finish(_whole_steps(array), device)


def as_shape(shape: Sizes) -> tuple[int, ...]:
    """Sizes as a tuple; one number is a vector's.

    Raises:
        ShapeError: a size is negative.
    """
    sizes = (shape,) if not isinstance(shape, Sequence) else tuple(shape)
    result = tuple(index(size) for size in sizes)
    if any(size < 0 for size in result):
        raise ShapeError(f"shape: expected sizes >= 0, received {result}")
    return result


def empty(shape: Sizes, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """A tensor whose contents are not set; here they are zeros, so that runs repeat."""
    return zeros(shape, dtype=dtype, device=device)


def zeros(
    shape: Sizes,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    name: str | None = None,
) -> Tensor:
    """A tensor of zeros; float32 by default."""
    kind = dtypes.as_dtype(dtype or dtypes.DEFAULT_FLOAT)
    return _finish(np.zeros(as_shape(shape), kind.numpy), device, requires_grad, name)


def ones(
    shape: Sizes,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    name: str | None = None,
) -> Tensor:
    """A tensor of ones; float32 by default."""
    kind = dtypes.as_dtype(dtype or dtypes.DEFAULT_FLOAT)
    return _finish(np.ones(as_shape(shape), kind.numpy), device, requires_grad, name)


def full(
    shape: Sizes,
    fill_value: float,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    requires_grad: bool = False,
    name: str | None = None,
) -> Tensor:
    """A tensor of one repeated number, in its natural dtype by default."""
    kind = dtypes.as_dtype(dtype or type(fill_value))
    array = quiet.run(np.full, as_shape(shape), fill_value, kind.numpy)
    return _finish(array, device, requires_grad, name)


def empty_like(x: Tensor, /, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """`empty` with the shape, dtype and device of x."""
    return zeros_like(x, dtype=dtype, device=device)


def zeros_like(x: Tensor, /, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """`zeros` with the shape, dtype and device of x."""
    return zeros(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def ones_like(x: Tensor, /, *, dtype: DTypeLike = None, device: DeviceLike = None) -> Tensor:
    """`ones` with the shape, dtype and device of x."""
    return ones(x.shape, dtype=dtype or x.dtype, device=device or x.device)


def full_like(
    x: Tensor, /, fill_value: float, *, dtype: DTypeLike = None, device: DeviceLike = None
) -> Tensor:
    """`full` with the shape, dtype and device of x."""
    return full(x.shape, fill_value, dtype=dtype or x.dtype, device=device or x.device)


def arange(
    start: float,
    /,
    stop: float | None = None,
    step: float = 1,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
) -> Tensor:
    """Numbers from start (inclusive) to stop (exclusive), step apart.

    One argument counts from 0. Integers give int64, floats float32.
    """
    if stop is None:
        start, stop = 0, start
    if step == 0:
        raise ShapeError("arange: expected a step other than 0")
    integers = all(isinstance(value, int) for value in (start, stop, step))
    kind = dtypes.as_dtype(dtype or (dtypes.DEFAULT_INT if integers else dtypes.DEFAULT_FLOAT))
    array = np.arange(start, stop, step) if stop != start else np.zeros(0)
    return _finish(array.astype(kind.numpy), device)


def linspace(
    start: float,
    stop: float,
    /,
    num: int,
    *,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
    endpoint: bool = True,
) -> Tensor:
    """``num`` numbers evenly spaced from start to stop."""
    kind = dtypes.as_dtype(dtype or dtypes.DEFAULT_FLOAT)
    if not kind.is_floating and not kind.is_integer:
        raise DtypeError(f"linspace: expected a numeric dtype, received {kind.name}")
    array = np.linspace(start, stop, num, endpoint=endpoint, dtype=kind.numpy)
    return _finish(array, device)


def eye(
    n_rows: int,
    n_cols: int | None = None,
    /,
    *,
    k: int = 0,
    dtype: DTypeLike = None,
    device: DeviceLike = None,
) -> Tensor:
    """Ones on the k-th diagonal, zeros elsewhere."""
    kind = dtypes.as_dtype(dtype or dtypes.DEFAULT_FLOAT)
    columns = n_rows if n_cols is None else n_cols
    return _finish(np.eye(n_rows, columns, k=k, dtype=kind.numpy), device)


def one_hot(indices: Tensor, /, classes: int, *, dtype: DTypeLike = None) -> Tensor:
    """A last axis of size ``classes`` that is 1 at each index and 0 elsewhere.

    Args:
        indices: integers in 0 .. classes - 1, any shape.
        classes: how many there are.
        dtype: float32 by default.
    """
    positions = arange(classes, dtype=indices.dtype)
    hits = reshape(indices, (*indices.shape, 1)) == positions
    return hits.astype(dtype or dtypes.DEFAULT_FLOAT)


def meshgrid(*arrays: Tensor, indexing: str = "xy") -> tuple[Tensor, ...]:
    """Coordinates of a grid from one vector per axis.

    Args:
        arrays: vectors.
        indexing: "xy" for (columns, rows, ...), "ij" for matrix order.
    """
    if indexing not in ("xy", "ij"):
        raise ShapeError(f"meshgrid: expected indexing 'xy' or 'ij', received {indexing!r}")
    rank = len(arrays)
    order = list(range(rank))
    if indexing == "xy" and rank > 1:
        order[0], order[1] = 1, 0
    sizes = [1] * rank
    for x, axis in zip(arrays, order, strict=True):
        sizes[axis] = x.size
    shaped = (
        reshape(x, tuple(x.size if a == axis else 1 for a in range(rank)))
        for x, axis in zip(arrays, order, strict=True)
    )
    return tuple(broadcast_to(x, sizes) for x in shaped)


__all__ = [
    "Tensor", "arange", "asarray", "empty", "empty_like", "eye", "from_dlpack", "from_numpy",
    "full", "full_like", "linspace", "meshgrid", "one_hot", "ones", "ones_like", "tensor", "tril",
    "triu", "where", "zeros", "zeros_like",
]  # fmt: skip
