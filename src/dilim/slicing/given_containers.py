"""Lists and dicts of the region that the host gets: made once, and kept up to date.

The host may keep such an object, print it, or put it into an attribute. What the region does to it
later is done to the host's object before the host looks again, and if host code changes it, the
region leaves the rest to the host.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from dilim.errors import GraphError
from dilim.slicing.errors import Unsliceable
from dilim.slicing.values import Held, are_alike, is_same, items_of

if TYPE_CHECKING:
    from dilim.slicing.actions import Action
    from dilim.slicing.host import Objects

KEY = "items"
"""Of a list or dict, the host has ``(KEY, identity)``."""


class Containers:
    """Knows the lists and dicts that the region makes.

    Args:
        objects: what the host has.
    """

    def __init__(self, objects: Objects) -> None:
        self._objects = objects
        self.fresh: dict[int, Any] = {}
        self.depth_of: dict[int, int] = {}

    def is_outer(self, key: Any) -> bool:
        """Whether one was there before the loop that is being built."""
        depth = sum(frame.is_loop for frame in self._objects.trace.frames)
        return self.depth_of[key[1]] < depth

    def expression(self, container: Any, action: Action) -> str:
        """Code for the host's object."""
        made = self._made(container, action)
        key = (KEY, id(container))
        now = _items(container)
        number = self._objects.number_of(key)
        known = self._objects.held.get(key)
        make, refill = f"M[{number}] = {made}", f"R.refill({number}, {made})"
        is_old = known is not None and not _are_same(known.seen, now)
        if known is None:
            action.prelude.append(make)
        elif known.flag is not True:
            action.prelude.append(f"if not {action.send(known.flag.tensor)}: {make}")
            action.prelude += [f"else: {refill}"] if is_old else []
        elif is_old:
            action.prelude.append(refill)
        if not action.is_last:
            action.prelude.append(f"R.note({number})")
        is_kept = self._objects.is_kept or (known is not None and known.is_kept)
        self._objects.held[key] = Held(number, now, is_kept=is_kept)
        return f"M[{number}]"

    def let_go(self, containers: Iterable[Any]) -> list[str]:
        """Code that lets go of the host's objects: the region never looks at them again."""
        known = (self._objects.held.pop((KEY, id(each)), None) for each in containers)
        return [f"M.pop({each.number}, None)" for each in known if each is not None]

    def refresh(self, action: Action) -> list[str]:
        """Code that brings the host's objects up to date."""
        lines: list[str] = []
        for key, known in list(self._objects.held.items()):
            if key.__class__ is not tuple or key[0] != KEY:
                continue
            container = self.fresh[key[1]]
            now = _items(container)
            if _are_same(known.seen, now):
                continue
            try:
                line = f"R.refill({known.number}, {self._made(container, action)})"
            except GraphError:
                raise Unsliceable("a list or dict with what a branch has made may change") from None
            if known.flag is not True:
                line = f"if {action.send(known.flag.tensor)}: {line}"
            lines.append(line)
            self._objects.held[key] = known._replace(seen=now)
        return lines

    def numbers(self, reached: Iterable[int]) -> tuple[int, ...]:
        """The numbers of those, by identity, that the host may have."""
        held = self._objects.held
        return tuple(held[KEY, each].number for each in reached if (KEY, each) in held)

    def _made(self, container: Any, action: Action) -> str:
        def shown(x: Any) -> str:
            return self._objects.expression(x, action)

        if container.__class__ is list:
            return f"[{', '.join(map(shown, container))}]"
        pairs = (f"{shown(key)}: {shown(x)}" for key, x in container.items())
        return f"{{{', '.join(pairs)}}}"


def have_seen_one(a: Held, b: Held) -> bool:
    """Whether the host has seen the same of something on two paths."""
    if a.seen.__class__ is b.seen.__class__ is tuple:
        return _are_same(a.seen, b.seen)
    return a.seen is b.seen


def unseen(held: Mapping[Any, Any], contents: Mapping[int, Any]) -> Iterator[int]:
    """Those, by identity, that the host has and does not see as they are.

    Args:
        held: what the host has.
        contents: what lists and dicts hold, by identity.
    """
    for key, known in held.items():
        if key.__class__ is tuple and key[0] == KEY and key[1] in contents:
            if not _are_same(known.seen, _items(contents[key[1]])):
                yield key[1]


def _items(container: Any) -> tuple[Any, ...]:
    return tuple(x for pair in items_of(container) for x in pair)


def _are_same(a: tuple[Any, ...] | None, b: tuple[Any, ...]) -> bool:
    return a is not None and len(a) == len(b) and all(map(_is_one, a, b))


def _is_one(x: Any, y: Any) -> bool:
    """Whether two items are one; a tuple may have been taken apart and made again in a branch."""
    if are_alike(x, y):
        return _are_same(x, y)
    return x is y or is_same(x, y)
