"""What a region hands back at its end."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dilim.slicing import surprises
from dilim.slicing.actions import END, Action
from dilim.slicing.values import Host, Result
from dilim.tensors import control

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer


def finish(slicer: Slicer, value: Any, atom: Any, is_loop: bool) -> None:
    """The end of the region: everything that the host can see is brought up to date."""
    slicer.flush()
    action = slicer.action(END)
    if value.__class__ is Host:
        expression = f"F[{slicer.scope.number}][{atom.id!r}]"
    elif value.__class__ is Result:
        expression = _of_both(slicer, value, action)
    else:
        expression = slicer.objects.expression(value, action)
    returned = f'("return", {expression})' if is_loop else expression
    action.lines.append(f"R.result = {returned}")
    action.names["return"] = expression
    action.lines += slicer.write_back(action)
    control.send_in(slicer.trace, action.channel, action.sent)


def _of_both(slicer: Slicer, result: Result, action: Action) -> str:
    """Code for a tuple with values of the host in it."""
    items = (
        f"F[{slicer.scope.number}][{name!r}]"
        if value.__class__ is Host
        else slicer.objects.expression(value, action)
        for value, name in result.items
    )
    return f"({', '.join(items)},)"


def fall_through(slicer: Slicer, end: Callable[[], None]) -> None:
    """The end of a block that may have been left before: there is more to do where it was not."""
    leaving = slicer.leaving()
    if leaving is False:
        end()
    elif leaving is not True:
        slicer.branch(leaving, lambda: None, end)
    slicer.flush()


def end_of_loop(slicer: Slicer, names: frozenset[str]) -> None:
    """The end of a region that is a loop: the frame has what is read afterwards."""
    slicer.flush()
    action = slicer.action(END)
    lines = surprises.frame_lines(slicer, slicer.scope, names, action)
    action.lines += lines + slicer.write_back(action) + ["R.result = None"]
    control.send_in(slicer.trace, action.channel, action.sent)
