"""A block as fusion sees it: its units, who uses what at which position, and the order to keep."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dilim.ir.graph import Graph, Node, Value
from dilim.ir.structure import (
    CHANNELS,
    EFFECTS,
    LOOP,
    READ,
    STRUCTURAL,
    WRITE,
    free_values,
    has_effect,
    holds,
    is_variable,
    walk,
    written,
)
from dilim.ops import random, transcendental
from dilim.ops.nest import form_of, recipe_of
from dilim.ops.recipe import Reduce
from dilim.ops.table import OPERATIONS
from dilim.passes.fusion_units import Order, Unit
from dilim.passes.layout import VIEWS
from dilim.passes.positions import is_own, scatter_base
from dilim.passes.raising import POSITIONS, has_check, may_raise

_EXPANDED: Final = frozenset(operation.name for operation in transcendental.OPS) | {
    "pow", "atan2", "logaddexp", "remainder", "floor_divide",
}  # fmt: skip
_LONG: Final = 25
"""Instructions of an operation that has to be written in simpler ones."""
_INLINE: Final = VIEWS | {"full"}
ALONE: Final = frozenset(operation.name for operation in random.OPS) - {"random_advance"}
"""Operations whose neighbouring elements share work, which would be lost inside another kernel."""
COMPLETE: Final = frozenset({"reshape", "permute", "flip"})
"""Views of all elements, each once."""


def is_inline(node: Node) -> bool:
    """Whether a node is copied into the kernels that use it: a view or a constant."""
    return node.op in _INLINE


class Use:
    """One operand of an operation that another unit makes.

    Attributes:
        number: of the node that uses it.
        value: the operand, which may be a view of ``source``.
        own: whether each element is used for the element at the same position only.
    """

    __slots__ = ("number", "own", "value")

    def __init__(self, number: int, value: Value, own: bool) -> None:
        self.number, self.value, self.own = number, value, own


class Block:
    """The units of a block.

    Attributes:
        nodes: of the block.
        order: the units.
        unit_of: value -> the unit that makes it.
        number_of: value -> number of the node that makes it.
        uses: value -> its uses by operations of the block.
        visible: values that must be results: used by structural nodes, or outputs.
        rooted: numbers of nodes that work on the elements of their unit's results; others are
            inside reductions, or read at other positions.
        repeated: values that every unit that uses them makes for itself.
        successors: pairs of a value and one that may be made in its memory, once all who use the
            first have run: contents of a variable, or a carried value, and the new ones.
    """

    def __init__(
        self,
        graph: Graph,
        makers: Mapping[Value, Node],
        stored: set[Value],
        is_body: bool = False,
    ) -> None:
        self.nodes = graph.nodes
        self.order = Order()
        self.unit_of: dict[Value, Unit] = {}
        self.number_of: dict[Value, int] = {}
        self.uses: dict[Value, list[Use]] = {}
        self.visible: set[Value] = set(graph.outputs)
        self.rooted: set[int] = set()
        self.repeated: set[Value] = set()
        self.successors: list[tuple[Value, Value]] = []
        if is_body:
            self.successors.extend(zip(graph.inputs[1:], graph.outputs, strict=True))
        self._makers = makers
        self._sources: dict[Value, Value | None] = {}
        effects = _Effects(self, makers)
        for number, node in enumerate(graph.nodes):
            if is_inline(node) and node.results[0] not in stored:
                continue
            unit = self.order.add(number, node)
            if node.op in STRUCTURAL:
                self._add_fixed(unit, node)
            else:
                self._add_operation(unit, number, node)
            effects.add(unit, node)
        for unit in self.order:
            if unit.raises:  # its kernel has to make it, whether it is used or not
                (node,) = unit.nodes.values()
                if node.results[0] not in self.uses:
                    self.visible.add(node.results[0])

    def unit(self, number: int) -> Unit:
        """The unit that a node belongs to."""
        return self.unit_of[self.nodes[number].results[0]]

    def source(self, value: Value) -> Value | None:
        """What a value is a view of, itself if it is none; None for a constant."""
        if value not in self._sources:
            node = self._makers.get(value)
            if node is None or not is_inline(node):
                self._sources[value] = value
            else:
                self._sources[value] = self.source(node.inputs[0]) if node.inputs else None
        return self._sources[value]

    def is_complete(self, value: Value) -> bool:
        """Whether a value is a view of all elements of its source, each once."""
        node = self._makers.get(value)
        while node is not None and is_inline(node):
            if node.op not in COMPLETE:
                return False
            node = self._makers.get(node.inputs[0])
        return True

    def users_first(self) -> None:
        """Let those who use a value run before its successor is made, where nothing is against."""
        users: dict[Value, list[Unit]] = {}
        for unit in self.order:
            for value in unit.loads:
                users.setdefault(value, []).append(unit)
        for value, successor in self.successors:
            maker = self.unit_of.get(successor)
            if maker is not None and not maker.fixed:
                for user in users.get(value, ()):
                    if user is not maker:
                        self.order.add_edge(user, maker)

    def results(self, unit: Unit) -> tuple[Value, ...]:
        """The values that others need of a unit, in program order."""
        found = []
        for number in sorted(unit.nodes):
            value = unit.nodes[number].results[0]
            if value in self.repeated:
                continue
            if value in self.visible or self.used_outside(unit, value):
                found.append(value)
        return tuple(found)

    def used_outside(self, unit: Unit, value: Value) -> bool:
        """Whether an operation of another unit uses a value."""
        return any(use.number not in unit.nodes for use in self.uses.get(value, ()))

    def take_over(self, unit: Unit) -> None:
        """Note that all its nodes belong to a unit."""
        for node in unit.nodes.values():
            self.unit_of[node.results[0]] = unit

    def _add_fixed(self, unit: Unit, node: Node) -> None:
        unit.fixed = True
        for result in node.results:
            self.unit_of[result] = unit
        for value in free_values(node):
            if is_variable(value):
                continue
            self.visible.add(value)
            source = self.source(value)
            for needed in (value, source):
                maker = None if needed is None else self.unit_of.get(needed)
                if maker is not None:
                    unit.needs(maker)
                    self.visible.add(needed)  # type: ignore[arg-type]

    def _add_operation(self, unit: Unit, number: int, node: Node) -> None:
        form = form_of(node, OPERATIONS)
        value = node.results[0]
        self.unit_of[value] = unit
        self.number_of[value] = number
        self.rooted.add(number)
        unit.closed = form not in ("map", "reduce") or node.op in ALONE
        unit.product = node.op == "matmul"
        unit.checks = has_check(node)
        unit.work = _LONG if node.op in _EXPANDED else 1
        if form == "reduce":
            recipe = recipe_of(node, OPERATIONS)
            assert isinstance(recipe, Reduce)
            unit.reductions.add(recipe.over)
        base = scatter_base(node) if form == "other" else None
        for position, operand in enumerate(node.inputs):
            source = operand if operand is base else self.source(operand)
            if source is None:
                continue
            unit.loads.add(source)
            own = self._is_own(node, position)
            self.uses.setdefault(source, []).append(Use(number, operand, own))
            maker = self.unit_of.get(source)
            if maker is not None:
                unit.needs(maker)

    def _is_own(self, node: Node, position: int) -> bool:
        """Whether an operand's source is read at the position that is made."""
        if not is_own(node, position):
            return False
        maker = self._makers.get(node.inputs[position])
        while maker is not None and is_inline(maker):
            if maker.op != "reshape":
                return False
            maker = self._makers.get(maker.inputs[0])
        return True


class _Effects:
    """The order that effects, reads and what may raise must keep."""

    def __init__(self, block: Block, makers: Mapping[Value, Node]) -> None:
        self._block = block
        self._makers = makers
        self._last: Unit | None = None  # effect, or operation that may raise
        self._last_write: dict[Value, Unit] = {}
        self._last_point: Unit | None = None
        self._readers: dict[Value, list[Unit]] = {}
        self._read_by: dict[Value, list[Unit]] = {}  # variable -> users of what was read from it
        self._variable_of: dict[Value, Value] = {}
        self._values: dict[Value, list[Value]] = {}  # variable -> what was read from it
        self._tested: dict[object, Unit] = {}

    def add(self, unit: Unit, node: Node) -> None:
        """Add the edges of the next unit."""
        if node.op not in STRUCTURAL:
            self._operation(unit, node)
            return
        if node.op == READ:
            self._read(unit, node)
        else:
            self._effect(unit, node)

    def _operation(self, unit: Unit, node: Node) -> None:
        for value in unit.loads:
            if value in self._variable_of:
                self._read_by.setdefault(self._variable_of[value], []).append(unit)
        if not may_raise(node, self._makers):
            return
        test = self._test(node)
        if test in self._tested:
            unit.needs(self._tested[test])
            return
        if test is not None:
            self._tested[test] = unit
        unit.raises = True
        self._chain(unit)

    def _test(self, node: Node) -> object:
        """What an operation tests: which positions, and the size of the axis."""
        if node.op not in POSITIONS:
            return None
        positions = node.inputs[1]
        while True:
            maker = self._makers.get(positions)
            if maker is None or maker.op not in COMPLETE:
                return positions, node.inputs[0].shape[node.params["axis"]]
            positions = maker.inputs[0]

    def _chain(self, unit: Unit) -> None:
        if self._last is not None:
            unit.needs(self._last)
        self._last = unit

    def _read(self, unit: Unit, node: Node) -> None:
        variable = node.inputs[0]
        for earlier in (self._last_write.get(variable), self._last_point):
            if earlier is not None:
                unit.needs(earlier)
        self._readers.setdefault(variable, []).append(unit)
        self._variable_of[node.results[0]] = variable
        self._values.setdefault(variable, []).append(node.results[0])

    def _effect(self, unit: Unit, node: Node) -> None:
        acts = node.op in EFFECTS or node.op == LOOP or has_effect(node)
        if acts or may_raise(node, self._makers):
            self._chain(unit)
        inner = [other for region in node.regions for other in walk(region)]
        for other in inner:
            if other.op == READ:
                variable = other.inputs[0]
                for earlier in (self._last_write.get(variable), self._last_point):
                    if earlier is not None:
                        unit.needs(earlier)
                self._readers.setdefault(variable, []).append(unit)
        if holds(node, CHANNELS):
            for readers in self._readers.values():
                for reader in readers:
                    unit.needs(reader)
            self._readers.clear()
            self._last_point = unit
        if node.op == WRITE:
            for value in self._values.get(node.inputs[0], ()):
                self._block.successors.append((value, node.inputs[1]))
        for variable in written(node):
            for earlier in self._readers.pop(variable, ()):
                unit.needs(earlier)
            for user in self._read_by.pop(variable, ()):
                unit.needs(user)
            self._last_write[variable] = unit
