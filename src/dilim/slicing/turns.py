"""A loop of the graph, made by interpreting its body until it is known what the turns carry."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any

from dilim.errors import GradientError
from dilim.slicing import bundles, numbers, surprises
from dilim.slicing.carried import GO, STALE, Again, Carried, Peel, Place
from dilim.slicing.errors import Restart, Unsliceable
from dilim.slicing.interpreter import RESULT
from dilim.slicing.loop_bodies import exits, only_changed_in_place
from dilim.slicing.numbers import Number
from dilim.slicing.tracing import use_up
from dilim.slicing.values import UNBOUND, Host
from dilim.tensors.loops import add_loop
from dilim.tensors.tape import no_grad, now
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.interpreter import State


@dataclass(eq=False)
class Turns(Carried):
    """A loop node being made.

    Attributes:
        begin: binds the target at the beginning of a turn, from the index.
        test: evaluated at the end of a turn: leaves in ``%go`` whether there is another.
        origins: decisions to begin again with where the loop cannot be one of the graph.
    """

    _: KW_ONLY
    begin: Callable[[Tensor], None]
    test: Callable[[], None] | None = None
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
        self.names = [name for name in self.names if name in live or name == GO]
        if depth and "return" in exits(self.statement.body):
            self.names.append(RESULT)
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
            if value.__class__ is not Number or value.bound <= numbers.LARGE:
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

    def _attempt(self, limit: Any, start: State, sure: bool) -> None:
        slicer = self.slicer
        trace: Any = slicer.trace
        places = list(self.places)
        firsts = [self.start_of(place) for place in places]
        flat: list[Tensor] = []
        shapes = [bundles.flatten(value, flat, trace) for value in firsts]
        after: dict[Place, Any] = {}
        trace.outer_writes.append({})
        kept_held = dict(slicer.objects.held)
        trace.turns.append(now())
        try:
            results = add_loop(
                trace,
                limit,
                flat,
                lambda index, *args: self._body(start, places, shapes, index, args, after),
                self._condition(places, shapes),
            )
        finally:
            trace.turns.pop()
            before = trace.outer_writes.pop()
            for cell, (value, owner) in before.items():
                cell.value, cell.frame = value, owner
        slicer.restore(start)
        slicer.handed.clear()
        slicer.received.clear()
        slicer.seen.update(dict.fromkeys(self.shown, STALE))
        slicer.trace.uncounted |= self.uncounted
        stale = {p[1] for p in places if p[0] == "cell"}
        slicer.objects.held = {
            key: known._replace(seen=None) if key in stale else known
            for key, known in kept_held.items()
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
                if (
                    not sure
                    and place not in self.first
                    and place[1] != (len(slicer.scopes) - 1, RESULT)
                ):
                    first = self.start_of(place)
                    slicer.join_objects(value, self.turned(limit), other, first)
                elif other is not None:
                    value = other
            made[place] = value
            number = self.given.get(place)
            if number is not None and not value._requires_grad:
                slicer.objects.hold(value, number)
            elif place in self.given:
                trace.frozen.add(value._data.cell)
            self.put(place, value, after=True, sure=sure, limit=limit)
        self.after_loop(after, places)

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
        slicer.handed.clear()
        slicer.received.clear()
        slicer.objects.held = {
            key: known._replace(seen=None) if ("cell", key) in self.places else known
            for key, known in start.held.items()
        }
        given = iter(args)
        heads = {}
        for place, shape in zip(places, shapes, strict=True):
            head = heads[place] = bundles.unflatten(shape, given, True)
            if isinstance(head, Tensor) and place[0] != "cell" and place not in self.first:
                with no_grad():
                    later = Number(index > 0, bool)
                other = heads.get(self.alias.get(place))  # type: ignore[arg-type]
                slicer.join_objects(head, later, other, self.start_of(place))
                if place in self.moved:
                    slicer.objects.hold(head)
            self.put(place, heads[place])
        for name, kind in self.hosted.items():
            slicer.env[name] = Host(kind)
        slicer.seen.update(dict.fromkeys(self.shown, STALE))
        slicer.trace.uncounted |= self.uncounted
        at_head = slicer.save()
        self.begin(index)
        skip = slicer.scope.flags[-1]
        slicer.block(self.statement.body, "body")
        if slicer.dead:
            raise Unsliceable("a loop whose body never comes to its end", self.statement.line)
        slicer.env[skip] = False
        self._check_growth(places, shapes)
        self._test_again()
        slicer.flush()
        self.check(at_head, places)
        self.find_given(heads)
        out: list[Tensor] = []
        for place, shape in zip(places, shapes, strict=True):
            self.collect(place, shape, out)
        after.update({("name", k): v for k, v in self._own_env().items()})
        return out

    def _check_growth(self, places: list[Place], shapes: list[Any]) -> None:
        """Where an int may grow beyond what a graph can hold, see whether it has."""
        slicer = self.slicer
        small: Any = None
        for place, shape in zip(places, shapes, strict=True):
            value = self.now(place)
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
