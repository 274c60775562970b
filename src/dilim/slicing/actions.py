"""What the host does at one point of a region, as Python code.

An `Action` belongs to one channel. It brings values that were sent into the frames of the host,
runs pieces of the user's code there, or gives values back. All actions of a region become one
module of Python code with a function per channel (see `runner`).

In that code ``v`` are the values of the point, ``R`` the run (see `runs`), ``F`` its frames, ``O``
the tensors that it has made by number, ``M`` the lists and dicts that it has made, ``S`` what was
found at entry, ``k...`` constants.
"""

from __future__ import annotations

import copy
from typing import Any, Final

from dilim.ir.types import type_of
from dilim.slicing.program import Function, Statement
from dilim.slicing.tracebacks import Caller
from dilim.tensors.tensor import Tensor

FRAGMENT: Final = "h"
RECEIVE: Final = "r"
BIND: Final = "b"
MOVE: Final = "m"
ITERATE: Final = "i"
TURN: Final = "n"
EXIT: Final = "l"
WRITE: Final = "w"
CHECK: Final = "v"
TRIED: Final = "f"
STOP: Final = "s"
LEAVE: Final = "x"
END: Final = "e"
"""What an action does: the first letter of its channel."""
INTERRUPT: Final = "R.interrupt()"
"""What the host does last where Ctrl-C was pressed, if no context may swallow that."""


class Action:
    """What the host does at one point.

    Attributes:
        channel: its name.
        callers: name, file and line of the calls that the place of the point is in.
        sent: the values of the graph that are sent, in order; after slicing, their types.
        prelude: Python statements that make objects.
        lines: Python statements that come after.
        code: the function whose statements it runs.
        statements: the user's statements that it runs.
        names: local names whose values it binds or takes -> the expression for each.
        at: where the user's function stands meanwhile, if it runs no statement of it.
    """

    def __init__(self, channel: str, callers: tuple[Caller, ...] = ()) -> None:
        self.channel = channel
        self.callers = callers
        self.sent: list[Any] = []
        self.prelude: list[str] = []
        self.lines: list[str] = []
        self.code: Function | None = None
        self.statements: list[Statement] = []
        self.names: dict[str, str] = {}
        self.at: Caller | None = None
        self._number_of: dict[int, int] = {}

    @property
    def is_last(self) -> bool:
        """Whether the region is over then."""
        return self.channel[0] in (END, LEAVE)

    def copied(self) -> Action:
        """The same, to be filled on its own."""
        made = copy.copy(self)
        for name, value in vars(self).items():
            if value.__class__ in (list, dict):
                setattr(made, name, value.copy())
        return made

    def send(self, x: Tensor) -> str:
        """The expression for the array of a value that is sent."""
        number = self._number_of.get(id(x))
        if number is None:
            number = self._number_of[id(x)] = len(self.sent)
            self.sent.append(x)
        return f"v[{number}]"

    def finish(self) -> None:
        """Forget the values that are sent: slicing is over."""
        self.sent = list(map(type_of, self.sent))
        self._number_of.clear()
