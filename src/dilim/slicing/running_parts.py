"""The programs of parts of functions: of loops, and of what is left to do when one was left."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from dilim.slicing.program import Function

if TYPE_CHECKING:
    from dilim.slicing.advice import Adviser
    from dilim.slicing.region import Region

MOST_VARIANTS: Final = 8
"""Programs that are kept for one function, or one part of it."""
MANY: Final = 5
"""Programs for one of them of which a warning tells."""
MOST_LESSONS: Final = 12
"""How often a function is sliced anew because a run has shown something."""
FEWEST_WALKS: Final = 2
"""Runs as plain Python in which loops may still be compiled, after the function was refused."""
MOST_RESTS: Final = 3
"""How often a call goes on in a program after it has left one."""
_MOST_LESSONS: Final = 3

Slice: TypeAlias = "Callable[[Function, dict[str, Any], frozenset[str], float], Region | None]"


class _Rests(threading.local):
    count = 0


class Parts:
    """All programs of parts of one function.

    Args:
        slice: makes one, or gives None; from the code of the part, the values of names, the names
            that are read after it, and the seconds that it takes as it is.
        learn: takes over what a run of one has shown.
        advice: tells the user of many.
    """

    def __init__(self, slice: Slice, learn: Callable[[Region], None], advice: Adviser) -> None:
        self._slice = slice
        self._learn = learn
        self._advice = advice
        self._regions: dict[Function, list[Region]] = {}
        self._forgotten: Counter[Function] = Counter()
        self._rests = _Rests()

    @property
    def newest(self) -> list[Region]:
        """The newest program of each part."""
        return [regions[-1] for regions in self._regions.values() if regions]

    @property
    def may_go_on(self) -> bool:
        """Whether the call at hand may go on in a program again."""
        return self._rests.count < MOST_RESTS

    def find(
        self, code: Function, frame: dict[str, Any], seconds: float
    ) -> tuple[Region, Any] | None:
        """A program for a part of a function that is running, and what its gate gave.

        Args:
            code: of the part.
            frame: the values of the names that it reads.
            seconds: what it takes as it is.
        """
        regions = self._regions.setdefault(code, [])
        values = tuple(frame.values())
        for region in regions:
            if region.names == tuple(frame):
                found = region.gate(*values)
                if found is not None:
                    return region, found
        if len(regions) >= MOST_VARIANTS:
            self._advice.no_more(regions)
            return None
        new = self._slice(code, frame, code.codes["after"], seconds)
        if new is None:
            return None
        regions.append(new)
        if len(regions) == MANY:
            self._advice.often(regions, MOST_VARIANTS)
        found = new.gate(*values)
        return None if found is None else (new, found)

    def run(
        self, region: Region, found: Any, values: tuple[Any, ...], frame: dict[str, Any]
    ) -> Any:
        """Run the program of a part; see `Region.run`."""
        self._rests.count += 1
        try:
            return region.run(found, values, frame)
        finally:
            self._rests.count -= 1
            self._learn(region)

    def forget(self, region: Region) -> None:
        """Forget a program of a part, if that has not been done too often."""
        regions = self._regions.get(region.code, [])
        if region in regions and self._forgotten[region.code] < _MOST_LESSONS:
            self._forgotten[region.code] += 1
            regions.remove(region)
