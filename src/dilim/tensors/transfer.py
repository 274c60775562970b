"""Moving tensors between devices, and tensors that are kept on two at once."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import numpy as np

from dilim import dtypes, shapes
from dilim.dtypes import DType
from dilim.errors import DeviceError, DtypeError, GradientError, GraphError
from dilim.ir.types import type_of
from dilim.ops.build import unary_samples
from dilim.ops.opdef import OpDef
from dilim.runtime.devices import CPU, Device, MirroredStorage, Storage, as_device
from dilim.tensors.dispatch import Tracer, has_numbers, record
from dilim.tensors.tape import mode

if TYPE_CHECKING:
    from dilim.tensors.tensor import Tensor

to_device_op = OpDef(
    name="to_device",
    doc="The same numbers on another device; the gradient travels back.",
    infer=lambda x, *, device: (x.shape, x.dtype),
    reference=lambda x, *, device: x,
    samples=unary_samples(),
    sample_dtypes=dtypes.ALL,
    derivative=(lambda b, g, out, x, *, device: b.to_device(g, device=x.device),),
)
"""Not in the table: it is carried out here, by the devices, and by no back end."""


def to(x: Tensor, target: Device | DType | str, copy: bool) -> Tensor:
    """See `Tensor.to`."""
    if isinstance(target, DType) or target in {dtype.name for dtype in dtypes.ALL}:
        return x.astype(dtypes.as_dtype(target), copy=copy)
    device = as_device(target)
    if device is x.device and not copy:
        return x
    return to_device(x, device=device)


def to_device(x: Tensor, *, device: Device) -> Tensor:
    """A new tensor on ``device`` with the same numbers; differentiable."""
    result = _placed(x, np.array(host(x), order="C"), device)
    result.name = x.name
    if mode.recording and x.requires_grad:
        record(to_device_op, (x,), {"device": device}, result)
    return result


def _placed(x: Tensor, array: np.ndarray, device: Device) -> Tensor:
    """A tensor of x's class with the numbers of a row-major array, on a device."""
    if device is CPU:
        return type(x)._from_array(array)
    if isinstance(device, Tracer):
        placed: Tensor = device.constant(array)
        return placed
    buffer = device.upload(array.reshape(-1))
    handle = device.view(buffer, array.shape, shapes.row_major_strides(array.shape), 0)
    return type(x)._wrap(handle, array.shape, dtypes.from_numpy(array.dtype), device)


def beside(x: Tensor, array: np.ndarray) -> Tensor:
    """A tensor over a host array, on the device of ``x``; nothing is copied on the CPU."""
    if x.device is CPU:
        return type(x)._from_array(array)
    return _placed(x, np.array(array, order="C"), x.device)


def host(x: Tensor) -> np.ndarray:
    """The numbers of a tensor as a NumPy array; shares memory on the CPU.

    Raises:
        GraphError: the tensor belongs to a graph that is being built.
    """
    is_cpu = x.device is CPU
    if mode.tracer is not None or (not is_cpu and isinstance(x.device, Tracer)):
        _check_has_numbers(x)
    if is_cpu:
        array: np.ndarray = x._data
        return array
    storage = x._storage
    if isinstance(storage, MirroredStorage):
        handle: np.ndarray = mirrored_handle(x, storage, CPU)
        return handle
    flat = x.device.download(storage.buffer)
    return CPU.view(flat, x.shape, x.strides, x._data.offset)


def _check_has_numbers(x: Tensor) -> None:
    if not has_numbers(x):
        name = f" {x.name!r}" if x.name else ""
        raise GraphError(
            f"tensor{name} of type {type_of(x)}: its numbers are not known while a graph is being "
            "built, so print, if, float(), item() and numpy() cannot have them"
        )


def move(x: Tensor, device: Device) -> None:
    """See `Tensor.move_`."""
    if device is x.device:
        return
    check_movable("move_", x)
    placed = _placed(x, np.array(host(x), order="C"), device)
    x._data, x._storage, x._device = placed._data, placed._storage, device


def convert(x: Tensor, target: Device | DType | str) -> None:
    """Move a leaf and its gradient to a device, or cast it if it is floating; in place.

    Raises:
        DtypeError: a dtype was given that is not floating.
        DeviceError, GradientError: as `Tensor.move_`.
    """
    is_dtype = isinstance(target, DType) or target in {dtype.name for dtype in dtypes.ALL}
    if is_dtype:
        cast(x, dtypes.as_dtype(target))
    else:
        move(x, as_device(target))  # type: ignore[arg-type]
    if x.grad is not None:
        x.grad = to(x.grad, target, False)


def cast(x: Tensor, dtype: DType) -> None:
    """Convert a floating leaf to another floating dtype, in place; its memory is a new one.

    Raises:
        DtypeError: the dtype is not floating.
        DeviceError, GradientError: as `move`.
    """
    if not dtype.is_floating:
        raise DtypeError(f"cast: expected a floating dtype, received {dtype.name}")
    if dtype is x.dtype or not x.dtype.is_floating:
        return
    check_movable("cast", x)
    array = np.array(host(x), dtype.numpy, order="C")
    device, mirrored = x.device, isinstance(x._storage, MirroredStorage)
    x._data, x._storage = array, Storage(CPU, array)
    x._dtype, x._device = dtype, CPU
    if mirrored:
        mirror(x, device)
    else:
        move(x, device)


def check_movable(operation: str, x: Tensor) -> None:
    """Refuse to replace memory that something else looks at.

    Raises:
        GradientError: the tensor is the result of a recorded operation.
        DeviceError: another tensor shares the memory.
    """
    if x._node is not None:
        raise GradientError(
            f"{operation}: this tensor is on the tape; use x.to(...), which is recorded"
        )
    # a storage is held by its tensor and, here, by the argument of getrefcount
    if x._is_view or sys.getrefcount(x._storage) > 2:
        raise DeviceError(
            f"{operation}: another tensor shares this memory, so it cannot be freed; use x.to(...)"
        )


class Layout:
    """The handle of a mirrored tensor: where its elements are in either flat buffer."""

    __slots__ = ("offset", "shape", "strides")

    def __init__(self, shape: shapes.Shape, strides: shapes.Shape, offset: int) -> None:
        self.shape = shape
        self.strides = strides
        self.offset = offset


def mirror(x: Tensor, device: Device) -> None:
    """Keep ``x`` (a fresh CPU tensor) in host memory and on ``device``."""
    if device is CPU:
        raise DeviceError("mirrored: expected a device other than 'cpu' to mirror on")
    x._storage = MirroredStorage(device, x._data.reshape(-1))
    x._data = Layout(x.shape, shapes.row_major_strides(x.shape), 0)
    x._device = device


def mirrored_handle(x: Tensor, storage: MirroredStorage, device: Device) -> Any:
    """The up-to-date handle of one side of a mirrored tensor.

    Raises:
        DeviceError: the tensor is mirrored on another device.
    """
    if device is not CPU and device is not storage.device:
        raise DeviceError(
            f"mirrored tensor: expected device 'cpu' or {storage.device.name!r}, asked for "
            f"{device.name!r}"
        )
    layout = x._data
    return device.view(storage.side(device), layout.shape, layout.strides, layout.offset)


@contextmanager
def host_edit(x: Tensor) -> Iterator[np.ndarray]:
    """A writable NumPy view of the host side; afterwards the device side is stale.

    Raises:
        DeviceError: the tensor is neither on the CPU nor mirrored.
    """
    storage = x._storage
    if isinstance(storage, MirroredStorage):
        yield mirrored_handle(x, storage, CPU)
        storage.written(CPU)
    elif x.device is CPU:
        if mode.tracer is not None:
            mode.tracer.before_write(x)
        yield x._data
        storage.version += 1
    else:
        raise DeviceError(
            f"host_edit: the tensor lives on {x.device.name!r} only; create it with mirrored=True, "
            "or edit x.to('cpu')"
        )
