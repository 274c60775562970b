"""What the host's frames hold, and when they let it go.

Python lets an object go as soon as nothing refers to it: then a file is closed, the ``finally`` of
a generator runs, ``__del__`` is called. A frame of the host would hold objects longer where the
graph binds their name anew, or where a function ends that was laid out flat. So names that have
come to their end are noted, and the next action of the host begins by taking them out.
"""

from __future__ import annotations

from itertools import chain
from typing import Any, TypeAlias

from dilim.ir.types import Type
from dilim.slicing.values import Array, known

Held: TypeAlias = dict[tuple[int, str], bool]
"""(number of a frame, name) -> whether it has come to its end."""


class Keeping:
    """The names under which frames of the host hold objects.

    Attributes:
        held: see `Held`.
    """

    def __init__(self) -> None:
        self.held: Held = {}

    def bind(self, frame: int, name: str, kind: Any) -> None:
        """The host binds a name.

        Args:
            frame: the number of the frame.
            name: which is bound there.
            kind: of its value, see `learning.kind_of`. Numbers, texts, tensors and arrays may be
                held longer.
        """
        if kind in (int, float, bool, "str") or isinstance(known(kind), Type | Array):
            self.held.pop((frame, name), None)
        else:
            self.held[frame, name] = False

    def end(self, frame: int, name: str) -> None:
        """A name has come to its end, or stands for something else from here on."""
        if (frame, name) in self.held:
            self.held[frame, name] = True

    def end_all(self, frame: int) -> None:
        """A function has come to its end."""
        for place in self.held:
            if place[0] == frame:
                self.held[place] = True

    @property
    def has_ended(self) -> bool:
        """Whether a name has come to its end and is still in its frame."""
        return True in self.held.values()

    def release(self) -> list[str]:
        """The code that takes names out which have come to their end; it has to run now."""
        ended = [place for place, is_over in self.held.items() if is_over]
        for place in ended:
            del self.held[place]
        return [f"F[{frame}].pop({name!r}, None)" for frame, name in ended]


def joined(*paths: Held) -> Held:
    """What is held after one of several paths: what has come to its end on all is no more used."""
    return {
        place: all(path.get(place, True) for path in paths)
        for place in dict.fromkeys(chain(*paths))
    }
