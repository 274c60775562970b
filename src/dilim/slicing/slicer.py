"""The slicer: interprets a region of a user's function and builds its two programs.

Values are described in `values`. Statements are taken in order; for each the slicer tries to carry it
out now, on constants and symbolic tensors (`operations`), which adds nodes to the graph. What is not
possible, or not allowed, now is left to the host: the statement becomes part of a *fragment* that a
channel point runs. Control flow is in `branches` and `loops`.
"""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any, Final

from dilim import dtypes
from dilim.ir.graph import Site
from dilim.ir.types import Type
from dilim.runtime.devices import CPU
from dilim.slicing import (
    attributes,
    branches,
    loops,
    numbers,
    operations,
    program,
    scopes,
    surprises,
)
from dilim.slicing.entry import Entry
from dilim.slicing.errors import OnHost, Restart, Unsliceable
from dilim.slicing.host import Action, Objects
from dilim.slicing.liveness import Liveness, liveness_of
from dilim.slicing.numbers import Number
from dilim.slicing.report import Notes
from dilim.slicing.tracing import symbolic
from dilim.slicing.values import UNBOUND, Choice, Conflict, Host, may_be_unbound
from dilim.tensors import control
from dilim.tensors.sites import standing_at
from dilim.tensors.tape import mode, no_grad
from dilim.tensors.tensor import Tensor
from dilim.tensors.tracer import Trace

DEPTH: Final = 60
"""Deepest nesting of functions that is laid out flat."""


@dataclass(slots=True, eq=False)
class Scope:
    """A function that is being interpreted.

    Attributes:
        code: its normal form.
        function: the function object, for globals and closure cells.
        number: of its frame on the host.
        env: what its local names stand for.
        flags: names in ``env`` of the ways out that lead past the statement at hand.
        path: where the statement at hand stands; see `Walker.resume`.
        at: the statement at hand.
        loops: those that it is in.
        iterators: name of the iterator of a loop that it is in -> the items that are left.
        contexts: ``with`` statements that it is in, and what was entered.
    """

    code: program.Function
    function: FunctionType
    number: int
    env: dict[str, Any]
    flags: list[str] = field(default_factory=lambda: [RETURNED])
    path: list[Any] = field(default_factory=list)
    at: program.Statement | None = None
    loops: list[program.Statement] = field(default_factory=list)
    iterators: dict[str, Any] = field(default_factory=dict)
    contexts: list[tuple[program.With, Any]] = field(default_factory=list)
    live: Liveness = field(init=False)

    def __post_init__(self) -> None:
        self.env[RETURNED] = False
        self.live = liveness_of(self.code)

    def names_after(self, statement: program.Statement | None) -> frozenset[str]:
        """The names that may be read after a statement, on any way out of it."""
        after = self.live.after
        found = after[statement] if statement is not None else frozenset()
        return found.union(*(after[x] | self.live.head[x] for x in self.loops))


_TRUTH: Final = Type((), dtypes.bool_)
RETURNED: Final = "%return"
RESULT: Final = "%result"


@dataclass(slots=True)
class State:
    """What changes from statement to statement, to go back to."""

    envs: list[dict[str, Any]]
    heap: dict[tuple[int, str], Any]
    grads: dict[int, Any]
    contents: dict[int, Any]
    held: dict[Any, Any]
    seen: dict[tuple[int, str], Any]
    dead: bool


class Slicer:
    """Interprets one region.

    Args:
        trace: the graph to be filled.
        entry: what comes from outside.
        profile: types of results of host calls, as earlier runs have shown them, by
            statement and name.
        decisions: what earlier attempts have learned.
        notes: takes what is to be reported.

    Attributes:
        heap: (identity of an object, attribute) -> the value that the region gave it.
        fresh: lists and dicts that the region made, by identity.
        actions: what the host does, by channel.
        dead: whether the statement at hand cannot be reached.
    """

    def __init__(
        self,
        trace: Trace,
        entry: Entry,
        profile: dict[tuple[program.Statement, str], Any],
        decisions: set[Any],
        notes: Notes,
    ) -> None:
        self.trace = trace
        self.entry = entry
        self.profile = profile
        self.decisions = decisions
        self.notes = notes
        self.scopes: list[Scope] = []
        self.heap: dict[tuple[int, str], Any] = {}
        self.seen: dict[tuple[int, str], Any] = {}
        self.owners: dict[int, Any] = {}
        self.leaves: dict[int, Tensor] = {}
        self.fresh: dict[int, Any] = {}
        self.depth_of: dict[int, int] = {}
        self.actions: list[Action] = []
        self.frames = 0
        self.made_by: dict[int, program.Statement] = {}
        self.touched: dict[int, Any] = {}
        self.frozen: dict[int, Tensor] = {}
        self.peeled: dict[program.Statement, int] = {}
        self.kept: list[Any] = []
        self.dead = False
        self.current: program.Statement | None = None
        self.objects = Objects(trace, entry)
        self.objects.is_fresh = lambda value: id(value) in self.fresh
        self.unknown = 0
        self.refused: list[tuple[str, str, int]] = []
        self.written: set[tuple[int, str]] = set()
        self.names: dict[tuple[str, int], str] = {}
        self.places: dict[tuple[str, int], tuple[tuple[str, str, int], ...]] = {}
        self._pending: _Pending | None = None

    # --- state ----------------------------------------------------------------------------

    @property
    def scope(self) -> Scope:
        """The function that is being interpreted."""
        return self.scopes[-1]

    @property
    def env(self) -> dict[str, Any]:
        """Its local names."""
        return self.scopes[-1].env

    def save(self) -> State:
        """All that a branch may change."""
        return State(
            [dict(scope.env) for scope in self.scopes],
            dict(self.heap),
            {key: leaf.grad for key, leaf in self.leaves.items()},
            {key: _copy_of(value) for key, value in self.fresh.items()},
            dict(self.objects.held),
            dict(self.seen),
            self.dead,
        )

    def restore(self, state: State) -> None:
        """Go back to a state."""
        for scope, env in zip(self.scopes, state.envs, strict=True):
            scope.env.clear()
            scope.env.update(env)
        self.heap = dict(state.heap)
        for key, leaf in self.leaves.items():
            leaf.grad = state.grads.get(key, self.initial_grads[key][1])
        for key, contents in state.contents.items():
            _refill(self.fresh[key], contents)
        self.objects.held = dict(state.held)
        self.seen = dict(state.seen)
        self.dead = state.dead

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
                self.branch(
                    leaving, lambda: None, lambda: self._rest(block, position + 1), block[-1]
                )
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
        """Interpret one statement."""
        scope = self.scope
        site = Site(scope.code.filename, statement.line)
        self.notes.reach(scope.code, statement)
        place = scope.code.filename, statement.line
        if place not in self.names:
            self.names[place] = scope.code.name
            self.places[place] = self.callers()
        with standing_at(site):
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
        self.flush()
        top = self.trace.top
        mark = Mark(top)
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

    # --- objects that the region makes ----------------------------------------------------

    def make(self, container: Any, node: Any) -> Any:
        """Take note of a list or dict that the region makes."""
        del node
        self.fresh[id(container)] = container
        self.depth_of[id(container)] = sum(frame.is_loop for frame in self.trace.frames)
        if self.current is not None:
            self.made_by[id(container)] = self.current
        return container

    def in_graph(self, result: Any) -> Any:
        """What a function of the library gave, with memory that it made as memory of the run."""
        if isinstance(result, Tensor):
            if result.device is CPU and not self.trace.holds(result):
                symbol = symbolic(self.trace, result)
                symbol._requires_grad = result._requires_grad
                return symbol
            return result
        if result.__class__ in (tuple, list):
            items = [self.in_graph(x) for x in result]
            return tuple(items) if result.__class__ is tuple else self.make(items, None)
        if result.__class__ is dict:
            return self.make({key: self.in_graph(x) for key, x in result.items()}, None)
        self.kept.append(result)
        return result

    def new_frame(self) -> int:
        """The number of another frame on the host."""
        self.frames += 1
        return self.frames - 1

    def original(self, key: tuple[int, str]) -> Any:
        """What an attribute was at entry."""
        owner = self.owners[key[0]]
        try:
            return attributes.of_instance(self, owner, key[1])()
        except OnHost as refusal:
            raise Unsliceable(refusal.reason) from None

    def _choose(self, statement: program.Branch) -> None:
        test = self.condition(statement.test)
        if test.__class__ is bool:
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
        value = None
        if statement.value is not None:
            value = self.copied(statement.value)
            if value.__class__ is Conflict:
                raise Unsliceable(value.reason, statement.line)
            if may_be_unbound(value):
                self._read_on_host(statement.value, statement.line)
                if value is UNBOUND:
                    self.dead = True
                    return
        if len(self.scopes) == 1:
            self.finish(value, statement.value)
            self.dead = True
        else:
            if value.__class__ is Host:
                self.move(self.scope, statement.value.id, self.scope, RESULT)  # type: ignore[union-attr]
            self.env[RESULT] = value
        self.env[RETURNED] = True

    def _with(self, statement: program.With) -> None:
        context = self.atom(statement.context)
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

    def atom(self, atom: program.Atom) -> Any:
        """What a name or constant stands for.

        Raises:
            OnHost: the name is unbound, so that the host must raise.
        """
        if not hasattr(atom, "id"):
            return atom.value  # type: ignore[union-attr]
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

    def copied(self, atom: program.Atom) -> Any:
        """What an assignment of a name or constant hands on."""
        name = getattr(atom, "id", None)
        if name in self.scope.code.locals:
            return self.env.get(name, UNBOUND)
        return self.atom(atom)

    def raise_on_host(self, statement: program.Step) -> None:
        """Let the host carry out a statement that is known to raise."""
        self.on_host(statement, "it raises")
        self.flush()
        self.dead = True

    def _read_on_host(self, atom: Any, line: int) -> None:
        """Let the host read a name, which raises if it is unbound."""
        target = ast.copy_location(ast.Name("%read", ast.Store()), atom)
        node = ast.copy_location(ast.Assign([target], atom), atom)
        self.on_host(program.Step(node, (atom.id,), ("%read",), line), "")
        self.flush()

    def _cell(self, name: str) -> Any:
        function = self.scope.function
        index = function.__code__.co_freevars.index(name)
        cell = function.__closure__[index]  # type: ignore[index]
        try:
            value = cell.cell_contents
        except ValueError:
            raise OnHost(f"{name} is unbound") from None
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
        result = self.entry.enter(value, path)
        self.know_leaves(result)
        return result

    def know_leaves(self, value: Any) -> None:
        """Keep track of the gradients of tensors that an object has."""
        if isinstance(value, Tensor):
            if value.requires_grad and value.device is not self.trace:
                self.leaves.setdefault(id(value), value)
            return
        found = getattr(value, "parameters", None)
        if found is None or value.__class__.__module__.split(".")[0] != "dilim":
            return
        for x in found() if callable(found) else found:
            if isinstance(x, Tensor):
                self.leaves.setdefault(id(x), x)

    def condition(self, atom: program.Atom) -> bool | Number:
        """The truth of a value: known now, or a bool of the graph."""
        value = self.copied(atom)
        if value.__class__ is Choice:
            self.hand_over(self.scope, atom.id, value)  # type: ignore[union-attr]
            value = self.env[atom.id] = Host()  # type: ignore[union-attr]
        if value.__class__ is Host:
            return self.receive_truth(atom.id)  # type: ignore[union-attr]
        if value.__class__ is Number:
            return numbers.truth(value)
        if isinstance(value, Tensor):
            if value.size != 1:
                raise Unsliceable("the truth of a tensor of several elements")
            return numbers.from_tensor(value, bool)
        if value.__class__ in operations.PLAIN or value.__class__ in (list, tuple, dict):
            return bool(value)
        raise Unsliceable(f"the truth of an object of {type(value).__name__}")

    # --- the host -------------------------------------------------------------------------

    def on_host(self, statement: program.Statement, reason: str) -> None:
        """Leave a statement to the host; names that it binds become values of the host."""
        scope = self.scope
        reads, writes = scopes.reads(statement), scopes.writes(statement)
        if (
            mode.recording
            and host_sees_tape(self, reads)
            and not operations.is_harmless(self, statement)
        ):
            raise Unsliceable("host code is given a tensor that carries a gradient", statement.line)
        pending = self._open(scope)
        for name in reads:
            value = scope.env.get(name, UNBOUND)
            if value.__class__ is Conflict:
                raise Unsliceable(value.reason, statement.line)
            if value is UNBOUND:
                pending.forget(name)
            elif value.__class__ is not Host:
                try:
                    pending.load(name, self.objects.expression(value, pending.action))
                except OnHost as refusal:
                    raise Unsliceable(refusal.reason, statement.line) from None
        pending.statements.append(statement)
        self.notes.host(scope.code, statement.line, reason)
        for name in writes:
            if _deletes(statement, name):
                scope.env.pop(name, None)
            else:
                scope.env[name] = Host(operations.kind_on_host(self, statement, name))
                pending.bound.add(name)
                if operations.is_to_learn(self, statement, name):
                    pending.unknown.append((statement, name))
                    self.unknown += 1
        if not operations.is_harmless(self, statement):
            pending.opaque = True
            self.flush()
        if isinstance(statement, program.Step) and statement.node.__class__.__name__ == "Raise":
            self.flush()
            self.dead = True

    def _open(self, scope: Scope) -> _Pending:
        pending = self._pending
        if pending is None or pending.scope is not scope:
            self.flush()
            pending = self._pending = _Pending(scope, self.action("h"))
        return pending

    def action(self, letter: str) -> Action:
        """A new action of the host."""
        action = Action(f"{letter}{len(self.actions)}", self.callers())
        self.actions.append(action)
        return action

    def callers(self) -> tuple[tuple[str, str, int], ...]:
        """Name, file and line of the calls around the statement at hand."""
        return tuple(
            (scope.code.name, scope.code.filename, getattr(scope.at, "line", 0))
            for scope in self.scopes[:-1]
        )

    def flush(self) -> None:
        """Put the pending fragment at this point of the program."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        written = self.write_back(pending.action)
        fragment = self.fragment(pending.scope, pending.statements)
        learn = [
            f"R.learn({self.entry.constant(key)}, F[{pending.scope.number}].get({key[1]!r}))"
            for key in pending.unknown
        ]
        pending.action.lines += [
            *pending.loads(),
            *written,
            f"{self.entry.constant(fragment)}(F[{pending.scope.number}])",
            *learn,
        ]
        if not mode.recording:
            pending.action.lines = [
                f"with {self.entry.constant(no_grad)}():",
                *(f"  {line}" for line in pending.action.lines),
            ]
        pending.action.code, pending.action.statements = pending.scope.code, pending.statements
        pending.action.names.update(pending.expressions)
        control.send_in(self.trace, pending.action.channel, pending.action.sent)
        if pending.opaque:
            surprises.validate(self)

    def write_back(self, action: Action) -> list[str]:
        """Code that brings attributes, gradients and tensors of the host up to date."""
        lines: list[str] = []
        for key, value in self.heap.items():
            if value.__class__ is Host or self.seen.get(key, UNBOUND) is value:
                continue
            place = self.objects.expression(self.owners[key[0]], action)
            shown = self.objects.expression(value, action)
            lines.append(f"R.set({place}, {key[1]!r}, {shown})")
            self.seen[key] = value
        for number, leaf in self.leaves.items():
            if self.seen.get((number, "grad"), self.initial_grads[number][1]) is leaf.grad:
                continue
            place = self.objects.expression(leaf, action)
            shown = self.objects.expression(leaf.grad, action)
            lines.append(f"R.set({place}, 'grad', {shown})")
            self.seen[number, "grad"] = leaf.grad
        return self.objects.refresh(action) + lines

    def before_failure(self) -> None:
        """An operation follows that may raise: what is written before must be seen."""
        action = Action(f"w{len(self.actions)}", self.callers())
        action.lines += self.write_back(action)
        if action.lines:
            self.actions.append(action)
            control.send_in(self.trace, action.channel, action.sent)

    initial_grads: dict[int, tuple[Tensor, Any]]
    fragment: Callable[[Scope, Sequence[program.Statement]], Callable[[dict[str, Any]], None]]
    finish: Callable[[Any, Any], None]

    def receive_truth(self, name: str) -> Number:
        """The truth of a value of the host."""
        self.flush()
        action = self.action("r")
        action.names[name] = ""
        action.lines.append(f"v[0][()] = bool(F[{self.scope.number}][{name!r}])")
        tensor = control.receive_in(self.trace, action.channel, Type((), dtypes.bool_))
        return Number(tensor, bool)

    def receive(self, name: str, kind: Any) -> Any:
        """A value of the host, of a type that an eager run has shown."""
        self.flush()
        action = self.action("r")
        place = f"F[{self.scope.number}][{name!r}]"
        if isinstance(kind, Type):
            type_, how = kind, f"tensor({place}, v[1], {self.entry.constant(kind)})"
        else:
            type_, how = Type((), numbers.type_of_kind(kind)), f"{kind.__name__}({place}, v[1])"
        action.names[name] = ""
        action.lines.append(f"v[0][()] = R.received_{how}")
        truth, value = surprises.receive(self, action, [_TRUTH, type_])
        surprises.unless(self, truth, "the type of a value of the host is not what it was", True)
        return value if isinstance(kind, Type) else Number(value, kind, numbers.SMALL)

    # --- control flow, in modules of its own -----------------------------------------------

    def hand_over(self, scope: Scope, name: str, value: Any) -> Any:
        """Bind a name on the host to a value of the graph; the value's type."""
        self.flush()
        action = self.action("b")
        try:
            expression = self.objects.expression(value, action)
        except OnHost as refusal:
            raise Unsliceable(refusal.reason) from None
        action.names[name] = expression
        action.lines.append(f"F[{scope.number}][{name!r}] = {expression}")
        control.send_in(self.trace, action.channel, action.sent)
        return numbers.kind_of(value) if numbers.is_number(value) else None

    def to_host(self, name: str) -> None:
        """Leave a name to the host from here on."""
        value = self.env.get(name, UNBOUND)
        if value is UNBOUND or value.__class__ is Host:
            return
        if isinstance(value, Tensor) and value._node is not None:
            raise Unsliceable(f"{name} carries a gradient and would be the host's")
        self.env[name] = Host(self.hand_over(self.scope, name, value))

    def move(self, source: Scope, name: str, target: Scope, as_name: str) -> None:
        """Bind a name on the host to a value that another one has there."""
        self.flush()
        action = self.action("m")
        action.lines.append(f"F[{target.number}][{as_name!r}] = F[{source.number}][{name!r}]")
        control.send_in(self.trace, action.channel, [])

    def begin_iteration(self, statement: program.For) -> None:
        """Make the iterator of a loop over an iterable of the host."""
        self.flush()
        action = self.action("i")
        frame = f"F[{self.scope.number}]"
        items = statement.items.id  # type: ignore[union-attr]
        action.lines.append(f"{frame}[{statement.iterator!r}] = iter({frame}[{items!r}])")
        control.send_in(self.trace, action.channel, [])

    def next_item(self, statement: program.For) -> Number:
        """Bind the target to the next item on the host, if there is one; whether there is."""
        self.flush()
        action = self.action("n")
        frame = f"F[{self.scope.number}]"
        action.names[statement.target] = ""
        action.lines.append(
            f"v[0][()] = R.next({frame}, {statement.iterator!r}, {statement.target!r})"
        )
        if (statement, statement.target) not in self.profile:
            self.unknown += 1
            known = self.entry.constant((statement, statement.target))
            action.lines.append(f"R.learn({known}, {frame}.get({statement.target!r}))")
        tensor = control.receive_in(self.trace, action.channel, Type((), dtypes.bool_))
        return Number(tensor, bool)

    def validate_turn(self, loop: program.For) -> None:
        """See whether all is as expected at the beginning of a turn."""
        path = self.scope.path
        path += ["body", 0]
        at, self.scope.at = self.scope.at, loop.body[0] if loop.body else loop
        try:
            surprises.validate(self, again=True)
        finally:
            del path[-2:]
            self.scope.at = at

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


class Mark:
    """A point of a region to go back to."""

    def __init__(self, frame: Any) -> None:
        self._frame = frame
        self._count = len(frame.builder.nodes)
        self._known = dict(frame.contents), dict(frame.reads), dict(frame.written)
        self._constants, self._dead = dict(frame.constants), set(frame.dead)

    def has_grown(self) -> bool:
        """Whether nodes were added."""
        return len(self._frame.builder.nodes) > self._count

    def undo(self) -> None:
        """Forget what was added."""
        frame = self._frame
        del frame.builder.nodes[self._count :]
        frame.contents, frame.reads, frame.written = self._known
        frame.constants, frame.dead = self._constants, self._dead
        frame._pending.clear()


class _Pending:
    """A fragment that is being collected."""

    def __init__(self, scope: Scope, action: Action) -> None:
        self.scope = scope
        self.action = action
        self.statements: list[program.Statement] = []
        self.bound: set[str] = set()
        self.opaque = False
        self.unknown: list[tuple[program.Statement, str]] = []
        self.expressions: dict[str, str] = {}
        self._loads: dict[str, str] = {}

    def load(self, name: str, expression: str) -> None:
        """Bind a name in the host's frame before the fragment runs."""
        if name not in self.bound:
            self.expressions[name] = expression
            self._loads[name] = f"R.bind(F[{self.scope.number}], {name!r}, {expression})"

    def forget(self, name: str) -> None:
        """Unbind a name before the fragment runs."""
        if name not in self.bound:
            self._loads[name] = f"F[{self.scope.number}].pop({name!r}, None)"

    def loads(self) -> list[str]:
        """The code that binds names."""
        return list(self._loads.values())


def host_sees_tape(slicer: Slicer, names: Sequence[str]) -> bool:
    """Whether one of these names is a tensor that was recorded on the tape."""
    return any(
        isinstance(x, Tensor) and x._node is not None
        for x in (slicer.env.get(name) for name in names)
    )


def _deletes(statement: program.Statement, name: str) -> bool:
    if not isinstance(statement, program.Step) or statement.node.__class__.__name__ != "Delete":
        return False
    return any(getattr(target, "id", None) == name for target in statement.node.targets)  # type: ignore[attr-defined]


def _copy_of(value: Any) -> Any:
    return list(value) if value.__class__ is list else dict(value)


def _refill(value: Any, contents: Any) -> None:
    if value.__class__ is list:
        value[:] = contents
    else:
        value.clear()
        value.update(contents)
