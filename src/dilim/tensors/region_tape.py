"""Derivatives through branches and loops.

What a region records on the tape is kept. Its derivative is another region, in which the values of
the region are computed again, what was recorded is applied to them again, and pulled back. So
``detach``, ``no_grad`` and derivatives of higher order mean inside what they mean outside.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from dilim.autodiff.walk import RESULT, Joint, Part, reachable, rule_of
from dilim.errors import GradientError
from dilim.ir.graph import Graph, Value
from dilim.ir.structure import READ, RECEIVE, walk
from dilim.tensors.dispatch import apply
from dilim.tensors.regions import cloned, without_effects
from dilim.tensors.replays import Arrays, Stage
from dilim.tensors.tape import Node
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
        kept: values that cannot be computed again -> results of the region's node that are these.
    """

    nodes: list[Node]
    captured: dict[int, Tensor]
    versions: dict[int, int]
    outputs: list[Any]
    results: list[Value]
    graph: Graph = field(init=False)
    renamed: Values = field(init=False)
    kept: dict[Value, Value] = field(default_factory=dict)

    def again(self, trace: Trace, given: Values, captured: Mapping[int, Tensor]) -> list[Tensor]:
        """The results, computed and recorded again in the region that is being built.

        Args:
            trace: the graph.
            given: values that stand for others: inputs of the region, and what lies around it.
            captured: id of an edge -> what stands for the tensor there.
        """
        known = {inner: given.get(result, result) for inner, result in self.kept.items()}
        values = cloned(trace, self.graph, {**given, **known})
        # regions inside know variables by the names that they had while this one was built
        values.update({old: values.get(new, new) for old, new in self.renamed.items()})

        def plain(x: Any, value: Value | None) -> Any:
            return x if value is None else trace.symbol(values.get(value, value))

        def applied(node: Node, made: list[Any]) -> Any:
            given = zip(made, node.inputs or (), node.values, strict=True)
            inputs = [plain(x, value) if y is None else y for y, x, value in given]
            if isinstance(node.op, Region):
                return node.op.again(trace, inputs, values)
            return apply(node.op, *inputs, **node.params)

        made = self._walked(captured, applied)
        results = zip(made, self.results, strict=True)
        return [plain(None, value) if y is None else y for y, value in results]

    def replay(self, stage: Stage, arrays: Arrays, captured: Mapping[int, Tensor]) -> list[Tensor]:
        """The results, computed and recorded again outside of the graph.

        Args:
            stage: records.
            arrays: the numbers of the values that the region uses, and of its inputs; its own are
                added.
            captured: id of an edge -> what stands for the tensor there.
        """
        arrays.update((inner, arrays[result]) for inner, result in self.kept.items())
        stage.compute(self._remaining(), arrays)
        arrays.update((old, arrays[new]) for old, new in self.renamed.items() if new in arrays)

        def applied(node: Node, made: list[Any]) -> Any:
            operands = [
                x if value is None else Tensor._from_array(np.asarray(arrays[value]))
                for x, value in zip(node.inputs or (), node.values, strict=True)
            ]
            given = zip(made, node.inputs or (), operands, strict=True)
            inputs = [stage.plain(x, operand) if y is None else y for y, x, operand in given]
            if isinstance(node.op, Region):
                return node.op.replay(stage, inputs, arrays)
            return stage.record(node, inputs, operands)

        made = self._walked(captured, applied)
        results = zip(made, self.results, strict=True)
        return [Tensor._from_array(np.array(arrays[v])) if y is None else y for y, v in results]

    def leads_to(self, results: Iterable[int], surely: bool) -> set[int]:
        """Ids of the edges out of the region to which gradients of some results go.

        Args:
            results: their numbers.
            surely: whether on every path through the region; else on any.
        """
        edges = [self.outputs[number] for number in results]
        met: dict[int, set[int]] = {id(edge): set() for edge in edges if edge is not None}
        for node in reversed(self.nodes):
            if id(node) not in met:
                continue
            if isinstance(node.op, Part):
                met.setdefault(id(node.edges[0]), set()).add(node.op.number)
            elif isinstance(node.op, Region):
                for position in node.op.leads_to(met[id(node)], surely):
                    met.setdefault(id(node.edges[position]), set())
            else:
                for position, edge in enumerate(node.edges):
                    if edge is not None and rule_of(node.op, position) is not None:
                        met.setdefault(id(edge), set())
        return met.keys() & self.captured.keys()

    def flags(self, captured: Mapping[int, bool]) -> list[bool]:
        """Which results have a gradient for certain, by what is certain of the edges outside."""

        def applied(node: Node, made: list[Any]) -> Any:
            known = list(map(bool, made))
            return node.op.flags(known) if isinstance(node.op, Region) else any(known)

        return list(map(bool, self._walked(captured, applied)))

    def _walked(
        self, captured: Mapping[int, Any], applied: Callable[[Node, list[Any]], Any]
    ) -> list[Any]:
        """What stands for the results where something stands for the edges out of the region.

        Args:
            captured: id of an edge -> what stands for it.
            applied: what stands for the result of an operation, or those of a region, where these
                stand for its edges; None for an input without one.
        """
        made: dict[int, Any] = dict(captured)
        for node in self.nodes:
            given: list[Any] = [None if edge is None else made[id(edge)] for edge in node.edges]
            op: Any = node.op
            made[id(node)] = given[0][op.number] if op.__class__ is Part else applied(node, given)
        return [None if edge is None else made[id(edge)] for edge in self.outputs]

    def uses(self) -> Iterator[Value]:
        """The values that are needed to carry the region out again, some of them its own."""
        yield from (self.renamed.get(value, value) for value in self._named())

    def _named(self) -> Iterator[Value]:
        """These values, by the names that they had while the region was built."""
        yield from self.kept.values()
        yield from self._remaining().captured()
        for node in self.nodes:
            yield from (value for value in node.values if value is not None)
            if isinstance(node.op, Region):
                yield from node.op.uses()
        yield from self.results

    def own(self) -> Iterator[Value]:
        """The values that the region computes, or reads where it begins."""
        yield from self.graph.inputs
        yield from (value for node in self.graph.nodes for value in node.results)
        for node in self.nodes:
            if isinstance(node.op, Region):
                yield from node.op.own()

    def _remaining(self) -> Graph:
        """What is left to compute where the values that are kept are known."""
        return replace(without_effects(self.graph, self.kept), outputs=())

    def can_replay(self) -> bool:
        """Whether what is left reads no state that it writes, and nothing of the host."""
        inner = (node.op for node in self.nodes if isinstance(node.op, Region))
        return not any(node.op in (READ, RECEIVE) for node in walk(self._remaining())) and all(
            map(can_replay, inner)
        )


def collect(trace: Trace, outputs: Sequence[Tensor], since: int) -> Record:
    """What was recorded for these results of the region being built; see `tape.now`.

    Raises:
        GradientError: a backward pass has used up a part of it.
    """

    def is_inside(edge: Any) -> bool:
        return edge.__class__ is Node and edge.serial >= since

    edges = [edge_of(x) for x in outputs]
    nodes = reachable([edge for edge in edges if edge is not None], is_inside)
    nodes.reverse()
    if any(node.inputs is None for node in nodes):
        raise GradientError(
            "a branch or loop gives what was computed from something that backward() has used up"
        )
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


def edge_of(x: Tensor) -> Any:
    """The edge of a record that uses a tensor."""
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

    def replay(self, stage: Stage, inputs: list[Tensor], arrays: Arrays) -> list[Tensor]:
        """The results, computed and recorded again outside of the graph.

        Args:
            stage: records.
            inputs: what stands for the tensors at the edges.
            arrays: the numbers of the values that the region uses.
        """
        raise NotImplementedError

    def leads_to(self, results: Iterable[int], surely: bool) -> set[int]:
        """Positions of the edges to which gradients of some results go.

        Args:
            results: their numbers.
            surely: whether on every path; else on any.
        """
        raise NotImplementedError

    def flags(self, inputs: list[bool]) -> list[bool]:
        """Which results have a gradient for certain, by what is certain of the inputs."""
        raise NotImplementedError

    def inner(self) -> Sequence[Record]:
        """What its regions record."""
        raise NotImplementedError

    def edges(self, number: int) -> list[Any]:
        """What a result may be: records, tensors that nothing has made, None for no gradient."""
        return [record.outputs[number] for record in self.inner()]

    def maker(self, number: int) -> str:
        """The name of the operation that has made a result, where it is the same on all paths."""
        edges = self.edges(number)
        names = {edge.op.name if edge.__class__ is Node else RESULT for edge in edges}
        return names.pop() if len(names) == 1 else RESULT

    def uses(self) -> Iterator[Value]:
        """The values that `replay` needs, some of them computed by the region itself."""
        for record in self.inner():
            yield from record.uses()

    def own(self) -> Iterator[Value]:
        """The values that the region computes."""
        for record in self.inner():
            yield from record.own()


def needed_by(region: Region) -> list[Value]:
    """The values from outside that it takes to carry a region out again."""
    own = set(region.own())
    return [value for value in dict.fromkeys(region.uses()) if value not in own]


def can_replay(region: Region) -> bool:
    """Whether a region can be carried out again: it reads no state that it writes, nor the host."""
    return all(record.can_replay() for record in region.inner())


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
        tuple(edge_of(x) for x in captured),
        tuple(versions),
        0,
    )
    whole.values = [None] * len(captured)
    for number, (x, has_gradient) in enumerate(zip(results, chosen, strict=True)):
        if has_gradient:
            part = Part(number, region.maker(number))
            x._node = Node(part, (None,), {}, (whole,), (0,), x._storage.version)  # type: ignore[arg-type]
            x._node.values = [None]
            x._requires_grad = True
