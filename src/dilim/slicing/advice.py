"""What a compiled function tells its user unasked: that something costs more than it needs to."""

from __future__ import annotations

import sys
import types
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final

from dilim.errors import PerformanceWarning
from dilim.slicing.changes import changes_in_words
from dilim.slicing.implicit import cure, in_words
from dilim.slicing.wording import short_path

if TYPE_CHECKING:
    from dilim.slicing.findings import Point
    from dilim.slicing.region import Region

SAY_AFTER: Final = 1.0
"""Seconds of slicing and compiling of which a line tells."""


class Adviser:
    """Warns of each thing once.

    Args:
        function: of whose programs it tells.
    """

    def __init__(self, function: types.FunctionType) -> None:
        self._code = function.__code__
        self._told: set[str] = set()

    def often(self, programs: Sequence[Region], most: int) -> None:
        """Many programs were made; no more than so many will be."""
        self._tell_of(
            programs,
            f"Each takes time to compile, and after {most} of them other calls run as plain Python",
        )

    def no_more(self, programs: Sequence[Region]) -> None:
        """No more programs are made."""
        self._tell_of(programs, "No more are made: what they do not fit runs as plain Python")

    def _tell_of(self, programs: Sequence[Region], outcome: str) -> None:
        line, what = 0, "it"
        if programs[0].after is not None:
            line = programs[0].code.body[0].line
            what = f"its loop at line {line}"
        change = changes_in_words([program.kinds for program in programs])
        because = f", because {change}" if change else ""
        self._warn(
            outcome, f"{len(programs)} programs were made for {what}{because}. {outcome}", line
        )

    def transfer(self, point: Point, count: int) -> None:
        """Something is handed over in each turn of a loop, which costs more than the work."""
        file, line = point.line
        self._warn(
            "transfer",
            f"{in_words(point)} in each turn of a loop, {count:,} times in this call, which takes "
            f"longer than the work: {cure(point)}",
            line,
            file,
        )

    def without_source(self) -> None:
        """The function was not read from a file."""
        self._warn(
            "no source",
            f"runs as plain Python, because its source ({self._code.co_filename}) cannot be read; "
            "put the function into a file, or a cell of a notebook",
        )

    def not_put_back(self, kinds: Iterable[str]) -> None:
        """A check leaves some objects as the first of its two runs left them."""
        self._warn(
            "not put back",
            f"check: what is not put back between the two runs: {', '.join(kinds)}",
            kind=UserWarning,
        )

    def not_checked(self, kind: str) -> None:
        """A check was given up."""
        self._warn(
            "not checked",
            f"check: a {kind} has moved on, so that the call cannot be run again and compared",
            kind=UserWarning,
        )

    def took(self, seconds: float) -> None:
        """Say on stderr that compiling took long."""
        if seconds > SAY_AFTER:
            place = f"{short_path(self._code.co_filename)}:{self._code.co_firstlineno}"
            print(
                f"dilim: slicing and compiling {self._code.co_name} ({place}) took {seconds:.1f} s",
                file=sys.stderr,
            )

    def _warn(
        self,
        key: str,
        message: str,
        line: int = 0,
        file: str = "",
        kind: type[Warning] = PerformanceWarning,
    ) -> None:
        if key in self._told:
            return
        self._told.add(key)
        warnings.warn_explicit(
            f"{self._code.co_name}: {message}.",
            kind,
            file or self._code.co_filename,
            line or self._code.co_firstlineno,
        )
