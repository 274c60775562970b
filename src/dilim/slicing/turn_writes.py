"""Memory from before a loop that its turns write, as the tape counts these writes."""

from __future__ import annotations

from collections import Counter

from dilim.runtime.devices import Storage
from dilim.slicing.errors import Unsliceable
from dilim.slicing.tracing import SlicerTrace
from dilim.slicing.writes import Write


class TurnWrites:
    """What a turn writes, as far as attempts at a loop have shown.

    Args:
        trace: the graph.
    """

    def __init__(self, trace: SlicerTrace) -> None:
        self._trace = trace
        self._known: dict[Storage, tuple[Write, int]] = {}

    def look(self, start: int) -> bool:
        """Take note of what the turn at hand has written; whether that was known.

        Args:
            start: how many writes there were at its head.

        Raises:
            Unsliceable: one has changed the place on the tape of a tensor from before the loop.
        """
        count, is_known = Counter[Storage](), True
        for write in self._trace.writes.since(start):
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

    def put(self, turns: int) -> None:
        """Count what turns before may have written; after the loop once more than in two turns.

        So all that was recorded in a turn about that memory is out of date after the loop, also
        what was recorded after the turn has written it: the next turn has written it again.
        """
        for write, count in self._known.values():
            self._trace.writes.may_be(write.x, write.cell, count * turns + (turns > 1))
