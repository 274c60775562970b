"""Gradients that are at entry what they are: the program has not looked, and may never look.

A gradient that is forgotten before anybody looks at it may be anything at entry, so that a loop
which trains is one program whether there was a gradient before or not. Where it is forgotten on one
path only, or in a turn of a loop that may have none, it is afterwards `AtEntry` on the other path.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dilim.slicing.bundles import may_be
from dilim.slicing.values import AtEntry

if TYPE_CHECKING:
    from dilim.slicing.interpreter import Interpreter, State


def known_together(
    slicer: Interpreter, key: int, first: State, second: State | None
) -> tuple[Any, Any]:
    """The gradients of a leaf in two states; None at entry is demanded where they are no choice.

    Args:
        slicer: who interprets.
        key: of the leaf.
        first: one state.
        second: the other; None for that at hand.
    """
    a, b = _grad_in(slicer, first, key), _grad_in(slicer, second, key)
    for unknown, other in ((a, b), (b, a)):
        if unknown.__class__ is AtEntry and not may_be(other, unknown):
            demand_none(slicer, unknown.leaf)
            return (None, b) if unknown is a else (a, None)
    return a, b


def _grad_in(slicer: Interpreter, state: State | None, key: int) -> Any:
    leaf, initial = slicer.initial_grads[key]
    grad = leaf.grad if state is None else state.grads.get(key, initial)
    cleared = slicer.cleared if state is None else state.cleared
    if grad is not None or initial is not None or key in cleared or slicer.trace.owns(leaf):
        return grad
    if slicer.entry.has_guard(_none(slicer, leaf)):
        return None
    return slicer.at_entry.setdefault(key, AtEntry(leaf))


def known(grad: Any) -> Any:
    """What a leaf has as its gradient while the program is made."""
    return None if grad.__class__ is AtEntry else grad


def demand_none(slicer: Interpreter, leaf: Any) -> None:
    """Demand that a leaf has no gradient at entry."""
    slicer.entry.guard(_none(slicer, leaf))


def _none(slicer: Interpreter, leaf: Any) -> str:
    return f"{slicer.grad_path(leaf)} is None"
