"""Branches on conditions that are known only when the program runs.

Both sides are interpreted, one after the other from the same state. What they make of names,
attributes, gradients, containers and memory is then joined; see `joins`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dilim.slicing.choices import decided
from dilim.slicing.joins import Join
from dilim.slicing.numbers import Number
from dilim.slicing.sides import Side, drop, release_again
from dilim.slicing.tracing import Before
from dilim.tensors.regions import inside
from dilim.tensors.tape import now

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer


def branch(
    slicer: Slicer,
    test: Number,
    then: Callable[[], None],
    otherwise: Callable[[], None],
    wanted: Sequence[frozenset[str]],
) -> None:
    """Interpret both sides of a branch and join them.

    Args:
        slicer: who interprets.
        test: whether the first side is taken.
        then: interprets the first side.
        otherwise: interprets the second.
        wanted: per function the local names that may be read afterwards.
    """
    trace: Any = slicer.trace
    slicer.flush()
    start = slicer.save()
    since = now()
    sides = []
    before: Before
    for run, side in ((then, True), (otherwise, False)):
        slicer.restore(start)
        with inside(trace, is_loop=False) as frame:
            trace.outer_writes.append({})
            try:
                undo = decided(slicer, test, side)
                run()
                slicer.flush()
                undo()
            except BaseException:
                before = trace.outer_writes.pop()
                for cell, (value, owner) in before.items():
                    cell.value, cell.frame = value, owner
                slicer.restore(start)
                raise
            before = trace.outer_writes.pop()
            state = slicer.save()
            released = trace.forget_releases(start.releases, since)
            written = {cell: trace.contents(cell) for cell in before if before[cell][1].is_active}
        for cell, (value, owner) in before.items():
            cell.value, cell.frame = value, owner
        sides.append(Side(frame, state, written, released))
    drop(sides, wanted, start)
    Join(slicer, start, sides[0], sides[1]).finish(test, since)
    release_again(trace, sides)
