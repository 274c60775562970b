"""What a loop keeps for its derivative where it is not known how many turns it makes.

It is nothing as long as nobody in the graph asks for the derivative. Then it is memory for some
number of turns. Where the loop makes more of them, or none, so that there is no gradient, it is
left to plain Python as it stood before its first turn; after more turns, more are kept next time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dilim.errors import GradientError
from dilim.slicing import numbers, surprises
from dilim.slicing.actions import LEAVE
from dilim.slicing.errors import Again, Restart, Unsliceable
from dilim.tensors.loop_tape import Memory
from dilim.tensors.loops import check_size
from dilim.tensors.sites import user_site
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.interpreter import State
    from dilim.slicing.program import For, While
    from dilim.slicing.slicer import Slicer
    from dilim.slicing.values import Range

WITH_HOST: Final = "a gradient goes back through a loop of unknown length in which the host acts"
FIRST_BYTES: Final = 1 << 18
"""What a loop keeps at first, in bytes."""
FEWEST: Final = 16
"""Turns that are kept at least."""
MOST: Final = 4096
"""Turns that are kept at most at first."""
GROWTH: Final = 4
"""How many times as many are kept once a run has made more."""
_NO_TURN: Final = "a loop whose derivative is asked for makes no turn"
_MORE: Final = "a loop makes more turns than are kept for its derivative"


class KeptTurns(Memory):
    """What a loop keeps.

    Args:
        slicer: who interprets.
        statement: the loop.
        refusal: why nothing can be kept; an empty text if it can.
        left: for a loop over a range, what it takes.

    Attributes:
        count: how many turns are kept, once that is known.
        is_guarded: whether the program is left where there are more, or none.
    """

    def __init__(
        self,
        slicer: Slicer,
        statement: While | For,
        refusal: str = "",
        left: Range | None = None,
    ) -> None:
        self._slicer = slicer
        self._statement = statement
        self._refusal = refusal
        self._left = left
        self.count: int | None = None
        self.is_guarded = False
        self._written: dict[Any, None] = {}
        self._before: dict[Any, Any] = {}
        self._actions = 0
        self._is_open = False

    # --- see `Memory` ---------------------------------------------------------------------

    def turns(self, size: int) -> int | None:
        """See `Memory.turns`.

        Raises:
            Again: it was not known before how many are kept.
            Unsliceable: that is too much.
        """
        if self.count is not None or ("pulled", self._statement) not in self._slicer.decisions:
            return self.count
        if self._refusal:
            raise Unsliceable(self._refusal, self._statement.line)
        first = min(max(FIRST_BYTES // max(size, 1), FEWEST), MOST)
        known = [x[2] for x in self._slicer.decisions if x[:2] == ("turns", self._statement)]
        self.count = max([first, *known])
        try:
            check_size(self.count, size)
        except GradientError as error:
            raise Unsliceable(str(error), self._statement.line) from None
        raise Again

    def ask(self) -> None:
        """See `Memory.ask`.

        Raises:
            Restart: always; next time something is kept.
        """
        raise Restart(("pulled", self._statement))

    # --- leaving the program --------------------------------------------------------------

    def guard(self, limit: int | Tensor, entered: Any) -> None:
        """See, once, that the loop makes a turn, and not more than are kept.

        Args:
            limit: how often it runs at most; an int if that is not known.
            entered: whether there is a turn in that case.
        """
        if self.count is None or self.is_guarded:
            return
        with no_grad():
            if isinstance(limit, Tensor):
                self._unless(limit > 0, _NO_TURN)
                self._unless(limit <= self.count, _MORE, self._more)
            else:
                self._unless(numbers.symbolic(self._slicer.trace, entered).tensor, _NO_TURN)
        self.is_guarded = True

    def begin(self) -> None:
        """A loop that may have to be undone begins."""
        self._is_open = True
        self._actions = len(self._slicer.actions)
        self._before = {cell: self._slicer.trace.contents(cell) for cell in self._written}

    def end_turn(self) -> None:
        """The turn that is interpreted ends.

        Raises:
            Again: it writes memory from outside of which no copy was taken.
        """
        written = self._slicer.trace.top.written
        if self._is_open and not written.keys() <= self._written.keys():
            self._written |= written
            raise Again

    def check(self, is_over: Tensor, start: State) -> None:
        """See that the loop has made all of its turns; else all is as it was before it.

        Args:
            is_over: whether it has.
            start: the state before the loop.
        """
        slicer = self._slicer
        if any(action.channel[0] != LEAVE for action in slicer.actions[self._actions :]):
            raise Unsliceable(WITH_HOST, self._statement.line)

        def go_back() -> None:
            slicer.restore(start)
            for cell, value in self._before.items():
                slicer.trace.top.write(cell, value, user_site())

        self._unless(is_over, _MORE, self._more, go_back)

    @property
    def _more(self) -> tuple[str, While | For, int]:
        """The decision for the next time, once a run has made more turns."""
        return "turns", self._statement, (self.count or 0) * GROWTH

    def _unless(
        self,
        truth: Tensor,
        reason: str,
        decision: Any = None,
        go_back: Callable[[], None] = lambda: None,
    ) -> None:
        """Where a bool of the graph does not hold, go on as plain Python with the loop."""
        slicer, scope = self._slicer, self._slicer.scope
        iterator, known = getattr(self._statement, "iterator", ""), dict(scope.iterators)
        scope.iterators.pop(iterator, None)
        try:
            if not slicer.peeled.get(self._statement):
                surprises.unless(slicer, truth, reason, True, decision=decision, go_back=go_back)
                return
            if self._left is not None:
                scope.iterators[iterator] = self._left
            last = len(self._statement.body) - 1
            with surprises.standing_in(scope, self._statement, last):
                surprises.unless(slicer, truth, reason, False, decision=decision, go_back=go_back)
        finally:
            scope.iterators.clear()
            scope.iterators.update(known)
