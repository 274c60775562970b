"""The slicer: interprets a region of a user's function and builds its two programs.

Values are described in `values`. Statements are taken in order; for each the slicer tries to carry
it out now, on constants and symbolic tensors (`operations`), which adds nodes to the graph. What is
not possible, or not allowed, now is left to the host: the statement becomes part of a *fragment*
that a channel point runs. Control flow is in `branches` and `loops`.
"""

from __future__ import annotations

import ast
import functools
import time
from collections.abc import Callable
from types import CellType
from typing import Any

from dilim.ir.graph import Site
from dilim.slicing import (
    attributes,
    branches,
    choices,
    contexts,
    heap,
    loops,
    made_functions,
    modes,
    operations,
    program,
    scopes,
    splits,
    summaries,
)
from dilim.slicing.errors import (
    TOO_LONG,
    MayBeUnbound,
    OnHost,
    Split,
    Unsliceable,
    placed,
)
from dilim.slicing.interpreter import RESULT, RETURNED, Mark
from dilim.slicing.naming import Naming
from dilim.slicing.numbers import Number
from dilim.slicing.values import UNBOUND, Conflict, Host, Result
from dilim.tensors.sites import standing_at
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor


class Slicer(Naming):
    """Interprets one region; see `Interpreter` for its state."""

    # --- statements -----------------------------------------------------------------------

    def block(self, block: program.Block, attribute: str | None = None) -> None:
        """Interpret statements, as far as they are reached.

        Args:
            block: the statements.
            attribute: of which attribute of the statement at hand they are; None for a function.
        """
        path = self.scope.path
        depth = len(path)
        path += [0] if attribute is None else [attribute, 0]
        at = self.scope.at
        try:
            self.rest(block, 0)
            self.flush()
        finally:
            del path[depth:]
            self.scope.at = at

    def rest(self, block: program.Block, start: int) -> None:
        """Interpret the statements of a block that is being interpreted, from one on."""
        scope = self.scope
        for position in range(start, len(block)):
            scope.path[-1] = position
            scope.at = block[position]
            self.following = block[position + 1] if position + 1 < len(block) else None
            try:
                self.statement(block[position])
            except Split as needed:
                splits.split(self, block, position, needed.name)
                return
            if self.dead:
                return
            leaving = self.leaving()
            if leaving is False:
                continue
            if leaving is not True and position + 1 < len(block):
                rest = functools.partial(self.rest, block, position + 1)
                self.go_on(leaving, rest, block[-1])
            return

    following: program.Statement | None = None

    def ends_with(self, name: str) -> bool:
        """Whether the region ends with the statement after that at hand, which returns a name."""
        following = self.following
        return (
            len(self.scopes) == 1
            and isinstance(following, program.Exit)
            and following.kind == "return"
            and getattr(following.value, "id", None) == name
        )

    def leaving(self) -> Any:
        """Whether the rest of the block is skipped: a bool, or a Number."""
        result: Any = False
        for name in self.scope.flags:
            result = self.either(result, self.env.get(name, False))
        return result

    def either(self, a: Any, b: Any) -> Any:
        """Whether one of two things holds, each a bool or a Number."""
        if a is True or b is False:
            return a
        if b is True or a is False:
            return b
        with no_grad():
            return Number(a.tensor | b.tensor, bool)

    def go_on(
        self, leaving: Number, rest: Callable[[], None], last: program.Statement | None = None
    ) -> None:
        """Interpret what comes next, where no way out was taken.

        Args:
            leaving: whether one was taken, see `leaving`.
            rest: interprets what comes next. There the ways out are known not to be taken, so that
                it asks no more.
            last: see `branch`.
        """

        def others() -> None:
            env = self.env
            taken = {name: env[name] for name in self.scope.flags if env.get(name, False)}
            env.update(dict.fromkeys(taken, False))
            rest()
            env.update({name: flag for name, flag in taken.items() if env.get(name) is False})

        self.branch(leaving, lambda: None, others, last)

    def statement(self, statement: program.Statement) -> None:
        """Interpret one statement.

        Raises:
            Unsliceable: there was no end to it for too long.
        """
        if time.thread_time() > self.deadline:
            raise Unsliceable(TOO_LONG, statement.line)
        scope = self.scope
        site = Site(scope.code.filename, statement.line)
        self.notes.reach(scope.code, statement)
        place = scope.code.filename, statement.line
        if place not in self.names:
            self.names[place] = scope.code.name
            self.places[place] = self.callers()
        with standing_at(site), placed(statement.line):
            match statement:
                case program.Step():
                    self.step(statement)
                case program.Branch():
                    self.flush()
                    self._choose(statement)
                case program.While() | program.For():
                    self.flush()
                    self.loop(statement)
                case program.Exit():
                    self.flush()
                    self._exit(statement)
                case program.With():
                    self.flush()
                    contexts.interpret(self, statement)
                case program.Unit() if not made_functions.define(self, statement):
                    self.on_host(statement, statement.reason)
                    if statement.exits:
                        self.follow_exit()

    def step(self, step: program.Step) -> None:
        """Interpret a statement without control flow."""
        if ("host", step) in self.decisions:
            self.on_host(step, "")
            return
        if step.summary is not None and summaries.summarise(self, step):
            return
        self.current = step
        try:
            ready = operations.prepare(self, step)
        except MayBeUnbound as refusal:
            self.demand(refusal.name, step)
            if not self.dead:
                self.step(step)
            return
        except OnHost as refusal:
            self.on_host(step, refusal.reason)
            return
        self.flush_effects()
        top = self.step_frame = self.trace.top
        mark = Mark(self, top)
        try:
            ready()
            if self.is_pending and mark.has_effects():
                mark.undo()
                self.flush()
                self.step(step)
                return
        except OnHost as refusal:
            mark.undo()
            self.on_host(step, refusal.reason)
            return
        if mark.has_grown():
            self.notes.graph(self.scope.code, step.line)
        self._note_views(step)

    def _note_views(self, step: program.Step) -> None:
        """Take note of who made tensors that share their memory with others, and where."""
        for name in step.writes:
            value = self.env.get(name)
            if not isinstance(value, Tensor) or not self.trace.owns(value):
                continue
            if self.entry.slot(value) is not None:  # one of several views that are given
                continue
            if value._is_view or value._data.cell.variable is not None:
                self.made_by.setdefault(id(value), step)
                self.objects.made_in.setdefault(id(value), self.trace.top)
                self.kept.append(value)
        self._end_names(step)

    def _end_names(self, step: program.Step) -> None:
        """Note what the host has of names that a step on this side ends or binds anew."""
        number = self.scope.number
        for name in step.writes:
            if self.env.get(name, UNBOUND).__class__ is not Host:
                self.keeping.end(number, name)
        if any(self.env.get(name).__class__ is Result for name in step.writes):
            return  # what it reads is read at the end
        live = self.scope.live.after.get(step, step.reads)
        for name in step.reads:
            if name[0] == "%" and name not in live:
                self.keeping.end(number, name)

    def _choose(self, statement: program.Branch) -> None:
        test = self.condition(statement.test)
        if isinstance(test, bool):
            side = "then" if test else "otherwise"
            self.block(getattr(statement, side), side)
            return
        self.notes.graph(self.scope.code, statement.line)
        self.branch(
            test,
            lambda: self.block(statement.then, "then"),
            lambda: self.block(statement.otherwise, "otherwise"),
            statement,
        )

    def _exit(self, statement: program.Exit) -> None:
        if statement.kind != "return":
            name = f"%{statement.kind}"
            flag = next(f for f in reversed(self.scope.flags) if f.startswith(name))
            contexts.leave_on_the_way(self, statement.kind)
            self.env[flag] = True
            return
        value: Any = None
        atom: Any = None
        if statement.value is not None:
            value, atom = self.value_or_host(statement.value)
            if value.__class__ is Conflict:
                raise Unsliceable(value.reason, statement.line)
            if value is UNBOUND:
                return
        if len(self.scopes) == 1:
            contexts.leave_on_the_way(self, "return", value)
            self.finish(value, atom)
            self.dead = True
        else:
            if value.__class__ is Host:
                self.move(self.scope, atom.id, self.scope, RESULT)
            self.env[RESULT] = value
            contexts.leave_on_the_way(self, "return", value)
        self.env[RETURNED] = True

    def follow_exit(self) -> None:
        """Leave as a statement on the host was left: by return, break, continue, or not at all."""
        if any(known.is_of_host for known in self.scope.contexts):
            raise Unsliceable("a statement of the host may leave a context by return or the like")
        code = self.exit_code()
        for number, kind in ((2, "break"), (3, "continue")):
            flag = next((f for f in reversed(self.scope.flags) if f.startswith(f"%{kind}")), None)
            if flag is not None:
                with no_grad():
                    self.env[flag] = Number(code == number, bool)
        with no_grad():
            returned = Number(code == 1, bool)
        self.branch(returned, self._return_from_host, lambda: None)

    def _return_from_host(self) -> None:
        self.env[RESULT] = Host()
        if len(self.scopes) == 1:
            self.finish(Host(), ast.Name(RESULT, ast.Load()))
            self.dead = True
        self.env[RETURNED] = True

    # --- parts in modules of their own -----------------------------------------------

    def original(self, place: tuple[int, Any]) -> Any:
        """What was at a place of the heap at entry."""
        owner, key = self.owners[place[0]], place[1]
        if place in self.modes:
            return modes.at_entry(self, place)
        try:
            if owner.__class__ in (list, dict):
                return self.outside(owner[key], heap.path(self, owner, key))
            if owner.__class__ is CellType:
                return self.outside(owner.cell_contents, heap.path(self, owner, key))
            return attributes.of_instance(self, owner, key)()
        except OnHost as refusal:
            raise Unsliceable(refusal.reason) from None

    def condition(self, atom: ast.expr) -> bool | Number:
        """The truth of a value: known now, or a bool of the graph."""
        value, place = self.value_or_host(atom)
        try:
            if value.__class__ is not Host:
                return choices.truth(self, value)
        except OnHost:
            self.hand_over(self.scope, place.id, value)
            self.env[place.id] = Host()
        return self.receive_truth(place.id)

    def branch(
        self,
        test: Number,
        then: Callable[[], None],
        otherwise: Callable[[], None],
        last: program.Statement | None = None,
        again: bool = False,
    ) -> None:
        """See `branches.branch`.

        Args:
            test: whether the first side is taken.
            then: interprets the first side.
            otherwise: interprets the second.
            last: the statement after which the sides meet; by default that at hand.
            again: whether they meet before it.
        """
        last = self.scope.at if last is None else last
        wanted = [scope.names_after(scope.at) for scope in self.scopes[:-1]]
        names = self.scope.names_after(last)
        wanted.append(names.union(scopes.reads(last)) if again and last is not None else names)
        branches.branch(self, test, then, otherwise, wanted)

    def unless(self, test: Number, leave: Callable[[], None]) -> None:
        """See `branches.unless`."""
        branches.unless(self, test, leave)

    def loop(self, statement: program.While | program.For) -> None:
        """See `loops.loop`."""
        loops.loop(self, statement)
