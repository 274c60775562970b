"""Iterators that builtins make while slicing, such as ``zip()``.

What is left of an iterator depends on the path that led to it. So one is used up only once, and
only in the branch or turn that made it; anything else, and handing it out, makes it the host's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dilim.slicing import contents
from dilim.slicing.errors import OnHost, Restart
from dilim.slicing.values import View
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.hosting import Hosting
    from dilim.slicing.program import Statement
    from dilim.slicing.slicer import Slicer


class Rows:
    """An iterator over the rows of a tensor that takes each when it comes to it.

    Args:
        tensor: of one axis at least.
    """

    def __init__(self, tensor: Tensor) -> None:
        self._tensor = tensor
        self._place = 0

    def __iter__(self) -> Rows:
        return self

    def __next__(self) -> Tensor:
        if self._place >= len(self._tensor):
            raise StopIteration
        self._place += 1
        return self._tensor[self._place - 1]

    def __reduce__(self) -> Any:
        return Rows, (self._tensor,), self._place

    def __setstate__(self, place: int) -> None:
        self._place = place


ITERATORS: Final[frozenset[Any]] = frozenset(
    {
        Rows,
        enumerate,
        zip,
        reversed,
        type(reversed([])),
        type(iter([])),
        type(iter(())),
        type(iter(range(0))),
    }
)
"""Types of iterators that builtins make, or that stand for such."""


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


class Copy(NamedTuple):
    """What an iterator goes over instead of a dict, or a list from outside.

    Attributes:
        items: a list.
        container: what it stands for.
        keys: of a dict, when the iterator was made.
    """

    items: list[Any]
    container: Any
    keys: list[Any]


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
    slicer.copies[id(copy)] = Copy(copy, container, _keys(slicer, container))
    return copy


def over(slicer: Slicer, items: Any) -> Iterator[Any]:
    """An iterator over a tuple, list or dict, which takes what is there when it comes to it.

    Raises:
        OnHost: only the host can look into it.
    """
    found = contents.opened(slicer, items)
    is_seen = items.__class__ is not View and found is items and items.__class__ is not dict
    return iter(found if is_seen else copied(slicer, found, items))


def renew(slicer: Slicer, iterator: Any) -> None:
    """Let an iterator see what lists and dicts hold by now.

    Raises:
        OnHost: only the host knows, or a dict has other keys, so that Python may raise.
    """
    known = slicer.copies.get(id(iterator))
    if iterator.__class__ in ITERATORS:
        for each in iterator.__reduce__()[1]:
            renew(slicer, each)
    elif known is not None:
        if known.keys != _keys(slicer, known.container):
            raise OnHost("a dict that grows under its loop")
        known.items[:] = contents.opened(slicer, known.container)


def _keys(slicer: Slicer, container: Any) -> list[Any]:
    """The keys of a dict, or one that an object shows; of other containers none."""
    owner = container.owner if container.__class__ is View else container
    return list(contents.opened(slicer, owner)) if owner.__class__ is dict else []


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
    renew(slicer, iterator)
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


def expression(slicer: Hosting, items: Any, code: Callable[[Any], str]) -> str:
    """Python code for an iterator over containers that goes on where one is.

    Args:
        slicer: who interprets.
        items: the iterator, or what one goes over.
        code: gives the code for a value.
    """
    if items.__class__ not in ITERATORS:
        known = slicer.copies.get(id(items))
        return code(items if known is None else known.container)
    kind, args, *state = items.__reduce__()
    if kind is iter and args[0].__class__ is tuple:
        return f"iter({code(tuple(again(items)))})"
    maker = slicer.entry.constant(kind)
    inner = "".join(f"{expression(slicer, x, code)}, " for x in args)
    return f"R.resumed({maker}, ({inner}), {state[0] if state else None})"
