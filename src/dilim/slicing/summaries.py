"""Calls that go over a generator, such as ``sum(x for x in items)``.

The generator is a frame of its own, which the user can see in the traceback of an error, and in
which a StopIteration is another error. So the call is laid out as a loop only where nothing of it
is the host's.
"""

from __future__ import annotations

import builtins
import sys
from typing import TYPE_CHECKING, Any

from dilim.slicing import numbers
from dilim.slicing.errors import TOO_LONG, OnHost, Unsliceable
from dilim.slicing.retreats import Retreat

if TYPE_CHECKING:
    from dilim.slicing.program import Step
    from dilim.slicing.slicer import Slicer


def summarise(slicer: Slicer, step: Step) -> bool:
    """Interpret such a call as a loop; whether that was possible."""
    node: Any = step.node
    summary: Any = step.summary
    slicer.flush()
    retreat, actions = Retreat(slicer), len(slicer.actions)
    try:
        is_meant = True
        if summary.builtin:
            is_meant = slicer.atom(node.value.func) is getattr(builtins, summary.builtin)
        slicer.block(summary.block, "summary")
        result = slicer.env.get(node.targets[0].id)
        if (
            is_meant
            and len(slicer.actions) == actions
            and not (summary.builtin == "sum" and _is_compensated(result))
        ):
            return True
    except (OnHost, Unsliceable) as refusal:
        if refusal.reason == TOO_LONG:
            raise
    retreat.go_back()
    return False


def _is_compensated(total: Any) -> bool:
    """Whether Python adds floats in a way of its own."""
    is_float = numbers.is_number(total) and numbers.kind_of(total) is float
    return is_float and sys.version_info >= (3, 12)
