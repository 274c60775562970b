"""The rules of fusion: which units become one (see `dilim.passes.fusion`)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dilim.ir.graph import Node, Value
from dilim.ops.nest import form_of
from dilim.ops.table import OPERATIONS
from dilim.passes.fusion_block import ALONE, Block, Use
from dilim.passes.fusion_units import Unit
from dilim.passes.positions import ELEMENTWISE, scatter_base

Composes = Callable[[Block, Unit], bool]
_CHEAP: Final = frozenset(
    {
        "add", "subtract", "multiply", "negative", "abs", "relu", "maximum", "minimum", "where",
        "equal", "not_equal", "less", "less_equal", "greater", "greater_equal", "logical_and",
        "logical_or", "logical_not", "astype", "identity", "isnan", "signbit", "sign",
        "bitwise_and", "bitwise_or", "bitwise_xor", "reshape", "permute", "expand", "flip",
        "slice", "full",
    }
)  # fmt: skip
MOST_WORK: Final = 400
"""Most instructions for one element: longer kernels take long to compile, and spill registers."""
_FEW: Final = 3
"""Most operations that may be computed again instead of being stored."""
_TRIVIAL: Final = frozenset({"greater", "less", "equal", "relu", "negative", "astype", "abs"})
"""Operations that are made again rather than stored, if their operand is stored anyway."""


def join(block: Block, composes: Composes) -> None:
    """Merge the units of a block as far as the rules allow."""
    rules = _Rules(block, composes)
    rules.onwards()
    rules.inwards()
    rules.together()
    rules.inwards()
    rules.beside()
    rules.again()


class _Rules:
    def __init__(self, block: Block, composes: Composes) -> None:
        self._block = block
        self._composes = composes

    # --- onwards --------------------------------------------------------------------------

    def onwards(self) -> None:
        """Elementwise work joins what makes its elements, matrix products first."""
        block = self._block
        for number, node in enumerate(block.nodes):
            if number not in block.rooted:
                continue
            makers: dict[Unit, None] = {}
            for value in node.inputs:
                source = block.source(value)
                unit = None if source is None else block.unit_of.get(source)
                if unit is not None and not unit.fixed and not unit.closed:
                    makers[unit] = None
            for maker in sorted(makers, key=_weight):
                unit = block.unit(number)
                if maker is not unit and self._may_go_on(maker, unit):
                    self._merge(maker, unit)

    def _may_go_on(self, maker: Unit, unit: Unit) -> bool:
        if unit.fixed or unit.closed or maker.size != unit.size or not _agree(maker, unit):
            return False
        uses = self._uses(maker, unit)
        return all(use.own and use.number in self._block.rooted for use in uses)

    def _uses(self, maker: Unit, unit: Unit) -> list[Use]:
        """The uses that a unit makes of the values of another."""
        found = []
        for node in maker.nodes.values():
            for use in self._block.uses.get(node.results[0], ()):
                if use.number in unit.nodes:
                    found.append(use)
        return found

    # --- inwards --------------------------------------------------------------------------

    def inwards(self) -> None:
        """Elementwise work joins the only unit that uses it, the last ones first."""
        for unit in reversed(list(self._block.order)):
            if unit.is_map and unit.nodes:
                user = self._only_user(unit)
                if user is not None and self._may_go_in(unit, user):
                    self._merge(unit, user, inside=True)

    def _only_user(self, unit: Unit) -> Unit | None:
        """The one unit that uses the results of another, if nobody else does."""
        found: Unit | None = None
        for node in unit.nodes.values():
            value = node.results[0]
            if value in self._block.visible:
                return None
            for use in self._block.uses.get(value, ()):
                if use.number in unit.nodes:
                    continue
                user = self._block.unit(use.number)
                if found is not None and user is not found:
                    return None
                found = user
        return found

    def _may_go_in(self, unit: Unit, user: Unit) -> bool:
        if (user.raises and unit.raises) or (unit.checks and (user.product or user.closed)):
            return False
        if user.work + unit.work > MOST_WORK:
            return False
        counts: dict[Value, int] = {}  # view -> how many of its elements are computed
        for use in self._uses(unit, user):
            node = user.nodes[use.number]
            if node.op == "matmul" or scatter_base(node) is use.value:
                return False
            if node.op in ALONE or (unit.raises and not self._takes_all(node, use.value)):
                return False
            counts[use.value] = max(counts.get(use.value, 0), _computed(node, use.value))
        if sum(counts.values()) <= unit.size:
            return True
        return len(unit.nodes) <= _FEW and all(n.op in _CHEAP for n in unit.nodes.values())

    def _takes_all(self, node: Node, value: Value) -> bool:
        """Whether an operation looks at all elements of what it reads a view of."""
        if node.op not in ELEMENTWISE and form_of(node, OPERATIONS) != "reduce":
            return False
        return self._block.is_complete(value)

    # --- together -------------------------------------------------------------------------

    def together(self) -> None:
        """Reductions join reductions over the same axes, and the work that spreads them."""
        for unit in list(self._block.order):
            if not unit.reductions or unit.product or not unit.nodes:
                continue
            for user in sorted(unit.after, key=lambda other: other.place):
                if self._may_meet(unit, user):
                    alone = self._only_user(unit) is user
                    if (alone or user.size == unit.size) and self._try(unit, user, alone):
                        break

    def _may_meet(self, unit: Unit, user: Unit) -> bool:
        if user.fixed or user.closed or user.product or not _agree(unit, user):
            return False
        return bool(user.reductions) or user.size > unit.size

    def _try(self, unit: Unit, user: Unit, alone: bool) -> bool:
        """Merge if the result is a loop nest."""
        if not self._compose(unit, user):
            return False
        return self._merge(unit, user, inside=alone and unit.size != user.size)

    def _compose(self, unit: Unit, user: Unit) -> bool:
        trial = Unit(0, next(iter(user.nodes.values())), 0)
        trial.nodes = {**unit.nodes, **user.nodes}
        return self._composes(self._block, trial)

    # --- beside ---------------------------------------------------------------------------

    def beside(self) -> None:
        """Units on the same elements with a common input join, and all work on single numbers."""
        groups: dict[tuple[Value | None, int], list[Unit]] = {}
        for unit in self._block.order:
            if unit.fixed or unit.closed:
                continue
            if unit.size == 1 and unit.is_map:
                groups.setdefault((None, 1), []).append(unit)
                continue
            for value in unit.loads:
                if value.type.size > 1:
                    groups.setdefault((value, unit.size), []).append(unit)
        for units in groups.values():
            first = units[0].whole
            for unit in units[1:]:
                other = unit.whole
                if other is first:
                    continue
                if _alike(first, other) and _agree(first, other) and self._fit(first, other):
                    self._merge(first, other)
                    first = unit.whole

    def _fit(self, first: Unit, other: Unit) -> bool:
        """Whether two reductions are a loop nest, though one may read the other somewhere."""
        if not first.reductions or not (other in first.after or first in other.after):
            return True
        return self._compose(first, other)

    # --- again ----------------------------------------------------------------------------

    def again(self) -> None:
        """A cheap result made of one that is stored anyway is made again by those who use it."""
        block = self._block
        for unit in block.order:
            if unit.fixed or unit.closed:
                continue
            results = set(block.results(unit))
            for number in sorted(unit.nodes, reverse=True):
                value = unit.nodes[number].results[0]
                if value in results and self._is_trivial(unit.nodes[number], results - {value}):
                    self._repeat(unit, number)

    def _is_trivial(self, node: Node, stored: set[Value]) -> bool:
        value = node.results[0]
        if node.op not in _TRIVIAL or value in self._block.visible:
            return False
        sources = {self._block.source(x) for x in node.inputs if x.type.size > 1}
        sources.discard(None)
        return len(sources) == 1 and sources <= stored and node.inputs[0] in stored

    def _repeat(self, unit: Unit, number: int) -> None:
        """Put a node into all units that use its result, instead of storing it."""
        block, node = self._block, unit.nodes[number]
        uses = block.uses[node.results[0]]
        outside = {block.unit(use.number): use for use in uses if use.number not in unit.nodes}
        if any(use.number not in unit.nodes and not self._may_repeat(use) for use in uses):
            return
        sources = [x for x in map(block.source, node.inputs) if x is not None]
        for user in outside:
            user.nodes[number] = node
            user.loads.update(sources)
        block.repeated.add(node.results[0])
        block.visible.update(sources)
        if all(use.number not in unit.nodes for use in uses):
            del unit.nodes[number]

    def _may_repeat(self, use: Use) -> bool:
        user = self._block.unit(use.number)
        return use.own and user.nodes[use.number].op != "matmul"

    # --- merging --------------------------------------------------------------------------

    def _merge(self, first: Unit, second: Unit, inside: bool = False) -> bool:
        """Make two units one; ``inside``: the first no longer works on elements of results."""
        size = second.size
        numbers = tuple(first.nodes)
        merged = self._block.order.merge(first, second)
        if merged is None:
            return False
        merged.size = size
        if inside:
            self._block.rooted.difference_update(numbers)
        self._block.take_over(merged)
        return True


def _weight(unit: Unit) -> tuple[bool, bool, int]:
    return not unit.product, not unit.reductions, -unit.place


def _agree(first: Unit, second: Unit) -> bool:
    """Whether reductions and errors of two units can share a kernel."""
    if (first.raises and second.raises) or first.work + second.work > MOST_WORK:
        return False
    if (first.product and second.checks) or (second.product and first.checks):
        return False
    if first.reductions and second.reductions:
        return not first.product and not second.product and first.reductions == second.reductions
    return True


def _alike(first: Unit, second: Unit) -> bool:
    """Whether two units without a common value can share a kernel with profit."""
    if first.size != second.size or first.product or second.product:
        return False
    return bool(first.reductions) == bool(second.reductions)


def _computed(node: Node, value: Value) -> int:
    """How many elements of an operand an operation asks for, repetitions counted."""
    return node.results[0].type.size if form_of(node, OPERATIONS) == "map" else value.type.size
