"""Items of lists and tuples at positions that are known only when the program runs.

All items are of one kind then, and the one that is meant is picked out of them. Which object it is
stays known, so that what happens to its memory happens to the item.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dilim.slicing import bundles, items, numbers, parts, program
from dilim.slicing.numbers import Number
from dilim.slicing.operators import needs_value
from dilim.slicing.values import Choice, is_tuple, like
from dilim.tensors.elementwise import where
from dilim.tensors.tape import mode, no_grad
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer

MOST: Final = 64
"""Most items out of which one is picked."""
MOST_PATHS: Final = 8
"""Most items of different kinds of which one is replaced."""


def read(
    slicer: Slicer, step: program.Step, container: Sequence[Any], index: Number
) -> Callable[[], Any]:
    """How to read the item at a position.

    Raises:
        OnHost: the host has to.
        Restart: the position must be known while slicing.
    """
    known = tuple(container)
    _check(known, known, index)

    def pick() -> Any:
        return _picked(slicer, _flags(index, len(known)), known)

    return lambda: _inside(slicer, step, index, len(known), pick)


def write(
    slicer: Slicer, step: program.Step, container: list[Any], index: Number, value: Any
) -> Callable[[], None]:
    """How to write the item at a position; see `read`."""
    are_alike = all(bundles.go_together(x, value) for x in container)
    are_alike = are_alike and not _is_one_of_two(container, (value,))
    if are_alike or len(container) > MOST_PATHS:
        _check(container, (value,), index)

    def put() -> None:
        for place, flag in enumerate(_flags(index, len(container))):
            if are_alike:
                pair = (flag, numbers.opposite(flag))
                container[place] = _picked(slicer, pair, (value, container[place]))
            else:
                store = partial(container.__setitem__, place, value)
                slicer.branch(flag, store, lambda: None, again=True)

    return lambda: _inside(slicer, step, index, len(container), put)


def _check(container: Sequence[Any], values: Sequence[Any], index: Number) -> None:
    """Refuse what cannot be picked."""
    alike = (
        bundles.is_carriable(x) and bundles.go_together(x, y) for x in container for y in values[:1]
    )
    is_recorded = mode.recording and any(map(_has_gradient, (*container, *values)))
    if index.kind is not int or len(container) > MOST or is_recorded or not all(alike):
        raise needs_value(index)
    if not container or _is_one_of_two(container, values):
        raise needs_value(index)


def _is_one_of_two(*values: Sequence[Any]) -> bool:
    """Whether there is a value that has a kind of its own on each path."""
    return any(x.__class__ is Choice for each in values for x in each)


def _has_gradient(x: Any) -> bool:
    if is_tuple(x):
        return any(map(_has_gradient, x))
    return isinstance(x, Tensor) and x.requires_grad


def _inside(
    slicer: Slicer, step: program.Step, index: Number, size: int, compute: Callable[[], Any]
) -> Any:
    """What a function gives where a position lies inside; elsewhere the host raises."""
    fits = parts.lies_inside(index, size)
    return compute() if fits is None else items.checked(slicer, step, fits, compute)


def _flags(index: Number, size: int) -> list[Number]:
    """For each item, whether it is the one at a position."""
    with no_grad():
        if index.is_natural:
            return [Number(index.tensor == k, bool) for k in range(size)]
        return [Number((index.tensor == k) | (index.tensor == k - size), bool) for k in range(size)]


def _picked(slicer: Slicer, flags: Sequence[Number], values: Sequence[Any]) -> Any:
    """That of some values whose flag holds."""
    first = values[0]
    if is_tuple(first):
        columns = zip(*values, strict=True)
        return like(first, (_picked(slicer, flags, column) for column in columns))
    trace = slicer.trace
    with no_grad():
        if isinstance(first, Tensor):
            found: Any = values[-1]
            for flag, value in zip(flags[:-1], values[:-1], strict=True):
                found = where(flag.tensor, value, found)
            result = trace.symbol(trace.value(trace.handle(found)))
            slicer.one_of.let_be(result, list(zip(flags, values, strict=True)))
            return result
        numbers_of = [numbers.symbolic(trace, value) for value in values]
        found = numbers_of[-1].tensor
        for flag, number in zip(flags[:-1], numbers_of[:-1], strict=True):
            found = where(flag.tensor, number.tensor, found)
    return Number(found, numbers_of[0].kind, max(x.bound for x in numbers_of))
