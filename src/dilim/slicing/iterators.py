"""Iterators that builtins make while slicing, such as ``zip()``.

What is left of an iterator depends on the path that led to it. So one is used up only once, and
only in the branch or turn that made it; anything else, and handing it out, makes it the host's.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dilim.slicing import contents
from dilim.slicing.errors import OnHost, Restart
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.program import Statement
    from dilim.slicing.slicer import Slicer

ITERATORS: Final = frozenset(
    {
        enumerate,
        zip,
        reversed,
        type(reversed([])),
        type(iter([])),
        type(iter(())),
        type(iter(range(0))),
    }
)
"""Types of iterators that builtins make."""


class Making(NamedTuple):
    """An iterator that the region has made.

    Attributes:
        iterator: the object.
        maker: the statement.
        frame: of the graph, where it was made.
    """

    iterator: Any
    maker: Statement | None
    frame: Any


def made(slicer: Slicer, iterator: Any) -> Any:
    """Take note of an iterator that the region has made."""
    slicer.makings[id(iterator)] = Making(iterator, slicer.current, slicer.trace.top)
    return iterator


def copied(slicer: Slicer, items: Any, container: Any) -> list[Any]:
    """A list for an iterator to go over instead of a list or the like from outside.

    Args:
        slicer: who interprets.
        items: what is to be in it now.
        container: what it stands for.
    """
    copy = list(items)
    slicer.copies.append((copy, container))
    return copy


def renew(slicer: Slicer) -> None:
    """Let iterators see what lists from outside hold by now.

    Raises:
        OnHost: only the host knows.
    """
    for copy, container in slicer.copies:
        copy[:] = contents.opened(slicer, container)


def taken(slicer: Slicer, iterator: Any) -> Any:
    """What an iterator gives that is used up here: another one that gives the same.

    Raises:
        OnHost: it comes from outside.
        Restart: only the host can know what is left of it.
    """
    making = slicer.makings.get(id(iterator))
    if making is None:
        raise OnHost("an iterator from outside is used up")
    if making.frame is not slicer.trace.top or id(iterator) in slicer.taken:
        raise Restart(("host", making.maker))
    slicer.taken.add(id(iterator))
    renew(slicer)
    return again(iterator)


def items(slicer: Slicer, value: Any) -> Any:
    """What something gives that is gone over, in order; an iterator of the region is used up.

    Raises:
        OnHost: only the host can go over it.
    """
    kind = type(value)
    if kind in ITERATORS:
        return tuple(taken(slicer, value))
    if isinstance(value, Tensor):
        raise OnHost("a tensor is gone over")
    return value if kind in (str, bytes, range) else contents.opened(slicer, value)


def is_repeatable(items: Any) -> bool:
    """Whether an iterator goes over nothing but containers."""
    if items.__class__ in ITERATORS:
        return all(map(is_repeatable, items.__reduce__()[1]))
    return not hasattr(items, "__next__")


def again(items: Any) -> Any:
    """An iterator that goes on where another one is, on its own."""
    if items.__class__ not in ITERATORS:
        return items
    kind, args, *state = items.__reduce__()
    found = kind(*map(again, args))
    if state:
        found.__setstate__(state[0])
    return found
