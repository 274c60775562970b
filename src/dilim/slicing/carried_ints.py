"""Ints that loops carry: they leave room for others to be added, or they are wide.

Of most ints a turn only has to see at its end whether they are small. A constant that is large from
the start would never be: it may be any int of 64 bits then, so that it is compared as it is, and
each operation on it is looked at when the program runs.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from dilim.slicing import numbers, surprises
from dilim.slicing.errors import Again, Before, Unsliceable
from dilim.slicing.numbers import Number
from dilim.slicing.values import Choice, is_tuple, like
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.carried import Place
    from dilim.slicing.turns import Turns


def check_start(turns: Turns) -> None:
    """See what room the ints leave that a loop counts on from.

    Raises:
        Unsliceable: one needs more than 64 bits.
    """
    slicer = turns.slicer
    for place in list(turns.places):
        value = turns.start_of(place)
        if any(map(numbers.is_beyond, ints_of(value))):
            turns.leave_to_host(_name_of(turns, place))
            continue
        decision = ("wide", (turns.statement, place[1][1])) if place[0] == "name" else None
        if _are_wide(ints_of(value)) or decision in slicer.decisions:
            turns.wide.add(place)
        if place in turns.wide:
            continue
        large = [x for x in ints_of(value) if x.__class__ is Number and x.bound > numbers.LARGE]
        for x in large:
            reason = "an int of more than 61 bits"
            surprises.unless(slicer, _is_small(x), reason, True, decision=decision)
        if large:
            turns.put(place, _with_room(value))


def let_be(turns: Turns, place: Place, value: Any, after: bool = False) -> None:
    """Take note of how large the ints are that a place holds at the head of a turn.

    Args:
        turns: of which loop.
        place: which.
        value: what it holds.
        after: whether it holds that after a loop that may be left before it is looked at.
    """
    if after or place in turns.wide:
        for x in ints_of(value):
            x.bound, x.base, x.is_wide = numbers.WIDEST, None, place in turns.wide


def check_end(turns: Turns, places: Iterable[Place]) -> None:
    """Where an int may grow beyond what a graph can hold, see at the end of a turn whether it has.

    Raises:
        Again: one is wide.
        Before: one needs more than 64 bits, so that its name is the host's.
        Unsliceable: one does that is no name's.
    """
    slicer = turns.slicer
    small: Any = None
    for place in places:
        ints = list(ints_of(turns.now(place)))
        if any(map(numbers.is_beyond, ints)):
            raise Before(_name_of(turns, place))
        if place in turns.wide:
            continue
        if _are_wide(ints):
            turns.wide.add(place)
            raise Again
        for x in ints:
            if x.__class__ is Number and x.bound >= numbers.LARGE and x.base is None:
                fits = _is_small(x)
                with no_grad():
                    small = fits if small is None else small & fits
    leaving = slicer.leaving()
    if leaving is True or small is None:
        return
    if leaving is not False:
        small = small | leaving.tensor
    slicer.end_of_turn(turns.statement, small)


def ints_of(value: Any) -> Iterator[Any]:
    """The ints that a value is, or has inside, known or not."""
    if value.__class__ is int or (value.__class__ is Number and value.kind is int):
        yield value
    elif is_tuple(value):
        for x in value:
            yield from ints_of(x)
    elif value.__class__ is Choice:
        yield from ints_of(value.yes)


def _name_of(turns: Turns, place: Place) -> str:
    """The name that the host can have instead."""
    depth = len(turns.slicer.scopes) - 1
    if place[0] == "name" and place[1][0] == depth:
        return place[1][1]  # type: ignore[no-any-return]
    raise Unsliceable("an int of more than 64 bits goes through a loop", turns.statement.line)


def _are_wide(ints: Iterable[Any]) -> bool:
    """Whether there is a constant that leaves no room, or an int that may have come from one."""
    return any(x.is_wide if x.__class__ is Number else abs(x) > numbers.LARGE for x in ints)


def _with_room(value: Any) -> Any:
    """A value whose ints are known to leave room for others to be added."""
    if is_tuple(value):
        return like(value, map(_with_room, value))
    if value.__class__ is Choice:
        return Choice(value.flag, _with_room(value.yes), value.no)
    is_int = value.__class__ is Number and value.kind is int
    return Number(value.tensor, int) if is_int else value


def _is_small(x: Number) -> Tensor:
    """Whether an int leaves room for others to be added."""
    with no_grad():
        return (x.tensor < numbers.LARGE) & (x.tensor > -numbers.LARGE)
