"""Ctrl-C in a loop of the graph: the host sees all as it is at the end of a turn, and then raises.

Machine code looks for Ctrl-C about every 10 ms. What the loop has written into memory is there
then; attributes, items and gradients that it has set are not, since the host gets them at the end
only. So there is a point at the end of each turn which the program passes by, unless it was told to
stop: there they are handed over.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dilim.slicing import surprises
from dilim.slicing.actions import STOP, Action
from dilim.slicing.errors import OnHost, Restart, Unsliceable
from dilim.tensors import control

if TYPE_CHECKING:
    from dilim.slicing.program import For, While
    from dilim.slicing.slicer import Slicer


def stop(slicer: Slicer, loop: For | While) -> None:
    """Put the point at the end of a turn, if anything has to be handed over there."""
    if slicer.leaving() is True or surprises.has_tape(slicer):
        return  # what was recorded cannot be handed over in each turn
    go_back = slicer.as_shown()
    action = Action(f"{STOP}{len(slicer.actions)}", slicer.callers())
    action.at = slicer.place_of(loop)
    try:
        with surprises.standing_in(slicer.scope, loop, len(loop.body) - 1):
            names: list[str] = []
            after = ""
            if any(known.swallows for scope in slicer.scopes for known in scope.contexts):
                names, after = surprises.handed_over(slicer, action)
            lines = [*names, *slicer.write_back(action, now=True)]
    except (OnHost, Unsliceable, Restart):
        lines, after = [], ""  # the program is worth more than what would be lost
    go_back()
    if lines or after:
        slicer.take(action)
        action.lines += [*lines, f"R.interrupt({after})"]
        control.send_in(slicer.trace, action.channel, action.sent, quiet=True, stop=True)
