"""How a run leaves its program: for plain Python, which takes the rest, or because of an error.

Contexts of the host that were entered (see `contexts`) are left on the way, as Python would leave
them. One that swallows an error lets the rest go on after its ``with`` statement.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from dilim.slicing.learning import Learner
from dilim.slicing.observers import Observer
from dilim.slicing.swallowing import may_swallow
from dilim.slicing.tracebacks import Caller, users_view
from dilim.slicing.walker import Walker
from dilim.tensors.tape import enable_grad, mode, no_grad

if TYPE_CHECKING:
    from dilim.slicing.region import Region

Frame = dict[str, Any]
EXITS: Final = ("return", "break", "continue")
"""How a statement may be left, by `Leaving.code` less 1."""


def _learn(level: Level, run: Leaving) -> Observer:
    return Learner(run.seen)


class Left(BaseException):
    """The program was left: the rest of the region runs as plain Python."""


class Around(NamedTuple):
    """A context around the place at which the program is left.

    Attributes:
        manager: the name under which a frame has its ``__exit__``; see `program.With`.
        leave: leaves it, given a frame and an error or None; whether it swallows the error.
        after: where the function goes on after the ``with`` statement; see `Walker.resume`.
        recording: whether gradients are recorded around the statement.
        context: what the program itself has not entered, since it knows what it does.
    """

    manager: str
    leave: Callable[[Frame, BaseException | None], bool]
    after: tuple[Any, ...]
    recording: bool
    context: Any = None


class Level(NamedTuple):
    """A function that is being run.

    Attributes:
        number: of its frame.
        code: its normal form.
        function: the function.
        path: where it goes on; see `Walker.resume`.
        target: the name that takes the result of the function that it calls.
        caller: where it calls that.
        contexts: those around the place, the outermost first.
    """

    number: int
    code: Any
    function: Any
    path: tuple[Any, ...]
    target: str
    caller: Caller
    contexts: tuple[Around, ...]


class Leaving:
    """The part of a `Run` that leaves the program.

    Attributes:
        is_loop: whether the region is a loop of a running function.
        frames: the frames of its functions.
        left: why the program was left for plain Python.
        error: what host code raised, kept until all is as the host should see it.
        code: how the last statement of the host was left; 0 at its end.
        exit: how plain Python begins: with a return, break or continue and its value, or None.
        contexts: those that are entered, the outermost first: the number of calls around each, the
            number of its frame, and what is known of it.
        is_expected: whether the context entered last is as the program believes.
        levels: where plain Python goes on, the outermost function first.
        learned: what a run has shown, by place.
        decided: what is to be decided when the region is sliced again.
        seen: types that the rest of a run has shown, by statement and name.
        watch: gives who looks on while plain Python goes on, and fills in ``seen``.
    """

    def __init__(self, is_loop: bool) -> None:
        self.is_loop = is_loop
        self.frames: list[Frame] = []
        self.left: list[str] = []
        self.learned: dict[Any, Any] = {}
        self.decided: set[Any] = set()
        self.seen: dict[Any, Any] = {}
        self.error: BaseException | None = None
        self.code = 0
        self.exit: Any = None
        self.contexts: list[tuple[int, int, Around]] = []
        self.is_expected = True
        self.levels: list[Level] = []
        self.watch: Callable[[Level, Leaving], Observer] = _learn

    def forget_places(self) -> None:
        """Forget what belongs to the last run."""
        self.left = []
        self.error = self.exit = None
        self.contexts.clear()
        self.seen.clear()
        self.levels = []

    def tell(self, region: Region) -> None:
        """Let the region know what the run has shown so far."""
        region.learned.update(self.learned)
        region.unstable.update(self.decided)
        region.seen.update(self.seen)
        self.learned.clear()

    # --- errors of host code ----------------------------------------------------------------

    def attempt(self, fragment: Callable[[Frame], Any], frame: Frame) -> Any:
        """Run host code; an error of it is kept until all is as the host should see it."""
        self.error = None
        try:
            return fragment(frame)
        except BaseException as error:
            self.error = error
            return None

    def raise_error(self) -> None:
        """Raise the error that was kept."""
        error, self.error = self.error, None
        if error is not None:
            context = error.__context__
            try:
                raise error
            finally:
                error.__context__ = context

    def follow(self, frame: Frame, left: Any) -> None:
        """Take note of how a statement was left."""
        self.code = 0
        if left is not None:
            kind, value = left
            self.code = EXITS.index(kind) + 1
            frame["%result"] = value

    # --- contexts ---------------------------------------------------------------------------

    def entered(self, depth: int, number: int, around: Around, key: Any, believed: bool) -> None:
        """Take note of a context of the host that was entered, unless that has failed.

        Args:
            depth: the number of calls around it.
            number: of its frame.
            around: what is known of it.
            key: under which it is learned what the program did not know.
            believed: whether the program believes that it may swallow errors.
        """
        if self.error is not None:
            return
        self.contexts.append((depth, number, around))
        found = may_swallow(self.frames[number][around.manager].args[0])
        is_same_mode = mode.recording is around.recording and not mode.watched
        self.is_expected = is_same_mode and (believed or not found)
        if not self.is_expected:
            self.learned[key] = found if is_same_mode else "mode"

    def unwind(self, error: BaseException) -> None:
        """Leave all contexts because of an error that is being handled.

        Returns if one of them swallows it; then `rest` goes on after that.

        Raises:
            BaseException: the error, or what leaving a context has raised.
        """
        if not self.contexts:
            raise error
        depth, number, around = self.contexts.pop()
        whole = error.__traceback__
        callers, error.__traceback__ = _parted(whole, depth)
        try:
            with enable_grad() if around.recording else no_grad():
                is_swallowed = around.leave(self.frames[number], error)
        except BaseException as another:
            seen = users_view(another).__traceback__
            another.__traceback__ = _joined(callers, seen)
            self.unwind(another)
            return
        error.__traceback__ = whole
        if not is_swallowed or len(self.levels) <= depth:  # or nothing is known of what comes next
            self.unwind(error)
            return
        *self.levels, last = self.levels[: depth + 1]
        names = [each.manager for each in last.contexts]
        outer = last.contexts[: names.index(around.manager)]
        self.levels.append(last._replace(path=around.after, contexts=outer))

    # --- the rest ---------------------------------------------------------------------------

    def leave(self, levels: Sequence[Level], reason: str, follows: bool) -> None:
        """Leave the program for plain Python.

        Args:
            levels: where that goes on.
            reason: why.
            follows: whether it goes on as the last statement was left.

        Raises:
            Left: always, unless host code has failed: then its error.
        """
        self.left.append(reason if self.error is None else "host code has failed in a context")
        self.levels = list(levels)
        self.raise_error()
        if follows and self.code:
            self.exit = EXITS[self.code - 1], self.frames[levels[-1].number].get("%result")
        raise Left

    def rest(self) -> Any:
        """Run the rest of the region as plain Python; what it gives."""
        self._enter()
        result: Any = None
        is_called = False
        while self.levels:
            depth = len(self.levels) - 1
            level = self.levels.pop()
            self.contexts = [each for each in self.contexts if each[0] < depth]
            frame = self.frames[level.number]
            if is_called and level.target:
                frame[level.target] = result
            left, self.exit = self.exit, None
            observer = self.watch(level, self)
            left = Walker(level.code, level.function, observer).rest(level.path, frame, left)
            if self.is_loop and depth == 0:
                return left
            result, is_called = None if left is None else left[1], True
        return result

    def _enter(self) -> None:
        """Enter the contexts around that the program has not entered."""
        entered = [(depth, each.manager) for depth, _, each in self.contexts]
        self.contexts = []
        for depth, level in enumerate(self.levels):
            for each in level.contexts:
                if each.context is not None and (depth, each.manager) not in entered:
                    each.context.__enter__()
                    self.frames[level.number][each.manager] = each.context.__exit__
                self.contexts.append((depth, level.number, each))

    def seen_in_rest(self, error: BaseException) -> BaseException:
        """An error of the rest, with the calls that were laid out flat."""
        return users_view(error, [level.caller for level in self.levels])


_Traceback = types.TracebackType | None


def _parted(traceback: _Traceback, count: int) -> tuple[list[types.TracebackType], _Traceback]:
    """The first entries of a traceback, and the others."""
    first: list[types.TracebackType] = []
    while traceback is not None and len(first) < count:
        first.append(traceback)
        traceback = traceback.tb_next
    return first, traceback


def _joined(first: list[types.TracebackType], others: _Traceback) -> _Traceback:
    for each in reversed(first):
        others = types.TracebackType(others, each.tb_frame, each.tb_lasti, each.tb_lineno)
    return others
