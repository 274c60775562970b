"""Writes into memory while a graph is built: each is counted, and can be taken back.

The tape compares counts of writes: a gradient that needs memory as it was before a write is not
known. While a region is interpreted, branches and attempts at loops begin anew from an earlier
state, in which their writes have not been made.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from dilim.runtime.devices import Storage
from dilim.tensors.cells import Cell
from dilim.tensors.tensor import Tensor


class Write:
    """A write that was counted.

    Attributes:
        x: the tensor that was written.
        cell: its memory.
        is_outer: whether that was there before the branch or loop whose writes are taken back.
    """

    __slots__ = ("_after", "_before", "cell", "is_outer", "x")

    def __init__(self, x: Tensor, cell: Cell) -> None:
        self.x = x
        self.cell = cell
        self.is_outer = False
        self._before = self._after = _state(x)

    @property
    def is_recorded(self) -> bool:
        """Whether it has changed the place of the tensor on the tape."""
        return self._before[0] is not _state(self.x)[0]

    def undo(self) -> None:
        """Let the tensor be as it was before."""
        self._after = _state(self.x)
        _put(self.x, self._before)

    def redo(self) -> None:
        """Let it be as it was after."""
        _put(self.x, self._after)


class Writes:
    """All writes so far, in order.

    Attributes:
        unsure: memory that may have been written, or not.
    """

    def __init__(self) -> None:
        self._done: list[Write] = []
        self.unsure: set[Storage] = set()

    def __len__(self) -> int:
        return len(self._done)

    def count(self, x: Tensor, cell: Cell) -> None:
        """Count a write."""
        self._done.append(Write(x, cell))
        x._storage.version += 1

    def since(self, count: int) -> list[Write]:
        """All but the first so many."""
        return self._done[count:]

    def take_back(self, count: int = 0) -> list[Write]:
        """Undo all but the first so many; what they were."""
        undone = self._done[count:]
        del self._done[count:]
        for each in reversed(undone):
            each.undo()
        return undone

    def redo(self, writes: Iterable[Write]) -> None:
        """Do again what was taken back."""
        for each in writes:
            each.redo()
            self._done.append(each)

    def may_be(self, x: Tensor, cell: Cell, times: int) -> None:
        """Count writes that were carried out in another turn or on one path, or not at all."""
        self.unsure.add(x._storage)
        for _ in range(times):
            self.count(x, cell)


def _state(x: Tensor) -> tuple[Any, ...]:
    storage = x._storage
    return x._node, x._born, x._requires_grad, storage.recorded, storage.version


def _put(x: Tensor, state: tuple[Any, ...]) -> None:
    storage = x._storage
    x._node, x._born, x._requires_grad, storage.recorded, storage.version = state
