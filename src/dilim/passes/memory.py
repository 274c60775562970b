"""The memory plan: a place for every value, in one activation whose size is known beforehand.

The places that other passes permit are taken first: the buffers of variables (``read``, ``write``
with ``in_place``), results, carried values. Every other value gets a block of the arena; blocks
whose lives do not overlap share memory. A value from outside a loop that is used in it lives to the
end of the loop.
"""

from __future__ import annotations

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from dilim import dtypes
from dilim.ir import structure as s
from dilim.ir.graph import Graph, Node, Value
from dilim.ir.plan import (
    SLOTS,
    Carried,
    LoopRecord,
    Place,
    Plan,
    Point,
    aligned,
    bytes_of,
)

POINTER = 8
_INDEX_BYTES = dtypes.INDEX.itemsize


def plan_memory(graph: Graph) -> Plan:
    """Decide where everything lies.

    Args:
        graph: the output of the other passes; all its operations are structural.
    """
    return _Planner(graph).plan()


def aliases(node: Node, plan: Plan) -> dict[int, int]:
    """The results of a kernel that do lie in the memory of an input, and of which."""
    places = plan.places
    return {
        result: source
        for result, source in node.params.get("alias", ())
        if places[node.results[result]] == places[node.inputs[source]]
    }


@dataclass(slots=True, eq=False)
class _Block:
    """A piece of the arena in the making."""

    size: int
    first: int
    last: int
    offset: int = 0
    fixed: bool = False

    def covers(self, first: int, last: int) -> None:
        self.first, self.last = min(self.first, first), max(self.last, last)


@dataclass(slots=True)
class _Lives:
    """When every value is made and last used, as positions in program order."""

    first: dict[Value, int] = field(default_factory=dict)
    last: dict[Value, int] = field(default_factory=dict)
    start: dict[Node, int] = field(default_factory=dict)
    end: dict[Node, int] = field(default_factory=dict)
    uses: dict[Value, int] = field(default_factory=dict)
    clock: int = 0
    _depth: dict[Value, int] = field(default_factory=dict)
    _pending: list[list[Value]] = field(default_factory=list)

    def make(self, value: Value) -> None:
        self.first[value] = self.last[value] = self.clock
        self._depth[value] = len(self._pending)

    def use(self, value: Value) -> None:
        self.uses[value] = self.uses.get(value, 0) + 1
        if value not in self._depth:
            return  # a variable
        self.last[value] = max(self.last[value], self.clock)
        if self._depth[value] < len(self._pending):
            self._pending[self._depth[value]].append(value)

    def visit(self, region: Graph) -> None:
        for node in region.nodes:
            self.clock += 1
            self.start[node] = self.clock
            for value in node.inputs:
                self.use(value)
            if node.op == s.LOOP:
                self._pending.append([])
            for inner in node.regions if node.op in s.CONTROL else ():
                self.clock += 1
                for value in inner.inputs:
                    self.make(value)
                self.visit(inner)
                self.clock += 1
                for value in inner.outputs:
                    self.use(value)
            self.clock += 1
            if node.op == s.LOOP:
                for value in self._pending.pop():
                    self.last[value] = max(self.last[value], self.clock)
            self.end[node] = self.clock
            for value in node.results:
                self.make(value)
                # while it is made, what it is made from is still there
                self.first[value] = self.start[node]


class _Planner:
    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        self._lives = _Lives()
        for value in graph.inputs:
            self._lives.make(value)
        self._lives.visit(graph)
        self._lives.clock += 1
        for value in graph.outputs:
            self._lives.use(value)
        self._places: dict[Value, Place] = {}
        self._blocks: dict[Value, _Block] = {}
        self._all_blocks: list[_Block] = []
        self._loops: dict[Node, LoopRecord] = {}
        self._buffers: dict[Node, list[tuple[_Block, ...]]] = {}
        self._points: dict[Node, Point] = {}
        self._top = 0

    def plan(self) -> Plan:
        graph = self._graph
        count = len(graph.inputs) + len(graph.outputs)
        slots = count + len(graph.variables)
        self._top = aligned(SLOTS + POINTER * slots)
        for number, value in enumerate(graph.inputs):
            self._places[value] = Place("slot", number)
        self._variables: dict[Value, Place] = {
            variable: Place("slot", count + number)
            for number, variable in enumerate(graph.variables)
        }
        self._place_states(graph)
        self._place_outputs()
        arguments = self._reserve(POINTER * self._most_arguments())
        self._place_blocks(graph)
        base = aligned(self._top)
        size = _pack(self._all_blocks, base)
        self._finish(graph)
        return Plan(self._places, self._loops, self._points, arguments, size, self._deaths())

    def _reserve(self, size: int) -> int:
        offset = self._top
        self._top += aligned(size)
        return offset

    def _most_arguments(self) -> int:
        counts = [
            len(node.inputs) + len(node.results)
            for node in s.walk(self._graph)
            if node.op == s.FUSED
        ]
        return max(counts, default=0)

    # --- places that are given ------------------------------------------------------------

    def _place_states(self, region: Graph) -> None:
        made = _kernels(region)
        for node in region.nodes:
            if node.op == s.READ and not node.params.get("copy"):
                self._places[node.results[0]] = self._variables[node.inputs[0]]
            elif node.op == s.WRITE and node.params.get("in_place"):
                for value in _chain(node.inputs[1], made):
                    self._places[value] = self._variables[node.inputs[0]]
            for inner in node.regions if node.op in s.CONTROL else ():
                self._place_states(inner)

    def _place_outputs(self) -> None:
        made = _kernels(self._graph)
        for number, value in enumerate(self._graph.outputs, len(self._graph.inputs)):
            if value in made and value not in self._places:
                self._places[value] = Place("slot", number)

    # --- blocks of the arena --------------------------------------------------------------

    def _new_block(self, size: int, first: int, last: int) -> _Block:
        block = _Block(aligned(max(size, 1)), first, last)
        self._all_blocks.append(block)
        return block

    def _own(self, value: Value) -> None:
        """A block for a value that has no place yet."""
        if value not in self._places and value not in self._blocks:
            lives = self._lives
            size = bytes_of(value.type)
            self._blocks[value] = self._new_block(size, lives.first[value], lives.last[value])

    def _share(self, value: Value, block: _Block) -> None:
        if value not in self._places:
            self._blocks[value] = block
            block.covers(self._lives.first[value], self._lives.last[value])

    def _share_all(self, value: Value, made: Mapping[Value, Node], block: _Block) -> None:
        for each in _chain(value, made):
            self._share(each, block)

    def _place_blocks(self, region: Graph) -> None:
        for node in region.nodes:
            if node.op == s.LOOP:
                self._loop(node)
            elif node.op == s.IF:
                self._if(node)
            elif node.op == s.FUSED:
                self._fused(node)
            elif node.op == s.SEND:
                self._send(node)
            elif node.op == s.READ:
                self._own(node.results[0])
            elif node.op == s.RECEIVE:
                for value in node.results:
                    # a channel point may be reached again before its values are dead
                    self._own(value)

    def _fused(self, node: Node) -> None:
        """Results lie over the inputs they may alias where those die; else in new blocks."""
        start = self._lives.start[node]
        for result, source in node.params.get("alias", ()):
            value, operand = node.results[result], node.inputs[source]
            block = self._blocks.get(operand)
            if block is None or block.fixed or self._lives.last[operand] > start:
                continue
            if value not in self._blocks and block.last <= start:
                self._share(value, block)
        for value in node.results:
            self._own(value)

    def _if(self, node: Node) -> None:
        """Branches make their results directly in the memory of the node's results."""
        start = self._lives.start[node]
        for value in node.results:
            self._own(value)
            self._blocks[value].covers(start, start)
        for number, region in enumerate(node.regions):
            made = _kernels(region)
            for k, (inside, result) in enumerate(zip(region.outputs, node.results, strict=True)):
                block = self._blocks[result]
                if block.fixed:  # it may hold something that the branch looks at
                    if (number, k) in node.params.get("in_place", ()):
                        self._share_all(inside, made, block)
                elif inside in made and inside not in self._places and inside not in self._blocks:
                    self._share(inside, block)
            self._place_blocks(region)

    def _loop(self, node: Node) -> None:
        lives = self._lives
        start, end = lives.start[node], lives.end[node]
        in_place, reuse = node.params.get("in_place", ()), node.params.get("reuse", ())
        body = node.regions[-1]
        made = _kernels(body)
        buffers: list[tuple[_Block, ...]] = []
        for number, result in enumerate(node.results):
            last = max(end, lives.last[result])
            initial, output = node.inputs[1 + number], body.outputs[number]
            size = bytes_of(result.type)
            owned = self._blocks.get(initial) if number in reuse else None
            if owned is not None and not owned.fixed:
                owned.covers(start, last)
                first = owned
            else:
                first = self._new_block(size, start, last)
            first.fixed = True
            if number in in_place:
                buffers.append((first,))
                self._share_all(output, made, first)
                self._places.pop(result, None)
                self._blocks[result] = first
                continue
            second = self._new_block(size, start, last)
            second.fixed = True
            buffers.append((first, second))
            if output in made and output not in self._places and output not in self._blocks:
                self._blocks[output] = second  # the pointer replaces it in the end
        self._buffers[node] = buffers
        carried_offsets = [
            (self._reserve(2 * POINTER) if len(pair) == 2 else 0) for pair in buffers
        ]
        index, limit = self._reserve(2 * _INDEX_BYTES), 0
        limit = index + _INDEX_BYTES
        self._loops[node] = LoopRecord(
            index,
            limit,
            tuple(
                Carried(Place("pointer", at), Place("pointer", at + POINTER), ())
                if len(pair) == 2
                else Carried(Place("arena", 0), Place("arena", 0), ())
                for at, pair in zip(carried_offsets, buffers, strict=True)
            ),
        )
        for region in node.regions:
            self._place_blocks(region)

    def _send(self, node: Node) -> None:
        types = tuple(value.type for value in node.inputs)
        offsets = tuple(self._reserve(bytes_of(type)) for type in types)
        self._points[node] = Point(s.SEND, node.params["channel"], types, offsets)

    # --- the end --------------------------------------------------------------------------

    def _finish(self, region: Graph) -> None:
        """Turn blocks into places, with the offsets now known."""
        for value, block in self._blocks.items():
            self._places.setdefault(value, Place("arena", block.offset))
        for node in s.walk(region):
            if node.op == s.LOOP:
                self._finish_loop(node)
            elif node.op == s.RECEIVE:
                types = tuple(value.type for value in node.results)
                offsets = tuple(self._places[value].number for value in node.results)
                self._points[node] = Point(s.RECEIVE, node.params["channel"], types, offsets)

    def _finish_loop(self, node: Node) -> None:
        record = self._loops[node]
        carried: list[Carried] = []
        body = node.regions[-1]
        for number, (entry, pair) in enumerate(
            zip(record.carried, self._buffers[node], strict=True)
        ):
            offsets = tuple(block.offset for block in pair)
            if len(pair) == 1:
                here = Place("arena", offsets[0])
                entry = Carried(here, here, offsets)
            else:
                entry = Carried(entry.current, entry.following, offsets)
                output = body.outputs[number]
                if self._blocks.get(output) is pair[1]:
                    self._places[output] = entry.following
                self._places[node.results[number]] = entry.current
            carried.append(entry)
            for region in node.regions:
                self._places[region.inputs[1 + number]] = entry.current
        for region in node.regions:
            self._places[region.inputs[0]] = Place("arena", record.index)
        self._loops[node] = LoopRecord(record.index, record.limit, tuple(carried))

    def _deaths(self) -> dict[Node, tuple[tuple[int, int], ...]]:
        """Which memory may be poisoned after which node."""
        at: dict[int, Node] = {}
        for node in s.walk(self._graph):
            if node in self._lives.end:
                at[self._lives.end[node]] = node
                at[self._lives.start[node]] = node
        found: dict[Node, list[tuple[int, int]]] = {}
        for block in self._all_blocks:
            last = at.get(block.last)
            if last is not None:
                found.setdefault(last, []).append((block.offset, block.size))
        return {node: tuple(pieces) for node, pieces in found.items()}


def _kernels(region: Graph) -> dict[Value, Node]:
    """What kernels of a block make, and which."""
    return {value: node for node in region.nodes if node.op == s.FUSED for value in node.results}


def _chain(value: Value, made: Mapping[Value, Node]) -> Iterator[Value]:
    """A value that lies in memory which is given, and all that lay there while it was made."""
    while True:
        yield value
        node = made.get(value)
        alias = dict(node.params.get("alias", ())) if node else {}
        source = alias.get(node.results.index(value)) if node else None
        if node is None or source is None or node.inputs[source] not in made:
            return
        value = node.inputs[source]


def _pack(blocks: Iterable[_Block], base: int) -> int:
    """Give every block an offset, large ones first, so that living blocks never overlap."""
    size = base
    placed: list[_Block] = []
    for block in sorted(blocks, key=lambda block: (-block.size, block.first)):
        offset = base
        for other in placed:
            if other.first <= block.last and block.first <= other.last:
                if other.offset - offset >= block.size:
                    break
                offset = max(offset, other.offset + other.size)
        block.offset = offset
        insort(placed, block, key=lambda other: other.offset)
        size = max(size, offset + block.size)
    return size
