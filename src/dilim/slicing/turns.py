"""A loop of the graph: what its turns carry, found by interpreting the body."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dilim.errors import GradientError
from dilim.slicing import bundles, numbers, program, scopes, surprises
from dilim.slicing.branches import LoopSignal
from dilim.slicing.errors import Restart, Unsliceable
from dilim.slicing.numbers import Number
from dilim.slicing.tracing import is_used_up, use_up, without_used_tape
from dilim.slicing.values import UNBOUND, Choice, Conflict, Host
from dilim.tensors.loops import add_loop
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.interpreter import State
    from dilim.slicing.slicer import Slicer

GO: Final = "%go"
"""Stands for whether a loop has another turn."""
_STALE: Final = object()
"""What the host sees of an attribute that a turn writes there."""
Place = tuple[str, Any]
"""What a loop carries: ("name", (depth, name)), ("heap", key), ("grad", key) or ("cell", cell)."""


class Again(LoopSignal):
    """The loop has to be interpreted once more, with more to carry."""


class Peel(LoopSignal):
    """The first turn has to be taken out of the loop."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def written(block: program.Block) -> list[str]:
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


def only_changed_in_place(block: program.Block) -> set[str]:
    """The names that a block binds by augmented assignments only, such as ``x += 1``."""
    augmented: set[str] = set()
    bound: set[str] = set()
    for statement in block:
        for inner in scopes.inner_blocks(statement):
            found = set(written(inner))
            augmented |= only_changed_in_place(inner)
            bound |= found - only_changed_in_place(inner)
        if isinstance(statement, program.Step) and isinstance(statement.node, ast.AugAssign):
            augmented |= set(statement.writes)
        elif isinstance(statement, program.Step | program.Unit):
            bound |= set(statement.writes)
        elif isinstance(statement, program.For):
            bound.add(statement.target)
        elif isinstance(statement, program.With) and statement.target is not None:
            bound.add(statement.target)
    return augmented - bound


@dataclass(eq=False)
class Turns:
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
    used_up: set[Place] = field(default_factory=set)
    shown: set[Any] = field(default_factory=set)
    starts: dict[Place, Any] = field(default_factory=dict)
    alias: dict[Place, Place] = field(default_factory=dict)
    uncounted: set[Any] = field(default_factory=set)

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
        self.names = [name for name in self.names if name in live or name == GO]
        in_place = only_changed_in_place(self.statement.body)
        for name in [*self.names, *self._exit_flags()]:
            value = env.get(name, UNBOUND)
            if isinstance(value, Tensor) and name in in_place:
                continue  # it stays the same object
            if numbers.is_number(value) or isinstance(value, Tensor) or bundles.is_bundle(value):
                self.places["name", (depth, name)] = None
        self._check_start()
        slicer.flush()
        start = slicer.save()
        for _ in range(12):
            try:
                self._attempt(limit, start, sure)
                return
            except Again:
                slicer.restore(start)
            except Peel:
                slicer.restore(start)
                raise
            except GradientError as error:
                if isinstance(limit, Tensor) and self.origins:
                    raise Restart(self.origins[0]) from None
                raise Unsliceable(str(error), self.statement.line) from None
        raise Unsliceable("a loop whose values find no common type", self.statement.line)

    def _check_start(self) -> None:
        """An int that a loop counts on from must leave room."""
        slicer = self.slicer
        for kind, key in self.places:
            value = slicer.env.get(key[1]) if kind == "name" else None
            if value.__class__ is not Number or value.bound <= numbers.LARGE:  # type: ignore[union-attr]
                continue
            number: Any = value
            if number.kind is not int:
                continue
            with no_grad():
                fits = (number.tensor < numbers.LARGE) & (number.tensor > -numbers.LARGE)
            surprises.unless(slicer, fits, "an int of more than 61 bits", again=True)
            slicer.env[key[1]] = Number(number.tensor, int)

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
        shapes = [bundles.flatten(value, flat, trace) for value in firsts]
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
        slicer.seen.update(dict.fromkeys(self.shown, _STALE))
        slicer.trace.uncounted |= self.uncounted
        stale = {p[1] for p in places if p[0] == "cell"}
        slicer.objects.held = {
            cell: (number, None if cell in stale else seen)
            for cell, (number, seen) in kept_held.items()
        }
        given = iter(results)
        made: dict[Place, Any] = {}
        for place, shape in zip(places, shapes, strict=True):
            value = bundles.unflatten(shape, given)
            if shape is int and self._exit_flags():
                value.bound = (1 << 63) - 1  # it may have been left before it was looked at
            if isinstance(value, Tensor) and place[0] != "cell":
                if place in self.used_up:
                    use_up(value)
                other = made.get(self.alias.get(place))  # type: ignore[arg-type]
                if not sure and place not in self.first:
                    first = self._start_of(place)
                    slicer.join_objects(value, self._turned(limit), other, first)
                elif other is not None:
                    value = other
            made[place] = value
            self._put(place, value, after=True, sure=sure, limit=limit)
        self._after(after, places)

    def _start_of(self, place: Place) -> Any:
        slicer = self.slicer
        if place in self.first:
            return self.first[place]
        if place in self.starts:
            start = self.starts[place]
            absent = numbers.symbolic(self.slicer.trace, False)
            return Choice(absent, start, None)
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

    def _turned(self, limit: Any) -> Number:
        """Whether there was a turn."""
        if not isinstance(limit, Tensor):
            return numbers.symbolic(self.slicer.trace, self.entered)
        with no_grad():
            return Number(limit > 0, bool)

    def _maybe(self, value: Any, limit: Any) -> Any:
        """The value of a name that is unbound if there is no turn."""
        return Choice(self._turned(limit), value, UNBOUND)

    def _condition(self, places: list[Place], shapes: list[Any]) -> Callable[..., Tensor] | None:
        """Whether there is another turn, from the carried flags."""
        depth = len(self.slicer.scopes) - 1
        ends = [("name", (depth, flag)) for flag in self._exit_flags()]
        go: Place = ("name", (depth, GO))
        wanted = [place for place in (*ends, go) if place in places]
        if not wanted:
            return None

        def holds(index: Tensor, *args: Tensor) -> Tensor:
            given = iter(args)
            values = {
                place: bundles.unflatten(shape, given)
                for place, shape in zip(places, shapes, strict=True)
            }
            result: Any = None
            for place in wanted:
                flag = values[place].tensor
                flag = flag if place == go else ~flag
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
            head = heads[place] = bundles.unflatten(shape, given, True)
            if isinstance(head, Tensor) and place[0] != "cell" and place not in self.first:
                with no_grad():
                    later = Number(index > 0, bool)
                other = heads.get(self.alias.get(place))  # type: ignore[arg-type]
                slicer.join_objects(head, later, other, self._start_of(place))
            self._put(place, heads[place])
        for name, kind in self.hosted.items():
            slicer.env[name] = Host(kind)
        slicer.seen.update(dict.fromkeys(self.shown, _STALE))
        slicer.trace.uncounted |= self.uncounted
        at_head = slicer.save()
        self.begin(index)
        stop, skip = slicer.scope.flags[-2:]
        slicer.block(self.statement.body, "body")
        if slicer.dead:
            raise Unsliceable("a loop whose body never comes to its end", self.statement.line)
        slicer.env[skip] = False
        self._check_growth(places, shapes)
        self._test_again()
        slicer.flush()
        self._check(at_head, places)
        out: list[Tensor] = []
        for place, shape in zip(places, shapes, strict=True):
            self._collect(place, shape, out)
        after.update({("name", k): v for k, v in self._own_env().items()})
        return out

    def _collect(self, place: Place, shape: Any, out: list[Tensor]) -> None:
        value = self._now(place)
        if isinstance(value, Tensor) and is_used_up(value):
            self.used_up.add(place)
            value = without_used_tape(self.slicer.trace, value)  # type: ignore[arg-type]
        try:
            bundles.collect(self.slicer.trace, shape, value, out)
        except bundles.ChangesType:
            name = place[1][1] if place[0] in ("name", "heap") else "a gradient"
            raise Peel(f"{name} changes its type in a loop") from None

    def _check_growth(self, places: list[Place], shapes: list[Any]) -> None:
        """Where an int may grow beyond what a graph can hold, see whether it has."""
        slicer = self.slicer
        small: Any = None
        for place, shape in zip(places, shapes, strict=True):
            value = self._now(place)
            if shape is not int or value.__class__ is not Number:
                continue
            if value.bound < numbers.LARGE or value.base is not None:
                continue
            with no_grad():
                fits = (value.tensor < numbers.LARGE) & (value.tensor > -numbers.LARGE)
                small = fits if small is None else small & fits
        leaving = slicer.leaving()
        if leaving is True or small is None:
            return
        if leaving is not False:
            small = small | leaving.tensor
        if small is not None:
            slicer.end_of_turn(self.statement, small)

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
            slicer.env[GO] = False
        else:
            slicer.env[GO] = False
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
            if before is now or name == GO or (place in known and now.__class__ is not Host):
                continue
            if now.__class__ is Host or before.__class__ is Host:
                self._host_name(name, before, now)
            elif before is UNBOUND and bundles.is_carriable(now):
                self.first[place] = bundles.zeros_like(now)
                more.append(place)
            elif before is not UNBOUND and bundles.same(before, now):
                continue
            elif bundles.is_carriable(before) and bundles.is_carriable(now):
                more.append(place)
            elif before.__class__ is Conflict or now.__class__ is Conflict:
                continue
            elif before is UNBOUND:
                raise Unsliceable(f"{name} is bound in a loop", self.statement.line)
            else:
                raise Peel(f"{name} changes its type in a loop")
        for key, value in slicer.heap.items():
            if value.__class__ is Host:
                continue
            if ("heap", key) not in known and head.heap.get(key, UNBOUND) is not value:
                more.append(("heap", key))
        for key, leaf in slicer.leaves.items():
            before = head.grads.get(key, slicer.initial_grads[key][1])
            if ("grad", key) not in known and before is not leaf.grad:
                if before is None and leaf.grad.__class__ is Choice:
                    self.starts["grad", key] = bundles.zeros_like(leaf.grad.yes)
                elif before is None:
                    self.starts["grad", key] = bundles.zeros_like(leaf.grad)
                more.append(("grad", key))
        for cell in slicer.trace.outer_writes[-1]:  # type: ignore[attr-defined]
            if ("cell", cell) not in known:
                more.append(("cell", cell))
        for key, contents in head.contents.items():
            if not bundles.same_items(contents, slicer.fresh[key]):
                raise Restart(("host", slicer.made_by[key]))
        shown = {key for key, x in slicer.seen.items() if head.seen.get(key, UNBOUND) is not x}
        uncounted = slicer.trace.uncounted - head.uncounted
        alias = self._aliases(places)
        if more or not shown <= self.shown or uncounted - self.uncounted or alias != self.alias:
            self.shown |= shown
            self.uncounted |= uncounted
            self.alias = alias
            self.places.update(dict.fromkeys(more))
            raise Again

    def _aliases(self, places: list[Place]) -> dict[Place, Place]:
        """Places that are one tensor at the end of a turn: each with the first of them."""
        known: dict[int, Place] = {}
        found = {}
        for place in places:
            value = self._now(place) if place[0] in ("name", "heap") else None
            if isinstance(value, Tensor):
                if id(value) in known:
                    found[place] = known[id(value)]
                else:
                    known[id(value)] = place
        return found

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
            if before is value or (before is not UNBOUND and bundles.same(before, value)):
                continue
            if value.__class__ is Host:
                env[name] = Host(value.kind) if before is UNBOUND else Host()
            else:
                env[name] = Conflict(f"{name} is bound in a loop")
