"""What the region has set in objects from outside: attributes, global names, items and the like.

A *place* is an object and a key: the name of an attribute; the index or key of an item, where the
object is a list or dict; a global name, where it is the namespace of a module; ``cell_contents``,
where it is the cell of a variable of an enclosing function. What the region puts there stays in the
program (`Interpreter.heap`), is found there by all who look, and is written back where the host can
see it.
"""

from __future__ import annotations

import ast
from types import CellType
from typing import TYPE_CHECKING, Any, Final

from dilim.slicing.errors import OnHost, Restart
from dilim.slicing.values import UNBOUND, Host, holds_hidden

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from dilim.slicing.hosting import Hosting
    from dilim.slicing.interpreter import Interpreter
    from dilim.slicing.program import Statement
    from dilim.slicing.slicer import Slicer

CONTENTS: Final = "cell_contents"
"""The key of what a cell holds."""


def decision(owner: Any, key: Any) -> tuple[str, tuple[str, Any]]:
    """What is decided where a place is to be left to the host."""
    return "host attribute", (type(owner).__qualname__, key)


def find(slicer: Interpreter, owner: Any, key: Any) -> Any:
    """What the region has put at a place; `UNBOUND` where it has put nothing there.

    Raises:
        OnHost: the host changes it.
    """
    if decision(owner, key) in slicer.decisions:
        raise OnHost(f"{_called(owner)} that host code changes")
    found = slicer.heap.get((id(owner), key), UNBOUND)
    if holds_hidden(found):
        raise OnHost(f"{_called(owner)} that the host has set")
    return found


def put(slicer: Hosting, owner: Any, key: Any, value: Any) -> Callable[[], None]:
    """How to put a value at a place where there is one at entry.

    Raises:
        OnHost: the host has to.
    """
    slicer.owners[id(owner)] = owner
    is_decided = decision(owner, key) in slicer.decisions
    if is_decided or holds_hidden(value):
        if slicer.heap.get((id(owner), key), UNBOUND).__class__ is not Host:
            slicer.flush()  # what the host has yet to do sees what there was before
        slicer.heap[id(owner), key] = Host()
        slicer.written.add((id(owner), key))
        raise OnHost(f"{_called(owner)} that host code changes" if is_decided else "")
    if (id(owner), key) not in slicer.heap:
        if value is not UNBOUND and slicer.entry.standing(path(slicer, owner, key)) is value:
            return lambda: None  # it is there already

    def bind() -> None:
        slicer.written.add((id(owner), key))
        slicer.heap[id(owner), key] = value

    return bind


def is_outer(slicer: Interpreter, name: str) -> bool:
    """Whether a name is that of a global, or of a variable of an enclosing function."""
    return name[0] != "%" and name not in slicer.scope.code.locals


def place_of(slicer: Interpreter, name: str) -> tuple[Any, str]:
    """Where the value of such a name is: a namespace or cell, and the key in it."""
    function = slicer.scope.function
    if name not in slicer.scope.code.cells:
        return function.__globals__, name
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
    slicer.entry.cells[id(cells[name])] = name
    return cells[name], CONTENTS


def has_put(slicer: Interpreter, name: str) -> bool:
    """Whether the region has bound such a name."""
    owner, key = place_of(slicer, name)
    return (id(owner), key) in slicer.heap


def bind(slicer: Slicer, name: str, value: Any) -> Callable[[], None]:
    """How to bind such a name.

    Raises:
        OnHost: the host has to.
    """
    slicer.flush()  # what the host has yet to do sees what there was before
    owner, key = place_of(slicer, name)
    if owner.__class__ is CellType:
        is_there = owner != CellType()
    else:
        is_there = has(slicer, owner, key)
    return put(slicer, owner, key, value if is_there else Host())


def set_by(slicer: Hosting, statement: Statement) -> tuple[Any, Any] | None:
    """The place that a statement of the host sets, and nothing else, if `put` has seen to it."""
    owner: Any
    key: Any
    try:
        match getattr(statement, "node", None):
            case ast.Assign(targets=[ast.Name(id=name)]) if is_outer(slicer, name):
                owner, key = place_of(slicer, name)
            case ast.Assign(targets=[ast.Attribute(value=atom, attr=key)]):
                owner = slicer.atom(atom)
            case ast.Assign(targets=[ast.Subscript(value=atom, slice=place)]):
                owner, key = slicer.atom(atom), slicer.atom(place)
            case _:
                return None
        if owner.__class__ is list and key.__class__ is int:
            key %= len(owner)
        is_known = slicer.heap.get((id(owner), key)).__class__ is Host
    except (OnHost, TypeError, ZeroDivisionError):  # a key that cannot be one, or an empty list
        return None
    return (owner, key) if is_known else None


def set_since(slicer: Interpreter, before: Mapping[Any, Any]) -> Iterator[Any]:
    """The places that hold something else than before.

    Raises:
        Restart: the host has set one, which is to be decided first.
    """
    for place, value in slicer.heap.items():
        earlier = before.get(place, UNBOUND)
        if value.__class__ is Host:
            known = decision(slicer.owners[place[0]], place[1])
            if earlier.__class__ is not Host and known not in slicer.decisions:
                raise Restart(known)
        else:
            if earlier is UNBOUND and place in slicer.modes:
                earlier = slicer.original(place)
            if earlier is not value:
                yield place


def path(slicer: Interpreter, owner: Any, key: Any) -> str:
    """How what is at a place is found at entry."""
    if owner.__class__ in (list, dict):
        return f"{slicer.entry.path(owner)}[{_shown(slicer, key)}]"
    if owner.__class__ is CellType:
        return f"{slicer.entry.path(owner)}.{key}"
    return f"{slicer.entry.path(owner)}.__dict__[{key!r}]"


def has(slicer: Interpreter, owner: dict[Any, Any], key: Any) -> bool:
    """Whether a dict has a key at entry, which is guarded; if it has none, the host makes it."""
    condition = f"{_shown(slicer, key)} in {slicer.entry.path(owner)}"
    if key in owner:
        slicer.entry.guard(condition)
        return True
    slicer.entry.guard(f"not {condition}")
    slicer.passing.add(condition)
    return False


def written(slicer: Interpreter, owner: Any, key: Any, value: str) -> str:
    """Code that puts a value at a place on the host."""
    function = "put" if owner.__class__ in (list, dict) else "set"
    return f"R.{function}({_object(slicer, owner)}, {_shown(slicer, key)}, {value})"


def forgotten(slicer: Hosting, statement: Statement) -> list[str]:
    """Take note of the place that a statement of the host sets; code that tells which that is."""
    place = set_by(slicer, statement)
    if place is None:
        return []
    known = id(place[0]), place[1]
    slicer.seen[known] = slicer.heap[known]
    slicer.shown.pop(known, None)
    owner, key = _object(slicer, place[0]), _shown(slicer, place[1])
    return [f"R.now.pop((id({owner}), {key}), None)"]


def _object(slicer: Interpreter, owner: Any) -> str:
    slot = slicer.entry.slot(owner)
    return f"S[{slot}]" if slot is not None else slicer.entry.constant(owner)


def _shown(slicer: Interpreter, key: Any) -> str:
    return repr(key) if type(key) in (int, str, bool) else slicer.entry.constant(key)


def _called(owner: Any) -> str:
    if owner.__class__ is CellType:
        return "a variable"
    return "an item" if owner.__class__ in (list, dict) else "an attribute"
