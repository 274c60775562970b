"""The slicer: interprets a region of a user's function and builds its two programs.

Values are described in `values`. Statements are taken in order; for each the slicer tries to carry
it out now, on constants and symbolic tensors (`operations`), which adds nodes to the graph. What is
not possible, or not allowed, now is left to the host: the statement becomes part of a *fragment*
that a channel point runs. Control flow is in `branches` and `loops`.
"""

from __future__ import annotations

import ast
import builtins
import functools
import time
from collections.abc import Callable
from typing import Any, Final

from dilim.ir.graph import Site
from dilim.slicing import (
    attributes,
    branches,
    loops,
    numbers,
    operations,
    program,
    scopes,
)
from dilim.slicing.errors import OnHost, Restart, Unsliceable, placed
from dilim.slicing.hosting import Hosting
from dilim.slicing.interpreter import RESULT, RETURNED, Mark
from dilim.slicing.numbers import Number
from dilim.slicing.operators import PLAIN
from dilim.slicing.values import UNBOUND, Choice, Conflict, Host, may_be_unbound
from dilim.tensors.sites import standing_at
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

TOO_LONG: Final = "slicing takes too long"
_READ = "%read"


class Slicer(Hosting):
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
            self._rest(block, 0)
        finally:
            del path[depth:]
            self.scope.at = at

    def _rest(self, block: program.Block, start: int) -> None:
        scope = self.scope
        for position in range(start, len(block)):
            scope.path[-1] = position
            scope.at = block[position]
            self.statement(block[position])
            if self.dead:
                return
            leaving = self.leaving()
            if leaving is False:
                continue
            if leaving is not True and position + 1 < len(block):
                rest = functools.partial(self._rest, block, position + 1)
                self.branch(leaving, lambda: None, rest, block[-1])
            return

    def leaving(self) -> Any:
        """Whether the rest of the block is skipped: a bool, or a Number."""
        result: Any = False
        for name in self.scope.flags:
            flag = self.env.get(name, False)
            if flag is True:
                return True
            if flag is not False:
                result = flag if result is False else self._either(result, flag)
        return result

    def _either(self, a: Number, b: Number) -> Number:
        return Number(a.tensor | b.tensor, bool)

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
                    self._with(statement)
                case program.Unit():
                    self.on_host(statement, statement.reason)
                    if statement.exits:
                        self._follow_exit()

    def step(self, step: program.Step) -> None:
        """Interpret a statement without control flow."""
        if ("host", step) in self.decisions:
            self.on_host(step, "")
            return
        self.current = step
        try:
            ready = operations.prepare(self, step)
        except OnHost as refusal:
            self.on_host(step, refusal.reason)
            return
        except (Unsliceable, Restart, branches.LoopSignal):
            raise
        except Exception as error:  # the same happens on the host, where it can be seen
            self.on_host(step, f"{type(error).__name__}: {error}")
            return
        self.flush()
        top = self.step_frame = self.trace.top
        mark = Mark(self, top)
        try:
            ready()
        except OnHost as refusal:
            mark.undo()
            self.on_host(step, refusal.reason)
            return
        except (Unsliceable, Restart, branches.LoopSignal):
            raise
        except Exception as error:  # the same happens on the host, where it can be seen
            mark.undo()
            self.on_host(step, f"{type(error).__name__}: {error}")
            return
        if mark.has_grown():
            self.notes.graph(self.scope.code, step.line)

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
            self.env[flag] = True
            return
        value: Any = None
        atom: Any = None
        if statement.value is not None:
            value, atom = self.value_or_host(statement.value)
            if value.__class__ is Conflict:
                raise Unsliceable(value.reason, statement.line)
            if may_be_unbound(value):
                self._read_on_host(statement.value, statement.line)
                if value is UNBOUND:
                    self.dead = True
                    return
        if len(self.scopes) == 1:
            self.finish(value, atom)
            self.dead = True
        else:
            if value.__class__ is Host:
                self.move(self.scope, atom.id, self.scope, RESULT)
            self.env[RESULT] = value
        self.env[RETURNED] = True

    def _follow_exit(self) -> None:
        """Leave as a statement on the host was left: by return, break, continue, or not at all."""
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

    def _with(self, statement: program.With) -> None:
        context = self.value_or_host(statement.context)[0]
        if context.__class__.__module__ != "dilim.tensors.tape":
            raise Unsliceable("a with statement over an object of the host", statement.line)
        with context as target:
            if statement.target is not None:
                self.env[statement.target] = target
            self.scope.contexts.append((statement, context))
            self.block(statement.body, "body")
            self.flush()
            self.scope.contexts.pop()

    # --- names ----------------------------------------------------------------------------

    def atom(self, atom: ast.expr) -> Any:
        """What a name or constant stands for.

        Raises:
            OnHost: the name is unbound, so that the host must raise.
        """
        if isinstance(atom, ast.Constant):
            return atom.value
        if not isinstance(atom, ast.Name):
            raise OnHost(f"{type(atom).__name__} is no operand")
        name = atom.id
        code = self.scope.code
        if name in code.locals:
            value = self.env.get(name, UNBOUND)
            if value is UNBOUND:
                raise OnHost(f"{name} is unbound")
            if value.__class__ is Choice:
                raise OnHost(f"{name} is not of one type on all paths")
            if value.__class__ is Conflict:
                raise OnHost(value.reason)
            return value
        if name in code.cells:
            return self._cell(name)
        return self._global(name)

    def copied(self, atom: ast.expr) -> Any:
        """What an assignment of a name or constant hands on."""
        name = getattr(atom, "id", None)
        if name in self.scope.code.locals:
            return self.env.get(name, UNBOUND)
        return self.atom(atom)

    def value_or_host(self, atom: Any) -> tuple[Any, Any]:
        """What an atom stands for, and the atom; where only the host can read it, another one."""
        try:
            value = self.copied(atom)
        except OnHost:
            line = getattr(self.scope.at, "line", 0)
            self._read_on_host(atom, line)
            name = f"%read{line}"
            value = self.env[name] = self.env[_READ]
            self.move(self.scope, _READ, self.scope, name)
            return value, ast.copy_location(ast.Name(name, ast.Load()), atom)
        return value, atom

    def raise_on_host(self, statement: program.Step) -> None:
        """Let the host carry out a statement that is known to raise."""
        self.on_host(statement, "it raises")
        self.flush()
        self.dead = True

    def _read_on_host(self, atom: Any, line: int) -> None:
        """Let the host read a name, which raises if it is unbound."""
        target = ast.copy_location(ast.Name(_READ, ast.Store()), atom)
        node = ast.copy_location(ast.Assign([target], atom), atom)
        reads = (atom.id,) if atom.id in self.scope.code.locals else ()
        self.on_host(program.Step(node, reads, (_READ,), line), "")
        self.flush()

    def _cell(self, name: str) -> Any:
        function = self.scope.function
        cells = dict(zip(function.__code__.co_freevars, function.__closure__ or (), strict=True))
        cell = cells[name]
        try:
            value = cell.cell_contents
        except ValueError:
            raise OnHost(f"{name} is unbound") from None
        self.entry.cells[id(cell)] = name
        return self.outside(value, f"{self.entry.constant(cell)}.cell_contents")

    def _global(self, name: str) -> Any:
        space = self.scope.function.__globals__
        if name in space:
            return self.outside(space[name], f"{self.entry.constant(space)}[{name!r}]")
        value = getattr(builtins, name, UNBOUND)
        if value is UNBOUND:
            raise OnHost(f"the name {name} is not defined")
        self.entry.guard(f"{name!r} not in {self.entry.constant(space)}")
        return value

    def outside(self, value: Any, path: str) -> Any:
        """What stands for an object from outside, found at a path."""
        if ("host path", path) in self.decisions:
            raise OnHost("something that host code changes")
        result = self.entry.enter(value, path)
        self.know_leaves(result)
        if ("touched", path) in self.decisions:
            self.touched[id(value)] = value
        return result

    def original(self, key: tuple[int, str]) -> Any:
        """What an attribute was at entry."""
        owner = self.owners[key[0]]
        try:
            return attributes.of_instance(self, owner, key[1])()
        except OnHost as refusal:
            raise Unsliceable(refusal.reason) from None

    def know_leaves(self, value: Any) -> None:
        """Keep track of the gradients of tensors that an object has."""
        if isinstance(value, Tensor):
            if self.trace.is_own_leaf(value) or (
                value.requires_grad and value._node is None and not self.trace.owns(value)
            ):
                self.leaves.setdefault(id(value), value)
            return
        kind = type(value)
        if not (attributes.is_dilims(kind) or attributes.is_module(kind)):
            return
        found = getattr(value, "parameters", None)
        for x in (found() if callable(found) else found) or ():
            if isinstance(x, Tensor):
                self.leaves.setdefault(id(x), x)

    def condition(self, atom: ast.expr) -> bool | Number:
        """The truth of a value: known now, or a bool of the graph."""
        value, place = self.value_or_host(atom)
        if value.__class__ is Choice:
            self.hand_over(self.scope, place.id, value)
            value = self.env[place.id] = Host()
        if value.__class__ is Host:
            return self.receive_truth(place.id)
        if value.__class__ is Number:
            return numbers.truth(value)
        if isinstance(value, Tensor):
            if value.size != 1:
                raise Unsliceable("the truth of a tensor of several elements")
            return numbers.from_tensor(value, bool)
        if value.__class__ in PLAIN or value.__class__ in (list, tuple, dict):
            return bool(value)
        raise Unsliceable(f"the truth of an object of {type(value).__name__}")

    # --- control flow, in modules of its own -----------------------------------------------

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

    def loop(self, statement: program.While | program.For) -> None:
        """See `loops.loop`."""
        loops.loop(self, statement)
