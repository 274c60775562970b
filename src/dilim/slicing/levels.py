"""Functions that call themselves.

A compiled function takes some ten frames of Python's stack where the function itself takes one, so
that a function that calls itself would come to the end of the stack too early. Beyond a few levels
it is therefore the function itself that is called from within, until that has returned.
"""

from __future__ import annotations

import sys
import threading
from typing import Final

LEVELS: Final = 4
"""How many calls of a compiled function inside each other run compiled."""


class Levels(threading.local):
    """How many calls of a function are under way in this thread.

    Attributes:
        count: how many.
    """

    count = 0


class Stack:
    """Room on Python's stack, of which a call of an object takes two steps, not one.

    Attributes:
        users: how many calls need it now.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._limit = 0
        self.users = 0

    def widen(self) -> None:
        """See to it that there is room."""
        with self._lock:
            if not self.users:
                self._limit = sys.getrecursionlimit()
                sys.setrecursionlimit(2 * self._limit)
            self.users += 1

    def narrow(self) -> None:
        """It is not needed any more."""
        with self._lock:
            self.users -= 1
            if not self.users and sys.getrecursionlimit() == 2 * self._limit:
                sys.setrecursionlimit(self._limit)


STACK: Final = Stack()
