"""What the tensors are that a turn of a loop leaves: made by it, views it took, or there before."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dilim.slicing import heap, parts
from dilim.slicing.errors import Restart, Unsliceable
from dilim.slicing.parts import Part
from dilim.slicing.sides import kept_apart
from dilim.slicing.values import Choice, is_tuple
from dilim.tensors.cells import Cell
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer


class Made:
    """A tensor that a turn has made, or what stands for it among others."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


class View(Made):
    """A tensor that a turn has made, over memory that was there before."""


Object = Tensor | Part | Made

Slot = tuple[Any, int]
"""A place of a loop, and the number of a tensor in what it holds."""


def objects_of(slicer: Slicer, x: Tensor) -> list[tuple[Any, Object]]:
    """The objects that a tensor may be at the end of a turn, each with the flag for it."""
    every = slicer.one_of.spread(x, lambda each: not slicer.trace.made_inside(each))
    return [(flag, _object(slicer, each)) for flag, each in every]


def _object(slicer: Slicer, x: Tensor) -> Object:
    trace = slicer.trace
    if trace.made_inside(x):
        part = parts.part_of(trace, x)
        reason = "" if part is not None else kept_apart(trace, x)
        if reason:
            raise Unsliceable(reason)
        return Made(x) if part is None or trace.made_inside(part.owner) else part
    frame = slicer.objects.made_in.get(id(x))
    if frame is None or frame in trace.frames[:-1]:
        return x
    if x._requires_grad:
        raise Unsliceable("a view with a gradient is handed on by a loop")
    return View(x)


def are_one(a: Object, b: Object) -> bool:
    """Whether two that the same turn has made are one object."""
    return a is b or (isinstance(a, Made) and isinstance(b, Made) and a.tensor is b.tensor)


def memory_of(slicer: Slicer, made: Made) -> set[Cell]:
    """The memory of which a tensor that a turn has made shows something.

    Raises:
        Restart: it was there before, so that the host has to make the tensor.
    """
    trace, cells = slicer.trace, set[Cell]()
    left = [made.tensor]
    while left:
        x = left.pop()
        part = trace.parts.get(x._data.cell)
        if part is None:
            cells.add(x._data.cell)
        elif any(each.__class__ is not Made for _, each in objects_of(slicer, part.owner)):
            raise Restart(("host", part.maker))
        else:
            left += [each for _, each in slicer.one_of.alternatives(part.owner)]
    return cells


def refuse_shared(slicer: Slicer, made: dict[int, set[Cell]]) -> None:
    """See to it that no two tensors that a turn has made share memory.

    Args:
        slicer: who interprets.
        made: by identity of a tensor: its memory.

    Raises:
        Restart: two do, so that the host has to make the view.
    """
    known: dict[Cell, int] = {}
    for key, cells in made.items():
        for cell in cells:
            other = known.setdefault(cell, key)
            makers = [slicer.made_by[each] for each in (key, other) if each in slicer.made_by]
            if other != key and makers:
                raise Restart(("host", makers[0]))
            if other != key:
                raise Unsliceable("tensors that share memory are carried out of a branch or loop")


def tensors_of(value: Any) -> list[Tensor]:
    """The tensors that a loop carries for a value, in their order."""
    if isinstance(value, Tensor):
        return [value]
    if is_tuple(value):
        return [x for part in value for x in tensors_of(part)]
    return tensors_of(value.yes) if value.__class__ is Choice else []


def slots_of(values: Mapping[Any, Any]) -> dict[Slot, Tensor]:
    """The tensors in what places hold."""
    return {
        (place, k): x for place, value in values.items() for k, x in enumerate(tensors_of(value))
    }


def left_to_host(slicer: Slicer, place: tuple[str, Any]) -> Any:
    """What is decided where a place, other than a name, is to be left to the host."""
    kind, key = place
    if kind == "item":
        return "host", slicer.made_by[key[0]]
    if kind == "heap":
        return heap.decision(slicer.owners[key[0]], key[1])
    return ("host path", slicer.grad_path(slicer.leaves[key])) if kind == "grad" else None
