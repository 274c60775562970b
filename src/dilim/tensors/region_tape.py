"""Derivatives through branches and loops.

What a region records on the tape is kept. Its derivative is another region, in which the values of
the region are computed again, what was recorded is applied to them again, and pulled back. So
``detach``, ``no_grad`` and derivatives of higher order mean inside what they mean outside.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dilim.autodiff.walk import Joint, Part, reachable
from dilim.ir.graph import Graph, Value
from dilim.ops.table import OPERATIONS
from dilim.tensors.backward import pulled
from dilim.tensors.dispatch import apply
from dilim.tensors.regions import cloned
from dilim.tensors.tape import Node, enable_grad, mode, now
from dilim.tensors.tensor import Tensor
from dilim.tensors.tracer import Trace

Values = Mapping[Value, Value]


@dataclass(slots=True)
class Record:
    """What one region records.

    Attributes:
        nodes: of the tape, in order.
        captured: id of an edge that leads out of the region -> the tensor there.
        versions: id of such an edge -> the version of the tensor's memory when it was used.
        outputs: per result the edge that made it, or None where it has no gradient.
        results: the values of the results.
        graph: the finished region.
        renamed: values of variables that turned out to be values from outside.
    """

    nodes: list[Node]
    captured: dict[int, Tensor]
    versions: dict[int, int]
    outputs: list[Any]
    results: list[Value]
    graph: Graph = field(init=False)
    renamed: Values = field(init=False)

    def again(self, trace: Trace, given: Values, captured: Mapping[int, Tensor]) -> list[Tensor]:
        """The results, computed and recorded again in the region that is being built.

        Args:
            trace: the graph.
            given: values that stand for others: inputs of the region, and what lies around it.
            captured: id of an edge -> what stands for the tensor there.
        """
        values = cloned(trace, self.graph, given)
        # regions inside know variables by the names that they had while this one was built
        values.update({old: values.get(new, new) for old, new in self.renamed.items()})
        made: dict[int, Any] = dict(captured)
        for node in self.nodes:
            if isinstance(node.op, Part):
                (whole,) = node.edges
                made[id(node)] = made[id(whole)][node.op.number]
                continue
            inputs = [
                made[id(edge)] if edge is not None else self._plain(trace, x, value, values)
                for x, edge, value in zip(node.inputs or (), node.edges, node.values, strict=True)
            ]
            if isinstance(node.op, Region):
                made[id(node)] = node.op.again(trace, inputs, values)
            else:
                made[id(node)] = apply(node.op, *inputs, **node.params)
        return [
            made[id(edge)] if edge is not None else self._plain(trace, None, value, values)
            for edge, value in zip(self.outputs, self.results, strict=True)
        ]

    def _plain(self, trace: Trace, x: Any, value: Value | None, values: Values) -> Any:
        if value is None:
            return x  # a number
        return trace.symbol(values.get(value, value))


def collect(trace: Trace, outputs: Sequence[Tensor], since: int) -> Record:
    """What was recorded for these results of the region being built; see `tape.now`."""

    def is_inside(edge: Any) -> bool:
        return edge.__class__ is Node and edge.serial >= since

    edges = [_edge(x) for x in outputs]
    nodes = reachable([edge for edge in edges if edge is not None], is_inside)
    nodes.reverse()
    used = [
        each
        for node in nodes
        for each in zip(node.inputs or (), node.edges, node.versions, strict=True)
    ]
    used += [(x, edge, x._storage.version) for x, edge in zip(outputs, edges, strict=True)]
    captured: dict[int, Tensor] = {}
    versions: dict[int, int] = {}
    for x, edge, version in used:
        if edge is not None and not is_inside(edge):
            captured.setdefault(id(edge), x)
            versions.setdefault(id(edge), version)
    values = [trace.value(trace.handle(x)) for x in outputs]
    return Record(nodes, captured, versions, edges, values)


def _edge(x: Tensor) -> Any:
    if not x.requires_grad:
        return None
    return x if x._node is None else x._node


class Region(Joint):
    """A branch or loop on the tape.

    Attributes:
        name: for errors.
    """

    name = "region"

    def again(self, trace: Trace, inputs: list[Tensor], values: Values) -> list[Tensor]:
        """The results, computed and recorded again.

        Args:
            trace: the graph.
            inputs: what stands for the tensors at the edges.
            values: values that stand for others.
        """
        raise NotImplementedError


def put_on_tape(
    region: Region,
    captured: Sequence[Tensor],
    versions: Sequence[int],
    results: Sequence[Tensor],
    chosen: Sequence[bool],
) -> None:
    """Make a region the maker of those of its results that have a gradient.

    Args:
        region: a branch or loop.
        captured: the tensors that it was made from.
        versions: of their memory, when they were used.
        results: its results.
        chosen: which of them have a gradient.
    """
    whole = Node(
        region,  # type: ignore[arg-type]
        tuple(captured),
        {},
        tuple(_edge(x) for x in captured),
        tuple(versions),
        0,
    )
    whole.values = [None] * len(captured)
    for number, (x, has_gradient) in enumerate(zip(results, chosen, strict=True)):
        if has_gradient:
            part = Part(number)
            x._node = Node(part, (None,), {}, (whole,), (0,), x._storage.version)  # type: ignore[arg-type]
            x._requires_grad = True


def fresh(trace: Trace, x: Tensor) -> Tensor:
    """A tensor equal to x to differentiate by; on x's tape where derivatives are recorded."""
    if mode.recording:
        linked: Tensor = apply(OPERATIONS["identity"], x)
        return linked
    return trace.symbol(trace.value(trace.handle(x))).requires_grad_()


def pulled_through(
    trace: Trace,
    record: Record,
    given: Values,
    inputs: Mapping[int, Tensor],
    seeds: Sequence[Tensor | None],
    before: Sequence[Tensor | None],
    reached: list[set[int]] | None = None,
) -> list[Tensor]:
    """Gradients through one region, inside the region that is being built.

    Args:
        trace: the graph.
        record: what the region records.
        given: see `Record.again`.
        inputs: id of an edge -> the tensor to differentiate by.
        seeds: gradients of the results, None for none.
        before: per input what the gradient is added to, or None.
        reached: takes the numbers of the inputs that have a gradient; those of the others are 0.

    Returns:
        One gradient per input.
    """
    leaves = {key: fresh(trace, x) for key, x in inputs.items()}
    since = now()
    with enable_grad():
        results = record.again(trace, given, leaves)
    found = pulled(results, seeds, list(leaves.values()), since, list(before))
    if reached is not None:
        reached.append({number for number, gradient in enumerate(found) if gradient is not None})
    return [
        trace.full(shape=x.shape, value=0.0, dtype=x.dtype) if gradient is None else gradient
        for x, gradient in zip(inputs.values(), found, strict=True)
    ]


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
        reached: list[set[int]] = []

        def branch(record: Record) -> Callable[[], list[Tensor]]:
            return lambda: pulled_through(trace, record, {}, self.captured, seeds, before, reached)

        condition = trace.symbol(self.condition)
        found = list(self.build(trace, condition, *(branch(record) for record in self.records)))
        if reached[0] != reached[-1]:
            trace.gradient_on_one_path()
        return found

    def again(self, trace: Trace, inputs: list[Tensor], values: Values) -> list[Tensor]:
        """See `Region.again`."""
        captured = dict(zip(self.captured, inputs, strict=True))

        def branch(record: Record) -> Callable[[], list[Tensor]]:
            return lambda: record.again(trace, values, captured)

        condition = trace.symbol(values.get(self.condition, self.condition))
        return list(self.build(trace, condition, *(branch(record) for record in self.records)))
