"""Where tensors live: the interface of a device, the CPU, and the list of known devices.

A device keeps flat buffers. A *handle* is a strided view into one: for the CPU a NumPy array, for
any other device whatever it likes, as long as it has ``shape``, ``strides`` (in elements),
``offset`` and ``buffer``.
"""

from __future__ import annotations

import contextvars
import itertools
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Final, Protocol

import numpy as np

from dilim.errors import DeviceError
from dilim.ops.opdef import OpDef
from dilim.shapes import Shape


class Device(Protocol):
    """What an accelerator has to offer.

    Attributes:
        name: as written by users, ``"cpu"``.
    """

    name: str

    def upload(self, flat: np.ndarray) -> Any:
        """A new buffer with the elements of a flat host array."""

    def download(self, buffer: Any) -> np.ndarray:
        """A new flat host array with the elements of a buffer."""

    def view(self, buffer: Any, shape: Shape, strides: Shape, offset: int) -> Any:
        """A handle: a strided window on a buffer; strides and offset count elements."""

    def execute(self, op: OpDef, operands: list[Any], params: dict[str, Any]) -> Any:
        """Apply an operation to handles and Python numbers; gives a handle.

        The result of an operation with ``is_view`` shares the buffer of its operand if it can.
        """

    def write(self, target: Any, source: Any) -> None:
        """Copy the elements of one handle into another of the same shape and dtype."""


class _Quiet(threading.local):
    """A context per thread in which NumPy does not warn about infinities and NaNs."""

    def __init__(self) -> None:
        context = contextvars.copy_context()
        context.run(np.seterr, all="ignore")
        self.run = context.run


quiet: Final = _Quiet()
"""``quiet.run(kernel, *arrays)`` calls a NumPy kernel without floating point warnings."""


def _keep_freed_memory() -> None:
    """Make glibc keep large freed blocks instead of returning each to the system.

    Its threshold rises to the size of the largest block ever freed (up to 32 MiB); without this,
    every result of more than 128 KiB costs a page fault per page. Nothing is touched here.
    """
    np.empty(16 << 20, np.uint8)


_keep_freed_memory()


class CpuDevice:
    """Host memory; handles are NumPy arrays."""

    name = "cpu"

    def upload(self, flat: np.ndarray) -> np.ndarray:
        """A copy of a flat array."""
        return np.array(flat)

    def download(self, buffer: np.ndarray) -> np.ndarray:
        """A copy of a flat array."""
        return np.array(buffer)

    def view(self, buffer: np.ndarray, shape: Shape, strides: Shape, offset: int) -> np.ndarray:
        """A strided window on a flat array."""
        steps = tuple(stride * buffer.itemsize for stride in strides)
        return np.lib.stride_tricks.as_strided(buffer[offset:], shape, steps)

    def execute(self, op: OpDef, operands: list[Any], params: dict[str, Any]) -> np.ndarray:
        """Run the eager kernel of an operation."""
        return np.asarray(quiet.run(op.eager, *operands, **params))

    def write(self, target: np.ndarray, source: np.ndarray) -> None:
        """Copy elements."""
        target[...] = source

    def __repr__(self) -> str:
        return "device('cpu')"

    def __copy__(self) -> CpuDevice:
        return self

    def __deepcopy__(self, memo: object) -> CpuDevice:
        return self


CPU: Final = CpuDevice()

_DEVICES: dict[str, Device] = {"cpu": CPU}


def register_device(device: Device) -> None:
    """Make a device known under its name."""
    _DEVICES[device.name] = device


def as_device(device: Device | str | None) -> Device:
    """The device of that name (or the device itself); the CPU for None.

    Raises:
        DeviceError: no device of that name is registered.
    """
    if device is None:
        return CPU
    if not isinstance(device, str):
        return device
    found = _DEVICES.get(device)
    if found is None:
        known = ", ".join(repr(name) for name in _DEVICES)
        raise DeviceError(f"device: expected one of {known}, received {device!r}")
    return found


def known_devices() -> list[Device]:
    """All registered devices."""
    return list(_DEVICES.values())


_EPOCH_BITS: Final = 64
_epochs: Final = itertools.count(1)


class _Own(threading.local):
    """How many epochs the thread is in."""

    depth = 0


_own: Final = _Own()
_lock: Final = threading.Lock()
_starts: Final = [0]
FIRST_VERSION: Final = [0]
"""The version of memory that is made now; in a list, where machine code finds it."""


@contextmanager
def epoch() -> Iterator[Callable[[Storage], bool]]:
    """A context that marks the memory made in it: the versions of such storages start higher.

    Yields:
        A test of a storage: whether it was made since the context began. (Storages that other
        threads make meanwhile are marked too.)
    """
    start = next(_epochs) << _EPOCH_BITS
    with _versions_from(start):
        yield lambda storage: storage.version >= start


def no_epoch() -> AbstractContextManager[None]:
    """A context in which memory is made as if it had been there before any epoch of this thread."""
    return _versions_from(0) if _own.depth else nullcontext()


@contextmanager
def _versions_from(start: int) -> Iterator[None]:
    with _lock:
        _starts.append(start)
        FIRST_VERSION[0] = start
    _own.depth += 1
    try:
        yield
    finally:
        _own.depth -= 1
        with _lock:  # threads leave in any order
            del _starts[len(_starts) - 1 - _starts[::-1].index(start)]
            FIRST_VERSION[0] = _starts[-1]


class Storage:
    """A flat buffer on one device, shared by a tensor and its views.

    Attributes:
        device: where it is.
        buffer: the device's buffer; on the CPU any array over the memory.
        version: counts writes in place.
        recorded: the version of the last write that the tape knows of; 0 for none.
        on_tape: whether the tape holds a tensor over this memory.
    """

    __slots__ = ("buffer", "device", "on_tape", "recorded", "version")

    def __init__(self, device: Device, buffer: Any) -> None:
        self.device = device
        self.buffer = buffer
        self.version = FIRST_VERSION[0]
        self.recorded = 0
        self.on_tape = False


class MirroredStorage(Storage):
    """One buffer in host memory and one on a device; only the stale side is ever copied.

    Attributes:
        host_valid: whether the host side has the newest contents.
        device_valid: whether the device side has.
        uploads: transfers from host to device so far.
        downloads: transfers from device to host so far.
    """

    __slots__ = ("device_valid", "downloads", "host", "host_valid", "uploads")

    def __init__(self, device: Device, host: np.ndarray) -> None:
        super().__init__(device, None)
        self.host: np.ndarray | None = host
        self.host_valid = True
        self.device_valid = False
        self.uploads = 0
        self.downloads = 0

    def side(self, device: Device) -> Any:
        """The buffer of one side, brought up to date."""
        if device is CPU:
            if not self.host_valid or self.host is None:
                fresh = self.device.download(self.buffer)
                if self.host is None:
                    self.host = fresh
                else:
                    self.host[...] = fresh
                self.downloads += 1
                self.host_valid = True
            return self.host
        if not self.device_valid:
            self.buffer = self.device.upload(self.side(CPU))
            self.uploads += 1
            self.device_valid = True
        return self.buffer

    def written(self, device: Device) -> None:
        """Note that one side was written: the other becomes stale."""
        self.version += 1
        self.host_valid = device is CPU
        self.device_valid = device is not CPU

    def drop_host(self) -> None:
        """Free the host side, after bringing the device side up to date."""
        self.side(self.device)
        self.host, self.host_valid = None, False

    def drop_device(self) -> None:
        """Free the device side, after bringing the host side up to date."""
        self.side(CPU)
        self.buffer, self.device_valid = None, False
