"""Which object a tensor is after a branch, where it was not made there."""

from __future__ import annotations

import dataclasses
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dilim.slicing import bundles, parts
from dilim.slicing.errors import Restart
from dilim.slicing.parts import Part
from dilim.slicing.values import Choice
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.interpreter import State
    from dilim.slicing.joins import Join

Found = Callable[[Sequence[Tensor], Tensor], Tensor]
"""From the results of a branch, and the tensor among them with the numbers: the object."""


def found(join: Join, side: int, x: Tensor) -> Found | None:
    """How the object that a tensor is on a side is found after the branch.

    Args:
        join: of both sides.
        side: which side it is.
        x: the tensor.

    Returns:
        None where it is one that the side has made.

    Raises:
        Restart: it is a view of which nothing is known after the branch.
    """
    if join.is_outer(x):
        return lambda results, numbers: x
    part = parts.part_of(join.trace, x)
    if part is not None:
        return _found_part(join, side, part)
    if x._data.cell in join.trace.parts:
        raise Restart(("host", join.trace.parts[x._data.cell].maker))
    either = join.slicer.joined.get(id(x))
    if either is not None:
        return _found_either(join, side, *either)
    made = join.shared(side, x)
    return None if made is None else lambda results, numbers: made(results)


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
    elif value.__class__ is Choice:
        yield from _tensors(value.yes)
        yield from _tensors(value.no)


def found_in_both(join: Join, a: Tensor, b: Tensor) -> Found | None:
    """The same for parts of one tensor: the part of it at the position of the side taken."""
    first, second = (parts.part_of(join.trace, x) for x in (a, b))
    if first is None or second is None or first.owner is not second.owner:
        return None
    if not join.is_outer(first.owner) or not bundles.go_together(first.index, second.index):
        return None
    index = join.value(first.index, second.index, "a position")
    return _part_at(join, first, index)


def _found_part(join: Join, side: int, part: Part) -> Found:
    if not join.is_outer(part.owner):
        raise Restart(("host", part.maker))
    return _part_at(join, part, join.alone(side, part.index))


def _part_at(join: Join, part: Part, index: Callable[[Sequence[Tensor]], Any]) -> Found:
    return lambda results, numbers: parts.take(
        join.trace, dataclasses.replace(part, index=index(results))
    )


def _found_either(join: Join, side: int, flag: Any, yes: Any, no: Any) -> Found | None:
    inner = [None if x is None else found(join, side, x) for x in (yes, no)]
    if inner == [None, None]:
        return None
    which = join.alone(side, flag)

    def made(results: Sequence[Tensor], numbers: Tensor) -> Tensor:
        result: Tensor = join.trace.symbol(join.trace.value(numbers._data))
        pair = [None if each is None else each(results, numbers) for each in inner]
        join.slicer.join_objects(result, which(results), *pair)
        return result

    return made
