"""Ctrl-C while a program runs that comes to the end of its turn first.

Python hears of Ctrl-C between two of its own steps, wherever they are. Where these are dilim's,
a program that wants to is told to stop instead; where they are the user's, they raise as always.
"""

from __future__ import annotations

import _signal  # type: ignore[import-not-found]  # `signal` adds enumerations: 15 us a run
import threading
from pathlib import Path
from types import FrameType
from typing import Final, Protocol

_PACKAGE: Final = Path(__file__).parent.parent
_OURS: Final = tuple(str(_PACKAGE / part) for part in ("slicing", "runtime", "backends"))


def is_ours(filename: str) -> bool:
    """Whether code of a file runs compiled functions, or was made for that."""
    return filename.startswith(_OURS) or filename.startswith("<dilim")


class Stoppable(Protocol):
    """A run that can be told to stop.

    Attributes:
        is_told: whether it has been.
    """

    is_told: bool

    def tell_to_stop(self) -> None:
        """Stop at the end of the turn."""


_main: Final = threading.main_thread()
_runs: list[Stoppable] = []  # of the main thread, the innermost last


def listen(run: Stoppable) -> bool:
    """Begin to tell a run of Ctrl-C; whether this can be done."""
    if threading.get_ident() != _main.ident:
        return False
    now = _signal.getsignal(_signal.SIGINT)
    if now is _signal.default_int_handler:
        _signal.signal(_signal.SIGINT, _heard)
    elif now is not _heard:
        return False  # the user deals with it
    _runs.append(run)
    return True


def end() -> None:
    """The run that has listened last is over."""
    _runs.pop()
    if not _runs and _signal.getsignal(_signal.SIGINT) is _heard:
        _signal.signal(_signal.SIGINT, _signal.default_int_handler)


def _heard(number: int, frame: FrameType | None) -> None:
    waiting = [run for run in _runs if not run.is_told]
    if not waiting or not _is_in_ours(frame):
        _signal.default_int_handler(number, frame)
    for run in waiting:
        run.tell_to_stop()


def _is_in_ours(frame: FrameType | None) -> bool:
    """Whether a frame, or one that has called it through dilim alone, runs compiled functions."""
    while frame is not None and not is_ours(frame.f_code.co_filename):
        if not frame.f_code.co_filename.startswith(str(_PACKAGE)):
            return False
        frame = frame.f_back
    return frame is not None
