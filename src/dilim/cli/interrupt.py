"""Ctrl-C once: stop at the next good place. Twice: stop now."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from types import FrameType, TracebackType
from typing import Any


class Interrupts:
    """While active, the first Ctrl-C sets `requested`, the second raises KeyboardInterrupt.

    Outside the main thread, where Python lets nobody handle signals, it does nothing.

    Attributes:
        requested: whether to stop at the next good place.
    """

    def __init__(self, on_first: Callable[[], None]) -> None:
        """Prepare.

        Args:
            on_first: called at the first Ctrl-C, to tell the person at the keyboard.
        """
        self.requested = False
        self._on_first = on_first
        self._previous: Any = None

    def __enter__(self) -> Interrupts:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._handle)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            raise KeyboardInterrupt
        self.requested = True
        self._on_first()
