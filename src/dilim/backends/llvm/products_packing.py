"""Copies a factor of a product into slivers that the tiles read in order.

A sliver holds, for k ascending, ``width`` lanes side by side: rows of the left factor or columns of
the right one. Lanes that do not exist are 0 in the right one; in the left one nobody reads them.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from dilim.backends.llvm.products_forms import vector_type, zero
from dilim.backends.llvm.products_text import Number, Text
from dilim.dtypes import DType


@dataclass(frozen=True, slots=True)
class Source:
    """Where a sliver is copied from.

    Attributes:
        base: address of lane 0 at k = 0.
        lane: bytes from one lane to the next.
        step: bytes from one k to the next.
    """

    base: str
    lane: Number
    step: Number


@dataclass(frozen=True, slots=True)
class Packing:
    """How slivers are copied.

    Attributes:
        dtype: of the elements.
        width: lanes of a sliver, a multiple of `block`.
        block: elements of the vectors used, a power of two.
        cleared: whether lanes that do not exist become 0.
    """

    dtype: DType
    width: int
    block: int
    cleared: bool

    def write(self, text: Text, source: Source, target: str, count: int, depth: int) -> None:
        """Copy the sliver of ``count`` lanes and ``depth`` k to the address ``target``."""
        size = self.dtype.itemsize
        if self.cleared and count < self.width:
            self.clear(text, target, depth)
        if source.lane == size:
            self.copy_rows(text, source, target, count, depth)
        elif source.step == size and size in (4, 8) and min(self.block, depth) > 1:
            self.transpose(text, source, target, count, depth)
        else:
            self.copy_elements(text, source, target, count, (0, depth))

    def clear(self, text: Text, target: str, depth: Number) -> None:
        """Make a sliver 0."""
        kind = vector_type(self.dtype, self.block)
        step = self.block * self.dtype.itemsize

        def body(offset: Number, _: list[str]) -> list[str]:
            place = text.at(target, offset)
            text.do(f"store {kind} {zero(self.dtype, self.block)}, ptr {place}, align 1")
            return []

        stop = text.multiply(depth, self.width * self.dtype.itemsize)
        text.loop(0, stop, step, body)

    def copy_rows(self, text: Text, source: Source, target: str, count: int, depth: Number) -> None:
        """Lanes lie side by side in memory: copy them as vectors."""
        size = self.dtype.itemsize

        def body(k: Number, _: list[str]) -> list[str]:
            place = text.at(source.base, text.multiply(k, source.step))
            goal = text.at(target, text.multiply(k, self.width * size))
            for lane, lanes in _pieces(count):
                kind = vector_type(self.dtype, lanes)
                value = text.let(f"load {kind}, ptr {text.at(place, lane * size)}, align {size}")
                text.do(f"store {kind} {value}, ptr {text.at(goal, lane * size)}, align {size}")
            return []

        text.loop(0, depth, 1, body)

    def transpose(self, text: Text, source: Source, target: str, count: int, depth: Number) -> None:
        """Elements of one lane lie side by side: transpose square blocks in registers.

        Two blocks in a row use up a cache line of 64 bytes before another line can displace it.
        """
        block = self.block
        if isinstance(depth, int):
            block = min(block, 1 << depth.bit_length() - 1)
        whole = text.round_down(depth, block)

        rest = count % block

        def line(start: Number, _: list[str]) -> list[str]:
            stop = text.least(text.add(start, 2 * block), whole)

            def group(lane: Number, present: int) -> None:
                def square(k: Number, _: list[str]) -> list[str]:
                    self._transpose_block(text, source, target, (lane, k), present, block)
                    return []

                text.loop(start, stop, block, square)

            def full(lane: Number, _: list[str]) -> list[str]:
                group(lane, block)
                return []

            text.loop(0, count - rest, block, full)
            if rest:
                group(count - rest, rest)
            return []

        text.loop(0, whole, 2 * block, line)
        self.copy_elements(text, source, target, count, (whole, depth))

    def _transpose_block(
        self,
        text: Text,
        source: Source,
        target: str,
        start: tuple[Number, Number],
        present: int,
        block: int,
    ) -> None:
        """One block from lane ``start[0]`` and k ``start[1]`` on; ``present`` lanes exist."""
        size, (lane, k) = self.dtype.itemsize, start
        kind = vector_type(self.dtype, block)
        offset = text.add(text.multiply(lane, source.lane), text.multiply(k, size))
        place = text.at(source.base, offset)
        lines = []
        for row in range(present):
            line = text.at(place, text.multiply(row, source.lane))
            lines.append(text.let(f"load {kind}, ptr {line}, align {size}"))
        lines += [zero(self.dtype, block)] * (block - present)
        offset = text.add(text.multiply(k, self.width * size), text.multiply(lane, size))
        goal = text.at(target, offset)
        for row, line in enumerate(transposed(text, self.dtype, lines)):
            place = text.at(goal, row * self.width * size)
            text.do(f"store {kind} {line}, ptr {place}, align {size}")

    def copy_elements(
        self, text: Text, source: Source, target: str, count: Number, depth: tuple[Number, Number]
    ) -> None:
        """Copy ``count`` lanes of the k in a range one by one."""
        size, kind = self.dtype.itemsize, vector_type(self.dtype, 1)

        def row(k: Number, _: list[str]) -> list[str]:
            place = text.at(source.base, text.multiply(k, source.step))
            goal = text.at(target, text.multiply(k, self.width * size))

            def element(lane: Number, _: list[str]) -> list[str]:
                found = text.at(place, text.multiply(lane, source.lane))
                item = text.let(f"load {kind}, ptr {found}, align {size}")
                put = text.at(goal, text.multiply(lane, size))
                text.do(f"store {kind} {item}, ptr {put}, align {size}")
                return []

            text.loop(0, count, 1, element)
            return []

        text.loop(*depth, 1, row)


def _pieces(count: int) -> list[tuple[int, int]]:
    """``count`` as (start, power of two) pieces, the large ones first."""
    pieces, start = [], 0
    while start < count:
        lanes = 1 << (count - start).bit_length() - 1
        pieces.append((start, lanes))
        start += lanes
    return pieces


def transposed(text: Text, dtype: DType, lines: list[str]) -> list[str]:
    """The columns of a square block whose rows are ``lines`` (a power of two of them).

    Neighbours are interleaved inside of 16-byte parts first, since targets do that in one
    instruction; whole parts are exchanged afterwards.
    """
    size = len(lines)
    part = min(size, 16 // dtype.itemsize)
    kind = vector_type(dtype, size)
    lines = list(lines)

    def shuffle(x: str, y: str, choose: Callable[[int], int]) -> str:
        mask = ", ".join(f"i32 {choose(lane)}" for lane in range(size))
        return text.let(f"shufflevector {kind} {x}, {kind} {y}, <{size} x i32> <{mask}>")

    def stage(distance: int, choose: Callable[[int, int, int], int]) -> None:
        for number in range(size):
            if not number & distance:
                x, y = lines[number], lines[number + distance]
                lines[number] = shuffle(x, y, lambda lane: choose(lane, distance, 0))
                lines[number + distance] = shuffle(x, y, lambda lane: choose(lane, distance, 1))

    def interleave(lane: int, run: int, half: int) -> int:
        inside, start = lane % part, lane - lane % part
        pair, side = divmod(inside // run, 2)
        return side * size + start + half * (part // 2) + pair * run + inside % run

    def exchange(lane: int, distance: int, half: int) -> int:
        if lane & distance:
            return size + lane - (0 if half else distance)
        return lane + (distance if half else 0)

    distance = 1
    while distance < size:
        stage(distance, interleave if distance < part else exchange)
        distance *= 2
    return [lines[_reversed_inside(column, part)] for column in range(size)]


def _reversed_inside(number: int, part: int) -> int:
    """Where the interleaving leaves a column: its bits inside of a part are reversed."""
    bits = part.bit_length() - 1
    inside = number % part
    flipped = sum((inside >> bit & 1) << bits - 1 - bit for bit in range(bits))
    return number - inside + flipped
