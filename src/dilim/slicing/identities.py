"""Which object a tensor is after a branch, where it was not made there."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dilim.slicing import bundles, parts
from dilim.slicing.errors import Restart
from dilim.slicing.parts import Part
from dilim.slicing.values import Choice, MadeFunction, items_of, owner_of
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.interpreter import State
    from dilim.slicing.joins import Join

Made = Callable[[Sequence[Tensor]], Any]
Found = list[tuple[Made, Made]]
"""From the results of a branch: flags, and the objects that a tensor is where they hold."""


def found(join: Join, a: Tensor | None, b: Tensor | None) -> Found:
    """How the objects that a tensor may be are found after a branch.

    Args:
        join: of both sides.
        a: the tensor on the first side; None where it is none.
        b: that on the second.

    Returns:
        All but one that is made on a side for this tensor alone.

    Raises:
        Restart: one is a view of which nothing is known after the branch.
    """
    flags: dict[Any, list[Any]] = {}
    known: dict[Any, Made] = {}
    for side, x in enumerate((a, b)):
        if x is None:
            continue
        for flag, each in join.slicer.one_of.alternatives(x):
            place = _found(join, side, each)
            if place is not None:
                key, known[key] = place[0], place[1]
                flags.setdefault(key, [False, False])[side] = flag
    return [(join.flag(*flags[key]), make) for key, make in known.items()]


def _found(join: Join, side: int, x: Tensor) -> tuple[Any, Made] | None:
    """How an object is found after a branch, with what tells it from others."""
    if join.is_outer(x):
        return id(x), lambda results: x
    cell = x._data.cell
    part = parts.part_of(join.trace, x)
    if part is not None and join.is_outer(part.owner):
        return (side, id(part)), _part_at(join, part, join.alone(side, part.index))
    if cell in join.trace.parts:
        raise Restart(("host", join.trace.parts[cell].maker))
    made = join.shared(side, x)
    return None if made is None else ((side, id(x)), made)


def in_several_places(state: State) -> set[int]:
    """Identities of tensors to which more than one name, attribute or item refers."""
    places = [x for env in state.envs for x in env.values()]
    places += state.heap.values()
    for contents in state.contents.values():
        places += contents.values() if isinstance(contents, dict) else contents
    count = Counter(key for x in places for key in set(map(id, _tensors(x))))
    return {key for key, number in count.items() if number > 1}


def _tensors(value: Any) -> Iterator[Tensor]:
    if isinstance(value, Tensor):
        yield value
    elif value.__class__ is tuple:
        for x in value:
            yield from _tensors(x)
    elif isinstance(value, MadeFunction):
        for x in value.parts():
            yield from _tensors(x)
    elif value.__class__ is Choice:
        yield from _tensors(value.yes)
        yield from _tensors(value.no)


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
        if value.__class__ is tuple:
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
    index = join.value(first.index, second.index, "a position")
    return _part_at(join, first, index)


def _part_at(join: Join, part: Part, index: Made) -> Made:
    return lambda results: parts.take(join.trace, dataclasses.replace(part, index=index(results)))
