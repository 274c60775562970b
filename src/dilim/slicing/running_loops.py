"""Loops that are compiled while they run."""

from __future__ import annotations

import ast
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from dilim.slicing.learning import Learner
from dilim.slicing.liveness import liveness_of
from dilim.slicing.loop_bodies import exits
from dilim.slicing.program import For, Function, While
from dilim.slicing.region import LEFT, Region
from dilim.slicing.walker import Frame, Path, Returned

Compile = Callable[[Function, dict[str, Any], frozenset[str], float], tuple[Region, Any] | None]


class LoopWatcher(Learner):
    """Watches the loops of one call, and hands one over to machine code when that pays.

    Args:
        code: the function.
        compile: gives a region and what its gate gave, or None: from the code of the loop, the
            values of names, the names that are read after it, and the seconds that the rest takes
            as it is.
        profile: types of values of the host, to be filled in.

    Attributes:
        seconds: what compiling and the compiled loops took.
    """

    def __init__(
        self,
        code: Function,
        compile: Compile,
        profile: dict[Any, Any],
    ) -> None:
        super().__init__(profile)
        self._code = code
        self._compile = compile
        self._begun: dict[int, tuple[float, int]] = {}
        self.seconds = 0.0
        self._refused: dict[int, float] = {}

    def watches(self, loop: While | For) -> bool:
        """See `Observer.watches`."""
        # what leads into the loop around it is no part of a loop that stands for itself
        return exits(loop.otherwise) <= {"return"}

    def before_loop(self, loop: While | For, path: Path, frame: Frame) -> bool:
        """See `Observer.before_loop`."""
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
        values = {name: frame[name] for name in code.codes["reads"] if name in frame}
        if items is not None:
            values[LEFT] = items
        found = self._compile(code, values, code.codes["after"], seconds)
        if found is None:
            return None
        region, given = found
        result = region.run(given, tuple(values.values()), frame)
        frame.pop(LEFT, None)
        return "end" if result is None else result


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
    key = ("loop", loop)
    found: Function | None = code.codes.get(key)
    if found is None:
        body: While | For = loop
        if isinstance(loop, For):
            body = replace(loop, items=ast.copy_location(ast.Name(LEFT, ast.Load()), loop.items))
        found = replace(code, body=[body], locals=code.locals | {LEFT}, codes={}, parameters=())
        found.codes["after"] = liveness_of(code).after[loop]
        found.codes["reads"] = tuple(sorted(liveness_of(found).head[body]))
        code.codes[key] = found
    return found
