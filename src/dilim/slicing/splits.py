"""Values of the host that have one of a few types, such as batches of which the last is smaller.

Where the graph needs such a value, the rest of the block is interpreted once for each type, as the
sides of a branch that the host decides. Values that have had as many types are expected to change
them together.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dilim.slicing import surprises
from dilim.slicing.actions import RECEIVE
from dilim.slicing.errors import Split
from dilim.slicing.numbers import Number
from dilim.slicing.values import Host, Kinds
from dilim.tensors import control

if TYPE_CHECKING:
    from dilim.slicing.program import Block
    from dilim.slicing.slicer import Slicer


def tell_apart(slicer: Slicer, name: str, value: Any) -> None:
    """See to it that a value which the graph needs has one type only.

    Raises:
        Split: it has one of several.
    """
    if name and value.__class__ is Host and isinstance(value.kind, Kinds):
        if len(slicer.scopes) == 1:
            raise Split(name)
        slicer.env[name] = chosen(value, 0)


def chosen(value: Host, number: int) -> Host:
    """A value of the host as it is where it has one of its types, by number."""
    if not isinstance(value.kind, Kinds):
        return value
    return Host(value.kind.kinds[number], value.is_sure, value.is_plain)


def _is_of(slicer: Slicer, name: str, kind: Any) -> Number:
    """Whether a value of the host has a type."""
    slicer.flush()
    action = slicer.action(RECEIVE)
    action.names[name] = ""
    known = slicer.entry.constant(kind)
    action.lines.append(f"v[0][()] = R.is_kind(F[{slicer.scope.number}].get({name!r}), {known})")
    return Number(control.receive_in(slicer.trace, action.channel, surprises.TRUTH), bool)


def split(slicer: Slicer, block: Block, position: int, name: str) -> None:
    """Interpret the rest of a block once for each type of a value of the host.

    Args:
        slicer: who interprets.
        block: the statements.
        position: of the statement that needs the value.
        name: of the value.
    """
    kinds: tuple[Any, ...] = slicer.env[name].kind.kinds

    def side(number: int) -> None:
        scope = slicer.scope
        before, scope.told = scope.told, {**scope.told, len(kinds): number}
        for each, value in list(scope.env.items()):
            if value.__class__ is Host and isinstance(value.kind, Kinds):
                if len(value.kind.kinds) == len(kinds):
                    scope.env[each] = chosen(value, number)
        slicer.rest(block, position)
        scope.told = before

    def others(number: int) -> None:
        if number == len(kinds) - 1:
            side(number)  # where it has none of them, it is noticed as ever
            return
        truth = _is_of(slicer, name, kinds[number])
        slicer.branch(truth, lambda: side(number), lambda: others(number + 1), block[-1])

    others(0)
