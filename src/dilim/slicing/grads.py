"""Gradients that are at entry what they are: the program has not looked, and may never look.

A gradient that is forgotten before anybody looks at it may be anything at entry, so that a loop
which trains is one program whether there was a gradient before or not. Where it is forgotten on one
path only, or in a turn of a loop that may have none, it is afterwards `AtEntry` on the other path.
"""

from __future__ import annotations

from collections.abc import Container, Mapping
from typing import TYPE_CHECKING, Any

from dilim.slicing.bundles import may_be
from dilim.slicing.values import AtEntry

if TYPE_CHECKING:
    from dilim.slicing.interpreter import Interpreter


def grad_in(
    slicer: Interpreter, grads: Mapping[int, Any], cleared: Container[int], key: int
) -> Any:
    """The gradient of a leaf at a point of the program.

    Args:
        slicer: who interprets.
        grads: the gradients there.
        cleared: of which leaves it was forgotten before.
        key: of the leaf.
    """
    leaf, initial = slicer.initial_grads[key]
    grad = grads.get(key, initial)
    if grad is not None or initial is not None or key in cleared or slicer.trace.owns(leaf):
        return grad
    if slicer.entry.has_guard(_none(slicer, leaf)):
        return None
    return slicer.at_entry.setdefault(key, AtEntry(leaf))


def known_together(slicer: Interpreter, a: Any, b: Any) -> tuple[Any, Any]:
    """Two gradients of a leaf; None at entry is demanded where they cannot be one choice."""
    for unknown, other in ((a, b), (b, a)):
        if unknown.__class__ is AtEntry and not may_be(other, unknown):
            demand_none(slicer, unknown.leaf)
            return (None, b) if unknown is a else (a, None)
    return a, b


def demand_none(slicer: Interpreter, leaf: Any) -> None:
    """Demand that a leaf has no gradient at entry."""
    slicer.entry.guard(_none(slicer, leaf))


def _none(slicer: Interpreter, leaf: Any) -> str:
    return f"{slicer.grad_path(leaf)} is None"
