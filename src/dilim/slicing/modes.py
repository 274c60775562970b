"""Modules in training or evaluation: what `Module.train` and `Module.eval` set.

Library code reads the mode of a module while a region is sliced. So what the region sets is set on
the module itself meanwhile (`show`), and taken back in the end. In the program it is a place of the
heap as any other.
"""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import TYPE_CHECKING, Any, Final

from dilim.slicing import heap
from dilim.slicing.attributes import in_classes, is_module
from dilim.slicing.errors import OnHost
from dilim.slicing.values import UNBOUND

if TYPE_CHECKING:
    from dilim.slicing.interpreter import Interpreter
    from dilim.slicing.slicer import Slicer

MODE: Final = "training"
SETTER: Final = "__setattr__"


def is_switch(function: Any) -> bool:
    """Whether a function is the method of a module that sets its mode, not one of the user's."""
    if not isinstance(function, MethodType) or not is_module(type(function.__self__)):
        return False
    return function.__module__ == "dilim.nn.module" and function.__name__ in ("train", "eval")


def prepare(
    slicer: Slicer, switch: MethodType, args: list[Any], keywords: dict[str, Any]
) -> Callable[[], Any]:
    """How to set the mode of a module and all inside.

    Raises:
        OnHost: the host has to.
    """
    owner: Any = switch.__self__
    given = [*args, *keywords.values()] or [switch.__name__ == "train"]
    is_call = not given[1:] and keywords.keys() <= {"mode"} and type(given[0]) is bool
    if not is_call or (switch.__name__ == "eval" and (args or keywords)):
        raise OnHost("the mode of a module is not known")
    if owner.train.__func__.__module__ != "dilim.nn.module":
        raise OnHost("a module that sets its mode in a way of its own")
    slicer.know_leaves(owner)
    slicer.rely_on(owner)
    puts = []
    for _, module in owner.named_modules():
        kind = type(module)
        if type(in_classes(kind, MODE)) is not bool or in_classes(kind, SETTER) is not in_classes(
            object, SETTER
        ):
            raise OnHost("a module that sets attributes in a way of its own")
        slicer.modes.setdefault((id(module), MODE), (module, module.__dict__.get(MODE, UNBOUND)))
        puts.append(heap.put(slicer, module, MODE, given[0]))

    def compute() -> Any:
        for put in puts:
            put()
        show(slicer)
        return owner

    return compute


def show(slicer: Interpreter) -> None:
    """Set the modes of modules as they are at this point of the program."""
    for place, (module, before) in slicer.modes.items():
        mode = slicer.heap.get(place, before)
        if mode is UNBOUND:
            module.__dict__.pop(MODE, None)
        elif type(mode) is bool:
            module.__dict__[MODE] = mode


def at_entry(slicer: Interpreter, place: tuple[int, Any]) -> bool:
    """The mode that a module has at entry."""
    module, before = slicer.modes[place]
    return bool(getattr(type(module), MODE) if before is UNBOUND else before)


def take_back(slicer: Interpreter) -> None:
    """Set the modes of modules as they were at entry."""
    slicer.heap = {}
    show(slicer)


def demand_known(slicer: Interpreter, parts: Any) -> None:
    """See to it that library code finds the modes of modules as they are.

    Raises:
        OnHost: one depends on the path, or the host sets it.
    """
    for part in parts if slicer.modes else ():
        if type(slicer.heap.get((id(part), MODE), False)) is not bool:
            raise OnHost("the mode of a module is not known")
