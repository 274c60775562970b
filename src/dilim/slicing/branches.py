"""Branches on conditions that are known only when the program runs.

Both sides are interpreted, one after the other from the same state. What they make of names,
attributes, gradients, containers and memory is then joined: equal things stay, tensors and numbers
become results of the branch, and what does not go together becomes a `Conflict`, which matters only
if somebody looks at it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from dilim.ir.types import type_of
from dilim.slicing import numbers
from dilim.slicing.errors import OnHost, Restart, Unsliceable
from dilim.slicing.numbers import Number
from dilim.slicing.sides import (
    Made,
    Side,
    common,
    drop,
    held_after,
    is_alike,
    release_again,
    renewed,
    same_constant,
)
from dilim.slicing.tracing import Before, is_used_up, use_up, without_used_tape
from dilim.slicing.values import UNBOUND, Choice, Conflict, Host, is_optional, present
from dilim.tensors.cells import Cell
from dilim.tensors.control import join
from dilim.tensors.regions import entered_again, inside
from dilim.tensors.tape import now
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.interpreter import State
    from dilim.slicing.slicer import Slicer


def branch(
    slicer: Slicer,
    test: Number,
    then: Callable[[], None],
    otherwise: Callable[[], None],
    wanted: Sequence[frozenset[str]],
) -> None:
    """Interpret both sides of a branch and join them.

    Args:
        slicer: who interprets.
        test: whether the first side is taken.
        then: interprets the first side.
        otherwise: interprets the second.
        wanted: per function the local names that may be read afterwards.
    """
    trace: Any = slicer.trace
    slicer.flush()
    start = slicer.save()
    since = now()
    sides = []
    before: Before
    for run in (then, otherwise):
        slicer.restore(start)
        with inside(trace, is_loop=False) as frame:
            trace.outer_writes.append({})
            try:
                run()
                slicer.flush()
            except BaseException:
                before = trace.outer_writes.pop()
                for cell, (value, owner) in before.items():
                    cell.value, cell.frame = value, owner
                slicer.restore(start)
                raise
            before = trace.outer_writes.pop()
            state = slicer.save()
            released = trace.forget_releases(start.releases, since)
            written = {cell: trace.contents(cell) for cell in before if before[cell][1].is_active}
        for cell, (value, owner) in before.items():
            cell.value, cell.frame = value, owner
        sides.append(Side(frame, state, written, released))
    drop(sides, wanted)
    _Join(slicer, start, sides[0], sides[1]).finish(test, since)
    release_again(trace, sides)


_LEAF = "a tensor that requires a gradient is made on one path"
_STALE = object()  # what the host sees of an attribute after branches that differ


class _Join:
    """Collects what two sides give, and builds the node."""

    def __init__(self, slicer: Slicer, start: State, a: Side, b: Side) -> None:
        self.slicer = slicer
        self.trace: Any = slicer.trace
        self.start = start
        self.sides = (a, b)
        self.columns: list[tuple[Tensor, Tensor]] = []

    @contextmanager
    def within(self, side: int) -> Iterator[None]:
        """A context in which nodes go to the end of a side, with what it wrote into memory."""
        before = {cell: (cell.value, cell.frame) for cell in self.sides[side].written}
        with entered_again(self.trace, self.sides[side].frame):
            for cell, value in self.sides[side].written.items():
                cell.value, cell.frame = value, self.sides[side].frame
            try:
                yield
            finally:
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
        leaves = slicer.leaves.items()
        grads = {key: self._grad(key) for key, leaf in leaves if self._is_outer(leaf)}
        fresh = {key: self._container(key) for key in a.state.contents if key in b.state.contents}
        cells = {cell: self._cell(cell) for cell in {**a.written, **b.written}}
        held = {
            key: held_after(key, self.sides, slicer.objects, self._flag)
            for key in {**a.state.held, **b.state.held}
        }
        results = join(
            self.trace,
            test.tensor,
            [a.frame, b.frame],
            [*map(list, zip(*self.columns, strict=True))] or [[], []],
            since,
        )
        joined = slicer.save()
        joined.envs = [
            {name: value for name, make in env.items() if (value := make(results)) is not UNBOUND}
            for env in envs
        ]
        joined.heap = {key: make(results) for key, make in heap.items()}
        joined.grads = {key: make(results) for key, make in grads.items()}
        joined.contents = {key: make(results) for key, make in fresh.items()}
        joined.dead = a.dead and b.dead
        joined.cleared = a.state.cleared & b.state.cleared
        joined.uncounted = a.state.uncounted | b.state.uncounted
        joined.held = {key: x for key, make in held.items() if (x := make(results)) is not None}
        joined.handed = common(a.state.handed, b.state.handed)
        joined.received = common(a.state.received, b.state.received)
        joined.seen = dict.fromkeys({**a.state.seen, **b.state.seen}, _STALE)
        joined.seen |= common(a.state.seen, b.state.seen)
        if a.dead != b.dead:
            alive = b.state if a.dead else a.state
            joined.cleared, joined.uncounted = alive.cleared, alive.uncounted
            joined.held, joined.seen = alive.held, alive.seen
        slicer.restore(joined)
        for cell, make in cells.items():
            self.trace.assign(cell, self.trace.value(make(results)._data))

    # --- parts ----------------------------------------------------------------------------

    def _host_names(self) -> None:
        """Where one side leaves a name to the host, the other one does too."""
        slicer = self.slicer
        a, b = self.sides
        for depth, (x, y) in enumerate(zip(a.state.envs, b.state.envs, strict=True)):
            for name in [*x, *y]:
                one, two = x.get(name, UNBOUND), y.get(name, UNBOUND)
                kinds = (one.__class__, two.__class__)
                if kinds.count(Host) != 1 or one is UNBOUND or two is UNBOUND:
                    continue
                if a.dead or b.dead:
                    continue
                side, value = (1, two) if kinds[0] is Host else (0, one)
                env = (x, y)[side]
                host = one if side == 1 else two
                with self.within(side):
                    kind = slicer.hand_over(slicer.scopes[depth], name, value)
                env[name] = Host(host.kind if host.kind == kind else None)
                (y, x)[side][name] = env[name]

    def value(self, a: Any, b: Any, what: str = "a value") -> Made:
        """How the joined value is made from the results of the node."""
        if a is b:
            return lambda _: a
        if what.startswith(("%return", "%break")):  # a side that is left sets these for the rest
            return self._numbers(a, b, what)
        dead_a, dead_b = self.sides[0].dead, self.sides[1].dead
        if dead_a or (a is UNBOUND and what == "%result"):
            return self._alone(1, b)
        if dead_b or (b is UNBOUND and what == "%result"):
            return self._alone(0, a)
        if a.__class__ is Host and b.__class__ is Host:
            kind = a.kind if a.kind == b.kind else None
            return lambda _: Host(kind)
        if isinstance(a, Tensor) and isinstance(b, Tensor) and type_of(a) == type_of(b):
            if a.requires_grad != b.requires_grad and not (is_used_up(a) or is_used_up(b)):
                return self._choice(a, b, what)
            return self._object(a, b)
        if numbers.is_number(a) and numbers.is_number(b):
            return self._numbers(a, b, what)
        if a.__class__ is tuple and b.__class__ is tuple and len(a) == len(b):
            made = [self.value(x, y, what) for x, y in zip(a, b, strict=True)]
            return lambda results: tuple(make(results) for make in made)
        if a.__class__ is b.__class__ and same_constant(a, b):
            return lambda _: a
        for x in (a, b):
            if id(x) in self.slicer.fresh and id(x) in self.slicer.made_by:
                raise Restart(("host", self.slicer.made_by[id(x)]))
        return self._choice(a, b, what)

    def _choice(self, a: Any, b: Any, what: str) -> Made:
        """Either of two values of different kinds."""
        if Host in (a.__class__, b.__class__) or Conflict in (a.__class__, b.__class__):
            return lambda _: Conflict(f"{what} is not of one kind on all paths")
        for absent in (None, UNBOUND):
            if any(is_optional(x, absent) for x in (a, b)):
                made = self._optional(a, b, absent, what)
                if made is not None:
                    return made
        flag = self._flag(True, False)
        yes, no = self._alone(0, a), self._alone(1, b)
        return lambda results: Choice(flag(results), yes(results), no(results))

    def _optional(self, a: Any, b: Any, absent: Any, what: str) -> Made | None:
        """A value that may be absent on either path, with one flag; None where there are more."""
        (flag_a, x), (flag_b, y) = (present(value, absent) for value in (a, b))
        if x.__class__ is Choice or y.__class__ is Choice:
            return None
        if y is absent:
            make = self._alone(0, x)
        elif x is absent:
            make = self._alone(1, y)
        elif is_alike(x, y):
            make = self.value(x, y, what)
        else:
            return None
        flag = self._flag(flag_a, flag_b)
        return lambda results: Choice(flag(results), make(results), absent)

    def _flag(self, a: Any, b: Any) -> Made:
        """A bool that is one thing on one path, and another on the other."""
        flags = []
        for side, x in enumerate((a, b)):
            with self.within(side):
                flags.append(numbers.symbolic(self.trace, x).tensor)
        make = self._column(flags[0], flags[1])
        return lambda results: Number(make(results), bool)

    def _alone(self, side: int, value: Any) -> Made:
        """The value of the one side that comes to its end; the other gives numbers of its type."""
        if isinstance(value, Tensor) and self._is_outer(value):
            return lambda _: value
        if isinstance(value, Tensor) and self.trace.is_own_leaf(value):
            return lambda _: Conflict(_LEAF)
        if isinstance(value, Tensor):
            with self.within(1 - side):
                zero = False if value.dtype.name == "bool" else 0
                other = self.trace.full(shape=value.shape, value=zero, dtype=value.dtype)
            return self._column(*((value, other) if side == 0 else (other, value)))
        if value.__class__ is Number and self._is_outer(value.tensor):
            return lambda _: value
        if value.__class__ is Number:
            with self.within(1 - side):
                other = numbers.symbolic(self.trace, value.kind(0))
            make = self._column(
                *((value.tensor, other.tensor) if side == 0 else (other.tensor, value.tensor))
            )
            return lambda results: renewed(value, make(results))
        if value.__class__ is tuple:
            made = [self._alone(side, x) for x in value]
            return lambda results: tuple(make(results) for make in made)
        if value.__class__ is Choice:
            flag, yes, no = (self._alone(side, x) for x in (value.flag, value.yes, value.no))
            return lambda results: Choice(flag(results), yes(results), no(results))
        return lambda _: value

    def _column(self, a: Tensor, b: Tensor) -> Made:
        position = len(self.columns)
        plain = []
        for side, x in enumerate((a, b)):
            with self.within(side):
                plain.append(self._settled(side, without_used_tape(self.trace, x)))
        self.columns.append((plain[0], plain[1]))
        if is_used_up(a) or is_used_up(b):
            return lambda results: use_up(results[position])
        return lambda results: results[position]

    def _settled(self, side: int, x: Tensor) -> Tensor:
        """The numbers that a tensor has at the end of a side that wrote into its memory."""
        device: Any = x.device
        if device is not self.trace or x._data.cell not in self.sides[side].written:
            return x
        if x._node is not None:
            raise Unsliceable("a tensor with a gradient is written in place on one path")
        return self.trace.symbol(self.trace.value(x._data))  # type: ignore[no-any-return]

    def _object(self, a: Tensor, b: Tensor) -> Made:
        """A tensor that is one object or another; the host sees which."""
        outer = [x if self._is_outer(x) else None for x in (a, b)]
        if any(map(self.trace.is_own_leaf, (a, b))):
            return lambda _: Conflict(_LEAF)
        make = self._column(a, b)
        if outer == [None, None]:
            return make

        def made(results: Sequence[Tensor]) -> Tensor:
            result: Tensor = make(results)
            self.slicer.join_objects(result, self.test, outer[0], outer[1])
            return result

        return made

    def _is_outer(self, x: Tensor) -> bool:
        """Whether a tensor was there before the branch."""
        if x.device is not self.trace:
            return True
        cell = x._data.cell
        return cell.variable is not None or cell.frame.is_active

    def _numbers(self, a: Any, b: Any, what: str) -> Made:
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
            bases = {x.base for x in pair if x.base is not None}
            if first.base is not None and first.base is second.base and len(bases) == 1:
                made.base, made.drift = first.base, max(first.drift, second.drift)
            return made

        return number

    def _heap(self, key: tuple[int, str]) -> Made:
        found = []
        for side in self.sides:
            value = side.state.heap.get(key, UNBOUND)
            if value is UNBOUND:
                value = self.slicer.original(key)
            found.append(value)
        made = self.value(found[0], found[1], key[1])

        def checked(results: Sequence[Tensor]) -> Any:
            value = made(results)
            if value.__class__ in (Conflict, Choice):
                raise Unsliceable(f"attribute {key[1]} is not of one type on all paths")
            return value

        return checked

    def _grad(self, key: int) -> Made:
        initial = self.slicer.initial_grads[key][1]
        a, b = (side.state.grads.get(key, initial) for side in self.sides)
        return self.value(a, b, "a gradient")

    def _container(self, key: int) -> Made:
        a, b = (side.state.contents[key] for side in self.sides)
        if self.sides[0].dead or self.sides[1].dead:
            a = b = a if self.sides[1].dead else b
        pairs: Any = zip(a, b, strict=False) if a.__class__ is list else ()
        if a.__class__ is dict:
            pairs = [(x, b.get(name)) for name, x in a.items()] if list(a) == list(b) else None
        if pairs is None or len(a) != len(b):
            raise Restart(("host", self.slicer.made_by[key]))
        made = [self.value(x, y, "an item") for x, y in pairs]
        if a.__class__ is list:
            return lambda results: [make(results) for make in made]
        return lambda results: dict(zip(a, (make(results) for make in made), strict=True))

    def _cell(self, cell: Cell) -> Made:
        pair = []
        for side in self.sides:
            value = side.written.get(cell)
            pair.append(self.trace.symbol(cell.value if value is None else value))
        return self._column(pair[0], pair[1])
