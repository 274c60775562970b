"""What the program has changed, brought up to date where the host can see it.

Attributes, gradients and tensors that the host has are kept by the graph program. They are written
back before host code that may look at them; before host code and operations that may fail, only if
they do.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

from dilim.slicing import heap, numbers, shown, surprises
from dilim.slicing.actions import TRIED, WRITE, Action
from dilim.slicing.errors import OnHost
from dilim.slicing.interpreter import Interpreter, Scope
from dilim.slicing.numbers import Number
from dilim.slicing.shown import GRAD
from dilim.slicing.tracebacks import Caller
from dilim.tensors import control
from dilim.tensors.cells import Frame
from dilim.tensors.tensor import Tensor


class Showing(Interpreter):
    """The part of the slicer that writes back."""

    unless: Callable[[Number, Callable[[], None]], None]
    leaving: Callable[[], Any]

    def action(self, letter: str) -> Action:
        """A new action of the host."""
        action = Action(f"{letter}{len(self.actions)}", self.callers())
        action.prelude += self.keeping.release()
        self.actions.append(action)
        return action

    def take(self, action: Action) -> None:
        """Make an action one of the region's, named anew: there may be others since it was made."""
        action.channel = f"{action.channel[0]}{len(self.actions)}"
        self.actions.append(action)

    def callers(self) -> tuple[Caller, ...]:
        """The calls around the statement at hand."""
        return tuple(map(_caller, self.scopes[:-1]))

    def write_back(self, action: Action, *, now: bool = False) -> list[str]:
        """Code that brings attributes, gradients and tensors of the host up to date.

        Args:
            action: what it is for.
            now: whether it is only for this action; else what the host may see already is written
                before it, where the host does not.
        """
        lines: list[str] = []
        asks = asks_gradient(action)
        unsure: dict[int, tuple[Number, list[shown.Key]]] = {}
        for key, value in list(shown.values(self)):
            tells_apart = asks and key[1] == GRAD
            truth = shown.is_seen(self, key, value, is_same=tells_apart)
            if truth is True:
                continue
            if truth.__class__ is Number and not now:
                unsure.setdefault(id(truth), (truth, []))[1].append(key)
            else:
                lines.append(self._written(key, value, action, asks))
                self.seen[key] = value
                self.shown.pop(key, None)  # of None, for one, there are not two to be told apart
        for truth, keys in unsure.values():
            self._write_where_unseen(truth, keys)
        if now:  # where an error is raised, all is counted that may have been written
            counts = self._counts({True: ""}.get)
        else:
            if not action.is_last:
                self._count_where_written()
            counts = self.count_writes(action)
        return counts + self.objects.refresh(action) + lines + self.tapes.releases()

    def _written(self, key: shown.Key, value: Any, action: Action, asks: bool) -> str:
        """Code that puts a value at its place."""
        if key in self.heap:
            text = self.objects.expression(value, action)
            return heap.written(self, self.owners[key[0]], key[1], text)
        place = self.objects.expression(self.leaves[key[0]], action)
        with self.objects.kept(asks):
            text = self.objects.expression(value, action)
        return f"R.set({place}, 'grad', {text})"

    def _write_where_unseen(self, truth: Number, keys: list[shown.Key]) -> None:
        """Bring places up to date where the host does not see them as they are."""

        def write() -> None:
            action = self.action(WRITE)
            found = dict(shown.values(self))
            action.lines += [self._written(key, found[key], action, False) for key in keys]
            self._send(action)

        self.unless(truth, write)
        found = dict(shown.values(self))
        self.shown |= {key: (found[key], True) for key in keys}

    def show(self) -> None:
        """Let the host see all as it is now: code of its objects may look."""
        action = Action(f"{WRITE}{len(self.actions)}", self.callers())
        action.lines += self.write_back(action)
        if action.lines:
            self.take(action)
            self._send(action)

    def count_writes(self, action: Action) -> list[str]:
        """Code that counts writes into memory that the host can see."""
        return self._counts(lambda x: "" if x is True else f"if {action.send(x.tensor)}: ")

    def _counts(self, condition: Callable[[Any], str | None]) -> list[str]:
        """Code that counts writes.

        Args:
            condition: gives code that comes before, for what says whether there was one; None for
                what is not counted.
        """
        paths: dict[str, list[str]] = {}
        for cell, flag in list(self.trace.uncounted.items()):
            told = condition(flag)
            if told is not None:
                paths.setdefault(told, []).append(self.entry.memory(cell))
                del self.trace.uncounted[cell]
        return [f"{told}R.count_writes({tuple(sorted(x))!r})" for told, x in paths.items()]

    def _count_where_written(self) -> None:
        """Count what may have been written or not, before an action that takes no note of it."""

        def count(lines: list[str]) -> None:
            action = self.action(WRITE)
            action.lines += lines
            self._send(action)

        for flag in {id(x): x for x in self.trace.uncounted.values() if x is not True}.values():
            counted = functools.partial(count, self._counts({flag: ""}.get))
            self.unless(numbers.opposite(flag), counted)

    def before_failure(self, is_fine: Callable[[], Tensor | None]) -> None:
        """An operation follows that may fail: what is written before must be seen if it does.

        Args:
            is_fine: gives whether it does not fail, if that can be told before.
        """
        if any(known.swallows for scope in self.scopes for known in scope.contexts):
            raise OnHost("it may fail in a context that may swallow errors")
        go_back = self.as_shown()
        action = Action(f"{WRITE}{len(self.actions)}", self.callers())
        action.lines += self.write_back(action, now=True)
        if not action.lines:
            return
        self.take(action)
        fine = is_fine() if action.sent else None
        if fine is not None:
            control.cond_in(self.trace, fine, lambda: None, lambda: self._send(action))
            go_back()
            return
        self._send(action)
        if self.trace.top is not self.step_frame:
            go_back()  # library code is inside a branch or loop of its own

    def refresh(self, frame: Frame | None = None) -> None:
        """Let tensors that the host has show what was written into them; see `Objects.refresh`."""
        if self.objects.stale(frame):
            action = self.action(WRITE)
            action.lines += self.objects.refresh(action, frame)
            self._send(action)

    def refresh_made(self, go_on: Callable[[Number, Callable[[], None]], None]) -> None:
        """The same at the end of a side or turn, for what it has made: later nobody can look at it.

        Where a way out was taken before, the host may not have been given any of it.

        Args:
            go_on: interprets what comes next, where the way out was not taken.
        """
        frame = self.trace.top
        if not self.objects.stale(frame):
            return
        leaving = self.leaving()
        if leaving is False:
            self.refresh(frame)
        elif leaving is not True:
            go_on(leaving, lambda: self.refresh(frame))

    def release(self) -> None:
        """Use up on the host what the graph has used up of the tape that it has."""
        lines = self.tapes.releases()
        if lines:
            action = self.action(WRITE)
            action.lines += lines
            self._send(action)

    def _send(self, action: Action) -> None:
        control.send_in(self.trace, action.channel, action.sent, quiet=True)

    def as_shown(self) -> Callable[[], None]:
        """What makes the host see again what it sees now."""
        seen, held = (dict(self.seen), dict(self.shown)), dict(self.objects.held)
        uncounted = dict(self.trace.uncounted)

        def go_back() -> None:
            self.seen, self.shown = seen
            self.objects.held, self.trace.uncounted = held, uncounted

        return go_back

    def write_without_sending(self, action: Action) -> list[str] | None:
        """As `write_back`, where that takes no values of the graph; None where it does."""
        go_back, tried = self.as_shown(), action.copied()
        lines = self.write_back(tried, now=True)
        if len(tried.sent) > len(action.sent):
            go_back()
            return None
        action.prelude = tried.prelude
        return lines

    def raise_if_failed(self) -> None:
        """Where host code that sees nothing has failed, bring all up to date before it raises."""
        action = self.action(TRIED)
        action.lines.append("v[0][()] = R.error is None")
        (truth,) = surprises.receive(self, action, [surprises.TRUTH])
        self.unless(Number(truth, bool), self._raise)

    def _raise(self) -> None:
        action = self.action(WRITE)
        action.lines += [*self.write_back(action), "R.raise_error()"]
        self._send(action)
        self.end_here()


def asks_gradient(action: Action) -> bool:
    """Whether statements of an action ask for the attribute ``grad``, other than in functions."""
    nodes = (getattr(each, "node", None) for each in action.statements)
    return any(node is not None and _names_gradient(node) for node in nodes)


@functools.lru_cache(maxsize=4096)
def _names_gradient(node: ast.AST) -> bool:
    return any("grad" in (getattr(x, "attr", ""), getattr(x, "value", "")) for x in ast.walk(node))


def _caller(scope: Scope) -> Caller:
    """The call at which a scope stands."""
    line: int = getattr(scope.at, "line", 0)
    call: Any = getattr(getattr(scope.at, "node", None), "value", None)
    if getattr(call, "lineno", None) == line:
        return scope.code.name, scope.code.filename, line, call
    return scope.code.name, scope.code.filename, line
