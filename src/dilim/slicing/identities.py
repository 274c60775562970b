"""Which object a tensor is after a branch, where it was not made there."""

from __future__ import annotations

import dataclasses
import functools
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dilim.slicing import bundles, parts
from dilim.slicing.errors import Restart, Unsliceable
from dilim.slicing.numbers import Number
from dilim.slicing.parts import Part
from dilim.slicing.values import Choice, Held, Host, MadeFunction, is_tuple, items_of, owner_of
from dilim.tensors.cells import Cell
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.interpreter import State
    from dilim.slicing.joins import Join
    from dilim.slicing.slicer import Slicer

Made = Callable[[Sequence[Tensor]], Any]


class Found(NamedTuple):
    """Which objects a tensor may be after a branch.

    Attributes:
        others: from the results of the branch: flags, and the objects that it is where they hold.
        is_one: whether it is one of these on all paths, and never an object of its own.
    """

    others: list[tuple[Made, Made]]
    is_one: bool


def found(join: Join, a: Tensor | None, b: Tensor | None) -> Found:
    """How the objects that a tensor may be are found after a branch.

    Args:
        join: of both sides.
        a: the tensor on the first side; None where it is none.
        b: that on the second.

    Returns:
        See there; not among them is one that is made on a side for this tensor alone.

    Raises:
        Restart: one is a view of which nothing is known after the branch.
    """
    flags: dict[Any, list[Any]] = {}
    known: dict[Any, Made] = {}
    is_one = True
    for side, x in enumerate((a, b)):
        if x is None:
            continue
        for flag, each in _objects(join, side, x):
            place = _found(join, side, each)
            is_one &= place is not None
            if place is not None:
                key, known[key] = place[0], place[1]
                flags.setdefault(key, [False, False])[side] = flag
    return Found([(join.flag(*flags[key]), make) for key, make in known.items()], is_one)


def _objects(join: Join, side: int, x: Tensor) -> list[tuple[Any, Tensor]]:
    """The objects that a tensor may be, those that end with a side as what they are views of."""
    one_of = join.slicer.one_of
    found = list(one_of.spread(x, join.is_outer, lambda: join.within(side)))
    known = {id(each) for _, each in found}
    for _, each in one_of.alternatives(x):
        if id(each) not in known:
            _held_of(join, side, each)
    return found


def _found(join: Join, side: int, x: Tensor) -> tuple[Any, Made] | None:
    """How an object is found after a branch, with what tells it from others."""
    if join.is_outer(x):
        return id(x), lambda results: x
    cell = x._data.cell
    part = parts.part_of(join.trace, x)
    if part is not None and join.is_outer(part.owner):
        _held_of(join, side, x)
        return (side, id(part)), _part_at(join, part, join.alone(side, part.index))
    if cell in join.trace.parts:
        raise Restart(("host", join.trace.parts[cell].maker))
    _refuse_shared(join.slicer, x, join.reached[side].over.get(cell, ()))
    made = _shared(join, side, x)
    return None if made is None else ((side, id(x)), made)


def _refuse_shared(slicer: Slicer, x: Tensor, over: Iterable[Tensor]) -> None:
    """See to it that no other tensor is over the same memory as one that is carried by its numbers.

    Args:
        slicer: who interprets.
        x: the tensor.
        over: those over its memory.

    Raises:
        Restart: one is, so that the host has to make the view.
    """
    sharing = [y for y in over if y is not x]
    makers = [slicer.made_by[id(y)] for y in (x, *sharing) if id(y) in slicer.made_by]
    if sharing and makers:
        raise Restart(("host", makers[0]))
    if sharing:
        raise Unsliceable("tensors that share memory are carried out of a branch or loop")


def _shared(join: Join, side: int, x: Tensor) -> Made | None:
    """A tensor that a side has made, as one object for all that refer to it, the host included."""
    held = _held_of(join, side, x)
    if id(x) not in join.reached[side].several and held is None:
        return None
    if (side, id(x)) not in join.shared:
        owner = join.slicer.one_of.owners.get(id(x), x)  # it knows of the tape
        make, made = join.beside_zeros(side, owner), list[Tensor]()
        flags: list[Any] = [False, False]
        flags[side] = held is not None and held.flag
        flag = join.flag(*flags)

        def once(results: Sequence[Tensor]) -> Tensor:
            if not made:
                made.append(make(results))
                if held is not None:
                    join.given.append((made[0], held._replace(flag=flag(results))))
            return made[0]

        join.shared[side, id(x)] = once
    return join.shared[side, id(x)]


def _held_of(join: Join, side: int, x: Tensor) -> Held | None:
    """What the host has got of a tensor that a side has made, and may keep.

    Raises:
        Unsliceable: it has got it as a view of something.
    """
    objects = join.slicer.objects
    held, objects.held = objects.held, join.sides[side].state.held
    try:
        if not objects.may_be_given(x):
            return None
        own = join.slicer.one_of.own(x)
        if ("view", id(own)) in objects.held or not objects.has(own):
            raise Unsliceable("a view that host code may have got")
        return objects.held[own._data.cell]
    finally:
        objects.held = held


class Reached:
    """What names, attributes and items stand for at the end of a side.

    Args:
        slicer: who interprets.
        state: at the end of the side.
    """

    def __init__(self, slicer: Slicer, state: State) -> None:
        self._slicer = slicer
        self._places = [x for env in state.envs for x in env.values()]
        self._places += state.heap.values()
        for contents in state.contents.values():
            self._places += contents.values() if isinstance(contents, dict) else contents

    @functools.cached_property
    def tensors(self) -> list[Tensor]:
        """The tensors that they may be, once for each place."""
        found: list[Tensor] = []
        one_of = self._slicer.one_of
        for x in self._places:
            if x.__class__ is Tensor and x not in one_of:
                found.append(x)
            elif x.__class__ is Tensor or x.__class__ not in _WITHOUT:
                each = (y for x in _tensors(x) for _, y in one_of.alternatives(x))
                found += {id(y): y for y in each}.values()
        return found

    @functools.cached_property
    def over(self) -> dict[Cell, list[Tensor]]:
        """Those that the region has made, by their memory."""
        found: dict[Cell, list[Tensor]] = {}
        for x in self.tensors:
            if self._slicer.trace.owns(x):
                found.setdefault(x._data.cell, []).append(x)
        return found

    @functools.cached_property
    def several(self) -> set[int]:
        """Identities of tensors to which more than one of them refers."""
        count = Counter(map(id, self.tensors))
        return {key for key, number in count.items() if number > 1}


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif is_tuple(value):
        for x in value:
            yield from _tensors(x)
    elif isinstance(value, MadeFunction):
        for x in value.parts():
            yield from _tensors(x)
    elif value.__class__ is Choice:
        yield from _tensors(value.yes)
        yield from _tensors(value.no)


_WITHOUT: Final = frozenset({Tensor, Number, Host, bool, int, float, str, type(None)})
"""Types of most values; none of them leads to a list or dict."""


def containers(
    envs: Iterable[dict[str, Any]], heap: dict[Any, Any], contents: dict[int, Any]
) -> dict[int, None]:
    """The lists and dicts of the region that can still be reached, by identity.

    Args:
        envs: local names of functions.
        heap: attributes.
        contents: what lists and dicts hold, by identity.
    """
    found: dict[int, None] = {}
    if not contents:
        return found
    places = [x for env in envs for x in env.values()] + list(heap.values())
    while places:
        value = places.pop()
        if value.__class__ in _WITHOUT:
            continue
        if is_tuple(value):
            places += value
        elif isinstance(value, MadeFunction):
            places += value.parts()
        elif value.__class__ is Choice:
            places += value.yes, value.no
        elif id(value) in contents and id(value) not in found:
            found[id(value)] = None
            places += (x for _, x in items_of(contents[id(value)]))
        elif owner_of(value) is not None:
            places.append(owner_of(value))
    return found


def part_of_both(join: Join, a: Tensor, b: Tensor) -> Made | None:
    """For parts of one tensor: the part of it at the position of the side that is taken."""
    first, second = (parts.part_of(join.trace, x) for x in (a, b))
    if first is None or second is None or first.owner is not second.owner:
        return None
    if not join.is_outer(first.owner) or not bundles.go_together(first.index, second.index):
        return None
    for side, x in enumerate((a, b)):
        if not join.is_outer(x):
            _held_of(join, side, x)
    index = join.value(first.index, second.index, "a position")
    return _part_at(join, first, index)


def _part_at(join: Join, part: Part, index: Made) -> Made:
    return lambda results: parts.take(join.trace, dataclasses.replace(part, index=index(results)))
