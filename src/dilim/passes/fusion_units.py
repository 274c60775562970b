"""What fusion works on: units of nodes that become one kernel, in an order that always holds.

A unit is a kernel in the making, or one structural node. Units stand in a list such that each comes
after those it needs; two units can become one if no third has to run between them, and the list is
then put in order again, only between the places of the two.
"""

from __future__ import annotations

from collections.abc import Iterator

from dilim.ir.graph import Node, Value


class Unit:
    """Nodes that run at one moment.

    Attributes:
        nodes: number of the node in its block -> node.
        before: units that must run earlier.
        after: units that must run later.
        place: position in the order.
        fixed: a structural node, which never joins others.
        size: number of elements of each result.
        reductions: the reduced sizes of reductions inside, empty for maps.
        product: whether one of them is a matrix product.
        closed: a form that takes producers in, but nothing else.
        raises: whether it may raise.
        checks: whether its kernel tests something, though it may be known to hold.
        work: about how many instructions it takes to make one element.
        loads: the values that it takes from memory.
        part_of: the unit that has taken it in, if one has; then it is empty.
    """

    __slots__ = (
        "after", "before", "checks", "closed", "fixed", "loads", "nodes", "part_of", "place",
        "product", "raises", "reductions", "size", "work",
    )  # fmt: skip

    def __init__(self, number: int, node: Node, place: int) -> None:
        self.nodes: dict[int, Node] = {number: node}
        self.before: set[Unit] = set()
        self.after: set[Unit] = set()
        self.place = place
        self.fixed = False
        self.size = node.results[0].type.size if node.results else 0
        self.reductions: set[tuple[int, ...]] = set()
        self.product = False
        self.closed = False
        self.raises = False
        self.checks = False
        self.work = 1
        self.loads: set[Value] = set()
        self.part_of: Unit | None = None

    @property
    def is_map(self) -> bool:
        """Whether it is elementwise work and movement only."""
        return not (self.fixed or self.closed or self.reductions)

    @property
    def whole(self) -> Unit:
        """The unit that it is part of by now."""
        unit = self
        while unit.part_of is not None:
            unit = unit.part_of
        return unit

    def needs(self, other: Unit) -> None:
        """Note that another unit must run before this one."""
        if other is not self:
            self.before.add(other)
            other.after.add(self)


class Order:
    """The units of a block, each after those it needs."""

    def __init__(self) -> None:
        self._units: list[Unit | None] = []

    def add(self, number: int, node: Node) -> Unit:
        """A unit of one node, at the end."""
        unit = Unit(number, node, len(self._units))
        self._units.append(unit)
        return unit

    def __iter__(self) -> Iterator[Unit]:
        return iter([unit for unit in self._units if unit is not None])

    def add_edge(self, first: Unit, second: Unit) -> bool:
        """Make one unit run before another, if nothing is against it."""
        if first.place > second.place:
            between = self._between(second, first, direct=True)
            if between is None:
                return False
            self._reorder(second, first, {second, *between}, [first, second])
        second.needs(first)
        return True

    def merge(self, first: Unit, second: Unit) -> Unit | None:
        """Make two units one; None if a third has to run between them."""
        if first.place > second.place:
            first, second = second, first
        between = self._between(first, second, direct=False)
        if between is None:
            return None
        self._reorder(first, second, between, [first])
        self._units[second.place] = None
        for unit in second.before:
            unit.after.discard(second)
            if unit is not first:
                first.needs(unit)
        for unit in second.after:
            unit.before.discard(second)
            if unit is not first:
                unit.needs(first)
        first.nodes.update(second.nodes)
        first.loads |= second.loads
        first.reductions |= second.reductions
        first.size = second.size
        first.product |= second.product
        first.closed |= second.closed
        first.raises |= second.raises
        first.checks |= second.checks
        first.work += second.work
        second.part_of = first
        second.nodes = {}
        return first

    def _between(self, first: Unit, second: Unit, direct: bool) -> set[Unit] | None:
        """The units that need ``first`` and stand before ``second``; None if that needs one."""
        found: set[Unit] = set()
        waiting = [unit for unit in first.after if unit is not second or direct]
        limit = second.place
        while waiting:
            unit = waiting.pop()
            if unit is second:
                return None
            if unit.place > limit or unit in found:
                continue
            found.add(unit)
            waiting.extend(unit.after)
        return found

    def _reorder(self, first: Unit, second: Unit, later: set[Unit], middle: list[Unit]) -> None:
        """Between two places: what need not be later, then the middle, then what must be later."""
        start, end = first.place, second.place
        window = [unit for unit in self._units[start : end + 1] if unit is not None]
        placed = set(middle)
        placed.update((first, second))
        head = [unit for unit in window if unit not in later and unit not in placed]
        tail = [unit for unit in window if unit in later and unit not in placed]
        ordered: list[Unit | None] = [*head, *middle, *tail]
        if second not in middle:
            ordered.append(second)  # about to be taken out
        ordered.extend([None] * (end + 1 - start - len(ordered)))
        for place, unit in enumerate(ordered, start):
            self._units[place] = unit
            if unit is not None:
                unit.place = place
