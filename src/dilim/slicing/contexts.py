"""``with`` statements over contexts of the host.

Entering and leaving are statements of the host, the body is sliced. A return, break or continue
leaves the contexts on its way. Where an error leaves the body, the run leaves them (`leaving`); one
that may swallow it makes the slicer see to it that plain Python can go on after the statement:
whatever may fail in the body is the host's, and where it fails, all local names are handed over.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dilim.slicing import program, surprises
from dilim.slicing.actions import TRIED
from dilim.slicing.errors import TOO_LONG, Unsliceable
from dilim.slicing.interpreter import RESULT, Scope
from dilim.slicing.leaving import Around
from dilim.slicing.loop_bodies import exits
from dilim.slicing.numbers import Number
from dilim.slicing.retreats import Retreat
from dilim.slicing.scopes import inner_blocks
from dilim.slicing.swallowing import may_swallow
from dilim.slicing.values import Context, Host
from dilim.tensors.tape import mode

if TYPE_CHECKING:
    from dilim.slicing.hosting import Hosting
    from dilim.slicing.naming import Naming
    from dilim.slicing.slicer import Slicer


@dataclass(slots=True, eq=False)
class Open:
    """A ``with`` statement whose body is interpreted.

    Attributes:
        statement: the statement.
        around: what the host knows of it.
        loops: how many loops are around it.
        swallows: whether its context may swallow errors.
    """

    statement: program.With
    around: Around
    loops: int
    swallows: bool = False

    @property
    def is_of_host(self) -> bool:
        """Whether the context is one of the host."""
        return self.around.context is None


def interpret(slicer: Slicer, statement: program.With) -> None:
    """Interpret a ``with`` statement.

    One that cannot be sliced is the host's as a whole, unless it holds a loop: that may take long.
    """
    contexts = len(slicer.scope.contexts)
    retreat = None if _has_loop(statement.body) else Retreat(slicer)
    try:
        _interpret(slicer, statement)
        return
    except Unsliceable as refusal:
        if retreat is None or refusal.reason == TOO_LONG:
            raise
        retreat.go_back()
        reason, line = refusal.reason, refusal.line
    finally:
        del slicer.scope.contexts[contexts:]
    slicer.notes.host(slicer.scope.code, line or statement.line, reason)
    slicer.on_host(statement, "")
    if exits([statement]):
        slicer.follow_exit()


def _has_loop(block: program.Block) -> bool:
    return any(
        isinstance(x, program.While)
        or (isinstance(x, program.For) and not x.from_comprehension)
        or any(map(_has_loop, inner_blocks(x)))
        for x in block
    )


def _interpret(slicer: Slicer, statement: program.With) -> None:
    context, atom = slicer.value_or_host(statement.context)
    if context.__class__.__module__ == "dilim.tensors.tape":
        with context as target:
            if statement.target is not None:
                slicer.env[statement.target] = target
            slicer.scope.contexts.append(_opened(slicer, statement, context))
            slicer.block(statement.body, "body")
            slicer.flush()
        return
    known = _enter(slicer, statement, context, atom)
    slicer.block(statement.body, "body")
    slicer.flush()
    slicer.scope.contexts.pop()
    if slicer.dead:
        return
    leaving = slicer.leaving()  # then it was left on the way
    if leaving is False:
        _leave(slicer, known)
    elif leaving is not True:
        slicer.branch(leaving, lambda: None, lambda: _leave(slicer, known))


def _opened(slicer: Slicer, statement: program.With, context: Any) -> Open:
    scope = slicer.scope
    leave = slicer.fragments_of(scope).leave(statement)
    after = (*scope.path[:-1], scope.path[-1] + 1)
    around = Around(statement.manager, leave, after, mode.recording, context)
    return Open(statement, around, len(scope.loops))


def _enter(slicer: Slicer, statement: program.With, context: Any, atom: Any) -> Open:
    if atom is not statement.context:
        raise Unsliceable("a context that may not be there", statement.line)
    scope = slicer.scope
    known = _opened(slicer, statement, None)
    key = statement, statement.manager
    found = _may_swallow(context) if key not in slicer.profile else slicer.profile[key]
    if found == "mode":
        raise Unsliceable("a context that changes how gradients are recorded", statement.line)
    known.swallows = found is not False
    constants = map(slicer.entry.constant, (known.around, key))
    place = f"{len(slicer.scopes) - 1}, {scope.number}"
    line = f"R.entered({place}, {', '.join(constants)}, {known.swallows})"
    slicer.keeping.bind(scope.number, statement.manager, None)
    step = statement.entering
    scope.contexts.append(known)
    with surprises.standing(scope, [*scope.path, "body", -1], step):
        slicer.on_host(step, "a context is entered", after=(line,))
    return known


def _may_swallow(context: Any) -> bool:
    if context.__class__ is not Host:
        return may_swallow(context)
    return context.kind.__class__ is not Context or context.kind.swallows


def _leave(slicer: Slicer, known: Open, *, is_over: bool = False) -> None:
    """Leave a context at the end of its body, or on the way out of it.

    Args:
        slicer: who interprets.
        known: the statement.
        is_over: whether nothing that the program relies on is looked at afterwards.
    """
    slicer.keeping.held.pop((slicer.scope.number, known.statement.manager), None)
    step = known.statement.leaving
    slicer.on_host(step, "a context is left", before=("R.contexts.pop()",), is_over=is_over)


def leave_on_the_way(slicer: Slicer, kind: str, value: Any = None) -> None:
    """Leave the contexts that a return, break or continue leaves.

    Args:
        slicer: who interprets.
        kind: which of these.
        value: what is returned.
    """
    scope = slicer.scope
    count = len(scope.loops) if kind != "return" else 0
    contexts = scope.contexts
    left = [x for x in contexts if x.is_of_host and (kind == "return" or x.loops >= count)]
    if not left:
        return
    try:
        for known in reversed(left):
            scope.contexts = contexts[: contexts.index(known)]
            _leave(slicer, known, is_over=True)
        if kind != "return" or len(slicer.scopes) > 1:
            with _standing_behind(slicer, kind, value):
                surprises.validate(slicer)
    finally:
        scope.contexts = contexts


@contextmanager
def _standing_behind(slicer: Slicer, kind: str, value: Any) -> Iterator[None]:
    """A context in which the statement at hand is that which has been left by an exit."""
    if kind == "return":
        inner = slicer.scopes.pop()
        try:
            with _returned(slicer, inner, value):
                yield
        finally:
            slicer.scopes.append(inner)
        return
    loop: Any = slicer.scope.loops[-1]
    path, at = _place_of(slicer.scope, loop), loop
    if kind == "continue":
        path, at = [*path, "body", len(loop.body) - 1], loop.body[-1]
    with surprises.standing(slicer.scope, path, at):
        yield


@contextmanager
def _returned(slicer: Slicer, inner: Scope, value: Any) -> Iterator[None]:
    """A context in which the caller has what a function returns."""
    env = slicer.env
    target = surprises.target_of(slicer.scope)
    before = dict(env)
    if target:
        if value.__class__ is Host:
            slicer.move(inner, RESULT, slicer.scope, target)
        env[target] = value
    try:
        yield
    finally:
        env.clear()
        env.update(before)


def _place_of(scope: Scope, loop: program.Statement) -> list[Any]:
    """Where a loop around the statement at hand stands; see `Walker.resume`."""
    block: Any = scope.code.body
    for k in range(0, len(scope.path), 2):
        statement = block[scope.path[k]]
        if statement is loop:
            return scope.path[: k + 1]
        block = getattr(statement, scope.path[k + 1])
    raise Unsliceable("a context is left in a loop of another")


def may_be_swallowed(slicer: Hosting | Naming) -> bool:
    """Whether a context around the statement at hand may swallow an error."""
    return any(known.swallows for scope in slicer.scopes for known in scope.contexts)


def live_behind(scope: Scope) -> frozenset[str]:
    """The names of a function that may be read after a context has swallowed an error."""
    after = scope.live.after
    return frozenset().union(*(after[x.statement] for x in scope.contexts if x.swallows))


def refuse_swallowed(slicer: Hosting) -> None:
    """Refuse to look at a value of the host where that may fail, and the error be swallowed."""
    if may_be_swallowed(slicer):
        raise Unsliceable("a value of the host is looked at in a context that may swallow errors")


def go_on_if_failed(slicer: Hosting) -> None:
    """Where host code has failed, plain Python leaves the contexts, and goes on if need be."""
    action = slicer.action(TRIED)
    action.lines.append("v[0][()] = R.error is None")
    (truth,) = surprises.receive(slicer, action, [surprises.TRUTH])
    surprises.unless(slicer, Number(truth, bool).tensor, "a context may swallow an error", False)
