"""What the program has changed, brought up to date where the host can see it.

Attributes, gradients and tensors that the host has are kept by the graph program. They are written
back before host code that may look at them; before host code and operations that may fail, only if
they do.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import Any

from dilim.slicing import heap, surprises
from dilim.slicing.actions import TRIED, WRITE, Action
from dilim.slicing.errors import OnHost
from dilim.slicing.interpreter import Interpreter
from dilim.slicing.numbers import Number
from dilim.slicing.values import UNBOUND, Host
from dilim.tensors import control
from dilim.tensors.tensor import Tensor


class Showing(Interpreter):
    """The part of the slicer that writes back."""

    unless: Callable[[Number, Callable[[], None]], None]

    def action(self, letter: str) -> Action:
        """A new action of the host."""
        action = Action(f"{letter}{len(self.actions)}", self.callers())
        action.prelude += self.keeping.release()
        self.actions.append(action)
        return action

    def callers(self) -> tuple[tuple[str, str, int], ...]:
        """Name, file and line of the calls around the statement at hand."""
        return tuple(
            (scope.code.name, scope.code.filename, getattr(scope.at, "line", 0))
            for scope in self.scopes[:-1]
        )

    def write_back(self, action: Action) -> list[str]:
        """Code that brings attributes, gradients and tensors of the host up to date."""
        lines: list[str] = []
        for key in self._new_attributes():
            value = self.seen[key] = self.heap[key]
            shown = self.objects.expression(value, action)
            lines.append(heap.written(self, self.owners[key[0]], key[1], shown))
        for number in self._new_grads():
            leaf = self.leaves[number]
            place = self.objects.expression(leaf, action)
            with self.objects.kept(asks_gradient(action)):
                shown = self.objects.expression(leaf.grad, action)
            lines.append(f"R.set({place}, 'grad', {shown})")
            self.seen[number, "grad"] = leaf.grad
        return self.count_writes() + self.objects.refresh(action) + lines + self.tapes.releases()

    def show(self) -> None:
        """Let the host see all as it is now: code of its objects may look."""
        action = Action(f"{WRITE}{len(self.actions)}", self.callers())
        action.lines += self.write_back(action)
        if action.lines:
            self.actions.append(action)
            self._send(action)

    def count_writes(self) -> list[str]:
        """Code that counts writes into memory that the host can see."""
        paths = sorted(self.entry.memory(cell) for cell in self.trace.uncounted)
        self.trace.uncounted.clear()
        return [f"R.count_writes({tuple(paths)!r})"] if paths else []

    def before_failure(self, is_fine: Callable[[], Tensor | None]) -> None:
        """An operation follows that may fail: what is written before must be seen if it does.

        Args:
            is_fine: gives whether it does not fail, if that can be told before.
        """
        if any(known.swallows for scope in self.scopes for known in scope.contexts):
            raise OnHost("it may fail in a context that may swallow errors")
        go_back = self.shown()
        action = Action(f"{WRITE}{len(self.actions)}", self.callers())
        action.lines += self.write_back(action)
        if not action.lines:
            return
        self.actions.append(action)
        fine = is_fine() if action.sent else None
        if fine is not None:
            control.cond_in(self.trace, fine, lambda: None, lambda: self._send(action))
            go_back()
            return
        self._send(action)
        if self.trace.top is not self.step_frame:
            go_back()  # library code is inside a branch or loop of its own

    def refresh(self) -> None:
        """Let tensors that the host has show what was written into them."""
        action = self.action(WRITE)
        action.lines += self.objects.refresh(action)
        self._send(action)

    def _send(self, action: Action) -> None:
        control.send_in(self.trace, action.channel, action.sent, quiet=True)

    def shown(self) -> Callable[[], None]:
        """What makes the host see again what it sees now."""
        seen, held = dict(self.seen), dict(self.objects.held)
        uncounted = set(self.trace.uncounted)

        def go_back() -> None:
            self.seen, self.objects.held, self.trace.uncounted = seen, held, uncounted

        return go_back

    def write_without_sending(self, action: Action) -> list[str] | None:
        """As `write_back`, where that takes no values of the graph; None where it does."""
        go_back, tried = self.shown(), action.copied()
        lines = self.write_back(tried)
        if len(tried.sent) > len(action.sent):
            go_back()
            return None
        action.prelude = tried.prelude
        return lines

    def _new_attributes(self) -> list[tuple[int, Any]]:
        """Places of the heap that the host does not see as they are."""
        return [
            key
            for key, value in self.heap.items()
            if value.__class__ is not Host and self.seen.get(key, UNBOUND) is not value
        ]

    def _new_grads(self) -> list[int]:
        """The leaves whose gradients the host does not see as they are."""
        found = []
        for number, leaf in self.leaves.items():
            # a gradient that is forgotten first may be anything at entry
            at_entry = UNBOUND if number in self.cleared else self.initial_grads[number][1]
            is_new = self.seen.get((number, "grad"), at_entry) is not leaf.grad
            if is_new and not (self.trace.owns(leaf) and not self.objects.has(leaf)):
                found.append(number)
        return found

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
    nodes = (x for each in action.statements for x in ast.walk(getattr(each, "node", ast.Pass())))
    return any("grad" in (getattr(x, "attr", ""), getattr(x, "value", "")) for x in nodes)
