"""Loops: laid out flat where the items are known, nodes of the graph where they are numbers.

A loop of the graph carries what a turn changes: names, attributes, gradients, memory. Which these
are, and of which types, is found by interpreting the body; when an attempt shows that more has to
be carried, it is made again. A value whose type changes in the first turn (``total = 0`` before
``total += loss``) makes the slicer take the first turn out of the loop.
"""

from __future__ import annotations

import dataclasses
import itertools
import operator
from collections.abc import Callable, Iterator
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dilim.slicing import host_items, iterators, numbers, program, surprises, tapes
from dilim.slicing.carried import GO
from dilim.slicing.errors import OnHost, Peel, Restart, TooLarge, Unsliceable
from dilim.slicing.kept_turns import WITH_HOST, KeptTurns
from dilim.slicing.loop_bodies import written
from dilim.slicing.numbers import Number
from dilim.slicing.turns import ENDLESS, Turns
from dilim.slicing.values import NEW_LIST, UNBOUND, Host, Range, View
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer

FLAT: Final = 8
"""Ranges of at most so many turns are laid out flat."""
MOST_INSTEAD: Final = 128
"""Most turns that are laid out flat where the loop cannot be one of the graph."""
MOST_FLAT: Final = 1000
"""Most turns that are laid out flat at all."""
_PLAIN: Final = frozenset({list, tuple, dict, View, set, frozenset, str, bytes, np.ndarray})
"""Types whose items are given by no code of the user's."""


def loop(slicer: Slicer, statement: program.While | program.For) -> None:
    """Interpret a loop."""
    scope = slicer.scope
    number = len(scope.flags)
    flags = [f"%break{number}", f"%continue{number}"]
    scope.flags += flags
    scope.loops.append(statement)
    slicer.env[flags[0]] = slicer.env[flags[1]] = False
    around = slicer.env.get(GO, UNBOUND)
    try:
        if isinstance(statement, program.While):
            _while(slicer, statement)
        else:
            _for(slicer, statement)
        stopped = slicer.env.pop(flags[0], False)
        slicer.env.pop(flags[1], None)
        slicer.env[GO] = around
    finally:
        del scope.flags[number:]
        scope.loops.pop()
        scope.iterators.pop(getattr(statement, "iterator", ""), None)
    if slicer.dead or not statement.otherwise:
        return
    skipped = slicer.either(stopped, slicer.leaving())
    if skipped is False:
        slicer.block(statement.otherwise, "otherwise")
    elif skipped is not True:
        slicer.go_on(skipped, lambda: slicer.block(statement.otherwise, "otherwise"))


def _for(slicer: Slicer, statement: program.For) -> None:
    items, atom = slicer.value_or_host(statement.items)
    if atom is not statement.items:
        statement = dataclasses.replace(statement, items=atom)
    if items.__class__ is range:
        if len(items) <= FLAT:
            _flat(slicer, statement, iter(items))
            return
        items = Range(items.start, items.stop, items.step)
    if items.__class__ is Range:
        _counted(slicer, statement, items)
    elif items.__class__ is Host:
        _hosted(slicer, statement, items)
    elif isinstance(items, Tensor):
        if slicer.trace.is_past(items):
            raise Unsliceable("a loop over a tensor that was written past its gradient")
        _flat(slicer, statement, iterators.Rows(items))
    elif id(items) in slicer.makings:
        maker = slicer.makings[id(items)].maker
        _flat(slicer, statement, iterators.taken(slicer, items), ("host", maker))
    else:
        try:
            left = iterators.over(slicer, items)
        except OnHost:
            _hosted(slicer, statement, items)
            return
        _flat(slicer, statement, left, _left_to_host(slicer, items))


def _left_to_host(slicer: Slicer, items: Any) -> Any:
    """What is decided where a loop over a container turns out to be the host's."""
    owner = items.owner if items.__class__ is View else items
    if owner.__class__ in (list, dict) and id(owner) not in slicer.fresh:
        return "touched", slicer.entry.path(owner)
    return "host", slicer.made_by.get(id(owner))


# --- laid out flat --------------------------------------------------------------------------


def _flat(slicer: Slicer, statement: program.For, items: Any, decision: Any = None) -> None:
    """One turn after the other.

    Args:
        slicer: who interprets.
        statement: the loop.
        items: what it takes.
        decision: what to begin again with where only the host can take them.
    """
    if not iterators.is_repeatable(items):
        items = iter(tuple(itertools.islice(items, MOST_FLAT + 1)))
    try:
        count = sum(1 for _ in itertools.islice(iterators.again(items), MOST_FLAT + 1))
    except ValueError:  # of a strict zip, which Python raises at its turn
        raise Restart(decision) from None
    if count > MOST_FLAT:
        raise Unsliceable(f"a loop of more than {MOST_FLAT} known items", statement.line)
    _turn(slicer, statement, items, decision, 0)


def _turn(
    slicer: Slicer, statement: program.For, items: Iterator[Any], decision: Any, position: int
) -> None:
    scope = slicer.scope
    skip = scope.flags[-1]
    items = iterators.again(items)  # what comes next may be interpreted on several paths
    for turn in itertools.count(position):
        try:
            iterators.renew(slicer, items)
            slicer.env[statement.target] = next(items)
        except StopIteration:
            break
        except (OnHost, ValueError):
            raise Restart(decision) from None
        if turn > MOST_FLAT:
            raise Unsliceable("a list that grows under its loop", statement.line)
        scope.iterators[statement.iterator] = items
        slicer.env[skip] = False
        slicer.block(statement.body, "body")
        if slicer.dead:
            return
        slicer.env[skip] = False
        leaving = slicer.leaving()
        if leaving is True:
            return
        if leaving is not False:
            others = partial(_turn, slicer, statement, items, decision, turn + 1)
            slicer.go_on(leaving, others, statement)
            return


# --- in the graph ---------------------------------------------------------------------------


def _counted(slicer: Slicer, statement: program.For, items: Range) -> None:
    """``for i in range(...)``."""
    known = all(x.__class__ is not Number for x in (items.start, items.stop))
    try:
        count: Any = len(range(items.start, items.stop, items.step)) if known else _count(items)
    except (OnHost, OverflowError) as refusal:
        raise Unsliceable(str(refusal), statement.line) from None
    if known and count == 0:
        return
    if known:
        turns_of = range(items.start, items.stop, items.step)
        bound = max(abs(turns_of[0]), abs(turns_of[-1]))
    else:
        bound = abs(items.step) + max(
            x.bound if x.__class__ is Number else abs(x) for x in (items.start, items.stop)
        )

    def begin(index: Tensor) -> None:
        number = Number(index, int, bound)
        value = number if items.step == 1 else numbers.binary(operator.mul, number, items.step)
        if items.start.__class__ is Number or items.start:
            value = numbers.binary(operator.add, value, items.start)
        value.bound = bound
        value.is_natural = items.step > 0 and items.start.__class__ is int and items.start >= 0
        slicer.env[statement.target] = value
        following = numbers.binary(operator.add, value, items.step)
        slicer.scope.iterators[statement.iterator] = Range(following, items.stop, items.step)

    turns = Turns(slicer, statement, [statement.target, *written(statement.body)], begin=begin)
    if not known:
        turns.memory = KeptTurns(slicer, statement, left=items)
    turns.origins = [
        x.origin
        for x in (items.start, items.stop)
        if x.__class__ is Number and x.origin is not None
    ]

    slicer.flush()
    state = slicer.save()
    try:
        if ("flat", statement) in slicer.decisions:
            raise Unsliceable(tapes.THROUGH, statement.line)
        turns.run(count if known else count.tensor, sure=known)
        return
    except Peel as peel:
        if slicer.peeled.get(statement, 0) == 0:
            _peel_counted(slicer, statement, items, None if known else count)
            return
        reason = peel.reason
    except (Unsliceable, OnHost) as refusal:
        reason = refusal.reason
    slicer.restore(state)
    if known and count <= MOST_INSTEAD:
        _flat(slicer, statement, iter(range(items.start, items.stop, items.step)))
    elif turns.origins:
        raise Restart(turns.origins[0])
    else:
        raise Unsliceable(reason, statement.line)


def _peel_counted(
    slicer: Slicer, statement: program.For, items: Range, count: Number | None
) -> None:
    """Take the first turn out of a loop over a range."""
    following = Range(numbers.added(items.start, items.step), items.stop, items.step)
    slicer.peeled[statement] = slicer.peeled.get(statement, 0) + 1

    def once() -> None:
        slicer.env[statement.target] = items.start
        slicer.scope.iterators[statement.iterator] = following
        _peeled(slicer, statement, lambda: _counted(slicer, statement, following))

    try:
        if count is None:
            once()
        else:
            more = numbers.binary(operator.gt, count, 0)
            slicer.branch(more, once, lambda: None, statement)
    finally:
        slicer.peeled[statement] -= 1


def _peeled(
    slicer: Slicer, statement: program.While | program.For, others: Callable[[], None]
) -> None:
    """One turn, then the others."""
    skip = slicer.scope.flags[-1]
    slicer.env[skip] = False
    slicer.block(statement.body, "body")
    if slicer.dead:
        return
    slicer.env[skip] = False
    leaving = slicer.leaving()
    if leaving is False:
        others()
    elif leaving is not True:
        slicer.go_on(leaving, others, statement)


def _count(items: Range) -> Number:
    """How many turns, at least 0 or negative for none.

    Raises:
        TooLarge: they may be more than a graph can count, or begin where it cannot.
    """
    if any(map(numbers.is_beyond, (items.start, items.stop))):
        raise TooLarge
    if items.step == 1:
        return numbers.binary(operator.sub, items.stop, items.start)
    sign = 1 if items.step > 0 else -1
    span = numbers.binary(operator.sub, items.stop, items.start)
    return numbers.binary(
        operator.floordiv, numbers.binary(operator.add, span, items.step - sign), items.step
    )


def _while(slicer: Slicer, statement: program.While) -> None:
    if ("flat", statement) in slicer.decisions:
        raise Unsliceable(tapes.THROUGH, statement.line)

    def test() -> None:
        slicer.block(statement.before, "before")
        slicer.env[GO] = slicer.condition(statement.test)
        slicer.flush()

    actions = len(slicer.actions)
    test()
    is_pure = len(slicer.actions) == actions
    go = slicer.env[GO]
    if go is False:
        return
    if go.__class__ is bool:
        slicer.env[GO] = numbers.symbolic(slicer.trace, go)
    names = [*written(statement.before), *written(statement.body), GO]
    runner = Turns(slicer, statement, names, begin=lambda index: None, test=test)
    runner.entered = slicer.env[GO]
    runner.memory = KeptTurns(slicer, statement, "" if is_pure else WITH_HOST)
    try:
        runner.run(ENDLESS, sure=False)
    except Peel as peel:
        if slicer.peeled.get(statement, 0) > 1:
            raise Unsliceable(peel.reason, statement.line) from None
        slicer.peeled[statement] = slicer.peeled.get(statement, 0) + 1

        def once() -> None:
            _peeled(slicer, statement, lambda: _while(slicer, statement))

        try:
            if go is True:
                once()
            else:
                slicer.branch(go, once, lambda: None, statement)
        finally:
            slicer.peeled[statement] -= 1


def _hosted(slicer: Slicer, statement: program.For, items: Any) -> None:
    """A loop over an iterable of the host: the host says whether there is another item."""
    slicer.to_host(statement.target)
    before = slicer.env.get(statement.target)
    is_sure = before.__class__ is Host and before.is_sure
    host_items.begin(slicer, statement, items)
    kind = slicer.profile.get((statement, statement.target))

    is_plain = items.kind == NEW_LIST if items.__class__ is Host else items.__class__ in _PLAIN

    def test() -> None:
        slicer.env[GO] = host_items.next_item(slicer, statement, is_plain)

    def begin(index: Tensor) -> None:
        slicer.env[statement.target] = Host(kind)
        slicer.validate_turn(statement)

    test()
    runner = Turns(slicer, statement, [*written(statement.body), GO], begin=begin, test=test)
    runner.entered, runner.can_peel = slicer.env[GO], False
    runner.memory = KeptTurns(slicer, statement, WITH_HOST)
    try:
        runner.run(ENDLESS, sure=False)
    except Peel as peel:
        raise Unsliceable(peel.reason, statement.line) from None
    slicer.env[statement.target] = Host(is_sure=is_sure)
    slicer.keeping.bind(slicer.scope.number, statement.target, None)
    slicer.keeping.end(slicer.scope.number, statement.iterator)
    _validate_end(slicer, statement)


def _validate_end(slicer: Slicer, statement: program.For) -> None:
    """See whether all is as expected after a loop: where it was not broken, its else comes next."""

    def at_otherwise() -> None:
        path = [*slicer.scope.path, "otherwise", 0]
        with surprises.standing(slicer.scope, path, statement.otherwise[0]):
            surprises.validate(slicer, again=True)

    stopped = slicer.env[slicer.scope.flags[-2]]
    if not statement.otherwise or stopped is True:
        surprises.validate(slicer)
    elif stopped is False:
        at_otherwise()
    else:
        broken = partial(surprises.validate, slicer)
        slicer.branch(stopped, broken, at_otherwise, statement, again=True)
