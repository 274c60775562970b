"""What is done when something is not as it was when a region was sliced.

After host code that may have changed anything, and where the host hands over a value, the program
asks whether all is as expected. If it is not, every local name is handed to the host, and the rest
of the region runs there as plain Python (see `Walker.resume`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from dilim import dtypes
from dilim.errors import GraphError
from dilim.ir.structure import RECEIVE
from dilim.ir.types import Type
from dilim.slicing import contexts, identities, iterators, made_functions, scopes
from dilim.slicing.actions import CHECK, LEAVE, Action
from dilim.slicing.errors import OnHost, Restart, Unsliceable
from dilim.slicing.leaving import Level
from dilim.slicing.numbers import Number
from dilim.slicing.recorded_inside import plain_inputs
from dilim.slicing.tracing import is_used_up
from dilim.slicing.values import UNBOUND, Conflict, Host, MadeFunction, Range, is_tuple
from dilim.tensors import control
from dilim.tensors.region_tape import Region
from dilim.tensors.sites import user_site
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.hosting import Hosting
    from dilim.slicing.interpreter import Scope
    from dilim.slicing.program import For, While
    from dilim.slicing.showing import Showing

TRUTH: Final = Type((), dtypes.bool_)
"""The type of a bool."""


def receive(slicer: Showing, action: Action, kinds: Sequence[Type]) -> list[Tensor]:
    """Values that an action of the host gives."""
    trace = slicer.trace
    trace.top.settle()
    params = {"channel": action.channel, "quiet": True}  # no code of the user's runs
    values = trace.top.builder.add_node(RECEIVE, [], params, list(kinds), site=user_site())
    return [trace.symbol(value) for value in values]


def forget_memory(slicer: Hosting) -> None:
    """Host code may have written into any memory."""
    trace = slicer.trace
    for frame in trace.frames:
        frame.is_open = True  # so that memory that is found later is not read before
        for cell in trace.cells:
            frame.contents[cell] = None
            frame.written[cell] = None


def validate(
    slicer: Hosting,
    again: bool = False,
    conditions: Iterable[str] = (),
    follows: bool = False,
) -> None:
    """Host code ran that may have changed anything it can reach: see whether it has.

    Args:
        slicer: who interprets.
        again: whether the statement at hand is still to be done.
        conditions: code for what has to hold besides.
        follows: whether the statement at hand may have been left by a return, break or continue.
    """
    forget_memory(slicer)
    action = slicer.action(CHECK)
    envs = [scope.env for scope in slicer.scopes]
    reached = identities.containers(envs, slicer.heap, slicer.fresh)
    lists = slicer.objects.containers.numbers(reached)
    leaves = tuple(slicer.objects.leaves)
    truths = [*conditions, f"R.valid({_memory_of_tape(slicer)}, {lists}, {leaves})"]
    action.lines.append(f"v[0][()] = {' and '.join(truths)}")
    (truth,) = receive(slicer, action, [TRUTH])
    reason = "host code has changed something that the program relies on"
    unless(slicer, truth, reason, again, follows)


def unless(
    slicer: Hosting,
    truth: Tensor,
    reason: str,
    again: bool,
    follows: bool = False,
    decision: Any = None,
    go_back: Callable[[], None] = lambda: None,
) -> None:
    """Where a bool of the graph does not hold, the rest of the region runs on the host.

    Args:
        slicer: who interprets.
        truth: a bool of shape ().
        reason: for the report.
        again: whether the rest begins with the statement at hand, not after it.
        follows: whether that may have been left by a return, break or continue.
        decision: what is decided for the next time that the region is sliced, where it fails.
        go_back: brings back the state with which the rest begins, if that is an earlier one.
    """

    def leave() -> None:
        go_back()
        _leave(slicer, reason, again, follows, decision)

    slicer.unless(Number(truth, bool), leave)


def has_tape(slicer: Hosting) -> bool:
    """Whether something that was recorded on the tape may be used later."""
    return any(True for _ in _recorded(slicer))


def _memory_of_tape(slicer: Hosting) -> tuple[str, ...] | None:
    """Where the memory is found that gradients of later may need; None if there is no tape."""
    live = list(_recorded(slicer))
    used: list[Tensor] = [*live]
    for node in slicer.tapes.leading_to(live):
        used += (x for x in node.inputs or () if isinstance(x, Tensor))
        used += plain_inputs(node.op) if isinstance(node.op, Region) else ()
    cells = {_cell_of(slicer, x): None for x in used}
    paths = (slicer.entry.memory(cell) for cell in cells if cell.variable is not None)
    return tuple(dict.fromkeys(paths)) if live else None


def _cell_of(slicer: Hosting, x: Tensor) -> Any:
    """The memory of a tensor.

    Raises:
        Restart: it is there as that of another view of it.
    """
    try:
        return slicer.trace.handle(x).cell
    except GraphError as error:
        decision = "whole", slicer.entry.memory(slicer.trace.variable(x))
        if decision in slicer.decisions:  # it did not help
            raise Unsliceable(str(error)) from None
        raise Restart(decision) from None


def _recorded(slicer: Hosting) -> Iterator[Tensor]:
    """The tensors that may be used later and have a tape."""
    for scope in slicer.scopes:
        names = scope.names_after(scope.at)
        for name, value in scope.env.items():
            if value.__class__ in _WITHOUT_TAPE:
                continue
            if name in names or name not in scope.code.locals:
                yield from _recorded_in(value)
    for value in slicer.heap.values():
        yield from _recorded_in(value)


_WITHOUT_TAPE: Final = frozenset({Number, Host, bool, int, float, str, type(None)})
"""Types of many values; none of them is, or has inside, a tensor that was recorded."""


def _recorded_in(value: Any) -> Iterator[Tensor]:
    if isinstance(value, MadeFunction):
        parts: Iterable[Any] = value.parts()
    elif value.__class__ is list or is_tuple(value):
        parts = value
    elif value.__class__ is dict:
        parts = value.values()
    else:
        if isinstance(value, Tensor) and value._node is not None and not is_used_up(value):
            yield value
        return
    for part in parts:
        yield from _recorded_in(part)


def _leave(slicer: Hosting, reason: str, again: bool, follows: bool, decision: Any) -> None:
    action = slicer.action(LEAVE)
    lines, levels = handed_over(slicer, action, again)
    if decision is not None:
        lines.append(f"R.decided.add({slicer.entry.constant(decision)})")
    action.lines += lines + slicer.write_back(action)
    action.lines.append(f"R.leave({levels}, {reason!r}, {follows})")
    control.send_in(slicer.trace, action.channel, action.sent)
    slicer.end_here()


def handed_over(slicer: Hosting, action: Action, again: bool = False) -> tuple[list[str], str]:
    """Code that binds all local names on the host, and the constant that tells where it goes on.

    Args:
        slicer: who interprets.
        action: what needs it.
        again: whether the host begins with the statement at hand, not after it.
    """
    lines: list[str] = []
    levels = []
    for scope in slicer.scopes:
        repeats = again and scope is slicer.scope
        _hand_over(slicer, scope, repeats, action, lines)
        path = tuple(scope.path) if repeats else (*scope.path[:-1], scope.path[-1] + 1)
        caller = scope.code.name, scope.code.filename, getattr(scope.at, "line", 0)
        around = tuple(known.around for known in scope.contexts)
        target = target_of(scope)
        levels.append(Level(scope.number, scope.code, scope.function, path, target, caller, around))
    return lines, slicer.entry.constant(levels)


def target_of(scope: Scope) -> str:
    """The name to which the step at hand binds its value."""
    targets = getattr(getattr(scope.at, "node", None), "targets", [None])
    return getattr(targets[0], "id", "")


def _hand_over(
    slicer: Hosting, scope: Scope, again: bool, action: Action, lines: list[str]
) -> None:
    """Code that binds the local names of a function in its frame on the host."""
    frame = f"F[{scope.number}]"
    wanted: frozenset[str] = frozenset()
    if scope.at is not None:
        wanted = scope.live.after[scope.at] | contexts.live_behind(scope)
        if again:
            wanted = wanted.union(scopes.reads(scope.at))
    lines += frame_lines(slicer, scope, wanted, action)
    for name, left in scope.iterators.items():
        lines.append(f"{frame}[{name!r}] = {_iterator(slicer, left, action)}")


def frame_lines(slicer: Hosting, scope: Scope, names: Iterable[str], action: Action) -> list[str]:
    """Code that binds local names in the frame of a function on the host."""
    lines = []
    for name in sorted(names):
        value = scope.env.get(name, UNBOUND)
        if value.__class__ is Host or (name not in scope.code.locals and name[0] != "%"):
            continue
        if value.__class__ is Conflict:
            raise Unsliceable(value.reason)
        if isinstance(value, MadeFunction):
            shown = made_functions.expression(slicer, value, action)
        else:
            shown = _code(slicer, value, action)
        lines.append(f"R.bind(F[{scope.number}], {name!r}, {shown})")
    return lines


def _code(slicer: Hosting, value: Any, action: Action) -> str:
    try:
        return slicer.objects.expression(value, action)
    except OnHost as refusal:
        raise Unsliceable(refusal.reason) from None


def _iterator(slicer: Hosting, left: Any, action: Action) -> str:
    if left.__class__ is Range:
        parts = (left.start, left.stop, left.step)
        return f"iter(range({', '.join(_code(slicer, x, action) for x in parts)}))"
    return iterators.expression(slicer, left, partial(_code, slicer, action=action))


@contextmanager
def standing(scope: Scope, path: list[Any], at: Any) -> Iterator[None]:
    """A context in which another statement of a function is that at hand."""
    known = scope.path[:], scope.at
    scope.path[:], scope.at = path, at
    try:
        yield
    finally:
        scope.path[:], scope.at = known


def standing_in(scope: Scope, loop: For | While, position: int) -> AbstractContextManager[None]:
    """A context in which the statement at hand is one of the body of a loop."""
    at = loop.body[position] if loop.body else loop
    return standing(scope, [*scope.path, "body", position], at)
