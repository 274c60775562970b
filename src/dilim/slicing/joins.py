"""What two sides of a branch give, joined.

Equal things stay; tensors and numbers become results of the branch; values of different kinds
become a `Choice`; and what does not go together at all becomes a `Conflict`, which matters only if
somebody looks at it.
"""

from __future__ import annotations

from collections.abc import Container, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dilim.ir.types import type_of
from dilim.slicing import bundles, grads, heap, identities, keeping, numbers, shown
from dilim.slicing.errors import OnHost, Restart, Unsliceable, in_words
from dilim.slicing.numbers import Number
from dilim.slicing.sides import Made, Side, common, counted_after, held_after, kept_apart, renewed
from dilim.slicing.tracing import SEVERAL, is_used_up, use_up, without_used_tape
from dilim.slicing.values import (
    UNBOUND,
    Choice,
    Conflict,
    Held,
    Host,
    are_alike,
    holds_hidden,
    is_tuple,
    items_of,
    like,
    may_be_unbound,
    same_constant,
)  # fmt: skip
from dilim.tensors.cells import Cell
from dilim.tensors.control import join
from dilim.tensors.regions import entered_again, zeros_of
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.interpreter import State
    from dilim.slicing.slicer import Slicer


class Join:
    """Collects what two sides give, and builds the node."""

    def __init__(self, slicer: Slicer, start: State, a: Side, b: Side) -> None:
        self.slicer = slicer
        self.trace: Any = slicer.trace
        self.start = start
        self.sides = (a, b)
        self.columns: list[tuple[Tensor, Tensor]] = []
        self.reached = [identities.Reached(slicer, side.state) for side in self.sides]
        self.given: list[tuple[Tensor, Held]] = []
        self.shared: dict[tuple[int, int], Made] = {}

    @contextmanager
    def within(self, side: int) -> Iterator[None]:
        """A context in which nodes go to the end of a side, with what it wrote into memory."""
        before = {cell: (cell.value, cell.frame) for cell in self.sides[side].written}
        self.slicer.keeping.held = self.sides[side].state.keeping
        with entered_again(self.trace, self.sides[side].frame):
            for cell, value in self.sides[side].written.items():
                cell.value, cell.frame = value, self.sides[side].frame
            count = len(self.trace.writes)
            self.trace.writes.redo(self.sides[side].writes)
            try:
                yield
            finally:
                self.trace.writes.take_back(count)
                for cell, (value, frame) in before.items():
                    cell.value, cell.frame = value, frame

    def finish(self, test: Number, since: int) -> None:
        """Build the node; the state becomes the joined one."""
        self.test = test
        a, b = self.sides
        slicer = self.slicer
        self._host_names()
        envs = [
            {
                name: self.value(x.get(name, UNBOUND), y.get(name, UNBOUND), name)
                for name in {**x, **y}
            }
            for x, y in zip(a.state.envs, b.state.envs, strict=True)
        ]
        heap = {key: self._heap(key) for key in {**a.state.heap, **b.state.heap}}
        found = {key: self._grad(key) for key, x in slicer.leaves.items() if self.is_outer(x)}
        reached = [side.containers() for side in self.sides]
        fresh = {key: self._container(key, reached) for key in {**reached[0], **reached[1]}}
        cells = {cell: self._cell(cell) for cell in {**a.written, **b.written}}
        held = {
            key: held_after(key, self.sides, slicer.objects, self.flag, self.alone)
            for key in {**a.state.held, **b.state.held}
        }
        counted = counted_after(self.sides, self.flag, self.alone)
        truths = shown.joined(self)
        columns = [*map(list, zip(*self.columns, strict=True))] or [[], []]
        results = join(self.trace, test.tensor, [a.frame, b.frame], columns, since)
        for cell, make in cells.items():
            self.trace.assign(cell, self.trace.value(make(results)._data))
        joined = slicer.save()
        joined.envs = [
            {name: value for name, make in env.items() if (value := make(results)) is not UNBOUND}
            for env in envs
        ]
        joined.heap = {key: make(results) for key, make in heap.items()}
        joined.grads = {key: make(results) for key, make in found.items()}
        joined.contents = {key: make(results) for key, make in fresh.items()}
        joined.dead = a.dead and b.dead
        joined.cleared = a.state.cleared & b.state.cleared
        found_counted = ((cell, make(results)) for cell, make in counted.items())
        joined.uncounted = {cell: flag for cell, flag in found_counted if flag is not False}
        joined.held = {key: x for key, make in held.items() if (x := make(results)) is not None}
        joined.handed = common(a.state.handed, b.state.handed)
        joined.received = common(a.state.received, b.state.received)
        joined.seen = shown.seen_by_both(a.state, b.state)
        joined.keeping = keeping.joined(*(x.state.keeping for x in self.sides if not x.dead))
        if a.dead != b.dead:
            alive = b.state if a.dead else a.state
            joined.cleared = alive.cleared
            joined.handed, joined.seen = alive.handed, alive.seen
        slicer.restore(joined)
        shown.let_see_joined(slicer, truths, results)
        for x, known in self.given:
            slicer.objects.hold(x, known.number, known.flag)

    # --- parts ----------------------------------------------------------------------------

    def _host_names(self) -> None:
        """Where one side leaves a name to the host, the other one does too."""
        slicer = self.slicer
        a, b = self.sides
        for depth, (x, y) in enumerate(zip(a.state.envs, b.state.envs, strict=True)):
            for name in [*x, *y]:
                one, two = x.get(name, UNBOUND), y.get(name, UNBOUND)
                kinds = (one.__class__, two.__class__)
                if kinds.count(Host) != 1 or type(UNBOUND) in kinds or a.dead or b.dead:
                    continue
                side, value, host = (1, two, one) if kinds[0] is Host else (0, one, two)
                objects, trace, state = slicer.objects, self.trace, self.sides[side].state
                before = objects.held, trace.uncounted
                objects.held, trace.uncounted = state.held, state.uncounted
                slicer.fill(state)
                with self.within(side):
                    kind = slicer.hand_over(slicer.scopes[depth], name, value)
                objects.held, trace.uncounted = before
                is_sure = host.is_sure and not may_be_unbound(value)
                x[name] = y[name] = Host(host.kind if host.kind == kind else None, is_sure)

    def value(self, a: Any, b: Any, what: str = "a value") -> Made:
        """How the joined value is made from the results of the node."""
        if a is b:
            return lambda _: a
        if what.startswith(("%return", "%break")):  # a side that is left sets these for the rest
            return self.number(a, b, what)
        dead_a, dead_b = self.sides[0].dead, self.sides[1].dead
        is_made = what.startswith("%")  # and so never read where it is unbound
        if dead_a or (a is UNBOUND and is_made):
            return self.alone(1, b)
        if dead_b or (b is UNBOUND and is_made):
            return self.alone(0, a)
        if a.__class__ is Host and b.__class__ is Host:
            kind = a.kind if a.kind == b.kind else None
            return lambda _: Host(kind, a.is_sure and b.is_sure, a.is_plain and b.is_plain)
        if isinstance(a, Tensor) and isinstance(b, Tensor) and bundles.go_together(a, b):
            return self._object(a, b)
        if numbers.is_number(a) and numbers.is_number(b):
            return self.number(a, b, what)
        if are_alike(a, b):
            made = [self.value(x, y, what) for x, y in zip(a, b, strict=True)]
            return lambda results: like(a, (make(results) for make in made))
        if a.__class__ is b.__class__ and same_constant(a, b):
            return lambda _: a
        for x, y in ((a, b), (b, a)):
            if id(x) in self.slicer.made_by and not bundles.is_absent(y):
                raise Restart(("host", self.slicer.made_by[id(x)]))
        return self._choice(a, b, what)

    def _choice(self, a: Any, b: Any, what: str) -> Made:
        """Either of two values of different kinds; None and the like are the second of them."""
        if holds_hidden(a) or holds_hidden(b):
            return lambda _: Conflict(f"{what} is not of one kind on all paths")
        merged = self._merged(a, b, what)
        if merged is not None:
            return merged
        yes, no = self.alone(0, a), self.alone(1, b)
        if not bundles.is_absent(a):
            return lambda results: Choice(self.test, yes(results), no(results))
        return lambda results: Choice(numbers.opposite(self.test), no(results), yes(results))

    def _merged(self, a: Any, b: Any, what: str) -> Made | None:
        """The same for values of which one is a choice already and has a place for the other."""
        if a.__class__ is Choice and b.__class__ is Choice:
            for is_crossed in (False, True):
                yes, no = (b.no, b.yes) if is_crossed else (b.yes, b.no)
                if bundles.go_together(a.yes, yes) and bundles.go_together(a.no, no):
                    with self.within(1):
                        flag = numbers.opposite(b.flag) if is_crossed else b.flag
                    parts = ((a.flag, flag), (a.yes, yes), (a.no, no))
                    return _choice_of([self.value(x, y, what) for x, y in parts])
            return None
        side = 0 if a.__class__ is Choice else 1
        choice, other = (a, b) if side == 0 else (b, a)
        if choice.__class__ is not Choice:
            return None

        def pair(mine: Any, others: Any) -> tuple[Any, Any]:
            return (mine, others) if side == 0 else (others, mine)

        for is_yes in (True, False):
            mine, left = (choice.yes, choice.no) if is_yes else (choice.no, choice.yes)
            if bundles.go_together(mine, other):
                told = self.value(*pair(choice.flag, is_yes), what)
                made, alone = self.value(*pair(mine, other), what), self.alone(side, left)
                return _choice_of([told, *((made, alone) if is_yes else (alone, made))])
        return None

    def flag(self, a: Any, b: Any) -> Made:
        """A bool that is one thing on one path, and another on the other."""
        if (a, b) == (True, False):
            return lambda _: self.test
        return self.number(a, b, "a flag")

    def alone(self, side: int, value: Any) -> Made:
        """The value of the one side that comes to its end; the other gives numbers of its type."""
        if isinstance(value, Tensor) and self.is_outer(value):
            return lambda _: value
        if isinstance(value, Tensor):
            if reason := kept_apart(self.trace, value):
                return lambda _: Conflict(reason)
            pair = (value, None) if side == 0 else (None, value)
            return self._one_of(self.beside_zeros(side, value), *pair)
        if value.__class__ is Number and self.is_outer(value.tensor):
            return lambda _: value
        if value.__class__ is Number:
            with self.within(1 - side):
                other = numbers.symbolic(self.trace, value.kind(0))
            make = self._column(
                *((value.tensor, other.tensor) if side == 0 else (other.tensor, value.tensor))
            )
            return lambda results: renewed(value, make(results))
        if is_tuple(value):
            made = [self.alone(side, x) for x in value]
            return lambda results: like(value, (make(results) for make in made))
        if value.__class__ is Choice:
            flag, yes, no = (self.alone(side, x) for x in (value.flag, value.yes, value.no))
            return lambda results: Choice(flag(results), yes(results), no(results))
        return lambda _: value

    def beside_zeros(self, side: int, x: Tensor) -> Made:
        """A tensor of one side, and zeros where the other is taken."""
        with self.within(1 - side):
            other = self.trace.symbol(zeros_of(self.trace, type_of(x)))
        return self._column(*((x, other) if side == 0 else (other, x)))

    def _column(self, a: Tensor, b: Tensor) -> Made:
        position = len(self.columns)
        plain = []
        for side, x in enumerate((a, b)):
            with self.within(side):
                plain.append(self._settled(side, without_used_tape(self.trace, x)))
        self.columns.append((plain[0], plain[1]))
        makers = {x._node.op.name for x in (a, b) if is_used_up(x)}  # type: ignore[union-attr]
        if not makers:
            return lambda results: results[position]
        maker = makers.pop() if len(makers) == 1 else SEVERAL.name
        return lambda results: use_up(results[position], maker)

    def _settled(self, side: int, x: Tensor) -> Tensor:
        """The numbers that a tensor has at the end of a side that wrote into its memory."""
        device: Any = x.device
        if device is not self.trace or not self._is_written(side, x._data.cell):
            return x
        if x._node is not None:
            raise Unsliceable("a tensor with a gradient is written in place on one path")
        return self.trace.symbol(self.trace.value(x._data))  # type: ignore[no-any-return]

    def _is_written(self, side: int, cell: Cell) -> bool:
        """Whether a side wrote into memory, or into what that stands for."""
        followed = self.trace.followed.get(cell)
        return cell in self.sides[side].written or (
            followed is not None and any(self._is_written(side, x) for x in followed.sources)
        )

    def _object(self, a: Tensor, b: Tensor) -> Made:
        """A tensor that is one object or another; the host sees which."""
        if reason := kept_apart(self.trace, a) or kept_apart(self.trace, b):
            return lambda _: Conflict(reason)
        part = identities.part_of_both(self, a, b)
        if part is not None:
            return part
        return self._one_of(self._column(a, b), a, b)

    def _one_of(self, make: Made, a: Tensor | None, b: Tensor | None) -> Made:
        """A tensor that may be another object; None where a side has none."""
        found = identities.found(self, a, b)
        objects = self.slicer.objects
        unknown = [x for x in (a, b) if x is not None and objects.is_unknown(x)]
        if not found.others and not unknown:
            return make

        def made(results: Sequence[Tensor]) -> Tensor:
            result: Tensor = make(results)
            others = [(flag(results), other(results)) for flag, other in found.others]
            self.slicer.one_of.let_be(result, others, found.is_one)
            for x in unknown:
                objects.let_be_like(result, x)
            return result

        return made

    def is_outer(self, x: Tensor) -> bool:
        """Whether a tensor was there before the branch."""
        if not self.trace.owns(x):
            return True
        cell = x._data.cell
        return cell.variable is not None or bool(self.trace.is_known(cell))

    def number(self, a: Any, b: Any, what: str) -> Made:
        """A number that is one on one path, and another on the other."""
        kind = numbers.kind_of(a)
        if kind is not numbers.kind_of(b):
            return self._choice(a, b, what)
        if a.__class__ is kind and b.__class__ is kind and repr(a) == repr(b):
            return lambda _: a
        pair = []
        for side, x in enumerate((a, b)):
            with self.within(side):
                try:
                    pair.append(numbers.symbolic(self.trace, x))
                except OnHost as refusal:
                    reason = refusal.reason
                    return lambda _: Conflict(reason)
        first, second = pair
        make = self._column(first.tensor, second.tensor)
        bound = max(first.bound, second.bound)

        def number(results: Sequence[Tensor]) -> Number:
            made = Number(make(results), kind, bound)
            counted = [x for x in pair if x.base is not None]
            others = [x for x in pair if x.base is None]
            if counted and all(x.base is counted[0].base for x in counted):
                if all(x.bound < numbers.FAR for x in others):
                    made.base, made.drift = counted[0].base, max(x.drift for x in counted)
            return made

        return number

    def _heap(self, key: tuple[int, str]) -> Made:
        decision = heap.decision(self.slicer.owners[key[0]], key[1])
        if decision in self.slicer.decisions:
            return lambda _: Host()
        found = []
        for side in self.sides:
            value = side.state.heap.get(key, UNBOUND)
            if value is UNBOUND:
                value = self.slicer.original(key)
            found.append(value)
        made = self.value(found[0], found[1], in_words(str(key[1])))

        def checked(results: Sequence[Tensor]) -> Any:
            value = made(results)
            if value.__class__ is Conflict:
                raise Restart(decision)
            return value

        return checked

    def _grad(self, key: int) -> Made:
        states = (side.state for side in self.sides)
        make = self.value(*grads.known_together(self.slicer, key, *states), "a gradient")
        return lambda results: grads.known(make(results))

    def _container(self, key: int, reached: Sequence[Container[int]]) -> Made:
        """The items of a list or dict, of which each side has a copy or has made it."""
        side = 0 if key in reached[0] else 1
        contents = self.sides[side].state.contents[key]
        pairs = items_of(contents)
        if self.sides[1 - side].dead or key not in self.start.contents:
            made = [(name, self.alone(side, x)) for name, x in pairs]
        else:
            others = items_of(self.sides[1].state.contents[key])
            if [name for name, _ in pairs] != [name for name, _ in others]:
                raise Restart(("host", self.slicer.made_by[key]))
            every = zip(pairs, others, strict=True)
            made = [(name, self.value(x, y, "an item")) for (name, x), (_, y) in every]
        return lambda results: bundles.filled(
            contents, [(name, make(results)) for name, make in made]
        )

    def _cell(self, cell: Cell) -> Made:
        values = [side.written.get(cell) or cell.value for side in self.sides]
        return self._column(*map(self.trace.symbol, values))


def _choice_of(parts: Sequence[Made]) -> Made:
    return lambda results: Choice(*(make(results) for make in parts))
