"""Branches on conditions that are known only when the program runs.

Both sides are interpreted, one after the other from the same state. What they make of names,
attributes, gradients, containers and memory is then joined; see `joins`.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dilim.errors import GradientError
from dilim.ir.structure import IF
from dilim.slicing.choices import decided
from dilim.slicing.errors import Unsliceable
from dilim.slicing.joins import Join
from dilim.slicing.numbers import Number
from dilim.slicing.sides import Side, drop, release_again, write_again
from dilim.slicing.tracing import Before, SlicerTrace
from dilim.slicing.writes import Write
from dilim.tensors.regions import add_region_node, inside
from dilim.tensors.tape import now

if TYPE_CHECKING:
    from dilim.slicing.interpreter import State
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
    slicer.flush()
    start, since = slicer.save(), now()
    sides = []
    for run, side in ((then, True), (otherwise, False)):
        slicer.restore(start)
        decide = functools.partial(_decided, slicer, test, side, run, wanted)
        sides.append(_side(slicer, start, since, decide))
    drop(sides, wanted, start)
    try:
        Join(slicer, start, sides[0], sides[1]).finish(test, since)
    except GradientError as error:
        raise Unsliceable(str(error)) from None
    write_again(slicer.trace.writes, sides)
    slicer.objects.end_in({side.frame for side in sides})
    release_again(slicer.trace, sides, slicer.tapes.is_given)


def _decided(
    slicer: Slicer,
    test: Number,
    side: bool,
    run: Callable[[], None],
    wanted: Sequence[frozenset[str]],
) -> None:
    undo = decided(slicer, test, side)
    run()
    slicer.flush()
    if not slicer.dead:
        slicer.refresh_made(lambda left, rest: branch(slicer, left, lambda: None, rest, wanted))
    undo()


def unless(slicer: Slicer, test: Number, leave: Callable[[], None]) -> None:
    """Interpret a branch whose first side does nothing, and whose second has no end.

    Args:
        slicer: who interprets.
        test: whether the first side is taken.
        leave: interprets the second.
    """
    slicer.flush()
    start = slicer.save()
    with inside(slicer.trace, is_loop=False) as frame:
        pass
    side = _side(slicer, start, now(), leave)
    slicer.restore(start)
    chosen = slicer.trace.value(slicer.trace.handle(test.tensor))
    add_region_node(slicer.trace, IF, [chosen], [frame, side.frame], [(), ()], [])


def _side(slicer: Slicer, start: State, since: int, run: Callable[[], None]) -> Side:
    """Interpret a side; memory from outside is as before afterwards."""
    trace: Any = slicer.trace
    before: Before = {}
    with inside(trace, is_loop=False) as frame:
        trace.outer_writes.append(before)
        try:
            run()
            state = slicer.save()
            writes = _writes_of(trace, state, start.writes)
            released = trace.forget_releases(start.releases, since)
            written = {cell: trace.contents(cell) for cell in before if before[cell][1].is_active}
        except BaseException:
            slicer.restore(start)
            raise
        finally:
            trace.outer_writes.pop()
            for cell, (value, owner) in before.items():
                cell.value, cell.frame = value, owner
    return Side(frame, state, written, released, writes)


def _writes_of(trace: SlicerTrace, state: State, count: int) -> list[Write]:
    """The writes of a side, taken back.

    Raises:
        Unsliceable: one has changed the place on the tape of a tensor from before the branch.
    """
    for each in trace.writes.since(count):
        each.is_outer = trace.is_outer(each.cell)
        if each.is_outer and each.is_recorded and not state.dead:
            raise Unsliceable("a tensor with a gradient is written in place on one path")
    return trace.writes.take_back(count)
