"""What the host sees of gradients and attributes, where that depends on the path.

What a loop changes in some turns only has to be written back in these alone: a loop carries whether
the host sees what its turns have left. It is known of values that nobody tells from others like
them: numbers, constants, and gradients that the host has not been handed otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from dilim.slicing import numbers
from dilim.slicing.operators import is_constant
from dilim.slicing.sides import common
from dilim.slicing.values import UNBOUND, AtEntry, Choice, Host
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.interpreter import Interpreter, State
    from dilim.slicing.joins import Join
    from dilim.slicing.sides import Made

GRAD: Final = "grad"
_STALE: Final = object()
"""What the host sees of a place that is written back on one path, or in a turn of a loop."""
Key = tuple[int, Any]
"""A place of the heap; or the identity of a leaf and ``GRAD``, for its gradient."""


def values(slicer: Interpreter) -> Iterator[tuple[Key, Any]]:
    """What the region has put at each place of the heap, and the gradients that it knows of."""
    for key, value in slicer.heap.items():
        if value.__class__ is not Host:
            yield key, value
    for number, leaf in slicer.leaves.items():
        if not (slicer.trace.owns(leaf) and not slicer.objects.has(leaf)):
            yield (number, GRAD), leaf.grad


def _is_seen_in(slicer: Interpreter, key: Key, state: State) -> Any:
    """Whether the host sees what is at a place in a state."""
    if key in state.heap:
        return is_seen(slicer, key, state.heap[key], state)
    first = slicer.initial_grads.get(key[0], (None, None))[1]
    return is_seen(slicer, key, state.grads.get(key[0], first), state)


def is_seen(
    slicer: Interpreter,
    key: Key,
    value: Any,
    state: State | None = None,
    *,
    is_same: bool = False,
) -> Any:
    """Whether the host sees a value at its place: a bool, or a `Number`.

    Args:
        slicer: who interprets.
        key: the place.
        value: what is there.
        state: where that is asked; by default here.
        is_same: whether it has to be the very object that the graph knows the host to have.
    """
    known = slicer if state is None else state
    first: Any = UNBOUND
    if key[1] == GRAD and key[0] in slicer.initial_grads and key[0] not in known.cleared:
        first = slicer.initial_grads[key[0]][1]
    if known.seen.get(key, first) is value:
        return True
    found = None if is_same else known.shown.get(key)
    return found[1] if found is not None and found[0] is value else False


def is_followed(slicer: Interpreter, key: Key, value: Any) -> bool:
    """Whether it matters only what the value at a place is, not which object.

    A tensor at another place than that of a gradient may be known by a name as well.
    """
    if value.__class__ is Choice:
        return is_followed(slicer, key, value.yes) and is_followed(slicer, key, value.no)
    if value.__class__ is AtEntry or numbers.is_number(value):
        return True
    if not isinstance(value, Tensor):
        return is_constant(value)
    if key[1] != GRAD:
        return False
    every = (each for _, each in slicer.one_of.alternatives(value))
    held = slicer.objects.held
    return not any(slicer.trace.owns(x) and x._data.cell in held for x in every)


def group(key: Key) -> Any:
    """Places of one group are told from each other no further: gradients change together."""
    return GRAD if key[1] == GRAD else key


def are_seen(slicer: Interpreter, places: Iterable[Key]) -> Any:
    """Whether the host sees what is at all of some places: a bool, or a `Number`."""
    there = dict(values(slicer))
    result: Any = True
    for key in places:
        truth = is_seen(slicer, key, there[key]) if key in there else True
        if truth is False:
            return False
        if result is True:
            result = truth
        elif truth is not True and truth is not result:
            with no_grad():
                result = numbers.Number(result.tensor & truth.tensor, bool)
    return result


def let_see(slicer: Interpreter, places: Mapping[Key, None], truths: Mapping[Any, Any]) -> None:
    """Take note of what the host sees at the head of a turn, or after a loop.

    Args:
        slicer: who interprets.
        places: those that a turn may write back.
        truths: whether the host sees what is there, by group.
    """
    slicer.seen.update(dict.fromkeys(places, _STALE))
    for key in places:
        slicer.shown.pop(key, None)
    for key, value in values(slicer):
        truth = truths.get(group(key)) if key in places else None
        if truth is not None and is_followed(slicer, key, value):
            slicer.shown[key] = value, truth


def seen_by_both(a: State, b: State) -> dict[Key, Any]:
    """What the host sees after a branch, from what it sees at the end of each side."""
    return dict.fromkeys({**a.seen, **b.seen}, _STALE) | common(a.seen, b.seen)


def joined(join: Join) -> dict[Key, Made]:
    """Whether the host sees what is at each place after a branch, where that is followed."""
    made: dict[Key, Made] = {}
    known: dict[tuple[int, int], Made] = {}
    states = [side.state for side in join.sides]
    for key in dict.fromkeys(key for x in states for key in (*x.seen, *x.shown)):
        a, b = (x.dead or _is_seen_in(join.slicer, key, x) for x in states)
        if a is b is False or (a is not b and not any(key in x.shown for x in states)):
            continue
        if (id(a), id(b)) not in known:
            known[id(a), id(b)] = join.alone(0, a) if a is b else join.number(a, b, "a flag")
        made[key] = known[id(a), id(b)]
    return made


def let_see_joined(
    slicer: Interpreter, truths: Mapping[Key, Made], results: Sequence[Tensor]
) -> None:
    """Take note of what `joined` has found."""
    slicer.shown = {}
    told = {make: make(results) for make in truths.values()}
    for key, value in values(slicer):
        if key in truths and is_followed(slicer, key, value):
            slicer.shown[key] = value, told[truths[key]]
