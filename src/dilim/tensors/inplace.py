"""Writing into tensors: in-place arithmetic and the bookkeeping that keeps gradients right."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dilim.errors import DeviceError, DtypeError, GradientError, ShapeError
from dilim.runtime.devices import CPU, MirroredStorage
from dilim.tensors.dispatch import NUMBERS, Tracer, tracer_of
from dilim.tensors.tape import mode

if TYPE_CHECKING:
    from dilim.tensors.tensor import Tensor


def update(x: Any, function: Callable[[Any, Any], Tensor], other: Any) -> Tensor:
    """``x = function(x, other)`` into x's own memory; returns x."""
    check_writable("in-place update", x, other)
    before = x._alias() if x.requires_grad else x
    result = function(before, before if other is x else other)
    if result.shape != x.shape:
        raise ShapeError(
            f"in-place {function.__name__}: the result has shape {result.shape} and cannot be "
            f"written into a tensor of shape {x.shape}"
        )
    if result.dtype is not x.dtype:
        raise DtypeError(
            f"in-place {function.__name__}: the result is {result.dtype.name} and cannot be "
            f"written into a {x.dtype.name} tensor; write x = x ... instead"
        )
    return replace(x, result)


def replace(x: Any, result: Any) -> Tensor:
    """Copy the numbers and the place on the tape of ``result`` into ``x``; returns x."""
    store(x, x, result)
    node = result._node
    if node is not None:
        node.version = x._storage.version
        x._storage.recorded = x._born = node.version
        x._node = node
        x._requires_grad = True
    return x  # type: ignore[no-any-return]


def store(x: Any, part: Any, value: Any) -> None:
    """Copy the numbers of ``value`` into ``part``, a view of x or x itself."""
    tracer = tracer_of(x, part, value)
    if tracer is not None:
        tracer.write(tracer.handle(part), tracer.handle(value))
        tracer.written(x)
        return
    before_write(x)
    device = common_side(x, value)
    device.write(part._on(device), value._on(device))
    written(x, device)


def before_write(x: Any) -> None:
    """Tell the graph that is being built, if there is one, of a write that is carried out now."""
    if mode.tracer is not None:
        mode.tracer.before_write(x)


def common_side(x: Any, value: Any) -> Any:
    """The device on which ``x`` takes ``value``.

    Raises:
        DeviceError: they live on different devices.
    """
    if isinstance(x._storage, MirroredStorage):
        return value.device
    if value.device is not x.device and not isinstance(value._storage, MirroredStorage):
        raise DeviceError(
            f"in-place write: expected a value on {x.device.name!r}, received one on "
            f"{value.device.name!r}; use value.to({x.device.name!r})"
        )
    return x.device


def written(x: Any, device: Any = CPU) -> None:
    """Count a write into the memory of ``x``."""
    storage = x._storage
    if isinstance(storage, MirroredStorage):
        storage.written(device)
    else:
        storage.version += 1


def check_writable(operation: str, x: Any, *values: Any) -> None:
    """Refuse writes into read-only memory, and those that would make gradients wrong.

    Raises:
        ValueError: the memory is read-only.
        GradientError: x is a leaf that requires a gradient, or a view, and the write would have
            to be recorded.
    """
    writeable = (
        x._data.flags.writeable
        if x.device is CPU
        else not isinstance(x.device, Tracer) or x._data.writeable
    )
    if not writeable:
        raise ValueError(
            f"{operation}: the memory of this tensor of shape {x.shape} is read-only: it was "
            "stretched by broadcasting, or shares a read-only array; write into x.clone()"
        )
    if not mode.recording:
        return
    tracked = x.requires_grad or any(
        value.__class__ not in NUMBERS and getattr(value, "requires_grad", False)
        for value in values
    )
    if not tracked:
        return
    if mode.tracer is not None:
        mode.tracer.before_recorded_write(x)
    if x._is_view:
        raise GradientError(
            f"{operation}: this tensor is a view of another one, and a recorded write through a "
            f"view has no gradient here; write base[...] = value on the tensor it was taken from"
        )
    if x.requires_grad and x._node is None:
        who = f"'{x.name}' " if x.name else ""
        raise GradientError(
            f"{operation}: the leaf {who}of shape {x.shape} requires a gradient; write into it "
            f"under dilim.no_grad(), or make a new tensor"
        )
