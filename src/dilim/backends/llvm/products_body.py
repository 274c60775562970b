"""The loops around the tiles of one matrix product of known sizes.

for every position of the batch
  for blocks of columns: pack their part of the right factor
    for blocks of rows
      for blocks of k: pack the left factor's part; later blocks go on from stored sums
        for tiles of columns, for tiles of rows: the tile, then the epilogue
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dilim.backends.llvm.products_forms import (
    Epilogue,
    Operand,
    Position,
    ProductOptions,
    load_lanes,
    store_lanes,
    vector_type,
    zero,
)
from dilim.backends.llvm.products_packing import Packing, Source
from dilim.backends.llvm.products_plan import Plan
from dilim.backends.llvm.products_text import Number, Text
from dilim.backends.llvm.products_tile import Arithmetic, Column, Factor, write_tile

INLINE_WEIGHT: Final = 160
STRIDED_WEIGHT: Final = 6
LINE: Final = 64
Range = tuple[Number, Number]


@dataclass(frozen=True, slots=True)
class _Tile:
    """One step of a loop over tiles.

    Attributes:
        number: which tile it is.
        inside: its number in the block.
        partial: whether it is the last one, with fewer rows or columns.
    """

    number: Number
    inside: Number
    partial: bool


@dataclass(frozen=True, slots=True)
class _Depth:
    """A block of k: where it starts, how long it is, whether sums go on and whether they end."""

    start: Number
    length: int
    continued: bool
    final: bool


class Body:
    """Writes the body of a product's kernel.

    Args:
        plan: how to compute it.
        epilogue: what becomes of the sums.
        options: the target and the numbers wanted.

    Attributes:
        text: what was written.
        scratch_bytes: how much of ``%scratch`` it uses.
    """

    def __init__(self, plan: Plan, epilogue: Epilogue, options: ProductOptions) -> None:
        self.text = Text()
        self._plan, self._epilogue, self._options = plan, epilogue, options
        dtype = plan.product.dtype
        self._dtype, self._size = dtype, dtype.itemsize
        fused = options.numerics == "fast" and dtype.is_floating
        self._how = Arithmetic(dtype, fused)
        block = max(1, min(32, options.vector_bytes) // self._size)
        self._sliver_rows = -(-plan.rows // block) * block
        self._left_packing = Packing(dtype, self._sliver_rows, block, cleared=False)
        right_block = math.gcd(block, plan.width)
        self._right_packing = Packing(dtype, plan.width, right_block, cleared=True)
        self._used = 0
        self._reserve_scratch()
        self.scratch_bytes = self._used

    def _reserve_scratch(self) -> None:
        plan, size = self._plan, self._size
        rows, columns = (
            min(plan.row_tiles, plan.tiles["m"]),
            min(plan.column_tiles, plan.tiles["n"]),
        )
        tile = plan.rows * plan.width * size
        weight = self._epilogue.weight
        if plan.swapped and plan.product.m > 1:
            weight += STRIDED_WEIGHT * plan.lanes
        self._staging = plan.rows * plan.vectors * weight > INLINE_WEIGHT
        self._right_panel = self._reserve(plan.pack_right * columns * self._right_sliver)
        self._left_panel = self._reserve(plan.pack_left * rows * self._left_sliver)
        self._sums_bytes = plan.in_blocks * rows * columns * tile
        self._sums = self._reserve(self._sums_bytes)
        self._staged = self._reserve(self._staging * tile)

    def _reserve(self, size: int) -> int:
        place = self._used
        self._used += -(-size // LINE) * LINE
        return place

    @property
    def _right_sliver(self) -> int:
        return self._plan.width * self._plan.depth * self._size

    @property
    def _left_sliver(self) -> int:
        return self._sliver_rows * self._plan.depth * self._size

    # --- loops ----------------------------------------------------------------------------

    def write(self) -> None:
        """Write everything."""
        plan = self._plan
        ranges: dict[str, Range] = {axis: (0, count) for axis, count in plan.tiles.items()}
        if plan.tiles[plan.split] > 1:
            ranges[plan.split] = ("%begin", "%end")
        shared = plan.pack_right and not any(plan.product.right.batch)
        fits = plan.tiles["n"] <= plan.column_tiles and not plan.in_blocks
        once = shared and fits and math.prod(plan.product.batch) > 1
        if once:
            self._batch: tuple[Number, ...] = (0,) * len(plan.product.batch)
            self._right = self._address(plan.product.right)
            self._pack_right(ranges["n"], 0, plan.product.k)

        def position(flat: Number, _: list[str]) -> list[str]:
            self._batch = self._unravel(flat)
            self._left = self._address(plan.product.left)
            self._right = self._address(plan.product.right)
            low, high = ranges["n"]

            def block(start: Number, _: list[str]) -> list[str]:
                columns = (start, self.text.least(self.text.add(start, plan.column_tiles), high))
                if plan.pack_right and not (once or plan.in_blocks):
                    self._pack_right(columns, 0, plan.product.k)
                self._row_blocks(ranges["m"], columns)
                return []

            self.text.loop(low, high, plan.column_tiles, block)
            return []

        self.text.loop(*ranges["batch"], 1, position)

    def _unravel(self, flat: Number) -> tuple[Number, ...]:
        """The position on each batch axis."""
        sizes, index = self._plan.product.batch, []
        for axis in range(len(sizes)):
            inner = math.prod(sizes[axis + 1 :])
            place = self.text.divide(flat, inner)
            index.append(self.text.remainder(place, sizes[axis]) if axis else place)
        return tuple(index)

    def _address(self, operand: Operand) -> str:
        offset: Number = operand.offset * self._size
        for index, stride in zip(self._batch, operand.batch, strict=True):
            offset = self.text.add(offset, self.text.multiply(index, stride * self._size))
        return self.text.at(operand.argument, offset)

    def _row_blocks(self, rows: Range, columns: Range) -> None:
        plan, text = self._plan, self.text
        low, high = rows
        k, depth = plan.product.k, plan.depth
        last = (k - 1) // depth * depth if k else 0

        def block(start: Number, _: list[str]) -> list[str]:
            part = (start, text.least(text.add(start, plan.row_tiles), high))

            def early(k: Number, _: list[str]) -> list[str]:
                self._tiles(part, columns, _Depth(k, depth, True, False))
                return []

            if last:
                self._clear_sums()
                text.loop(0, last, depth, early)
            self._tiles(part, columns, _Depth(last, k - last, last > 0, True))
            return []

        text.loop(low, high, plan.row_tiles, block)

    def _each(self, tiles: Range, full: int, partial: bool, body: Callable[[_Tile], None]) -> None:
        """Run ``body`` for the full tiles in a range, and for the partial one if it is there."""
        text, (low, high) = self.text, tiles

        def whole(number: Number, _: list[str]) -> list[str]:
            body(_Tile(number, text.subtract(number, low), False))
            return []

        text.loop(low, text.least(high, full), 1, whole)
        if partial:
            last = _Tile(full, text.subtract(full, low), True)
            text.when_above(high, full, lambda: body(last))

    def _tiles(self, rows: Range, columns: Range, depth: _Depth) -> None:
        """All tiles of a block of rows and a block of columns."""
        plan = self._plan

        def column(tile: _Tile) -> None:
            self._each_row(rows, lambda row: self._tile(row, tile, depth, columns))

        if plan.pack_right and plan.in_blocks:
            self._pack_right(columns, depth.start, depth.length)
        if plan.pack_left:
            self._each_row(rows, lambda row: self._pack_left(row, depth))
        self._each(columns, plan.full_columns, bool(plan.last_columns), column)

    def _each_row(self, rows: Range, body: Callable[[_Tile], None]) -> None:
        self._each(rows, self._plan.full_rows, self._plan.last_rows > 0, body)

    # --- packing --------------------------------------------------------------------------

    def _pack_right(self, columns: Range, k: Number, depth: int) -> None:
        plan, text, size = self._plan, self.text, self._size
        right = plan.product.right

        def column(tile: _Tile) -> None:
            count = plan.product.n % plan.width if tile.partial else plan.width
            offset = text.multiply(tile.number, plan.width * right.column * size)
            offset = text.add(offset, text.multiply(k, right.row * size))
            source = Source(text.at(self._right, offset), right.column * size, right.row * size)
            target = self._in_scratch(self._right_panel, tile.inside, self._right_sliver)
            self._right_packing.write(text, source, target, count, depth)

        self._each(columns, plan.full_columns, bool(plan.last_columns), column)

    def _pack_left(self, row: _Tile, depth: _Depth) -> None:
        plan, left, size = self._plan, self._plan.product.left, self._size
        count = plan.last_rows if row.partial else plan.rows
        base = self._left_place(row.number, depth.start)
        source = Source(base, left.row * size, left.column * size)
        target = self._in_scratch(self._left_panel, row.inside, self._left_sliver)
        self._left_packing.write(self.text, source, target, count, depth.length)

    def _left_place(self, tile: Number, k: Number) -> str:
        left, text = self._plan.product.left, self.text
        offset = text.multiply(tile, self._plan.rows * left.row * self._size)
        return text.at(self._left, text.add(offset, text.multiply(k, left.column * self._size)))

    def _in_scratch(self, panel: int, number: Number, step: int) -> str:
        return self.text.at("%scratch", self.text.add(panel, self.text.multiply(number, step)))

    # --- one tile -------------------------------------------------------------------------

    def _tile(self, row: _Tile, column: _Tile, depth: _Depth, block: Range) -> None:
        plan, text = self._plan, self.text
        rows = plan.last_rows if row.partial else plan.rows
        columns = plan.last_columns if column.partial else plan.columns
        sums = [zero(self._dtype, part.lanes) for _ in range(rows) for part in columns]
        place = ""
        if depth.continued:
            across = min(plan.column_tiles, plan.tiles["n"])
            number = text.add(text.multiply(row.inside, across), column.inside)
            tile = plan.rows * plan.width * self._size
            place = self._in_scratch(self._sums, number, tile)
            sums = self._load(place, rows, columns)
        left = self._left_factor(row, depth, rows)
        right = self._right_factor(column, depth, len(columns))
        sums = write_tile(text, self._how, left, right, rows, columns, depth.length, sums)
        if not depth.final:
            self._store(place, rows, columns, sums)
            return
        i = text.multiply(row.number, plan.rows)
        j = text.multiply(column.number, plan.width)
        if self._staging and rows > 1:
            self._finish_staged(rows, columns, sums, (i, j))
            return
        for number in range(rows):
            across = len(columns)
            part = sums[number * across : (number + 1) * across]
            self._finish(part, columns, (text.add(i, number), j))

    def _left_factor(self, row: _Tile, depth: _Depth, rows: int) -> Factor:
        left, size = self._plan.product.left, self._size
        if self._plan.pack_left:
            base = self._in_scratch(self._left_panel, row.inside, self._left_sliver)
            return Factor(base, self._sliver_rows * size, range(0, rows * size, size))
        base = self._left_place(row.number, depth.start)
        return Factor(base, left.column * size, [row * left.row * size for row in range(rows)])

    def _right_factor(self, column: _Tile, depth: _Depth, vectors: int) -> Factor:
        plan, text, right = self._plan, self.text, self._plan.product.right
        register = plan.lanes * self._size
        offsets = range(0, vectors * register, register)
        if plan.pack_right:
            base = self._in_scratch(self._right_panel, column.inside, self._right_sliver)
            step = plan.width * self._size
            return Factor(base, step, offsets)
        step = right.row * self._size
        offset = text.multiply(column.number, plan.width * self._size)
        offset = text.add(offset, text.multiply(depth.start, step))
        return Factor(text.at(self._right, offset), step, offsets, masked=True)

    # --- sums -----------------------------------------------------------------------------

    def _finish(
        self, sums: Sequence[str], columns: Sequence[Column], start: tuple[Number, Number]
    ) -> None:
        """The epilogue of one row of a tile."""
        for number, (value, column) in enumerate(zip(sums, columns, strict=True)):
            i, j = start[0], self.text.add(start[1], number * self._plan.lanes)
            position = Position(self._batch, i, j, "n", column.lanes, column.count)
            if self._plan.swapped:
                position = replace(position, i=j, j=i, axis="m")
            self._epilogue.write(self.text, value, position)

    def _finish_staged(
        self,
        rows: int,
        columns: Sequence[Column],
        sums: Sequence[str],
        start: tuple[Number, Number],
    ) -> None:
        """Store the tile and run the epilogue, written once, over its rows."""
        text = self.text
        base = self._in_scratch(self._staged, 0, 0)
        self._store(base, rows, columns, sums)

        def body(row: Number, _: list[str]) -> list[str]:
            place = text.at(base, text.multiply(row, self._plan.width * self._size))
            values = self._load(place, 1, columns)
            self._finish(values, columns, (text.add(start[0], row), start[1]))
            return []

        text.loop(0, rows, 1, body)

    def _places(self, base: str, rows: int, columns: Sequence[Column]) -> list[tuple[str, Column]]:
        plan = self._plan
        return [
            (self.text.at(base, (row * plan.width + number * plan.lanes) * self._size), column)
            for row in range(rows)
            for number, column in enumerate(columns)
        ]

    def _load(self, base: str, rows: int, columns: Sequence[Column]) -> list[str]:
        return [
            load_lanes(self.text, self._dtype, place, column.lanes, column.lanes)
            for place, column in self._places(base, rows, columns)
        ]

    def _store(self, base: str, rows: int, columns: Sequence[Column], sums: Sequence[str]) -> None:
        places = self._places(base, rows, columns)
        for value, (place, column) in zip(sums, places, strict=True):
            store_lanes(self.text, self._dtype, value, place, column.lanes, column.lanes)

    def _clear_sums(self) -> None:
        lanes = LINE // self._size
        base = self._in_scratch(self._sums, 0, 0)
        kind = vector_type(self._dtype, lanes)

        def body(offset: Number, _: list[str]) -> list[str]:
            place = self.text.at(base, offset)
            self.text.do(f"store {kind} zeroinitializer, ptr {place}, align {LINE}")
            return []

        self.text.loop(0, -(-self._sums_bytes // LINE) * LINE, LINE, body)
