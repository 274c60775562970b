"""What is left to the host: fragments, and values that are handed over."""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable, Iterable
from typing import Any

from dilim import dtypes
from dilim.ir.types import Type
from dilim.slicing import (
    blindness,
    contexts,
    expectations,
    harmless,
    heap,
    numbers,
    program,
    scopes,
    surprises,
    values,
    what_hosts_do,
)
from dilim.slicing.actions import BIND, EXIT, FRAGMENT, MOVE, RECEIVE
from dilim.slicing.errors import OnHost, Restart, Unsliceable
from dilim.slicing.fragments import Fragments
from dilim.slicing.interpreter import Scope
from dilim.slicing.loop_bodies import exits
from dilim.slicing.numbers import Number
from dilim.slicing.pending import Pending
from dilim.slicing.pieces import Later
from dilim.slicing.showing import Showing
from dilim.slicing.tracebacks import Caller
from dilim.slicing.values import UNBOUND, Conflict, Host
from dilim.tensors import control
from dilim.tensors.tape import mode, no_grad
from dilim.tensors.tensor import Tensor


class Hosting(Showing):
    """The part of the slicer that writes the host program."""

    _pending: Pending | None = None
    atom: Callable[[ast.expr], Any]

    def on_host(
        self,
        statement: program.Statement,
        reason: str,
        *,
        raises: bool = False,
        before: tuple[str, ...] = (),
        after: tuple[str, ...] = (),
        is_over: bool = False,
    ) -> None:
        """Leave a statement to the host; names that it binds become values of the host.

        Args:
            statement: what the host does.
            reason: why, for the report.
            raises: whether it is known to raise, and so changes nothing.
            before: code that runs right before it.
            after: code that runs right after it.
            is_over: whether nothing that the program relies on is looked at afterwards.
        """
        scope = self.scope
        reads, writes = scopes.reads(statement), scopes.writes(statement)
        if what_hosts_do.calls_super(statement) and scope.code.parameters:
            reads = {scope.code.parameters[0]: None, **reads}
        passed_on = what_hosts_do.passed_on(self, statement)
        if not raises:
            self._note_touched(statement, passed_on)
        if before or after or not self._open(scope).agrees(reads, scope.env):
            self.flush()
        pending = self._open(scope)
        pending.before, pending.after = pending.before + before, pending.after + after
        self.objects.lenient = what_hosts_do.only_looks(self, statement)
        for name in reads:
            value = scope.env.get(name, UNBOUND)
            pending.values[name] = value
            if value.__class__ is Conflict:
                raise Unsliceable(value.reason, statement.line)
            if value is UNBOUND:
                self.forget_name(scope, name)
                pending.forget(name)
            elif value.__class__ is not Host and value is not self.handed.get(
                (scope.number, name), UNBOUND
            ):
                try:
                    pending.load(name, self.objects.expression(value, pending.action))
                except OnHost as refusal:
                    raise Unsliceable(refusal.reason, statement.line) from None
                if value.__class__ is Number:
                    self.handed[scope.number, name] = value
        self.objects.lenient = False
        pending.forgets += self.objects.containers.let_go(map(scope.env.pop, passed_on))
        self._keep_old(pending, statement, writes)
        self.notes.host(scope.code, statement.line, reason)
        if what_hosts_do.asks_host(self, statement):
            self.notes.asked.add(statement)
        self._collect(pending, statement, is_over, raises)
        if before or after:
            self.flush()

    def _collect(
        self, pending: Pending, statement: program.Statement, is_over: bool, raises: bool
    ) -> None:
        """Add a statement to the pending fragment, and note what it binds."""
        scope = pending.scope
        look = blindness.look(self, statement)
        is_harmless = look.is_blind or harmless.is_harmless(self, statement)
        pending.is_blind &= look.is_blind
        pending.is_pure &= look.is_pure
        pending.add(statement, raises)
        pending.forgets += heap.forgotten(self, statement)
        for name in scopes.writes(statement):
            self.forget_name(scope, name)
            pending.bound.add(name)
            if what_hosts_do.deletes(statement, name):
                scope.env.pop(name, None)
            else:
                kind = what_hosts_do.kind_on_host(self, statement, name)
                is_new = not raises and what_hosts_do.is_to_learn(self, statement, name)
                if is_new and kind is None:
                    kind = expectations.expected(self, statement, name)
                    is_new = kind is None
                is_sure, source = isinstance(statement, program.Step), (statement, name)
                scope.env[name] = Host(kind, is_sure, look.gives_plain, source)
                self.keeping.bind(scope.number, name, kind)
                if is_new:
                    pending.unknown.append((statement, name))
                    self.unknown += 1
        if is_over:
            self.flush()
            surprises.forget_memory(self)
        elif not is_harmless:
            pending.opaque = True
            if pending.unknown:  # what it binds is looked at, and let go, at once
                self.flush()
        if isinstance(statement, program.Step) and isinstance(statement.node, ast.Raise):
            self.flush()
            self.end_here()

    def _keep_old(
        self, pending: Pending, statement: program.Statement, names: Iterable[str]
    ) -> None:
        """Let the host have what names stand for, lest it does not come to bind them anew."""
        scope = pending.scope
        if isinstance(statement, program.Step):
            names = contexts.live_behind(scope).intersection(names)
        for name in names:
            value = scope.env.get(name, UNBOUND)
            if name in pending.bound or value.__class__ is Host:
                continue
            if value.__class__ is Conflict:
                raise Unsliceable(value.reason)
            try:
                pending.load(name, self.objects.expression(value, pending.action))
            except OnHost as refusal:
                raise Unsliceable(refusal.reason) from None

    def forget_name(self, scope: Scope, name: str) -> None:
        """A name on the host is bound anew."""
        self.handed.pop((scope.number, name), None)
        self.received.pop((scope.number, name), None)

    def _note_touched(self, statement: program.Statement, passed_on: Iterable[str]) -> None:
        """See to it that nothing is believed of containers that the host may change."""
        for value in what_hosts_do.operands(self, statement, passed_on):
            for each in what_hosts_do.containers_in(value):
                if id(each) in self.makings:
                    raise Restart(("host", self.makings[id(each)].maker))
                may_change = what_hosts_do.may_change(self, statement)
                if id(each) in self.fresh and may_change:
                    raise Restart(("host", self.made_by.get(id(each))))
                if each.__class__ in (list, dict, set) and may_change:
                    self.touch(each)

    def touch(self, container: Any) -> None:
        """The host changes a container that comes from outside."""
        if id(container) in self.touched:
            return
        if id(container) in self.looked_into:
            raise Restart(("touched", self.entry.path(container)))
        self.touched[id(container)] = container

    def look_into(self, container: Any) -> None:
        """The program relies on what a container from outside holds.

        Raises:
            OnHost: the host changes it.
        """
        if id(container) in self.touched:
            raise OnHost("a container that is changed by the host")
        self.looked_into[id(container)] = container

    def _open(self, scope: Scope) -> Pending:
        pending = self._pending
        if pending is None or pending.scope is not scope:
            self.flush()
            pending = self._pending = Pending(scope, self.action(FRAGMENT))
        return pending

    def let_go(self) -> None:
        """Let the host's frames let go of what has come to its end, at this point."""
        self.flush()
        if self.keeping.has_ended:
            control.send_in(self.trace, self.action(MOVE).channel, [])

    def flush(self) -> None:
        """Put the pending fragment at this point of the program."""
        pending, self._pending = self._pending, None
        if pending is None:
            return
        with pending.standing():
            self._put(pending)

    def _put(self, pending: Pending) -> None:
        self.received = {place: x for place, x in self.received.items() if x.__class__ is Number}
        pending.action.code, pending.action.statements = pending.scope.code, pending.statements
        if pending.is_blind and not pending.raises:
            written = self.write_without_sending(pending.action)
        else:
            written = self.write_back(pending.action)
        is_tried = written is None
        ended = pending.ended()
        shown = [name for _, name in pending.unknown if name in ended]
        is_large = any(isinstance(x, program.With) for x in pending.statements)
        statements, piece = tuple(pending.statements), self.fragments_of(pending.scope).piece
        later = functools.partial(piece, statements, shown, is_large)
        fragment = self.entry.constant(Later(later))
        for name in ended:
            self.forget_name(pending.scope, name)
        frame = f"F[{pending.scope.number}]"
        learn = [
            f"R.learn({self.entry.constant(key)}, {frame}.get({key[1]!r}))"
            for key in pending.unknown
        ]
        learn += [*(f"{frame}.pop({name!r}, None)" for name in shown), *pending.forgets]
        is_caught = contexts.may_be_swallowed(self)
        ran = f"{fragment}({frame})"
        if is_tried or is_caught:
            ran = f"R.attempt({fragment}, {frame})"
            learn = [f"if R.error is None: {line}" for line in learn]
        if follows := bool(exits(pending.statements)):
            ran = f"R.follow({frame}, {ran})"
        if pending.opaque and surprises.has_tape(self):
            pending.action.lines.append(self.tapes.moment(pending.action))
        pending.action.lines += [*pending.loads(), *(written or ()), *pending.before, ran]
        pending.action.lines += [*pending.after, *learn]
        if not mode.recording:
            pending.action.lines = [
                f"with {self.entry.constant(no_grad)}():",
                *(f"  {line}" for line in pending.action.lines),
            ]
        pending.action.names.update(pending.expressions)
        sent = pending.action.sent
        control.send_in(self.trace, pending.action.channel, sent, quiet=not pending.opaque)
        if pending.changes_what_follows(is_caught):
            conditions = ["R.error is None"] * is_caught + ["R.is_expected"] * bool(pending.after)
            surprises.validate(self, conditions=conditions, follows=follows)
        elif is_caught:
            contexts.go_on_if_failed(self)
        elif is_tried:
            self.raise_if_failed()

    fragments_of: Callable[[Scope], Fragments]
    finish: Callable[[Any, Any], None]

    def receive_truth(self, name: str) -> Number:
        """The truth of a value of the host."""
        known = self.env.get(name, UNBOUND)
        if known.__class__ is not Host or known.kind not in (int, float, bool, "str"):
            contexts.refuse_swallowed(self)
        self.flush()
        self.show()
        action = self.action(RECEIVE)
        action.at = self.place_of(self.scope.at)
        action.names[name] = ""
        action.lines.append(f"v[0][()] = bool(F[{self.scope.number}][{name!r}])")
        tensor = control.receive_in(self.trace, action.channel, surprises.TRUTH)
        return Number(tensor, bool)

    def receive(self, name: str, kind: Any) -> Any:
        """A value of the host, of a type that an eager run has shown: a tensor or a number.

        Nobody may write into the tensor, since the host has another one.
        """
        known = self.received.get((self.scope.number, name))
        if known is not None:
            return known
        self.flush()
        action = self.action(RECEIVE)
        action.names[name] = ""
        type_ = expectations.take(self, action, name, kind)
        kind = values.known(kind)
        truth, value = surprises.receive(self, action, [surprises.TRUTH, type_])
        surprises.unless(self, truth, "the type of a value of the host is not what it was", True)
        if kind in (int, float, bool):
            result: Any = Number(value, kind, numbers.SMALL)
        else:
            result = value
            self.trace.frozen.add(value._data.cell)
            if isinstance(kind, Type):
                number = self.trace.lent.add(value._data.cell)
                action.lines.append(f"R.lend({number}, F[{self.scope.number}].get({name!r}))")
        self.received[self.scope.number, name] = result
        return result

    def hand_over(self, scope: Scope, name: str, value: Any) -> Any:
        """Bind a name on the host to a value of the graph; the value's type."""
        self.flush()
        action = self.action(BIND)
        try:
            expression = self.objects.expression(value, action)
        except OnHost as refusal:
            raise Unsliceable(refusal.reason) from None
        action.names[name] = expression
        frame = f"F[{scope.number}]"
        may_lack = values.may_be_unbound(value)
        bound = f"R.bind({frame}, {name!r}, {expression})"
        action.lines.append(bound if may_lack else f"{frame}[{name!r}] = {expression}")
        self.forget_name(scope, name)
        control.send_in(self.trace, action.channel, action.sent)
        return numbers.kind_of(value) if numbers.is_number(value) else None

    def to_host(self, name: str) -> None:
        """Leave a name to the host from here on."""
        value = self.env.get(name, UNBOUND)
        if value is UNBOUND or value.__class__ is Host:
            return
        kind = self.hand_over(self.scope, name, value)
        self.env[name] = Host(kind, is_sure=not values.may_be_unbound(value))

    def move(self, source: Scope, name: str, target: Scope, as_name: str) -> None:
        """Bind a name on the host to a value that another one has there."""
        self.flush()
        action = self.action(MOVE)
        action.lines.append(f"F[{target.number}][{as_name!r}] = F[{source.number}][{name!r}]")
        self.forget_name(target, as_name)
        self.keeping.bind(target.number, as_name, None)
        control.send_in(self.trace, action.channel, [])

    def move_object(self, number: int, to: int, flag: Number | None) -> None:
        """Have an object of the host under another number too, where a flag, if any, is set."""
        action = self.action(MOVE)
        test = "" if flag is None else f"if {action.send(flag.tensor)}: "
        action.lines += [f"{test}{t}[{to}] = {t}[{number}]" for t in ("O", "R.versions")]
        control.send_in(self.trace, action.channel, action.sent)

    def exit_code(self) -> Tensor:
        """How the last statement on the host was left, as a number of the graph."""
        self.flush()
        action = self.action(EXIT)
        action.lines.append("v[0][()] = R.code")
        return control.receive_in(self.trace, action.channel, Type((), dtypes.int64))

    def place_of(self, statement: Any) -> Caller:
        """Where the function at hand stands while the host looks at what a statement asks for."""
        code, at = self.scope.code, getattr(statement, "at", None)
        place = (code.name, code.filename, statement.line)
        return place if at is None else (*place, at)

    def flush_effects(self) -> None:
        """Put the pending fragment at this point, unless it may as well run later."""
        pending = self._pending
        if pending is not None and not (pending.is_pure and not contexts.may_be_swallowed(self)):
            self.flush()

    @property
    def is_pending(self) -> bool:
        """Whether a fragment is being collected."""
        return self._pending is not None

    def keep_pending(self) -> Callable[[], None]:
        """See `Interpreter.keep_pending`."""
        pending = self._pending
        if pending is None:
            return self.drop_pending
        known, place = pending.copied(), self.actions.index(pending.action)

        def put_back() -> None:
            self._pending, self.actions[place] = known, known.action

        return put_back

    def drop_pending(self) -> None:
        """See `Interpreter.drop_pending`."""
        self._pending = None

    def end_of_turn(self, loop: program.While | program.For, truth: Tensor) -> None:
        """At the end of a turn, go on as plain Python where a bool of the graph does not hold."""
        with surprises.standing_in(self.scope, loop, len(loop.body) - 1):
            surprises.unless(self, truth, "an int has grown beyond 61 bits", again=False)

    def validate_turn(self, loop: program.For) -> None:
        """See whether all is as expected at the beginning of a turn."""
        with surprises.standing_in(self.scope, loop, 0):
            surprises.validate(self, again=True)
