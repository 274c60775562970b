"""A loop of the graph, made by interpreting its body until it is known what the turns carry."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dilim.errors import GradientError
from dilim.slicing import bundles, carried_ints, interrupts, keeping, shown
from dilim.slicing.carried import GO, Carried, Place, tensor_in
from dilim.slicing.errors import Before, LoopSignal, Peel, Restart, Unsliceable, bound_in_loop
from dilim.slicing.interpreter import RESULT
from dilim.slicing.kept_turns import KeptTurns
from dilim.slicing.loop_bodies import exits, only_changed_in_place
from dilim.slicing.numbers import Number
from dilim.slicing.tapes import is_node, perhaps
from dilim.slicing.tracing import use_up
from dilim.slicing.turn_objects import left_to_host, tensors_of
from dilim.slicing.values import UNBOUND, Conflict, Held, Host, is_same
from dilim.tensors.loops import add_loop
from dilim.tensors.tape import no_grad, now
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.interpreter import State

ENDLESS: Final = 1 << 62
"""The limit of a loop that may make any number of turns."""
MOST_ATTEMPTS: Final = 24
"""How often a loop may be interpreted before it is given up."""


@dataclass(eq=False)
class Turns(Carried):
    """A loop node being made.

    Attributes:
        begin: binds the target at the beginning of a turn, from the index.
        test: evaluated at the end of a turn: leaves in ``%go`` whether there is another.
        origins: decisions to begin again with where the loop cannot be one of the graph.
        kept: what the host's frames hold at the end of a turn.
        wide: places whose ints may be as large as any of 64 bits.
        recorded: operations of a turn that the host has got.
        memory: what it keeps for its derivative, if it is not known how many turns it makes.
    """

    _: KW_ONLY
    begin: Callable[[Tensor], None]
    test: Callable[[], None] | None = None
    origins: list[Any] = field(default_factory=list)
    kept: keeping.Held = field(default_factory=dict)
    wide: set[Place] = field(default_factory=set)
    recorded: dict[Any, Held] = field(default_factory=dict)
    memory: KeptTurns | None = None

    def run(self, limit: Any, sure: bool) -> None:
        """Build the node; the state becomes that after the loop."""
        slicer = self.slicer
        depth = len(slicer.scopes) - 1
        env = slicer.env
        for name in self.names:
            if ("before", (self.statement, name)) in slicer.decisions:
                slicer.to_host(name)
                env.setdefault(name, Host(is_sure=False))
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
            if bundles.is_carriable(value) or bundles.is_optional(value):
                self.places["name", (depth, name)] = None
        for _ in range(MOST_ATTEMPTS):
            carried_ints.check_start(self)
            if self.memory is not None:
                self.memory.guard(limit, self.entered)
                sure = sure or self.memory.is_guarded
            slicer.let_go()
            start, actions = slicer.save(), len(slicer.actions)
            iterators = dict(slicer.scope.iterators)
            try:
                self._attempt(limit, start, sure)
                slicer.keeping.held |= self.kept
                return
            except LoopSignal as signal:
                slicer.restore(start)
                slicer.scope.iterators = iterators
                del slicer.actions[actions:]
                if isinstance(signal, Peel):
                    raise
                if isinstance(signal, Before):
                    self.leave_to_host(signal.name)
            except GradientError as error:
                if isinstance(limit, Tensor) and self.origins:
                    raise Restart(self.origins[0]) from None
                raise Unsliceable(str(error), self.statement.line) from None
        raise Unsliceable("a loop whose values find no common type", self.statement.line)

    def leave_to_host(self, name: str) -> None:
        """A name is the host's from before the loop on."""
        slicer = self.slicer
        slicer.decisions.add(("before", (self.statement, name)))
        slicer.to_host(name)
        place = "name", (len(slicer.scopes) - 1, name)
        self.places.pop(place, None)
        self.objects.forget(place)
        value = slicer.env.setdefault(name, Host(is_sure=False))
        self.hosted[name] = value.kind

    def _exit_flags(self) -> list[str]:
        kinds = exits(self.statement.body)
        flags = self.slicer.scope.flags
        found = [flags[-2]] if "break" in kinds else []
        return found + (["%return"] if "return" in kinds else [])

    def _find_hosted(self) -> None:
        for name in self.names:
            value = self.slicer.env.get(name)
            if value.__class__ is Host:
                self.hosted[name] = value.kind

    def _attempt(self, limit: Any, start: State, sure: bool) -> None:
        slicer = self.slicer
        trace: Any = slicer.trace
        places = list(self.places)
        firsts = [self.start_of(place) for place in places]
        flat: list[Tensor] = []
        shapes = [bundles.flatten(value, flat, trace) for value in firsts]
        held = {x: y for x, y in zip(places, firsts, strict=True) if x[0] != "cell"}
        made = self.first.keys() | self.starts
        self.objects.begin(held, {x: y for x, y in held.items() if x not in made})
        flat = [*map(self._now, flat), *self.objects.columns()]
        after: dict[Place, Any] = {}
        is_open = not isinstance(limit, Tensor) and limit == ENDLESS
        kept = self.memory if is_open and sure else None
        if kept is not None:
            kept.begin()
        trace.outer_writes.append({})
        trace.turns.append(now())
        try:
            results = add_loop(
                trace,
                kept.count or 0 if kept is not None else limit,
                flat,
                lambda index, *args: self._body(start, places, shapes, index, args, after),
                self._condition(places, shapes),
                least=1,
                memory=self.memory,
            )
        finally:
            trace.turns.pop()
            del trace.indices[len(trace.turns) :]
            before = trace.outer_writes.pop()
            for cell, (value, owner) in before.items():
                cell.value, cell.frame = value, owner
        slicer.tapes.note_loop(results, self.statement)
        self._go_back(start)
        given = iter(results)
        values = {
            place: bundles.unflatten(shape, given)
            for place, shape in zip(places, shapes, strict=True)
        }
        for place, value in values.items():
            carried_ints.let_be(self, place, value, after=bool(self._exit_flags()))
            self._use_up(place, value)
            self.put(place, value, after=True, sure=sure, limit=limit)
        self.writes.put(True if sure else self.turned(limit), turns=2)
        slicer.objects.held = self.recorded | slicer.objects.held
        shown.let_see(slicer, self.shown, self.truths)
        self._let_be(values, given, None if sure else self.turned(limit))
        for place, number in self.given.items():
            self._let_be_given(place, values[place], number, sure or self.turned(limit))
        self._after_loop(after, places)
        if kept is not None:
            condition: Any = self._condition(places, shapes)
            with no_grad():
                kept.check(~condition(None, *results), start)

    def _use_up(self, place: Place, value: Any) -> None:
        """Let tensors that a turn uses up be so; what was there before is another object."""
        for number, x in enumerate(tensors_of(value)):
            if (place, number) in self.used_up:
                use_up(x, self.used_up[place, number])

    def _go_back(self, start: State) -> None:
        """The state before the loop, less what turns make untrue."""
        slicer = self.slicer
        slicer.restore(start)
        slicer.handed.clear()
        slicer.received.clear()
        stale = self.old_places()
        slicer.objects.held = {
            key: known._replace(seen=None) if key in stale else known
            for key, known in start.held.items()
        }

    def _now(self, x: Tensor) -> Tensor:
        """A tensor with the present numbers of one that the loop may write."""
        trace = self.slicer.trace
        if x._requires_grad or not trace.owns(x):
            return x
        return trace.symbol(trace.value(trace.handle(x)))

    def _let_be(
        self, values: dict[Place, Any], given: Iterator[Tensor], later: Number | None
    ) -> None:
        """Let tensors be the objects that they are."""
        held = {place: value for place, value in values.items() if place[0] != "cell"}
        self.objects.let_be(held, given, later)

    def _let_be_given(self, place: Place, value: Any, number: int | None, flag: Any = True) -> None:
        """Let what a turn before has made, if there was one, be the object that the host has."""
        slicer, x = self.slicer, tensor_in(value)
        if number is not None and not x._requires_grad:
            slicer.objects.hold(x, number, flag)
            return
        decision: Any = None
        if place[0] == "name":
            decision = "before", (self.statement, place[1][1])
            if decision in slicer.decisions and self.origins:
                decision = self.origins[0]  # it did not help
        else:
            decision = left_to_host(slicer, place)
        self.objects.be_unsure(x, decision)

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
                flag = values[place].tensor if place == go else ~values[place].tensor
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
        self._go_back(start)
        slicer.trace.indices[len(slicer.trace.turns) - 1 :] = [index]
        given = iter(args)
        heads = {}
        for place, shape in zip(places, shapes, strict=True):
            heads[place] = bundles.unflatten(shape, given, True)
            carried_ints.let_be(self, place, heads[place])
            self._use_up(place, heads[place])
            self.put(place, heads[place])
        self.gradients.begin_turn(heads, self.objects.starts)
        shown.let_see(slicer, self.shown, self.truths)
        with no_grad():
            later = Number(index > 0, bool)
        self.writes.put(later, turns=1)
        self._let_be(heads, given, later)
        for place in self.moved:
            slicer.objects.hold(tensor_in(heads[place]))
        for place, number in self.given.items():
            if number is None:
                self._let_be_given(place, heads[place], None)
        for name, kind in self.hosted.items():
            slicer.env[name] = Host(kind, slicer.env[name].is_sure)
        slicer.env.update(dict.fromkeys(self._exit_flags(), False))  # or there were no turn
        at_head = slicer.save()
        self.begin(index)
        skip = slicer.scope.flags[-1]
        slicer.block(self.statement.body, "body")
        if slicer.dead:
            raise Unsliceable("a loop whose body never comes to its end", self.statement.line)
        slicer.env[skip] = False
        carried_ints.check_end(self, places)
        self._test_again()
        slicer.let_go()
        slicer.refresh_made(lambda left, rest: slicer.go_on(left, rest, self.statement))
        slicer.release()  # the next turn has a tape of its own
        self.kept = dict(slicer.keeping.held)
        found = slicer.objects.held.items()
        self.recorded = {key: perhaps(known) for key, known in found if is_node(key)}
        interrupts.stop(slicer, self.statement)
        self.check(at_head, places)
        self.gradients.end_turn(heads, self.now)
        self.find_given(heads)
        out: list[Tensor] = []
        for place, shape in zip(places, shapes, strict=True):
            self.collect(place, shape, out)
        out += self.objects.ends()
        if self.memory is not None:
            self.memory.end_turn()
        depth = len(slicer.scopes) - 1
        after.update({("name", (depth, name)): value for name, value in slicer.env.items()})
        return out

    def _after_loop(self, after: dict[Place, Any], places: list[Place]) -> None:
        """Names that are bound in the loop, but are not carried."""
        env = self.slicer.env
        known = {key for kind, key in places if kind == "name"}
        for place, value in after.items():
            name = place[1][1]
            before = env.get(name, UNBOUND)
            if place[1] in known or name in self.hosted or name not in self.names:
                continue
            if before is value or (before is not UNBOUND and is_same(before, value)):
                continue
            is_hosts = value.__class__ is Host
            kind = value.kind if is_hosts and before is UNBOUND else None
            env[name] = Host(kind, False) if is_hosts else Conflict(bound_in_loop(name))

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
            slicer.go_on(leaving, self.test, self.statement)
