"""Parts of functions that are compiled while they run: loops, and what a program has left over."""

from __future__ import annotations

import ast
import functools
import time
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dilim.slicing import ends
from dilim.slicing.fragments import Left, calls_super
from dilim.slicing.learning import Learner
from dilim.slicing.liveness import liveness_of
from dilim.slicing.loop_bodies import exits
from dilim.slicing.observers import Frame, Path, Returned
from dilim.slicing.program import Block, Branch, Exit, For, Function, While, With
from dilim.slicing.region import LEFT
from dilim.slicing.swallowing import may_swallow

if TYPE_CHECKING:
    from dilim.slicing.running_parts import Parts


class LoopWatcher(Learner):
    """Watches the loops of one call, and hands one over to machine code when that pays.

    Args:
        code: the function.
        parts: the programs of its parts.
        profile: types of values of the host, to be filled in.

    Attributes:
        seconds: what compiling and the compiled loops took.
        entered: how many compiled loops ran.
    """

    def __init__(self, code: Function, parts: Parts, profile: dict[Any, Any]) -> None:
        super().__init__(profile)
        self._code = code
        self._parts = parts
        self._begun: dict[int, tuple[float, int]] = {}
        self.seconds = 0.0
        self.entered = 0
        self._refused: dict[int, float] = {}

    def watches(self, loop: While | For) -> bool:
        """See `Observer.watches`."""
        # what leads into the loop around it is no part of a loop that stands for itself
        return exits(loop.otherwise) <= {"return"}

    def before_loop(self, loop: While | For, path: Path, frame: Frame) -> bool:
        """See `Observer.before_loop`."""
        if _may_be_swallowed(self._code.body, path, frame):
            return False
        now = time.perf_counter()
        begun, turns = self._begun.get(id(loop), (now, 0))
        self._begun[id(loop)] = begun, turns + 1
        elapsed = now - begun
        if elapsed < self._refused.get(id(loop), 0.0):
            return False
        items = _items_left(loop, frame)
        if isinstance(loop, For) and items is None:
            return False
        seconds = elapsed
        if items is not None and turns:
            seconds = elapsed / turns * len(items)
        try:
            left = self._take_over(loop, frame, items, seconds)
        finally:
            self.seconds += time.perf_counter() - now
        if left is None:
            self._refused[id(loop)] = 2.0 * elapsed
            return False
        del self._begun[id(loop)]
        if left != "end":
            raise Returned(left[1])
        return True

    def _take_over(
        self, loop: While | For, frame: Frame, items: range | None, seconds: float
    ) -> Any:
        """Run the rest of a loop; how it was left, "end" for its end, or None if it was not run."""
        code = code_of_loop(self._code, loop)
        more = {} if items is None else {LEFT: items}
        result = self._run(code, frame, more, seconds)
        frame.pop(LEFT, None)
        return result

    def _run(self, code: Function, frame: Frame, more: Frame, seconds: float) -> Any:
        """Run a part of the function; how it was left, as `_take_over` tells."""
        values = {name: frame[name] for name in code.codes["reads"] if name in frame} | more
        found = self._parts.find(code, values, seconds)
        if found is None:
            return None
        self.entered += 1
        result = self._parts.run(*found, tuple(values.values()), frame)
        return "end" if result is None else result


class RestWatcher(LoopWatcher):
    """Watches what plain Python does after a program was left, and hands it over again.

    Args:
        code: the function.
        parts: the programs of its parts.
        profile: types of values of the host, to be filled in.
        learn: takes over what was shown so far.
    """

    def __init__(
        self, code: Function, parts: Parts, profile: dict[Any, Any], learn: Callable[[], None]
    ) -> None:
        super().__init__(code, parts, profile)
        self._learn = learn

    def before_rest(self, path: Path, frame: Frame) -> Left | None:
        """See `Observer.before_rest`."""
        if not any(path[::2]):
            return None  # nothing was done since the program began that was left
        code = code_of_rest(self._code, path)
        if code is None:
            return None
        left = self._run(code, frame, {}, 0.0)
        return ("return", None) if left == "end" else left

    def _run(self, code: Function, frame: Frame, more: Frame, seconds: float) -> Any:
        if ends.may_be_seen(frame.values()):
            return None
        self._learn()
        return super()._run(code, frame, more, seconds)


def _may_be_swallowed(block: Block, path: Path, frame: Frame) -> bool:
    """Whether a context around a place may swallow an error of it, after which more is seen."""
    for place, name in zip(path[::2], path[1::2], strict=False):
        statement: Any = block[int(place)]
        if isinstance(statement, With):
            leave: Any = frame.get(statement.manager)
            known = leave.args if isinstance(leave, functools.partial) else [leave.__self__]
            if may_swallow(known[0]):
                return True
        block = getattr(statement, str(name))
    return False


def _items_left(loop: While | For, frame: Frame) -> range | None:
    if not isinstance(loop, For):
        return None
    iterator = frame.get(loop.iterator)
    if type(iterator) is not type(iter(range(0))):
        return None
    parts: Any = iterator.__reduce__()
    whole: range = parts[1][0]
    return whole[parts[2] :] if len(parts) > 2 else whole


def code_of_loop(code: Function, loop: While | For) -> Function:
    """A loop as a function of the names that it reads; made once for each."""
    if code.codes.get("part") is loop:
        return code  # it is one already
    code = code.codes.get("whole", code)
    key = ("loop", loop)
    found: Function | None = code.codes.get(key)
    if found is None:
        body: While | For = loop
        if isinstance(loop, For):
            body = replace(loop, items=ast.copy_location(ast.Name(LEFT, ast.Load()), loop.items))
        found = _part(code, [body], liveness_of(code).after[loop])
        found.codes["part"] = body
        _add_reads(found, liveness_of(found).head[body])
        code.codes[key] = found
    return found


def code_of_rest(code: Function, path: Path) -> Function | None:
    """What comes from a statement on, as a function of the names that it reads; made once for each.

    It is None where there is nothing, or where the statement is in a loop or a context.
    """
    body = _following(code.body, path)
    if body is None or all(isinstance(statement, Exit) for statement in body):
        return None
    code = code.codes.get("whole", code)
    key = ("rest", *map(id, body))
    found: Function | None = code.codes.get(key)
    if found is None:
        found = code.codes[key] = _part(code, body, frozenset())
        _add_reads(found, liveness_of(found).before)
    return found


def _following(block: Block, path: Path) -> Block | None:
    place = int(path[0])
    if len(path) == 1:
        return block[place:]
    if not isinstance(block[place], Branch):
        return None
    inner = _following(getattr(block[place], str(path[1])), path[2:])
    return None if inner is None else inner + block[place + 1 :]


def _part(code: Function, body: Block, after: frozenset[str]) -> Function:
    receiver = code.parameters[:1] if calls_super(body) else ()
    part = replace(code, body=body, locals=code.locals | {LEFT}, codes={}, parameters=receiver)
    part.codes["after"], part.codes["whole"] = after, code
    return part


def _add_reads(part: Function, names: frozenset[str]) -> None:
    part.codes["reads"] = tuple(sorted(names.union(part.parameters)))
