"""Loops: laid out flat where the items are known, nodes of the graph where they are numbers.

A loop of the graph carries what a turn changes: names, attributes, gradients, memory. Which these are,
and of which types, is found by interpreting the body; when an attempt shows that more has to be
carried, it is made again. A value whose type changes in the first turn (``total = 0`` before
``total += loss``) makes the slicer take the first turn out of the loop.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dilim import dtypes
from dilim.errors import GradientError
from dilim.ir.types import type_of
from dilim.slicing import numbers, program, scopes, surprises
from dilim.slicing.branches import LoopSignal
from dilim.slicing.errors import OnHost, Restart, Unsliceable
from dilim.slicing.numbers import Number
from dilim.slicing.tracing import symbolic
from dilim.slicing.values import UNBOUND, Choice, Conflict, Host, Range
from dilim.tensors.cells import Cell
from dilim.tensors.loops import add_loop
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer, State

FLAT: Final = 8
"""Ranges of at most so many turns are laid out flat."""
MOST_FLAT: Final = 1000
"""Most turns that are laid out flat at all."""
_ENDLESS: Final = 1 << 62
_GO: Final = "%go"

Place = tuple[str, Any]
"""What a loop carries: ("name", (depth, name)), ("heap", key), ("grad", key) or ("cell", cell)."""


def loop(slicer: Slicer, statement: program.While | program.For) -> None:
    """Interpret a loop."""
    scope = slicer.scope
    number = len(scope.flags)
    flags = [f"%break{number}", f"%continue{number}"]
    scope.flags += flags
    scope.loops.append(statement)
    slicer.env[flags[0]] = slicer.env[flags[1]] = False
    try:
        if isinstance(statement, program.While):
            _while(slicer, statement)
        else:
            _for(slicer, statement)
        stopped = slicer.env.pop(flags[0], False)
        slicer.env.pop(flags[1], None)
    finally:
        del scope.flags[number:]
        scope.loops.pop()
        scope.iterators.pop(getattr(statement, "iterator", ""), None)
    if slicer.dead or not statement.otherwise:
        return
    skipped = slicer.leaving() if stopped is False else stopped
    if skipped is False:
        slicer.block(statement.otherwise, "otherwise")
    elif skipped is not True:
        slicer.branch(skipped, lambda: None, lambda: slicer.block(statement.otherwise, "otherwise"))


def _for(slicer: Slicer, statement: program.For) -> None:
    items = slicer.atom(statement.items)
    if items.__class__ is range:
        if len(items) <= FLAT:
            _flat(slicer, statement, items)
            return
        items = Range(items.start, items.stop, items.step)
    if items.__class__ is Range:
        _counted(slicer, statement, items)
    elif items.__class__ is Host:
        _hosted(slicer, statement)
    elif isinstance(items, Tensor):
        _flat(slicer, statement, (items[k] for k in range(len(items))))
    elif items.__class__ is tuple or id(items) in slicer.fresh or _is_iterator(items):
        _flat(slicer, statement, items)
    elif items.__class__ in (list, dict) and id(items) not in slicer.touched:
        path = slicer.entry.path(items)
        slicer.entry.guard(f"len({path}) == {len(items)}")
        if items.__class__ is dict:
            slicer.entry.guard(f"list({path}) == {slicer.entry.constant(list(items))}")
            _flat(slicer, statement, list(items))
        else:
            _flat(
                slicer,
                statement,
                (slicer.outside(x, f"{path}[{k}]") for k, x in enumerate(list(items))),
            )
    else:
        raise Unsliceable(f"a loop over an object of {type(items).__name__}", statement.line)


def _is_iterator(items: Any) -> bool:
    return items.__class__ in (enumerate, zip, reversed, type(iter([])), type(iter(())))


# --- laid out flat --------------------------------------------------------------------------


def _flat(slicer: Slicer, statement: program.For, items: Any) -> None:
    """One turn after the other."""
    known = list(itertools.islice(items, MOST_FLAT + 1))
    if len(known) > MOST_FLAT:
        raise Unsliceable(f"a loop of more than {MOST_FLAT} known items", statement.line)
    slicer.kept.append(known)
    _turn(slicer, statement, known, 0)


def _turn(slicer: Slicer, statement: program.For, items: list[Any], start: int) -> None:
    scope = slicer.scope
    skip = scope.flags[-1]
    for position in range(start, len(items)):
        slicer.env[statement.target] = items[position]
        scope.iterators[statement.iterator] = items[position + 1 :]
        slicer.env[skip] = False
        slicer.block(statement.body, "body")
        if slicer.dead:
            return
        slicer.env[skip] = False
        leaving = slicer.leaving()
        if leaving is True:
            return
        if leaving is not False:
            following = position + 1
            slicer.branch(
                leaving,
                lambda: None,
                lambda: _turn(slicer, statement, items, following),
                statement,
            )
            return


# --- in the graph ---------------------------------------------------------------------------


class _Again(LoopSignal):
    """The loop has to be interpreted once more, with more to carry."""


class _Peel(LoopSignal):
    """The first turn has to be taken out of the loop."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def _counted(slicer: Slicer, statement: program.For, items: Range) -> None:
    """``for i in range(...)``."""
    known = all(x.__class__ is not Number for x in (items.start, items.stop))
    count: Any = len(range(items.start, items.stop, items.step)) if known else _count(items)
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
        value = number if items.step == 1 else numbers.binary(_MUL, number, items.step)
        if items.start.__class__ is Number or items.start:
            value = numbers.binary(_ADD, value, items.start)
        value.bound = bound
        value.is_natural = items.step > 0 and items.start.__class__ is int and items.start >= 0
        slicer.env[statement.target] = value
        following = numbers.binary(_ADD, value, items.step)
        slicer.scope.iterators[statement.iterator] = Range(following, items.stop, items.step)

    turns = _Turns(slicer, statement, begin, [statement.target, *_written(statement.body)])

    turns.origins = [
        x.origin
        for x in (items.start, items.stop)
        if x.__class__ is Number and x.origin is not None
    ]

    def rest() -> Range:
        start = (
            items.start + items.step
            if items.start.__class__ is int
            else numbers.binary(_ADD, items.start, items.step)
        )
        return Range(start, items.stop, items.step)

    try:
        if known:
            turns.run(count, sure=True)
        else:
            turns.run(count.tensor, sure=False)
    except _Peel as peel:
        if turns.slicer.peeled.get(statement, 0) > 1:
            raise Unsliceable(peel.reason, statement.line) from None
        slicer.peeled[statement] = slicer.peeled.get(statement, 0) + 1
        try:
            first = items.start

            def once() -> None:
                slicer.env[statement.target] = first
                slicer.scope.iterators[statement.iterator] = rest()
                _peeled(slicer, statement, lambda: _counted(slicer, statement, rest()))

            if known:
                once()
            else:
                slicer.branch(numbers.binary(_GT, count, 0), once, lambda: None, statement)
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
        slicer.branch(leaving, lambda: None, others, statement)


def _count(items: Range) -> Number:
    """How many turns, at least 0 or negative for none."""
    if items.step == 1:
        return numbers.binary(_SUB, items.stop, items.start)
    sign = 1 if items.step > 0 else -1
    span = numbers.binary(_SUB, items.stop, items.start)
    return numbers.binary(_DIV, numbers.binary(_ADD, span, items.step - sign), items.step)


def _while(slicer: Slicer, statement: program.While) -> None:
    def test() -> None:
        slicer.block(statement.before, "before")
        slicer.env[_GO] = slicer.condition(statement.test)
        slicer.flush()

    test()
    go = slicer.env[_GO]
    if go is False:
        return
    if go.__class__ is bool:
        slicer.env[_GO] = numbers.symbolic(slicer.trace, go)
    written = [*_written(statement.before), *_written(statement.body), _GO]
    runner = _Turns(slicer, statement, lambda index: None, written, test)
    runner.entered = slicer.env[_GO]
    try:
        runner.run(_ENDLESS, sure=False)
    except _Peel as peel:
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


def _hosted(slicer: Slicer, statement: program.For) -> None:
    """A loop over an iterable of the host: the host says whether there is another item."""
    slicer.begin_iteration(statement)
    kind = slicer.profile.get((statement, statement.target))

    def test() -> None:
        slicer.env[_GO] = slicer.next_item(statement)

    def begin(index: Tensor) -> None:
        slicer.env[statement.target] = Host(kind)
        slicer.validate_turn(statement)

    test()
    runner = _Turns(slicer, statement, begin, [*_written(statement.body), _GO], test)
    runner.entered = slicer.env[_GO]
    try:
        runner.run(_ENDLESS, sure=False)
    except _Peel as peel:
        raise Unsliceable(peel.reason, statement.line) from None
    slicer.env[statement.target] = Host()
    surprises.validate(slicer)


def _written(block: program.Block) -> list[str]:
    found: dict[str, None] = {}
    for statement in block:
        found.update(dict.fromkeys(scopes.writes(statement)))
    return list(found)


def exits(block: program.Block) -> set[str]:
    """The kinds of exits that lead out of the body of a loop."""
    found: set[str] = set()
    for statement in block:
        match statement:
            case program.Exit():
                found.add(statement.kind)
            case program.Unit():
                found |= {"return", "break", "continue"} if statement.exits else set()
            case program.While() | program.For():
                found |= exits(statement.body) & {"return"}
                found |= exits(statement.otherwise)
            case _:
                for inner in scopes.inner_blocks(statement):
                    found |= exits(inner)
    return found


@dataclass(eq=False)
class _Turns:
    """A loop node being made.

    Attributes:
        slicer: who interprets.
        statement: the loop.
        begin: binds the target at the beginning of a turn, from the index.
        names: that a turn may bind.
        test: evaluated at the end of a turn: leaves in ``%go`` whether there is another.
        places: what is carried.
        first: for places that are unbound before the loop: what their zeros are like.
    """

    slicer: Slicer
    statement: program.While | program.For
    begin: Callable[[Tensor], None]
    names: Sequence[str]
    test: Callable[[], None] | None = None
    places: dict[Place, None] = field(default_factory=dict)
    first: dict[Place, Any] = field(default_factory=dict)
    hosted: dict[str, Any] = field(default_factory=dict)
    entered: Any = None
    origins: list[Any] = field(default_factory=list)

    def run(self, limit: Any, sure: bool) -> None:
        """Build the node; the state becomes that after the loop."""
        slicer = self.slicer
        depth = len(slicer.scopes) - 1
        env = slicer.env
        for name in self.names:
            if ("before", (self.statement, name)) in slicer.decisions:
                slicer.to_host(name)
        self._find_hosted()
        live = slicer.scope.live.head[self.statement] | slicer.scope.names_after(self.statement)
        self.names = [name for name in self.names if name in live or name == _GO]
        for name in [*self.names, *self._exit_flags()]:
            value = env.get(name, UNBOUND)
            if numbers.is_number(value) or isinstance(value, Tensor) or _is_bundle(value):
                self.places["name", (depth, name)] = None
        start = slicer.save()
        for _ in range(12):
            try:
                self._attempt(limit, start, sure)
                return
            except _Again:
                slicer.restore(start)
            except _Peel:
                slicer.restore(start)
                raise
            except GradientError as error:
                if isinstance(limit, Tensor) and self.origins:
                    raise Restart(self.origins[0]) from None
                raise Unsliceable(str(error), self.statement.line) from None
        raise Unsliceable("a loop whose values find no common type", self.statement.line)

    def _exit_flags(self) -> list[str]:
        kinds = exits(self.statement.body)
        flags = self.slicer.scope.flags
        found = [flags[-2]] if "break" in kinds else []
        return found + (["%return"] if "return" in kinds else [])

    def _find_hosted(self) -> None:
        for name in self.names:
            value = self.slicer.env.get(name, UNBOUND)
            if value.__class__ is Host:
                self.hosted[name] = value.kind

    # --- one attempt ----------------------------------------------------------------------

    def _attempt(self, limit: Any, start: State, sure: bool) -> None:
        slicer = self.slicer
        trace: Any = slicer.trace
        places = list(self.places)
        firsts = [self._start_of(place) for place in places]
        flat: list[Tensor] = []
        shapes = [_flatten(value, flat, trace) for value in firsts]
        after: dict[Place, Any] = {}
        trace.outer_writes.append({})
        kept_held = dict(slicer.objects.held)
        try:
            results = add_loop(
                trace,
                limit,
                flat,
                lambda index, *args: self._body(start, places, shapes, index, args, after),
                self._condition(places, shapes),
            )
        finally:
            before = trace.outer_writes.pop()
            for cell, (value, owner) in before.items():
                cell.value, cell.frame = value, owner
        slicer.restore(start)
        stale = {p[1] for p in places if p[0] == "cell"}
        slicer.objects.held = {
            cell: (number, None if cell in stale else seen)
            for cell, (number, seen) in kept_held.items()
        }
        given = iter(results)
        for place, shape in zip(places, shapes, strict=True):
            self._put(place, _unflatten(shape, given, None), after=True, sure=sure, limit=limit)
        self._after(after, places)

    def _start_of(self, place: Place) -> Any:
        slicer = self.slicer
        if place in self.first:
            return self.first[place]
        kind, key = place
        if kind == "name":
            return slicer.scopes[key[0]].env[key[1]]
        if kind == "heap":
            value = slicer.heap.get(key, UNBOUND)
            return slicer.original(key) if value is UNBOUND else value
        if kind == "grad":
            return slicer.leaves[key].grad
        return slicer.trace.symbol(slicer.trace.contents(key))

    def _put(
        self, place: Place, value: Any, *, after: bool = False, sure: bool = True, limit: Any = None
    ) -> None:
        slicer = self.slicer
        kind, key = place
        if kind == "name":
            if after and place in self.first and not sure:
                value = self._maybe(value, limit)
            slicer.scopes[key[0]].env[key[1]] = value
        elif kind == "heap":
            slicer.heap[key] = value
        elif kind == "grad":
            slicer.leaves[key].grad = value
        else:
            content = slicer.trace.value(value._data)
            slicer.trace.assign(key, content)

    def _maybe(self, value: Any, limit: Any) -> Any:
        """The value of a name that is unbound if there is no turn."""
        if isinstance(limit, Tensor):
            return Choice(Number(limit > 0, bool), value, UNBOUND)
        return Choice(self.entered, value, UNBOUND)

    def _condition(self, places: list[Place], shapes: list[Any]) -> Callable[..., Tensor] | None:
        """Whether there is another turn, from the carried flags."""
        depth = len(self.slicer.scopes) - 1
        ends = [("name", (depth, flag)) for flag in self._exit_flags()]
        go: Place = ("name", (depth, _GO))
        wanted = [place for place in (*ends, go) if place in places]
        if not wanted:
            return None

        def holds(index: Tensor, *args: Tensor) -> Tensor:
            given = iter(args)
            values = {
                place: _unflatten(shape, given, None)
                for place, shape in zip(places, shapes, strict=True)
            }
            result: Any = None
            for place in wanted:
                flag = values[place].tensor
                flag = flag if place == go else dilim_not(flag)
                result = flag if result is None else result & flag
            return result  # type: ignore[no-any-return]

        return holds

    def _body(
        self,
        start: State,
        places: list[Place],
        shapes: list[Any],
        index: Tensor,
        args: tuple[Tensor, ...],
        after: dict[Place, Any],
    ) -> list[Tensor]:
        slicer = self.slicer
        slicer.restore(start)
        slicer.objects.held = {
            cell: (number, None if ("cell", cell) in self.places else seen)
            for cell, (number, seen) in start.held.items()
        }
        given = iter(args)
        heads = {}
        for place, shape in zip(places, shapes, strict=True):
            heads[place] = _unflatten(shape, given, self)
            self._put(place, heads[place])
        for name, kind in self.hosted.items():
            slicer.env[name] = Host(kind)
        head = slicer.save()
        self.begin(index)
        stop, skip = slicer.scope.flags[-2:]
        slicer.block(self.statement.body, "body")
        if slicer.dead:
            raise Unsliceable("a loop whose body never comes to its end", self.statement.line)
        slicer.env[skip] = False
        self._test_again()
        slicer.flush()
        self._check(head, places)
        out: list[Tensor] = []
        for place, shape in zip(places, shapes, strict=True):
            _collect(self, place, shape, self._now(place), out)
        after.update({("name", k): v for k, v in self._own_env().items()})
        return out

    def _own_env(self) -> dict[tuple[int, str], Any]:
        depth = len(self.slicer.scopes) - 1
        return {(depth, name): value for name, value in self.slicer.env.items()}

    def _test_again(self) -> None:
        slicer = self.slicer
        if self.test is None:
            return
        leaving = slicer.leaving()
        if leaving is False:
            self.test()
        elif leaving is True:
            slicer.env[_GO] = False
        else:
            slicer.env[_GO] = False
            slicer.branch(leaving, lambda: None, self.test, self.statement)

    def _now(self, place: Place) -> Any:
        slicer = self.slicer
        kind, key = place
        if kind == "name":
            return slicer.scopes[key[0]].env.get(key[1], UNBOUND)
        if kind == "heap":
            return slicer.heap[key]
        if kind == "grad":
            return slicer.leaves[key].grad
        return slicer.trace.symbol(slicer.trace.contents(key))

    def _check(self, head: State, places: list[Place]) -> None:
        """See whether more has to be carried."""
        slicer = self.slicer
        depth = len(slicer.scopes) - 1
        more: list[Place] = []
        known = set(places)
        for name in self.names:
            place: Place = ("name", (depth, name))
            before, now = head.envs[-1].get(name, UNBOUND), slicer.env.get(name, UNBOUND)
            if before is now or name == _GO or (place in known and now.__class__ is not Host):
                continue
            if now.__class__ is Host or before.__class__ is Host:
                self._host_name(name, before, now)
            elif before is UNBOUND and _carriable(now):
                self.first[place] = _like(now)
                more.append(place)
            elif before is not UNBOUND and _same(before, now):
                continue
            elif before.__class__ is Conflict or now.__class__ is Conflict:
                continue
            elif before is UNBOUND:
                raise Unsliceable(f"{name} is bound in a loop", self.statement.line)
            else:
                raise _Peel(f"{name} changes its type in a loop")
        for key, value in slicer.heap.items():
            if ("heap", key) not in known and head.heap.get(key, UNBOUND) is not value:
                more.append(("heap", key))
        for key, leaf in slicer.leaves.items():
            before = head.grads.get(key, slicer.initial_grads[key][1])
            if ("grad", key) not in known and before is not leaf.grad:
                if before is None:
                    raise _Peel("a gradient is there only after the first turn")
                more.append(("grad", key))
        for cell in slicer.trace.outer_writes[-1]:  # type: ignore[attr-defined]
            if ("cell", cell) not in known:
                more.append(("cell", cell))
        for key, contents in head.contents.items():
            if not _same_items(contents, slicer.fresh[key]):
                raise Restart(("host", slicer.made_by[key]))
        if more:
            self.places.update(dict.fromkeys(more))
            raise _Again

    def _host_name(self, name: str, before: Any, now: Any) -> None:
        slicer = self.slicer
        if name in self.hosted:
            if now.__class__ is not Host and now is not UNBOUND:
                slicer.hand_over(slicer.scope, name, now)
                slicer.env[name] = Host(self.hosted[name])
            return
        if before is UNBOUND:
            return
        if before.__class__ is not Host and not isinstance(before, Conflict):
            raise Restart(("before", (self.statement, name)))

    def _after(self, after: dict[Place, Any], places: list[Place]) -> None:
        """Names that are bound in the loop, but are not carried."""
        env = self.slicer.env
        known = {key for kind, key in places if kind == "name"}
        for place, value in after.items():
            key = place[1]
            name = key[1]
            if key in known or name in self.hosted or name not in self.names:
                continue
            before = env.get(name, UNBOUND)
            if before is value or (before is not UNBOUND and _same(before, value)):
                continue
            if value.__class__ is Host:
                env[name] = Host(value.kind) if before is UNBOUND else Host()
            else:
                env[name] = Conflict(f"{name} is bound in a loop")


# --- values as lists of tensors ---------------------------------------------------------------


def _is_bundle(value: Any) -> bool:
    return value.__class__ is tuple and bool(value) and all(map(_carriable, value))


def _carriable(value: Any) -> bool:
    return numbers.is_number(value) or isinstance(value, Tensor) or _is_bundle(value)


def _flatten(value: Any, flat: list[Tensor], trace: Any) -> Any:
    """Append the tensors of a value; its shape: what is needed to put it together again."""
    if value.__class__ is tuple:
        return [_flatten(x, flat, trace) for x in value]
    if isinstance(value, Tensor):
        flat.append(symbolic(trace, value) if value.device is not trace else value)
        return type_of(value)
    number = numbers.symbolic(trace, value)
    flat.append(number.tensor)
    return number.kind


def _unflatten(shape: Any, given: Iterator[Tensor], turns: Any) -> Any:
    if shape.__class__ is list:
        return tuple(_unflatten(x, given, turns) for x in shape)
    tensor = next(given)
    if shape in (int, float, bool):
        number = Number(tensor, shape)
        if turns is not None and shape is int:
            number.base, number.drift = number, 0
        return number
    return tensor


def _collect(turns: _Turns, place: Place, shape: Any, value: Any, out: list[Tensor]) -> None:
    """Append the tensors of a value after a turn, which must be like before it."""
    trace = turns.slicer.trace
    what = f"{place[1][1]} changes its type in a loop" if place[0] == "name" else "a type changes"
    if shape.__class__ is list:
        if value.__class__ is not tuple or len(value) != len(shape):
            raise _Peel(what)
        for part, x in zip(shape, value, strict=True):
            _collect(turns, place, part, x, out)
        return
    if shape in (int, float, bool):
        if not numbers.is_number(value) or numbers.kind_of(value) is not shape:
            raise _Peel(what)
        number = numbers.symbolic(trace, value)
        if shape is int and number.bound >= numbers.LARGE and number.base is None:
            raise OnHost("an int that may grow beyond 64 bits")
        out.append(number.tensor)
        return
    if not isinstance(value, Tensor) or type_of(value) != shape:
        raise _Peel(what)
    out.append(symbolic(trace, value))  # type: ignore[arg-type]


def _like(value: Any) -> Any:
    """Zeros like a value, eager: what a name carries before it is bound."""
    if value.__class__ is tuple:
        return tuple(map(_like, value))
    if isinstance(value, Tensor):
        return Tensor._from_array(dtypes_zeros(value))
    return numbers.kind_of(value)(0)


def dtypes_zeros(x: Tensor) -> Any:
    """An array of zeros of a tensor's type."""
    import numpy as np

    return np.zeros(x.shape, x.dtype.numpy)


def dilim_not(flag: Tensor) -> Tensor:
    """The opposite of a bool tensor."""
    return ~flag


def _same(a: Any, b: Any) -> bool:
    if a is b:
        return True
    return a.__class__ is b.__class__ and a.__class__ in (str, bytes, type(None), bool) and a == b


def _same_items(a: Any, b: Any) -> bool:
    if len(a) != len(b):
        return False
    if a.__class__ is list:
        return all(x is y or _same(x, y) for x, y in zip(a, b, strict=True))
    return all(k in b and (x is b[k] or _same(x, b[k])) for k, x in a.items())


from operator import add as _ADD  # noqa: E402
from operator import floordiv as _DIV  # noqa: E402
from operator import gt as _GT  # noqa: E402
from operator import mul as _MUL  # noqa: E402
from operator import sub as _SUB  # noqa: E402

__all__ = ["Cell", "dtypes", "loop"]
