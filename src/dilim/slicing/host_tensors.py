"""Tensors that the host makes for those of the program."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dilim import dtypes
from dilim.ops.table import OPERATIONS
from dilim.runtime.devices import CPU
from dilim.slicing.tracing import use_up
from dilim.tensors.dispatch import apply
from dilim.tensors.layouts import Step
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor


def with_gradient(x: Tensor, maker: str = "identity") -> Tensor:
    """Mark a tensor as the result of a tape that is not at hand any more."""
    if not x.requires_grad:
        node: Any = use_up(x, maker)._node
        node.serial = 0  # before all that was made from it
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


def memory_of(holder: Any) -> Tensor:
    """A tensor over the memory that something holds."""
    data = holder._data
    x: Tensor = object.__new__(Tensor)
    x._fill(data, data.shape, dtypes.from_numpy(data.dtype), CPU)
    x._storage = holder._storage
    return x
