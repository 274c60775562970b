"""In-place: which results may lie in the memory of something that is no longer needed.

Nothing moves; nodes get parameters that permit. Without them the program means the same, and reads,
writes and loops copy.

``fused[alias=((result, input), ...)]``
    A result may lie exactly in the memory of an input: the kernel loads every element of that input
    only to make the element at the same position (or it is what a scatter starts from), nobody
    reads the input afterwards, and its memory belongs to the block (or to the variable that the
    result is written to, or to the carried value that it becomes).
``read[copy=True]``
    The value must be copied out. Otherwise it is the memory of the variable for all its life.
``write[in_place=True]``
    The value may be made in the memory of the variable, and nothing is left to do. Nobody looks at
    the old contents from then on, and nothing may raise or meet the host before the write.
``if[in_place=((region, k), ...)]``
    A region may make its output k in the memory of result k, which is that of a carried value.
``loop[in_place=(k, ...)]``
    The body may make its output k in the memory of carried value k. The other outputs move there
    at the back edge as if all at once.
``loop[reuse=(k, ...)]``
    Initial value k dies at the loop and owns its memory, which may be that of the carried value.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from dilim.ir.graph import Graph, Node, Value
from dilim.ir.structure import (
    CHANNELS,
    CONTROL,
    FUSED,
    IF,
    LOOP,
    READ,
    RECEIVE,
    WRITE,
    free_values,
    holds,
    host_may_write,
    walk,
    written,
)
from dilim.passes.positions import replaceable
from dilim.passes.raising import may_raise
from dilim.passes.rewriting import rebuilt, with_nodes, with_params


def in_place(graph: Graph) -> Graph:
    """Say where memory may be used again; see the module. Comes after fusion."""
    return _Block(graph).run()


@dataclass(slots=True)
class _Variable:
    """What happens to a variable in a block, as positions of nodes in order.

    Attributes:
        touched: nodes that read or write it, also in their regions.
        changed: nodes that write it, also in their regions.
        holders: values that lie in its memory at this moment of the scan.
    """

    touched: list[int] = field(default_factory=list)
    changed: list[int] = field(default_factory=list)
    holders: list[Value] = field(default_factory=list)


class _Block:
    """One block: the graph, or a region of control flow."""

    def __init__(self, graph: Graph, targets: Mapping[int, Value] = {}) -> None:
        self._graph = graph
        self._targets = targets  # output -> the value in whose memory it may be made
        self._nodes = list(graph.nodes)
        self._made: dict[Value, int] = {}
        self._last: dict[Value, int] = {}
        self._barriers: list[int] = []
        self._points: list[int] = []
        self._variables: dict[Value, _Variable] = {}
        self._placed: set[Value] = set()  # values that lie in a variable or carried value
        self._settled: set[int] = set()  # outputs of branches that do
        self._alias: dict[int, dict[int, int]] = {}  # node -> result -> input
        self.in_place: tuple[int, ...] = ()
        for position, node in enumerate(self._nodes):
            self._look_at(position, node)
        for value in graph.outputs:
            self._last[value] = len(self._nodes)

    def run(self) -> Graph:
        """The block with permissions."""
        for position, node in enumerate(self._nodes):
            if node.op == READ:
                self._read(position, node)
            elif node.op == WRITE:
                self._write(position, node)
            elif node.op in CONTROL:
                self._control(position, node)
        self.in_place = tuple(k for k, value in self._targets.items() if self._carry(k, value))
        for position, node in enumerate(self._nodes):
            if node.op == FUSED:
                self._kernel(position, node)
        return with_nodes(self._graph, self._nodes)

    # --- what happens when ----------------------------------------------------------------

    def _look_at(self, position: int, node: Node) -> None:
        for result in node.results:
            self._made[result] = position
        for value in free_values(node) if node.regions and node.op != FUSED else node.inputs:
            self._last[value] = position
        if node.op in (READ, WRITE):
            self._variable(node.inputs[0]).touched.append(position)
            if node.op == WRITE:
                self._variable(node.inputs[0]).changed.append(position)
        elif node.op in CONTROL:
            inner = [other for region in node.regions for other in walk(region)]
            for variable in {x.inputs[0] for x in inner if x.op in (READ, WRITE)}:
                self._variable(variable).touched.append(position)
            for variable in written(node):
                self._variable(variable).changed.append(position)
        if host_may_write(node):
            self._points.append(position)
        if holds(node, CHANNELS) or holds(node, {LOOP}) or may_raise(node):
            self._barriers.append(position)

    def _variable(self, variable: Value) -> _Variable:
        return self._variables.setdefault(variable, _Variable())

    def _next_change(self, variable: Value, position: int) -> int:
        """The first node after a position that may change a variable; the end if there is none."""
        end = len(self._nodes)
        changes = (*self._variables[variable].changed, *self._points)
        return min((x for x in changes if x > position), default=end)

    def _outlives(self, value: Value, variable: Value, position: int) -> bool:
        """Whether a value that lies in a variable since ``position`` is used after it changes."""
        change = self._next_change(variable, position)
        last = self._last.get(value, position)
        if change == len(self._nodes):
            return False
        return last > change or (last == change and self._nodes[change].op in CONTROL)

    # --- variables ------------------------------------------------------------------------

    def _read(self, position: int, node: Node) -> None:
        variable, result = node.inputs[0], node.results[0]
        self._placed.add(result)
        if self._outlives(result, variable, position):
            self._nodes[position] = with_params(node, copy=True)
        else:
            self._variable(variable).holders.append(result)

    def _write(self, position: int, node: Node) -> None:
        variable, value = node.inputs
        state = self._variable(variable)
        holders, state.holders = state.holders, []
        start = self._made.get(value)
        if start is None or self._nodes[start].op != FUSED or value in self._placed:
            return
        earliest = max([x + 1 for x in state.touched if x < position], default=0)
        earliest = max([earliest, *(x for x in self._barriers if x < position)])
        if start < earliest or self._outlives(value, variable, position):
            return
        if not self._takes(start, value, holders, earliest):
            return
        self._placed.add(value)
        state.holders.append(value)
        self._nodes[position] = with_params(node, in_place=True)

    def _takes(self, start: int, value: Value, holders: Sequence[Value], earliest: int = 0) -> bool:
        """Whether a kernel may make a value where others lie; notes the alias.

        Args:
            start: the kernel.
            value: one of its results.
            holders: what lies there.
            earliest: the first node that may write there.
        """
        alive = [x for x in holders if self._last.get(x, -1) >= start]
        node = self._nodes[start]
        if not alive:
            self._begin_earlier(node, value, holders, earliest)
            return True
        if len(alive) > 1 or self._last[alive[0]] > start or alive[0] not in node.inputs:
            return False
        result, operand = node.results.index(value), node.inputs.index(alive[0])
        if not replaceable(node, result, operand):
            return False
        self._alias.setdefault(start, {})[result] = operand
        return True

    def _begin_earlier(
        self, node: Node, value: Value, holders: Sequence[Value], earliest: int
    ) -> None:
        """Let what a value is made of lie in its place before it, and what that is made of.

        So a chain of partial writes is made in one memory.
        """
        position, result = self._made[value], node.results.index(value)
        for operand, x in enumerate(node.inputs):
            start = self._made.get(x, -1)
            if start < earliest or self._nodes[start].op != FUSED or x in self._placed:
                continue
            if self._last[x] != position or not replaceable(node, result, operand):
                continue
            if node.inputs.count(x) == 1 and self._takes(start, x, holders, earliest):
                self._placed.add(x)
                self._alias.setdefault(position, {})[result] = operand
                return

    # --- control flow ---------------------------------------------------------------------

    def _control(self, position: int, node: Node) -> None:
        regions = []
        permitted: list[Any] = []
        params = {}
        targets = self._of_branches(position, node) if node.op == IF else {}
        for number, region in enumerate(node.regions):
            if node.op == LOOP and region is node.regions[-1]:
                targets = dict(enumerate(region.inputs[1:]))
            block = _Block(region, targets)
            regions.append(block.run())
            permitted += (
                block.in_place if node.op == LOOP else [(number, k) for k in block.in_place]
            )
        if permitted:
            params["in_place"] = tuple(permitted)
        if node.op == LOOP:
            inside = {value for region in node.regions for value in region.captured()}
            reuse = tuple(
                k
                for k, value in enumerate(node.inputs[1:])
                if value not in inside and self._dies(position, node, value)
            )
            if reuse:
                params["reuse"] = reuse
        node = rebuilt(node, node.inputs, tuple(regions))
        self._nodes[position] = with_params(node, **params) if params else node
        for variable in written(node):
            self._variable(variable).holders.clear()

    def _of_branches(self, position: int, node: Node) -> dict[int, Value]:
        """The results of a branch that may lie where values of the block around it do."""
        found = {}
        for k, value in self._targets.items():
            output = self._graph.outputs[k]
            if output not in node.results or output in self._placed:
                continue
            if self._last.get(value, -1) > position:
                continue
            number = node.results.index(output)
            others = [x for r in node.regions for j, x in enumerate(r.outputs) if j != number]
            if value not in others:
                found[number] = value
                self._placed.add(output)
                self._settled.add(k)
        return found

    def _dies(self, position: int, node: Node, value: Value) -> bool:
        """Whether a loop is the last to use a value, as an input, once, that owns its memory."""
        return (
            node.inputs.count(value) == 1 and self._last[value] == position and self._owned(value)
        )

    def _owned(self, value: Value) -> bool:
        """Whether a value has memory of its own, which belongs to this block."""
        if value not in self._made or value in self._placed:
            return False
        return self._nodes[self._made[value]].op in (FUSED, RECEIVE, *CONTROL)

    def _carry(self, k: int, value: Value) -> bool:
        """Whether output k may be made where a value from outside lies."""
        if k in self._settled:
            return True
        output = self._graph.outputs[k]
        start = self._made.get(output)
        if start is None or self._nodes[start].op != FUSED or output in self._placed:
            return False
        if not self._takes(start, output, [value]):
            return False
        self._placed.add(output)
        return True

    # --- kernels --------------------------------------------------------------------------

    def _kernel(self, position: int, node: Node) -> None:
        """Let results lie in inputs that die here, as far as each has one to itself."""
        chosen = self._alias.get(position, {})
        free = [
            k
            for k, value in enumerate(node.inputs)
            if self._last[value] == position
            and self._owned(value)
            and k not in chosen.values()
            and node.inputs.count(value) == 1
        ]
        for number, result in enumerate(node.results):
            if number in chosen or result in self._placed:
                continue
            for operand in free:
                if replaceable(node, number, operand):
                    chosen[number] = operand
                    free.remove(operand)
                    break
        if chosen:
            self._nodes[position] = with_params(node, alias=tuple(sorted(chosen.items())))
