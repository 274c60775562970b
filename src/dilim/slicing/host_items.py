"""Loops over iterables of the host, which is asked for each item."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dilim.slicing import contexts, program, surprises
from dilim.slicing.actions import ITERATE, TURN
from dilim.slicing.numbers import Number
from dilim.slicing.values import Host
from dilim.tensors import control

if TYPE_CHECKING:
    from dilim.slicing.hosting import Hosting


def begin(slicer: Hosting, statement: program.For, items: Any) -> None:
    """Make the iterator of a loop over an iterable of the host."""
    contexts.refuse_swallowed(slicer)
    slicer.flush()
    slicer.show()
    action = slicer.action(ITERATE)
    action.at = slicer.place_of(statement)
    scope = slicer.scope
    frame = f"F[{scope.number}]"
    if items.__class__ is Host:
        name: str = statement.items.id  # type: ignore[union-attr]
        live = scope.live.head.get(statement, {name})
        ends = name[0] == "%" and name not in live
        shown = f"{frame}.pop({name!r})" if ends else f"{frame}[{name!r}]"
    else:
        shown = slicer.objects.expression(items, action)
    action.lines.append(f"{frame}[{statement.iterator!r}] = iter({shown})")
    slicer.keeping.bind(scope.number, statement.iterator, None)
    control.send_in(slicer.trace, action.channel, action.sent)


def next_item(slicer: Hosting, statement: program.For, is_plain: bool) -> Number:
    """Bind the target to the next item on the host, if there is one; whether there is.

    Args:
        slicer: who interprets.
        statement: the loop.
        is_plain: whether the items are those of a list or the like, so that no code of the user's
            runs which gives them.
    """
    slicer.flush()
    if not is_plain or any(x.__class__ in (list, dict) for x in slicer.owners.values()):
        slicer.show()
    action = slicer.action(TURN)
    action.at = slicer.place_of(statement)
    scope = slicer.scope
    frame = f"F[{scope.number}]"
    action.names[statement.target] = ""
    slicer.forget_name(scope, statement.target)
    action.lines.append(f"v[0][()] = R.next({frame}, {statement.iterator!r}, {statement.target!r})")
    if (statement, statement.target) not in slicer.profile:
        slicer.unknown += 1
        known = slicer.entry.constant((statement, statement.target))
        action.lines.append(f"R.learn({known}, {frame}.get({statement.target!r}))")
    tensor = control.receive_in(slicer.trace, action.channel, surprises.TRUTH)
    return Number(tensor, bool)
