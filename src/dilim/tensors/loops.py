"""Loops as nodes of a graph, and their derivative.

The derivative of a loop is a loop that runs backwards. What each turn began with is kept in memory
whose size is known when the graph is built; the turn itself is computed again from it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final

import numpy as np

from dilim import dtypes
from dilim.errors import DtypeError, GradientError, GraphError
from dilim.ir.graph import Graph, Value
from dilim.ir.structure import LOOP
from dilim.ir.structure import captured as captured_by
from dilim.ir.types import Type, type_of
from dilim.ops.table import OPERATIONS
from dilim.tensors.cells import Frame
from dilim.tensors.creation import asarray
from dilim.tensors.dispatch import apply
from dilim.tensors.region_tape import Record, Region, Values, collect, pulled_through, put_on_tape
from dilim.tensors.regions import Built, add_region_node, cloned, inside, zeros_of
from dilim.tensors.replays import Arrays, Stage
from dilim.tensors.tape import mode, no_grad, now
from dilim.tensors.tensor import Tensor
from dilim.tensors.tracer import Trace

KEPT_LIMIT: Final = 1 << 28
"""Most bytes that one loop may keep for its derivative."""

Body = Callable[..., list[Tensor]]
INDEX: Final = Type((), dtypes.int64)
_BOOL: Final = Type((), dtypes.bool_)


@dataclass(slots=True)
class _Draft:
    """The regions of a loop, being built.

    Attributes:
        frames: of the condition, if there is one, and of the body.
        outputs: the values they give.
        arguments: the carried tensors as the body takes them.
        after: as it gives them.
        record: what the body records.
    """

    frames: list[Frame] = field(default_factory=list)
    outputs: list[list[Value]] = field(default_factory=list)
    arguments: list[Tensor] = field(default_factory=list)
    after: list[Tensor] = field(default_factory=list)
    record: Record | None = None


def add_loop(
    trace: Trace,
    limit: int | Tensor,
    start: list[Tensor],
    body: Body,
    condition: Callable[..., Any] | None,
) -> list[Tensor]:
    """A loop as a node of a graph; see `dilim.loop`."""
    with_gradient = [mode.recording and x.requires_grad for x in start]
    while True:
        draft = _draft(trace, start, with_gradient, body, condition)
        # a carried tensor that a turn gives a gradient takes one into the next turn
        found = [a or x.requires_grad for a, x in zip(with_gradient, draft.after, strict=True)]
        if not mode.recording or found == with_gradient:
            break
        with_gradient = found
    most = limit if isinstance(limit, Tensor) else asarray(limit, dtype=dtypes.int64)
    if type_of(most) != INDEX:
        raise DtypeError(f"loop: expected a limit of type {INDEX}, received {type_of(most)}")
    inputs = [trace.value(trace.handle(x)) for x in (most, *start)]
    kinds = [type_of(x) for x in start]
    if not (mode.recording and any(with_gradient)):
        built = add_region_node(trace, LOOP, inputs, draft.frames, draft.outputs, kinds)
        return [trace.symbol(x) for x in built.results]
    if isinstance(limit, Tensor):
        raise GradientError(
            "loop: expected a Python int as limit, received a tensor: for derivatives it must be "
            "known how often the loop runs at most; use condition= to end it earlier"
        )
    most_turns = max(int(limit), 0)
    return _add_with_gradient(trace, most_turns, start, with_gradient, draft, inputs)


def _draft(
    trace: Trace,
    start: Sequence[Tensor],
    with_gradient: Sequence[bool],
    body: Body,
    condition: Callable[..., Any] | None,
) -> _Draft:
    kinds = [type_of(x) for x in start]
    draft = _Draft()
    if condition is not None:
        with inside(trace, is_loop=True) as frame, no_grad():
            holds = condition(*(trace.input(kind) for kind in (INDEX, *kinds)))
            if not isinstance(holds, Tensor) or type_of(holds) != _BOOL:
                raise DtypeError(f"loop: expected a condition of type {_BOOL}, received {holds!r}")
            draft.frames.append(frame)
            draft.outputs.append([trace.value(trace.handle(holds))])
    since = now()
    with inside(trace, is_loop=True) as frame:
        index = trace.input(INDEX)
        draft.arguments = [trace.input(kind) for kind in kinds]
        for x, marked in zip(draft.arguments, with_gradient, strict=True):
            x.requires_grad_(marked)
        draft.after = body(index, *draft.arguments)
        received = [type_of(x) for x in draft.after]
        if received != kinds:
            raise GraphError(
                f"loop: expected a body that gives what it takes, ({', '.join(map(str, kinds))}), "
                f"received ({', '.join(map(str, received))})"
            )
        draft.record = collect(trace, draft.after, since)
        draft.frames.append(frame)
        draft.outputs.append(list(draft.record.results))
    return draft


# --- with a derivative ----------------------------------------------------------------------


def _add_with_gradient(
    trace: Trace,
    limit: int,
    start: list[Tensor],
    with_gradient: list[bool],
    draft: _Draft,
    inputs: list[Value],
) -> list[Tensor]:
    """A loop that keeps what each turn began with, on the tape."""
    record: Any = draft.record
    body = draft.frames[-1]
    written = {cell for frame in draft.frames for cell in frame.written}
    carried = len(start)
    kept = body.builder.inputs[1:]
    kept += [value for cell, value in body.reads.items() if cell in written]
    _check_size(limit, kept)
    own = len(body.builder.nodes)
    extra = [Type((limit, *x.shape), x.dtype) for x in kept] + [INDEX]
    built = _with_memory(trace, draft, kept, extra, inputs)
    region = built.regions[-1]
    added = len(body.builder.nodes) - own
    record.graph = replace(region, nodes=region.nodes[:-added], outputs=region.outputs[:carried])
    record.renamed = built.renamed[-1]
    results = [trace.symbol(x) for x in built.results[:carried]]
    leaves = {id(x) for x in draft.arguments}
    captured = {key: x for key, x in record.captured.items() if key not in leaves}
    has_condition = len(draft.frames) > 1
    turns = Turns(
        trace,
        limit,
        built.results[-1] if has_condition else None,
        built.regions[0] if has_condition else None,
        record,
        body.builder.inputs[0],
        list(zip(kept, built.results[carried:-1], strict=True)),
        draft.arguments,
        start,
        inputs[1:],
        inputs[0],
        with_gradient,
        captured,
    )
    first = [x for x in turns.starts() if x.requires_grad]
    versions = [x._storage.version for x in first] + [record.versions[key] for key in captured]
    put_on_tape(turns, [*first, *captured.values()], versions, results, with_gradient)
    return results


def _with_memory(
    trace: Trace, draft: _Draft, kept: list[Value], extra: list[Type], inputs: list[Value]
) -> Built:
    """The loop node with, as further carried values, memory of each turn and the count of turns."""
    first = [zeros_of(trace, kind) for kind in extra]
    for frame in draft.frames[:-1]:
        for kind in extra:
            frame.builder.input(kind)
    builder = draft.frames[-1].builder
    memory = [builder.input(kind) for kind in extra]
    results = draft.outputs[-1]
    for value, place in zip(kept, memory, strict=False):
        given = [place, builder.inputs[0], value]
        results.append(builder.add("index_update", given, {"axis": 0}, place.type))
    one = builder.add("full", [], {"shape": (), "value": 1, "dtype": dtypes.int64}, INDEX)
    results.append(builder.add("add", [memory[-1], one], {}, INDEX))
    kinds = [type_of(x) for x in draft.after] + extra
    return add_region_node(trace, LOOP, [*inputs, *first], draft.frames, draft.outputs, kinds)


def _check_size(limit: int, kept: Sequence[Value]) -> None:
    size = limit * sum(x.type.size * x.dtype.itemsize for x in kept)
    if size > KEPT_LIMIT:
        raise GradientError(
            f"loop: its derivative needs what each of {limit} turns began with, {size:,} bytes, "
            f"more than the {KEPT_LIMIT:,} that are allowed; make fewer turns, or use detach()"
        )


@dataclass(slots=True, eq=False)
class Turns(Region):
    """`loop` on the tape.

    Attributes:
        trace: the graph.
        limit: most turns.
        count: how many there were, if there is a condition.
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
    """

    trace: Trace
    limit: int
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
    name = "loop"

    def starts(self) -> list[Tensor]:
        """The carried tensors with gradient, as the loop takes them."""
        return [x for x, g in zip(self.start, self.with_gradient, strict=True) if g]

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
        trace = self.trace
        marked = [k for k, g in enumerate(self.with_gradient) if g]
        own = [
            gradients[k] if k in gradients else self._full(type_of(self.start[k]), 0.0)
            for k in marked
        ]
        shared = before[len(before) - len(self.captured) :]
        totals = [
            self._full(type_of(x), -0.0) if known is None else known
            for x, known in zip(self.captured.values(), shared, strict=True)
        ]
        last = None if self.count is None else trace.symbol(self.count)
        results = add_loop(
            trace,
            self.limit,
            own + totals,
            lambda turn, *state: self._turn_back(turn, last, marked, list(state)),
            None if last is None else lambda turn, *state: turn < last,
        )
        found = iter(results[: len(marked)])
        first = [g for x, g in zip(self.starts(), found, strict=True) if x.requires_grad]
        sums = [
            g if known is None else apply(OPERATIONS["add"], known, g)
            for g, known in zip(first, before, strict=False)
        ]
        return [*sums, *results[len(marked) :]]

    def _full(self, kind: Type, value: float) -> Tensor:
        return self.trace.full(shape=kind.shape, value=value, dtype=kind.dtype)

    def _turn_back(
        self, turn: Tensor, count: Tensor | None, marked: list[int], state: list[Tensor]
    ) -> list[Tensor]:
        """One turn of the loop that runs backwards."""
        trace = self.trace
        index = (self.limit - 1 if count is None else count - 1) - turn
        place = trace.value(index._data)
        given = {self.index: place}
        for value, memory in self.kept:
            given[value] = trace.emit("take", [memory, place], {"axis": 0})
        inputs = {
            id(self.arguments[k]): trace.symbol(given[self.kept[k][0]]) for k in marked
        } | self.captured
        seeds: list[Tensor | None] = [None] * len(self.start)
        for k, gradient in zip(marked, state, strict=False):
            seeds[k] = gradient
        before = [None] * len(marked) + state[len(marked) :]
        return pulled_through(trace, self.record, given, inputs, seeds, before)

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

        return add_loop(
            trace, self.limit, start, body, None if self.condition is None else condition
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
        carried = [
            g and x.requires_grad and next(given)
            for x, g in zip(self.start, self.with_gradient, strict=True)
        ]
        captured = dict(zip(self.captured, given, strict=True))
        always, seen = [True] * len(carried), []
        while carried not in seen:
            seen.append(carried)
            leaves = {id(x): y for x, y in zip(self.arguments, carried, strict=True)}
            carried = self.record.flags(captured | leaves)
            always = [a and b for a, b in zip(always, carried, strict=True)]
        return always

    def inner(self) -> Sequence[Record]:
        """See `Region.inner`."""
        return [self.record]

    def uses(self) -> Iterator[Value]:
        """See `Region.uses`."""
        yield from (self.most, *self.start_values)
        if self.condition is not None:
            yield from captured_by(self.condition)
        yield from Region.uses(self)
