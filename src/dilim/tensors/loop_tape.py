"""Loops on the tape, and their derivative: loops that run backwards.

What each turn began with is kept in memory whose size is known when the graph is built; the turn
itself is computed again from it.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dilim import dtypes
from dilim.autodiff.walk import Unsure, plain
from dilim.errors import GradientError
from dilim.ir.graph import Graph, Value
from dilim.ops.table import OPERATIONS
from dilim.tensors.creation import asarray
from dilim.tensors.dispatch import apply
from dilim.tensors.region_pull import pulled_through
from dilim.tensors.region_tape import Record, Region, Values, edge_of
from dilim.tensors.regions import cloned
from dilim.tensors.replays import Arrays, Stage
from dilim.tensors.tape import mode
from dilim.tensors.tensor import Tensor
from dilim.tensors.tracer import Trace

Gradients = dict[int, Tensor]
"""Gradients by the number of what a loop carries, or by the identity of an edge."""


class Memory(ABC):
    """How much a loop keeps for its derivative, which may not be asked for."""

    @abstractmethod
    def turns(self, size: int) -> int | None:
        """How many turns are kept, each of which takes so many bytes; None for no derivative."""

    @abstractmethod
    def ask(self) -> None:
        """The derivative of a loop that keeps nothing is asked for. Always raises."""


@dataclass(slots=True, eq=False)
class Turns(Region):
    """`loop` on the tape.

    Attributes:
        trace: the graph.
        limit: most turns of which something is kept.
        least: fewest turns, where their number is not known.
        is_exact: whether there are as many as the limit says.
        memory: see `loops.add_loop`.
        count: how many there were; None if nothing is kept.
        condition: the region of the condition, if there is one.
        record: what the body records.
        index: the index, as the body takes it.
        kept: values of the body, and for each the memory of what it was in every turn.
        arguments: carried tensors as the body takes them.
        start: as the loop takes them.
        start_values: their values.
        most: the value of the limit.
        with_gradient: which of them have a gradient.
        captured: id of an edge -> the tensor there.
        build: `loops.add_loop`.
    """

    trace: Trace
    limit: int
    least: int
    is_exact: bool
    memory: Memory | None
    count: Value | None
    condition: Graph | None
    record: Record
    index: Value
    kept: list[tuple[Value, Value]]
    arguments: list[Tensor]
    start: list[Tensor]
    start_values: list[Value]
    most: Value
    with_gradient: list[bool]
    captured: dict[int, Tensor]
    build: Callable[..., list[Tensor]]
    name = "loop"

    def starts(self) -> list[Tensor]:
        """The carried tensors with gradient, as the loop takes them."""
        return [x for x, g in zip(self.start, self.with_gradient, strict=True) if g]

    def leads_to(self, results: Iterable[int], surely: bool) -> set[int]:
        """See `Region.leads_to`."""
        states, captured = [self._marked(results)], list[set[int]]()
        while states[-1] not in states[:-1]:
            following, found = self._step(states[-1], surely)
            states.append(following)
            captured.append(found)
        ends = states[self.least :] if surely else states
        if self.is_exact:
            first, turns = states.index(states[-1]), self.limit
            if turns > first:  # from there on they go round
                turns = first + (turns - first) % (len(states) - 1 - first)
            ends, captured = [states[turns]], captured[: self.limit]
        elif surely:
            captured = captured[: self.least]
        end = set.intersection(*ends) if surely else set[int]().union(*ends)
        starts = [k for k in range(len(self.start)) if self._has_edge(k)]
        found = set[int]().union(*captured)
        positions = {position for position, k in enumerate(starts) if k in end}
        every = enumerate(self.captured, len(starts))
        return positions | {position for position, key in every if key in found}

    def _marked(self, results: Iterable[int]) -> set[int]:
        return {k for k in results if self.with_gradient[k]}

    def _has_edge(self, k: int) -> bool:
        return self.with_gradient[k] and self.start[k].requires_grad

    def _step(self, carried: set[int], surely: bool = False) -> tuple[set[int], set[int]]:
        """Where gradients of what a turn gives go: numbers of what it takes; and edges captured."""
        found = self.record.leads_to(carried, surely)
        numbers = {k for k, x in enumerate(self.arguments) if id(x) in found}
        return self._marked(numbers), found & self.captured.keys()

    def pull(self, gradients: dict[int, Any], before: list[Any]) -> list[Any]:
        """See `Joint.pull`.

        Raises:
            GradientError: a derivative of higher order was asked for.
        """
        if mode.recording:
            raise GradientError(
                "backward: derivatives of higher order through a loop are not there; write the "
                "loop in Python, which lays the turns out one after the other"
            )
        if self.count is None and self.memory is not None:
            self.memory.ask()
        reached = self.leads_to(gradients, surely=False)
        sure = self.leads_to(gradients, surely=True)
        known = list(map(plain, before))
        shared = known[len(before) - len(self.captured) :]
        totals = {k: x for k, x in zip(self.captured, shared, strict=True) if x is not None}
        own, totals = self._turned_back({k: gradients[k] for k in self._marked(gradients)}, totals)
        starts = [k for k in range(len(self.start)) if self._has_edge(k)]
        shares = [own[k] if p in reached else None for p, k in enumerate(starts)]
        found: list[Any] = [_sum(*pair) for pair in zip(known, shares, strict=False)]
        found += [totals.get(key) for key in self.captured]
        for position, x in enumerate(found):
            is_known = before[position] is not None and before[position].__class__ is not Unsure
            if x is not None and not is_known and position not in sure:
                found[position] = Unsure(x, self.trace.gradient_on_one_path)
        return found

    def _turned_back(self, own: Gradients, totals: Gradients) -> tuple[Gradients, Gradients]:
        """Gradients of what the loop takes, and of what is captured, from those of its results.

        While other values have a gradient than in the turn after, turns are laid out flat, so that
        none that has no gradient is taken for one whose gradient is 0.
        """
        count: Any = self.count
        last = None if self.is_exact else self.trace.symbol(count)
        most = min(self.limit, len(self.start)) if last is None else self.least
        flat = 0
        while flat < most and self._step(set(own))[0] != own.keys():
            own, totals = self._turn_back(self._place(flat, last), own, totals)
            flat += 1
        marked, captured, following = set(own), set[int](), set(own)
        while following:
            more, found = self._step(marked)
            marked, captured, following = marked | more, captured | found, more - marked
        first = {k: own[k] if k in own else self._zero(self.start[k]) for k in sorted(marked)}
        sums = {
            key: totals[key] if key in totals else self._zero(x)
            for key, x in self.captured.items()
            if key in captured
        }

        def body(turn: Tensor, *state: Tensor) -> list[Tensor]:
            given = iter(state)
            mine, rest = dict(zip(first, given, strict=False)), dict(zip(sums, given, strict=False))
            mine, rest = self._turn_back(self._place(turn + flat, last), mine, rest)
            back = [mine[k] if k in mine else self._zero(self.start[k]) for k in first]
            return back + [rest[key] for key in sums]

        results = self.build(
            self.trace,
            self.limit - flat,
            [*first.values(), *sums.values()],
            body,
            None if last is None else lambda turn, *state: turn + flat < last,
        )
        own = dict(zip(first, results, strict=False))
        return own, totals | dict(zip(sums, results[len(first) :], strict=True))

    def _place(self, turn: int | Tensor, last: Tensor | None) -> Tensor:
        """The number of a turn, counted from the last one."""
        place = (self.limit - 1 if last is None else last - 1) - turn
        return asarray(place, dtype=dtypes.int64) if isinstance(place, int) else place

    def _zero(self, x: Tensor) -> Tensor:
        """Zeros to which a gradient can be added: it is the same afterwards, to the last bit."""
        return self.trace.full(shape=x.shape, value=-0.0, dtype=x.dtype)

    def _turn_back(
        self, place: Tensor, own: Gradients, totals: Gradients
    ) -> tuple[Gradients, Gradients]:
        """One turn back: gradients of what it takes, and of what is captured."""
        trace = self.trace
        position = trace.value(trace.handle(place))
        given = {self.index: position}
        for value, memory in self.kept:
            given[value] = trace.emit("take", [memory, position], {"axis": 0})
        marked = [k for k, is_marked in enumerate(self.with_gradient) if is_marked]
        inputs = {
            id(self.arguments[k]): trace.symbol(given[self.kept[k][0]]) for k in marked
        } | self.captured
        seeds = [own.get(k) for k in range(len(self.start))]
        before = [None] * len(marked) + [totals.get(key) for key in self.captured]
        reached: list[tuple[set[int], set[int]]] = []
        found = pulled_through(trace, self.record, given, inputs, seeds, before, reached)
        ((some, sure),) = reached
        count = sum(number < len(marked) for number in some)
        if count > sum(number < len(marked) for number in sure):
            trace.gradient_on_one_path()  # of what the turn before takes on
        pairs = enumerate(zip([*marked, *self.captured], found, strict=True))
        parts = [pair for number, pair in pairs if number in some]
        return dict(parts[:count]), dict(parts[count:])

    def again(self, trace: Trace, inputs: list[Tensor], values: Values) -> list[Tensor]:
        """See `Region.again`."""
        given = iter(inputs)
        start = [
            next(given) if g and x.requires_grad else trace.symbol(values.get(value, value))
            for x, value, g in zip(self.start, self.start_values, self.with_gradient, strict=True)
        ]
        captured = dict(zip(self.captured, given, strict=True))

        def names(index: Tensor, carried: Sequence[Tensor]) -> dict[Value, Value]:
            found = dict(values)
            found[self.index] = trace.value(index._data)
            for x, (value, _) in zip(carried, self.kept, strict=False):
                found[value] = trace.value(trace.handle(x))
            return found

        def body(index: Tensor, *carried: Tensor) -> list[Tensor]:
            leaves = {id(x): y for x, y in zip(self.arguments, carried, strict=True)}
            return self.record.again(trace, names(index, carried), captured | leaves)

        def condition(index: Tensor, *carried: Tensor) -> Tensor:
            region: Any = self.condition
            given = names(index, carried)
            numbered = zip(region.inputs, (index, *carried), strict=False)
            given |= {value: trace.value(trace.handle(x)) for value, x in numbered}
            made = cloned(trace, region, given)
            return trace.symbol(made.get(region.outputs[0], region.outputs[0]))

        most = trace.symbol(values.get(self.most, self.most))
        return self.build(
            trace,
            self.limit if self.memory is None else most,
            start,
            body,
            None if self.condition is None else condition,
            self.least,
            self.memory,
        )

    def replay(self, stage: Stage, inputs: list[Tensor], arrays: Arrays) -> list[Tensor]:
        """See `Region.replay`."""
        given = iter(inputs)
        carried = [
            next(given) if g and x.requires_grad else Tensor._from_array(np.array(arrays[value]))
            for x, value, g in zip(self.start, self.start_values, self.with_gradient, strict=True)
        ]
        captured = dict(zip(self.captured, given, strict=True))
        for index in range(int(arrays[self.most])):
            numbers = [np.asarray(index, np.int64), *(x._data for x in carried)]
            inner = arrays | dict(zip(self.record.graph.inputs, numbers, strict=False))
            if self.condition is not None:
                known = inner | dict(zip(self.condition.inputs, numbers, strict=False))
                stage.compute(self.condition, known)
                if not known[self.condition.outputs[0]]:
                    break
            leaves = {id(x): y for x, y in zip(self.arguments, carried, strict=True)}
            carried = self.record.replay(stage, inner, captured | leaves)
        return carried

    def flags(self, inputs: list[bool]) -> list[bool]:
        """See `Region.flags`."""
        given = iter(inputs)
        start = [
            g and x.requires_grad and next(given)
            for x, g in zip(self.start, self.with_gradient, strict=True)
        ]
        captured = dict(zip(self.captured, given, strict=True))
        states = [start]
        while states[-1] not in states[:-1]:
            leaves = {id(x): y for x, y in zip(self.arguments, states[-1], strict=True)}
            states.append(self.record.flags(captured | leaves))
        ends = states[min(self._fewest, states.index(states[-1])) :]
        return list(map(all, zip(*ends, strict=True)))

    @property
    def _fewest(self) -> int:
        """Fewest turns: where nothing is kept for a derivative, there may be none."""
        return self.least if self.is_exact or self.count is not None else 0

    def edges(self, number: int) -> list[Any]:
        """See `Region.edges`."""
        made: list[Any] = []
        before: dict[int, None] = {} if self._fewest else {number: None}
        waiting = [number]
        for each in waiting:
            edge = self.record.outputs[each]
            same = [k for k, x in enumerate(self.arguments) if x is edge]
            made += [] if same else [edge]
            waiting += [k for k in same if k not in waiting]
            before.update(dict.fromkeys(same))
        return made + [edge_of(self.start[k]) for k in before]

    def inner(self) -> Sequence[Record]:
        """See `Region.inner`."""
        return [self.record]

    def uses(self) -> Iterator[Value]:
        """See `Region.uses`."""
        yield from (self.most, *self.start_values)
        if self.condition is not None:
            yield from self.condition.captured()
        yield from Region.uses(self)


def _sum(a: Tensor | None, b: Tensor | None) -> Tensor | None:
    """The sum of two gradients, of which either may not be there."""
    if a is None or b is None:
        return b if a is None else a
    total: Tensor = apply(OPERATIONS["add"], a, b)
    return total
