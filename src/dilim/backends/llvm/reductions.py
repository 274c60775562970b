"""Emits reductions in the fixed order: 16 lanes in blocks of 4,096, or one after another.

Two ways to use vectors give the same bits. Along the last reduced axis, one vector holds the 16
lanes of one output. Along the last axis of the space, a vector holds one lane of many outputs.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Final

from dilim import dtypes
from dilim.backends.llvm import vectors as v
from dilim.backends.llvm.code import Code, Position
from dilim.backends.llvm.instructions import primitive
from dilim.backends.llvm.lowered import LoweredNest, LoweredReduction, needed, row_major
from dilim.backends.llvm.values import Lanes, Place, Values
from dilim.ops.recipe import BLOCK, LANES

SCRATCH: Final = "%scratch"
RESERVED: Final = 64
"""Bytes at the beginning of the scratch memory that belong to checks."""
UNROLLED_STEPS: Final = 4


def _steps(nest: LoweredNest, reduction: LoweredReduction, axis: int) -> list[int]:
    """How far every load of a body moves along an axis."""
    parts = needed(nest.lowering, [reduction.source.body])
    return [nest.lowering.addresses[part].coefficient(axis) for part in parts if part.op == "load"]


def wants_vectors(nest: LoweredNest, reductions: Sequence[LoweredReduction], register: int) -> bool:
    """Whether reductions over the whole space had better run side by side along its last axis."""
    if not nest.axes or nest.sizes[nest.axes[-1]] < 2:
        return False
    outer = inner = True
    for reduction in reductions:
        steps = _steps(nest, reduction, nest.axes[-1])
        outer &= all(step in (0, 1) for step in steps)
        if reduction.source.order == "ascending" or not reduction.axes:
            inner = False
            continue
        along = _steps(nest, reduction, reduction.axes[-1])
        inner &= all(step in (0, 1) for step in along) and _in_groups(nest, reduction)
    return outer or not inner


def _in_groups(nest: LoweredNest, reduction: LoweredReduction) -> bool:
    """Whether 16 elements in a row lie along the last reduced axis."""
    sizes = [nest.sizes[axis] for axis in reduction.axes]
    return len(sizes) == 1 or (len(sizes) > 1 and sizes[-1] % LANES == 0)


class Reducer:
    """Emits reductions where the axes that they depend on have values.

    Args:
        code: takes the instructions.
        values: of the expressions.
        nest: that they belong to.

    Attributes:
        scratch_bytes: memory that they need.
    """

    def __init__(self, code: Code, values: Values, nest: LoweredNest) -> None:
        self._code = code
        self._values = values
        self._nest = nest
        self.scratch_bytes = 0

    def write(self, reductions: Sequence[LoweredReduction]) -> None:
        """Emit reductions and say what their leaves are."""
        for reduction in reductions:
            lanes = self._values.lanes
            task = _Task(self._code, self._values, self._nest, reduction)
            name, width = task.write(lanes)
            self._values.define(reduction.leaf, name, width)
            self.scratch_bytes = max(self.scratch_bytes, task.scratch_bytes)


class _Task:
    """One reduction."""

    def __init__(
        self, code: Code, values: Values, nest: LoweredNest, reduction: LoweredReduction
    ) -> None:
        self._code = code
        self._values = values
        self._nest = nest
        self._axes = reduction.axes
        self._source = reduction.source
        self._dtype = reduction.source.body.dtype
        self._sizes = [nest.sizes[axis] for axis in reduction.axes]
        self._count = math.prod(reduction.source.over)
        self._grouped = _in_groups(nest, reduction)
        self._lanes = 0
        self.scratch_bytes = 0

    def write(self, lanes: Lanes | None) -> tuple[str, int]:
        """Emit it; name and lanes of the result."""
        self._lanes = lanes.lanes if lanes else 0
        if self._count == 0:
            return v.literal(self._source.identity, self._dtype), 0
        if self._source.order == "ascending":
            return self._ascending(), self._lanes
        if self._count <= BLOCK:
            return self._block(0, self._count), self._lanes
        return self._blocks(), self._lanes

    # --- elements -------------------------------------------------------------------------

    def _positions(self, number: Position, sizes: Sequence[int]) -> list[Position]:
        """The row-major element ``number`` of axes of these sizes."""
        if len(sizes) == 1:
            return [number]
        found: list[Position] = []
        for stride, size in zip(row_major(sizes), sizes, strict=True):
            if isinstance(number, int):
                found.append(number // stride % size)
                continue
            place = number if stride == 1 else self._code.let(f"udiv i64 {number}, {stride}")
            if found:
                place = self._code.let(f"urem i64 {place}, {size}")
            found.append(place)
        return found

    def _element(self, number: Position, distance: int = 0) -> str:
        """The body at a reduced element, as wide as the result."""
        if isinstance(number, int):
            number, distance = number + distance, 0
        if len(self._axes) == 1:
            place = Place("", number) if isinstance(number, int) else Place(number, distance)
            places: dict[int, Place | Position] = {self._axes[0]: place}
        else:
            if distance:
                number = self._code.let(f"add nuw nsw i64 {number}, {distance}")
            places = dict(zip(self._axes, self._positions(number, self._sizes), strict=True))
        with self._values.scope(places):
            return self._values.spread(self._source.body, self._lanes)

    def _group(self, number: Position, count: int) -> str:
        """The body at elements 16 number, 16 number + 1, ... as one vector of 16."""
        *outer, axis = self._axes
        places: dict[int, Place | Position] = {}
        if outer:
            *sizes, last = self._sizes
            *found, number = self._positions(number, [*sizes, last // LANES])
            places = dict(zip(outer, found, strict=True))
        if isinstance(number, int):
            places[axis] = LANES * number
        else:
            places[axis] = self._code.let(f"shl nuw nsw i64 {number}, 4")
        with self._values.scope(places, Lanes(axis, LANES, count)):
            return self._values.spread(self._source.body, LANES)

    def _combine(self, a: str, b: str, lanes: int) -> str:
        return primitive(self._code, self._source.combine, self._dtype, lanes, a, b)

    # --- orders ---------------------------------------------------------------------------

    def _ascending(self) -> str:
        identity = v.literal(self._source.identity, self._dtype, self._lanes)

        def step(number: Position, total: list[str]) -> list[str]:
            return [self._combine(total[0], self._element(number), self._lanes)]

        kind = v.kind_of(self._dtype, self._lanes)
        return self._code.loop(0, self._count, 1, step, [(kind, identity)])[0]

    def _block(self, start: Position, length: int) -> str:
        """Reduce elements start .. start + length - 1, start being a multiple of 16."""
        if self._grouped and not self._lanes:
            return self._block_of_groups(start, length)
        return self._block_of_lanes(start, length)

    def _loop(
        self,
        turns: int,
        step: Callable[[Position, list[str]], list[str]],
        first: list[str],
        lanes: int,
    ) -> list[str]:
        """Carry values through steps 1 .. turns - 1."""
        if turns <= UNROLLED_STEPS:
            for number in range(1, turns):
                first = step(number, first)
            return first
        kind = v.kind_of(self._dtype, lanes)
        return self._code.loop(1, turns, 1, step, [(kind, value) for value in first])

    def _block_of_groups(self, start: Position, length: int) -> str:
        steps, rest = divmod(length, LANES)
        base = start // LANES if isinstance(start, int) else self._code.let(f"lshr i64 {start}, 4")

        def group(number: Position, count: int = LANES) -> str:
            return self._group(self._sum(base, number), count)

        def step(number: Position, total: list[str]) -> list[str]:
            return [self._combine(total[0], group(number), LANES)]

        if not steps:
            return self._tree_of_vector(group(0, rest), rest)
        total = self._loop(steps, step, [group(0)], LANES)[0]
        if rest:
            more = self._combine(total, group(steps, rest), LANES)
            kind = v.kind_of(self._dtype, LANES)
            total = self._code.let(
                f"select <{LANES} x i1> {v.mask(LANES, rest)}, {kind} {more}, {kind} {total}"
            )
        return self._tree_of_vector(total, LANES)

    def _sum(self, base: Position, number: Position) -> Position:
        if isinstance(base, int) and isinstance(number, int):
            return base + number
        if base == 0 or number == 0:
            return number if base == 0 else base
        return self._code.let(f"add nuw nsw i64 {base}, {number}")

    def _tree_of_vector(self, vector: str, count: int) -> str:
        """Combine the first ``count`` lanes of a vector of 16 by halves."""
        width = LANES
        while width > 1:
            half = width // 2
            kind = v.kind_of(self._dtype, width)
            low, high = (
                self._code.let(
                    f"shufflevector {kind} {vector}, {kind} poison, "
                    f"<{half} x i32> {v.numbers(*range(first, first + half))}"
                )
                for first in (0, half)
            )
            if count > half:
                vector = self._combine(low, high, half)
                if count < width:
                    kind = v.kind_of(self._dtype, half)
                    vector = self._code.let(
                        f"select <{half} x i1> {v.mask(half, count - half)}, "
                        f"{kind} {vector}, {kind} {low}"
                    )
                count = half
            else:
                vector = low
            width = half
        return v.element(self._code, vector, self._dtype, 1, 0)

    def _block_of_lanes(self, start: Position, length: int) -> str:
        steps, rest = divmod(length, LANES)
        lanes = [self._lane(start, i) for i in range(min(length, LANES))]

        def step(number: Position, totals: list[str]) -> list[str]:
            place: Position
            if isinstance(number, int):
                offset, place = LANES * number, start
            else:
                offset = 0
                place = self._sum(start, self._code.let(f"shl nuw nsw i64 {number}, 4"))
            return [
                self._combine(total, self._lane(place, offset + i), self._lanes)
                for i, total in enumerate(totals)
            ]

        if steps:
            lanes = self._loop(steps, step, lanes, self._lanes)
            for i in range(rest):
                last = self._lane(start, steps * LANES + i)
                lanes[i] = self._combine(lanes[i], last, self._lanes)
        half = LANES // 2
        while half:
            pairs = [
                self._combine(a, b, self._lanes) for a, b in zip(lanes, lanes[half:], strict=False)
            ]
            lanes = [*pairs, *lanes[len(pairs) : half]]
            half //= 2
        return lanes[0]

    def _lane(self, start: Position, distance: int) -> str:
        return self._element(start, distance)

    def _blocks(self) -> str:
        """Reduce block by block into scratch memory, then a balanced tree over blocks."""
        full, tail = divmod(self._count, BLOCK)
        blocks = full + bool(tail)
        width = max(self._lanes, 1)
        self.scratch_bytes = blocks * width * self._dtype.itemsize

        def at(number: Position) -> str:
            if not isinstance(number, int) and width > 1:
                number = self._code.let(f"mul nuw nsw i64 {number}, {width}")
            elif isinstance(number, int):
                number *= width
            base = v.place(self._code, dtypes.uint8, SCRATCH, RESERVED)
            return v.place(self._code, self._dtype, base, number)

        def save(value: str, number: Position) -> None:
            v.store(self._code, self._dtype, value, at(number), self._lanes, width)

        def saved(number: Position) -> str:
            return v.load(self._code, self._dtype, at(number), self._lanes, width)

        def block(number: Position, _: list[str]) -> list[str]:
            start = (
                number * BLOCK
                if isinstance(number, int)
                else self._code.let(f"mul nuw nsw i64 {number}, {BLOCK}")
            )
            save(self._block(start, BLOCK), number)
            return []

        self._code.loop(0, full, 1, block)
        if tail:
            save(self._block(full * BLOCK, tail), full)
        while blocks > 1:
            half = (blocks + 1) // 2

            def merge(number: Position, _: list[str], half: int = half) -> list[str]:
                other = saved(self._sum(number, half))
                save(self._combine(saved(number), other, self._lanes), number)
                return []

            self._code.loop(0, blocks - half, 1, merge)
            blocks = half
        return saved(0)
