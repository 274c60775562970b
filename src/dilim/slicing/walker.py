"""Runs a function from its normal form, from its beginning or from any statement.

What no observer wants to look at is compiled in one piece, so that it runs at the speed of the
function itself. Only loops that are watched, and what holds them, are walked.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Sequence
from typing import Any, TypeGuard

from dilim.slicing.fragments import EXHAUSTED, Fragment, Fragments, Left
from dilim.slicing.observers import Frame, Observer, Path, Returned
from dilim.slicing.program import Block, Branch, For, Function, Statement, While, With
from dilim.slicing.scopes import inner_blocks
from dilim.slicing.tracebacks import users_view


class Walker:
    """Runs one function object.

    Args:
        function: its normal form.
        f: the function.
        observer: what looks on; by default nobody does.
    """

    def __init__(
        self, function: Function, f: types.FunctionType, observer: Observer | None = None
    ) -> None:
        self._function = function
        self._observer = observer or Observer()
        self._fragments = Fragments(function, f, self._observer.after_step)
        self._plans: dict[tuple[int, int, bool, bool], tuple[Fragment, ...]] = {}
        self._walked: dict[int, bool] = {}
        self._watched: set[int] = set()
        self._holding = _holding_loops(function)

    def run(self, frame: Frame) -> Any:
        """Runs the function on a frame that holds its arguments; gives what it returns."""
        return self.resume((0,), frame)

    def resume(self, path: Path, frame: Frame) -> Any:
        """Runs the rest of the function.

        Args:
            path: the statement that comes next: its number in the body; or the number of one that
                holds it, the name of the block in that, the number in this, and so on:
                ``(3, "body", 0)``. A number may be that after the last statement. Loops on the
                path go on after their present turn; ``with`` statements on it have been entered.
            frame: the variables, with what runs on the path: for each loop over items its iterator
                (under ``For.iterator``), for each ``with`` the bound ``__exit__`` of the context
                (under ``With.manager``). At the end it is of no more use.

        Returns:
            What the function returns.
        """
        left = self._resume(self._function.body, path, (), frame, False, True)
        return None if left is None else left[1]

    def rest(self, path: Path, frame: Frame, left: Left | None = None) -> Left | None:
        """As `resume`, but the frame is brought up to date, and the result tells how it ended.

        It begins as the statement before was left, if that is given. The result is None at the end.
        """
        return self._resume(self._function.body, path, (), frame, False, False, left)

    # Blocks

    def _block(
        self,
        block: Block,
        path: Path,
        frame: Frame,
        inside: bool,
        start: int = 0,
        final: bool = False,
    ) -> Left | None:
        """Runs a block from a statement on.

        Args:
            block: a block of the function.
            path: where it stands.
            frame: the variables.
            inside: whether a context around it may swallow errors.
            start: the number of the statement.
            final: whether nobody looks at the frame afterwards.
        """
        key = (id(block), start, inside, final)
        plan = self._plans.get(key)
        if plan is None:
            plan = self._plans[key] = tuple(self._plan(block, path, start, inside, final))
        for action in plan:
            left: Left | None = action(frame)
            if left is not None:
                return left
        return None

    def _plan(
        self, block: Block, path: Path, start: int, inside: bool, final: bool
    ) -> list[Fragment]:
        actions: list[Fragment] = []
        for group, statement, place in self._groups(block, start):
            if isinstance(statement, Branch):
                actions.append(self._branch(group, statement, (*path, place), inside))
                continue
            if group:
                actions.append(self._fragment(group, inside, final and statement is None))
            if statement is not None:
                actions.append(self._compound(statement, (*path, place), inside))
        return actions

    def _groups(
        self, block: Block, start: int
    ) -> list[tuple[list[Statement], Statement | None, int]]:
        """Statements that can run in one piece, the one after them that cannot, and its place."""
        groups: list[tuple[list[Statement], Statement | None, int]] = []
        group: list[Statement] = []
        for place in range(start, len(block)):
            if self._is_walked(block[place]):
                groups.append((group, block[place], place))
                group = []
            else:
                group.append(block[place])
        return [*groups, (group, None, len(block))]

    def _is_walked(self, statement: Statement) -> bool:
        """Whether a statement holds a loop that is watched."""
        if id(statement) not in self._holding:
            return False
        known = self._walked.get(id(statement))
        if known is None:
            watched = _is_loop(statement) and self._observer.watches(statement)
            if watched:
                self._watched.add(id(statement))
            inside = [inner for block in inner_blocks(statement) for inner in block]
            known = self._walked[id(statement)] = watched | any(map(self._is_walked, inside))
        return known

    def _fragment(self, group: Sequence[Statement], inside: bool, last: bool) -> Fragment:
        observed = self._observer.wants_steps
        return self._fragments.run(group, keep=not last, guarded=inside, observed=observed)

    def _compound(self, statement: Statement, path: Path, inside: bool) -> Fragment:
        if isinstance(statement, While):
            return lambda frame: self._while(statement, path, frame, inside)
        if isinstance(statement, For):
            return lambda frame: self._for(statement, path, frame, inside)
        return lambda frame: self._with(statement, path, frame)  # type: ignore[arg-type]

    # Statements with blocks

    def _branch(
        self, group: Sequence[Statement], branch: Branch, path: Path, inside: bool
    ) -> Fragment:
        decide = self._decide(group, branch, inside)
        then_path, else_path = (*path, "then"), (*path, "otherwise")

        def action(frame: Frame) -> Left | None:
            truth = decide(frame)
            if truth is True:
                return self._block(branch.then, then_path, frame, inside)
            if truth is False:
                return self._block(branch.otherwise, else_path, frame, inside)
            return truth  # type: ignore[no-any-return]

        return action

    def _decide(
        self, group: Sequence[Statement], statement: Branch | While, inside: bool
    ) -> Fragment:
        return self._fragments.decide(
            group,
            statement.test,
            statement.at or statement.test,
            guarded=inside,
            observed=self._observer.wants_steps,
        )

    def _while(self, loop: While, path: Path, frame: Frame, inside: bool) -> Left | None:
        decide = self._decide(loop.before, loop, inside)
        ask = self._asking(loop)
        body_path = (*path, "body")
        while True:
            if ask is not None:
                taken = ask(loop, path, frame)
                if taken is not None:
                    return taken or None
            if not decide(frame):
                return self._block(loop.otherwise, (*path, "otherwise"), frame, inside)
            left = self._block(loop.body, body_path, frame, inside)
            if left is not None and left[0] != "continue":
                return None if left[0] == "break" else left

    def _for(self, loop: For, path: Path, frame: Frame, inside: bool) -> Left | None:
        self._fragments.begin(loop)(frame)
        items = getattr(loop.items, "id", "")
        if items.startswith("%"):
            del frame[items]
        return self._turns(loop, path, frame, inside)

    def _turns(self, loop: For, path: Path, frame: Frame, inside: bool) -> Left | None:
        """The turns of a loop whose iterator is in the frame."""
        body_path = (*path, "body")
        # The item is taken by the piece that begins the body.
        group, _, start = self._groups(loop.body, 0)[0]
        turn = self._fragments.turn(
            loop, group, guarded=inside, observed=self._observer.wants_steps
        )
        whole = start == len(loop.body)
        ask = self._asking(loop)
        while True:
            if ask is not None:
                taken = ask(loop, path, frame)
                if taken is not None:
                    frame.pop(loop.iterator, None)
                    return taken or None
            left: Left | None = turn(frame)
            if left is None and not whole:
                left = self._block(loop.body, body_path, frame, inside, start)
            if left is None or left[0] == "continue":
                continue
            frame.pop(loop.iterator, None)
            if left == EXHAUSTED:
                return self._block(loop.otherwise, (*path, "otherwise"), frame, inside)
            return None if left[0] == "break" else left

    def _asking(
        self, loop: While | For
    ) -> Callable[[While | For, Path, Frame], Left | tuple[()] | None] | None:
        """What asks the observer of a loop, if it watches it.

        The answer is None if it leaves the loop alone, else how the loop was left: () at its end.
        """
        if id(loop) not in self._watched:
            return None
        before_loop = self._observer.before_loop

        def ask(loop: While | For, path: Path, frame: Frame) -> Left | tuple[()] | None:
            try:
                return () if before_loop(loop, path, frame) else None
            except Returned as returned:
                return "return", returned.value

        return ask

    def _with(self, statement: With, path: Path, frame: Frame) -> Left | None:
        self._fragments.enter(statement)(frame)
        body = (*path, "body")
        return self._within(
            statement, frame, lambda: self._block(statement.body, body, frame, True)
        )

    def _within(
        self, statement: With, frame: Frame, body: Callable[[], Left | None]
    ) -> Left | None:
        """Runs a body in a context that has been entered, and leaves it."""
        leave = self._fragments.leave(statement)
        try:
            left = body()
        except BaseException as error:
            if leave(frame, users_view(error)):
                return None
            raise
        leave(frame, None)
        return left

    # In the middle

    def _resume(
        self,
        block: Block,
        path: Path,
        before: Path,
        frame: Frame,
        inside: bool,
        final: bool,
        first: Left | None = None,
    ) -> Left | None:
        """Runs a block from the statement on that a path leads to, or goes on as that was left."""
        place = path[0]
        if not isinstance(place, int):
            raise TypeError(f"resume: expected a statement's number in the path, got {place!r}")
        if len(path) == 1:
            return first or self._from(block, (*before, place), frame, inside, final)
        statement, attribute, rest = block[place], str(path[1]), path[2:]
        here = (*before, place)
        inner: Block = getattr(statement, attribute)

        def within(inside: bool) -> Left | None:
            return self._resume(inner, rest, (*here, attribute), frame, inside, False, first)

        match statement:
            case With():
                left = self._within(statement, frame, lambda: within(True))
            case While() | For() if attribute != "otherwise":
                left = self._rest_of_loop(statement, attribute, here, frame, inside, within)
            case _:
                left = within(inside)
        return left or self._from(block, (*before, place + 1), frame, inside, final)

    def _from(
        self, block: Block, path: Path, frame: Frame, inside: bool, final: bool
    ) -> Left | None:
        """Runs a block from the statement on that a path leads to."""
        left = self._observer.before_rest(path, frame)
        place: Any = path[-1]
        return left or self._block(block, path[:-1], frame, inside, place, final)

    def _rest_of_loop(
        self,
        loop: While | For,
        attribute: str,
        path: Path,
        frame: Frame,
        inside: bool,
        rest: Callable[[bool], Left | None],
    ) -> Left | None:
        """Runs the rest of the present turn of a loop, then the others."""
        self._is_walked(loop)
        left = rest(inside)
        if left is None and attribute == "before" and isinstance(loop, While):
            if not self._decide((), loop, inside)(frame):
                return self._block(loop.otherwise, (*path, "otherwise"), frame, inside)
            left = self._block(loop.body, (*path, "body"), frame, inside)
        if left is None or left[0] == "continue":
            if isinstance(loop, While):
                return self._while(loop, path, frame, inside)
            return self._turns(loop, path, frame, inside)
        if isinstance(loop, For):
            frame.pop(loop.iterator, None)
        return None if left[0] == "break" else left


def _is_loop(statement: Statement) -> TypeGuard[While | For]:
    return isinstance(statement, While) or (
        isinstance(statement, For) and not statement.from_comprehension
    )


def _holding_loops(function: Function) -> set[int]:
    """The identities of the statements of a function that are loops or hold some."""
    known: set[int] | None = function.codes.get("loops")
    if known is None:
        known = function.codes["loops"] = set()
        _add_holding(function.body, known)
    return known


def _add_holding(block: Block, found: set[int]) -> bool:
    any_holds = False
    for statement in block:
        inside = [_add_holding(inner, found) for inner in inner_blocks(statement)]
        if _is_loop(statement) or any(inside):
            found.add(id(statement))
            any_holds = True
    return any_holds
