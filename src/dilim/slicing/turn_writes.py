"""Memory from before a loop that its turns write, as the tape counts these writes."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

from dilim.runtime.devices import Storage
from dilim.slicing import numbers
from dilim.slicing.errors import Unsliceable
from dilim.slicing.tracing import SlicerTrace
from dilim.slicing.writes import Write
from dilim.tensors.cells import Cell

if TYPE_CHECKING:
    from dilim.slicing.interpreter import State


class TurnWrites:
    """What a turn writes, as far as attempts at a loop have shown.

    Args:
        trace: the graph.
    """

    def __init__(self, trace: SlicerTrace) -> None:
        self._trace = trace
        self._known: dict[Storage, tuple[Write, int]] = {}
        self._uncounted: dict[Cell, None] = {}
        self._together: dict[Cell, list[Cell]] = {}
        self._first_of: dict[Cell, Cell] = {}

    def look(self, head: State) -> bool:
        """Take note of what the turn at hand has written; whether that was known.

        Args:
            head: what was so at its head.

        Raises:
            Unsliceable: one has changed the place on the tape of a tensor from before the loop.
        """
        surely = {
            cell: None
            for cell, flag in self._trace.uncounted.items()
            if flag is True and head.uncounted.get(cell) is not True
            if cell not in self._first_of
        }
        count, is_known = Counter[Storage](), surely.keys() <= self._uncounted.keys()
        self._uncounted |= surely
        for write in self._trace.writes.since(head.writes):
            if not self._trace.is_outer(write.cell):
                continue
            if write.is_recorded:
                raise Unsliceable("a tensor with a gradient is written in place in a loop")
            storage = write.x._storage
            count[storage] += 1
            if count[storage] > self._known.get(storage, (write, 0))[1]:
                self._known[storage] = write, count[storage]
                is_known = False
        return is_known

    def uncertain(self, head: State) -> list[tuple[str, Cell]]:
        """What a turn may have written, or not, without telling the host: places to be carried.

        One of them stands for all memory of which the same is known, such as all that an optimiser
        changes in one step.

        Args:
            head: what was so at its head.
        """
        flags = self._trace.uncounted
        new: dict[Any, list[Cell]] = {}
        for cell, flag in flags.items():
            before = head.uncounted.get(cell, False)
            if flag is True or before is flag or cell in self._first_of:
                continue
            self._uncounted.pop(cell, None)
            new.setdefault((id(before), id(flag)), []).append(cell)
        for first, cells in self._together.items():
            for cell in cells:
                flag = flags.get(cell, False)
                if flag is not flags.get(first, False):  # it was the same until now
                    new.setdefault((first, id(flag)), []).append(cell)
        for cells in new.values():
            for cell in cells:
                if cell in self._first_of:
                    self._together[self._first_of[cell]].remove(cell)
                self._first_of[cell] = cells[0]
            self._together[cells[0]] = cells
        return [("counted", first) for first in self._together]

    def let_be(self, first: Cell, flag: Any) -> None:
        """Let it be told by a flag whether some memory was written, and all that goes with it.

        Args:
            first: of what is always written together; see `uncertain`.
            flag: says whether it was.
        """
        self._trace.uncounted.update(dict.fromkeys(self._together[first], flag))

    def put(self, has_turned: Any, turns: int) -> None:
        """Count what turns before may have written; after the loop once more than in two turns.

        So all that was recorded in a turn about that memory is out of date after the loop, also
        what was recorded after the turn has written it: the next turn has written it again.

        Args:
            has_turned: whether there was one: True, or a bool of the graph.
            turns: for how many of them to count.
        """
        uncounted = self._trace.uncounted
        known: dict[int, tuple[Any, Any]] = {}
        for cell in self._uncounted:
            before = uncounted.get(cell, False)
            if id(before) not in known:
                told = has_turned is True or before is True
                flag = told or numbers.chosen(has_turned, True, before)
                known[id(before)] = before, flag
            uncounted[cell] = known[id(before)][1]
        for write, count in self._known.values():
            self._trace.writes.may_be(write.x, write.cell, count * turns + (turns > 1))
