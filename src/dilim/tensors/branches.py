"""Branches of a graph on its tape, and their derivative."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

from dilim.autodiff.walk import Unsure
from dilim.ir.graph import Value
from dilim.tensors.region_pull import pulled_through
from dilim.tensors.region_tape import Record, Region, Values
from dilim.tensors.replays import Arrays, Stage
from dilim.tensors.tensor import Tensor
from dilim.tensors.tracer import Trace


class Branch(Region):
    """`cond` on the tape.

    Args:
        trace: the graph.
        condition: which branch is taken.
        records: of both branches.
        captured: id of an edge -> the tensor there, for both.
        build: `control.cond_in`.
    """

    name = "cond"

    def __init__(
        self,
        trace: Trace,
        condition: Value,
        records: Sequence[Record],
        captured: dict[int, Tensor],
        build: Callable[..., Any],
    ) -> None:
        self.trace = trace
        self.condition = condition
        self.records = records
        self.captured = captured
        self.build = build

    def pull(self, gradients: dict[int, Any], before: list[Any]) -> list[Any]:
        """See `Joint.pull`."""
        trace = self.trace
        seeds = [gradients.get(number) for number in range(len(self.records[0].results))]
        reached: list[tuple[set[int], set[int]]] = []

        def branch(record: Record) -> Callable[[], list[Tensor]]:
            return lambda: pulled_through(trace, record, {}, self.captured, seeds, before, reached)

        condition = trace.symbol(self.condition)
        found = list(self.build(trace, condition, *(branch(record) for record in self.records)))
        (some, sure), (others, sure_else) = reached[0], reached[-1]
        for k, x in enumerate(found):
            if k not in sure & sure_else:
                found[k] = Unsure(x, trace.gradient_on_one_path) if k in some | others else None
        return found

    def again(self, trace: Trace, inputs: list[Tensor], values: Values) -> list[Tensor]:
        """See `Region.again`."""
        captured = dict(zip(self.captured, inputs, strict=True))

        def branch(record: Record) -> Callable[[], list[Tensor]]:
            return lambda: record.again(trace, values, captured)

        condition = trace.symbol(values.get(self.condition, self.condition))
        return list(self.build(trace, condition, *(branch(record) for record in self.records)))

    def replay(self, stage: Stage, inputs: list[Tensor], arrays: Arrays) -> list[Tensor]:
        """See `Region.replay`."""
        record = self.records[0 if arrays[self.condition] else 1]
        return record.replay(stage, dict(arrays), dict(zip(self.captured, inputs, strict=True)))

    def leads_to(self, results: Iterable[int], surely: bool) -> set[int]:
        """See `Region.leads_to`."""
        a, b = (record.leads_to(results, surely) for record in self.records)
        found = a & b if surely else a | b
        return {position for position, key in enumerate(self.captured) if key in found}

    def flags(self, inputs: list[bool]) -> list[bool]:
        """See `Region.flags`."""
        captured = dict(zip(self.captured, inputs, strict=True))
        return list(map(all, zip(*(r.flags(captured) for r in self.records), strict=True)))

    def inner(self) -> Sequence[Record]:
        """See `Region.inner`."""
        return self.records

    def uses(self) -> Iterator[Value]:
        """See `Region.uses`."""
        yield self.condition
        yield from super().uses()
