"""Tensors that the host makes for those of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final
from weakref import WeakValueDictionary

from dilim import dtypes
from dilim.ops.table import OPERATIONS
from dilim.runtime.devices import CPU
from dilim.slicing.tracing import use_up
from dilim.tensors.dispatch import apply
from dilim.tensors.layouts import Step
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor
from dilim.tensors.tracer import row_major_view

_WHOLES: Final[WeakValueDictionary[int, Tensor]] = WeakValueDictionary()


def with_gradient(x: Tensor, maker: str = "identity") -> Tensor:
    """Mark a tensor as the result of a tape that is not at hand any more."""
    if not x.requires_grad:
        node: Any = use_up(x, maker)._node
        node.serial = 0  # before all that was made from it
    return x


def past_gradient(x: Tensor) -> Tensor:
    """Mark a tensor as one whose memory was written since it was known how it was made."""
    if x._node is None:
        x._born = -1
    else:
        x._node.version = -1
    return x


def view_of(base: Tensor, steps: Sequence[Step]) -> Tensor:
    """A view of a tensor."""
    x = base
    with no_grad():
        for step in steps:
            x = apply(OPERATIONS[step.op], x, **step.params)
        if not steps:
            x = x.detach()
    return x


def part_of(base: Tensor, index: Any) -> Tensor:
    """A view of a tensor at an index."""
    with no_grad():
        return base[index]


def whole_of(x: Tensor) -> Tensor:
    """A tensor over all of the memory that a tensor is a view of, in row-major order if it can.

    While somebody has it, it is the same one.
    """
    storage = x._storage
    whole = _WHOLES.get(id(storage))
    if whole is None or whole._storage is not storage:
        whole = object.__new__(Tensor)
        data = row_major_view(storage.buffer)
        whole._fill(data, data.shape, x.dtype, CPU)
        whole._storage = storage
        _WHOLES[id(storage)] = whole
    return whole


def place_in_whole(x: Tensor) -> tuple[Any, ...]:
    """Where the elements of a tensor are in all of its memory, and how that is arranged."""
    whole = row_major_view(x._storage.buffer)
    begin = x._data.ctypes.data - whole.ctypes.data
    return whole.shape, whole.strides, x._data.strides, begin


def memory_of(holder: Any) -> Tensor:
    """A tensor over the memory that something holds."""
    data = holder._data
    x: Tensor = object.__new__(Tensor)
    x._fill(data, data.shape, dtypes.from_numpy(data.dtype), CPU)
    x._storage = holder._storage
    return x
