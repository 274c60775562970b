"""The tape of branches and loops that a graph has carried out, recorded when somebody asks for it.

A program leaves no trace of the operations in a branch or loop. What comes out of it with a
gradient has a `Deferred` node. Only a walk over the tape, or a look at what made it, carries the
region out again, eagerly and from the numbers that it began with, and records what eager
execution would have recorded, in its place among the rest.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from dilim.backends.reference.executor import by_kernel, carry_out
from dilim.ir.graph import Graph, Value
from dilim.ops.table import OPERATIONS
from dilim.tensors.dispatch import apply, record
from dilim.tensors.tape import Node, eagerly, no_grad
from dilim.tensors.tensor import Tensor

Arrays = dict[Value, np.ndarray]


class Stage:
    """Where a region is carried out again.

    Args:
        serial: of the first operation that is recorded.
        moments: when operations were recorded outside of the graph, in order: the serial of the
            graph's tape that comes after an operation -> the serial that this gets.
        given: tensors from outside, with the edges that they had and the versions of their memory.
        plain: id of a tensor of the graph -> the tensor from outside that it was.
    """

    def __init__(
        self,
        serial: int,
        moments: Sequence[tuple[int, int]],
        given: Sequence[tuple[Tensor, Any, int]],
        plain: Mapping[int, Tensor],
    ) -> None:
        self._serials = itertools.count(serial)
        self._moments = [(after, itertools.count(first)) for after, first in moments]
        self._given = {id(x): (x, edge, version) for x, edge, version in given}
        self._plain = plain
        self.nodes: list[Node] = []

    def plain(self, x: Any, operand: Any) -> Any:
        """What an operation is recorded with for an input without gradient.

        Args:
            x: the input in the graph.
            operand: its numbers.
        """
        return self._plain.get(id(x), operand)

    def compute(self, graph: Graph, arrays: Arrays) -> None:
        """Carry out the nodes of a region; their values are added to the arrays."""
        carry_out(graph, arrays, by_kernel)

    def record(self, applied: Node, inputs: Sequence[Any], operands: Sequence[Any]) -> Tensor:
        """Apply an operation to the numbers that its inputs had, and record it.

        Args:
            applied: the operation on the tape of the graph.
            inputs: what it is recorded with.
            operands: the numbers.
        """
        result = apply(applied.op, *operands, **applied.params)
        edges, versions = zip(*map(self._read, inputs), strict=True)
        if result._is_view:
            result._storage = inputs[0]._storage
            result._born = versions[0]
            self._given[id(result)] = result, None, versions[0]
        if not (result.dtype.is_floating and any(edge is not None for edge in edges)):
            return result
        version = versions[0] if result._is_view else 0
        node = Node(applied.op, tuple(inputs), applied.params, edges, versions, version)
        node.serial = next(self._serials_of(applied))
        self.nodes.append(node)
        result._node, result._requires_grad = node, True
        if id(result) in self._given:
            self._given[id(result)] = result, node, versions[0]
        return result

    def _serials_of(self, applied: Node) -> Iterator[int]:
        later = (serials for after, serials in self._moments if applied.serial < after)
        return next(later, self._serials)

    def _read(self, x: Any) -> tuple[Any, int]:
        """The edge and the version of an input."""
        if not isinstance(x, Tensor):
            return None, 0
        if id(x) in self._given:
            return self._given[id(x)][1:]
        return (x._node if x._node is not None or not x._requires_grad else x), x._storage.version


class Replay:
    """A branch or loop that was carried out, to be recorded when it is asked for.

    Args:
        region: what is on the tape of the graph: a `region_tape.Region`.
        inputs: the tensors from outside that it was made from.
        arrays: the numbers that it began with; taken over.
        serial: of the first operation that is recorded.
        moments: see `Stage`.
        plain: tensors of the graph without gradient -> the same outside.

    Attributes:
        whole: an operation on all that comes from outside, as that is now.
    """

    def __init__(
        self,
        region: Any,
        inputs: tuple[Tensor, ...],
        arrays: Arrays,
        serial: int,
        moments: Sequence[tuple[int, int]],
        plain: Mapping[int, Tensor],
    ) -> None:
        self.whole = _on_tape(region, (*inputs, *plain.values()))
        self._count = len(inputs)
        self._plain = plain
        self._arrays = arrays
        self._serial = serial
        self._moments = moments
        self._results: list[Tensor] | None = None
        self._nodes: list[Node] = []
        self._is_released = False

    @property
    def is_certain(self) -> bool:
        """Whether everything from outside that may have a gradient has one."""
        return None not in self.whole.edges[: self._count]

    @property
    def inputs(self) -> Any:
        """None once it was used up, as for a `Node`."""
        is_spent = self._is_released or any(node.inputs is None for node in self._nodes)
        return None if is_spent else ()

    def release(self) -> None:
        """Free what was recorded; it cannot be walked again."""
        self._is_released = True
        for node in self._nodes:
            node.release()

    def results(self) -> list[Tensor]:
        """The results, recorded."""
        if self._results is None:
            whole: Any = self.whole
            given = list(zip(whole.inputs, whole.edges, whole.versions, strict=True))
            stage = Stage(self._serial, self._moments, given, self._plain)
            with eagerly(), no_grad():
                inputs = list(whole.inputs[: self._count])
                self._results = whole.op.replay(stage, inputs, self._arrays)
            self._nodes = stage.nodes
            self._arrays, self._plain = {}, {}
            self.whole.release()
            if self._is_released:
                self.release()
        return self._results

    def adopt(self, number: int, made: Tensor, version: int) -> Node:
        """The node that made a result; ``made`` is the tensor that the program has given for it."""
        result = self.results()[number]
        node = result._node
        if node is None:
            node = _on_tape(OPERATIONS["identity"], (result,))
            node.serial = self._serial
        elif result is not made:
            node.version = version
            for each in self._nodes:
                if each.inputs is not None and any(edge is node for edge in each.edges):
                    _exchange(each, result, made, version)
            self._results[number] = made  # type: ignore[index]
        return node


def _on_tape(op: Any, inputs: tuple[Tensor, ...]) -> Node:
    """A node for an operation with these inputs, as they are now."""
    made = Tensor._from_array(np.zeros(()))
    record(op, inputs, {}, made)
    node: Any = made._node
    return node  # type: ignore[no-any-return]


def _exchange(node: Node, old: Tensor, new: Tensor, version: int) -> None:
    inputs, versions = list(node.inputs or ()), list(node.versions)
    for position, x in enumerate(inputs):
        if x is old:
            inputs[position], versions[position] = new, version
    node.inputs, node.versions = tuple(inputs), tuple(versions)
