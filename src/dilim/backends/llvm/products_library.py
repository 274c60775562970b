"""One function that multiplies matrices of any size and any strides, for eager products.

The sums are the same, bit for bit, as those of `products.write_product`: one accumulator per
element, k ascending. Blocks of k longer than `DEPTH` go on from the sums stored in the result.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Final

from dilim.backends.llvm.code import METADATA
from dilim.backends.llvm.library_sizes import DEPTH, PANEL_BYTES, ROWS
from dilim.backends.llvm.products_forms import (
    ProductOptions,
    load_lanes,
    store_lanes,
    vector_type,
    zero,
)
from dilim.backends.llvm.products_library_tiles import function_text, write_tile_function
from dilim.backends.llvm.products_packing import Packing, Source
from dilim.backends.llvm.products_text import Number, Text
from dilim.backends.llvm.products_tile import Arithmetic, Column, Factor, write_tile
from dilim.dtypes import DType

FEW_ROWS: Final = 4
"""Of the tile for what remains; with so few columns the transposed product is computed."""
NARROW: Final = 12
"""The same, where the rows of a lie side by side, so that they need no packing."""
WIDE: Final = 4
"""Vectors at once of a result of one row."""
SHALLOW: Final = 8
"""k at once of a result of one row, so that b is read in the order of memory."""
PACKED_RIGHT: Final = 192 * 1024
"""Bytes of b from which on it is packed even where its columns lie side by side."""
PACKED_ROWS: Final = 16
"""With fewer rows than this it is not."""
FAR: Final = 64 * 1024
"""Bytes that k goes through in a, from which on rows that lie side by side are packed."""

PARAMETERS: Final = (
    "ptr %a, ptr %b, ptr %c, i64 %m, i64 %n, i64 %k, i64 %am, i64 %ak, i64 %bk, i64 %bn, "
    "i64 %cm, i64 %cn, ptr %scratch, i64 %begin, i64 %end"
)


DEFAULTS: Final = ProductOptions()


def library_chunks(m: int) -> int:
    """Into how many chunks the function splits the rows of a result."""
    return -(-m // ROWS)


def write_product_library(name: str, dtype: DType, options: ProductOptions = DEFAULTS) -> str:
    """A module with the function ``name``, which computes chunks of ``c = a @ b``.

    Its parameters, all ``i64`` but the pointers: ``a, b, c, m, n, k``; the bytes from one element
    to the next ``am`` (rows of a), ``ak`` (columns of a), ``bk, bn, cm, cn``; ``scratch``
    (`library_sizes.SCRATCH_BYTES`, aligned to 64); ``begin, end``: which of the `library_chunks`
    it computes. Chunk i is rows 8 i to 8 i + 7. Strides may be anything for a and b, negative and 0
    included; elements are aligned to their size; c overlaps neither a nor b.

    Args:
        name: of the function.
        dtype: of all three matrices.
        options: the target and the numbers wanted.
    """
    return _Library(name, dtype, options).module()


@dataclass(frozen=True, slots=True)
class _Sizes:
    """Names of the values of one call, after `_Library._entry`."""

    a: str
    b: str
    c: str
    m: str
    n: str
    am: str
    ak: str
    bk: str
    bn: str
    cm: str
    cn: str


@dataclass(frozen=True, slots=True)
class _Part:
    """A block of columns and of k.

    Attributes:
        sizes: of the product.
        a: address of the block in the left factor.
        b: in the right one.
        c: in the result.
        width: columns of the block.
        depth: k of the block.
        again: whether the sums go on from those stored.
        near: whether columns of b lie side by side.
        alone: whether there is only one row, and vectors of b and c lie side by side.
        packed: whether slivers are copied.
        far: whether rows of a are copied.
        base: address of the first sliver.
        across: bytes from one sliver to the next.
        step: bytes from one k to the next in a sliver.
    """

    sizes: _Sizes
    a: str
    b: str
    c: str
    width: Number
    depth: Number
    again: str
    near: str
    alone: str
    packed: str
    far: str
    base: str = ""
    across: str = ""
    step: str = ""


class _Library:
    """Writes the module."""

    def __init__(self, name: str, dtype: DType, options: ProductOptions) -> None:
        self._name, self._dtype, self._size = name, dtype, dtype.itemsize
        self._lanes = options.vector_bytes // self._size
        fused = options.numerics == "fast" and dtype.is_floating
        self._how = Arithmetic(dtype, fused)
        block = max(1, min(32, options.vector_bytes) // self._size)
        self._packing = Packing(dtype, self._lanes, block, cleared=True)
        self._left_packing = Packing(dtype, ROWS, ROWS, cleared=False)
        self._vector = self._lanes * self._size
        self._sliver = DEPTH * self._vector
        self._slivers = PANEL_BYTES // self._sliver
        self._text = Text()

    def module(self) -> str:
        """The text of the module."""
        self._entry()
        main = function_text(self._name, PARAMETERS, self._text)
        tiles = [
            write_tile_function(f"{self._name}.{rows}", rows, self._lanes, self._how)
            for rows in (ROWS, FEW_ROWS)
        ]
        return "\n".join([main, *tiles, 'attributes #0 = { nounwind "no-builtins" }', METADATA])

    # --- the function ---------------------------------------------------------------------

    def _entry(self) -> None:
        """Keep the rows of the chunks; with few columns compute the transposed product."""
        text = self._text
        first = text.multiply("%begin", ROWS)
        rows = text.subtract(text.least("%m", text.multiply("%end", ROWS)), first)

        def body() -> None:
            a = text.at("%a", text.multiply(first, "%am"))
            c = text.at("%c", text.multiply(first, "%cm"))
            beside = text.compare("eq", "%am", self._size)
            most = text.choose(beside, NARROW, FEW_ROWS)
            swapped = text.both(text.compare("sle", "%n", most), text.compare("sgt", rows, "%n"))

            def pick(x: Number, y: Number, kind: str = "i64") -> str:
                return text.choose(swapped, x, y, kind)

            sizes = _Sizes(
                a=pick("%b", a, "ptr"), b=pick(a, "%b", "ptr"), c=c,
                m=pick("%n", rows), n=pick(rows, "%n"),
                am=pick("%bn", "%am"), ak=pick("%bk", "%ak"),
                bk=pick("%ak", "%bk"), bn=pick("%am", "%bn"),
                cm=pick("%cn", "%cm"), cn=pick("%cm", "%cn"),
            )  # fmt: skip
            text.when_above(1, "%k", lambda: self._fill(sizes))
            self._multiply(sizes)

        text.when_above(rows, 0, body)

    def _fill(self, sizes: _Sizes) -> None:
        """Empty sums are 0."""
        text = self._text

        def row(i: Number, _: list[str]) -> list[str]:
            def element(j: Number, _: list[str]) -> list[str]:
                offset = text.add(text.multiply(i, sizes.cm), text.multiply(j, sizes.cn))
                place = text.at(sizes.c, offset)
                store_lanes(text, self._dtype, zero(self._dtype, 1), place, 1, 1)
                return []

            text.loop(0, sizes.n, 1, element)
            return []

        text.loop(0, sizes.m, 1, row)

    def _multiply(self, sizes: _Sizes) -> None:
        text = self._text
        near = text.compare("eq", sizes.bn, self._size)
        flat = text.compare("eq", sizes.cn, self._size)
        alone = text.both(text.both(text.compare("eq", sizes.m, 1), near), flat)
        bytes_right = text.multiply(text.multiply("%k", sizes.n), self._size)
        large = text.both(
            text.compare("sge", sizes.m, PACKED_ROWS),
            text.compare("sgt", bytes_right, PACKED_RIGHT),
        )
        packed = text.let(f"or i1 {large}, {text.opposite(near)}")
        distance = text.multiply(sizes.ak, "%k")
        far = text.both(
            text.compare("eq", sizes.am, self._size), text.compare("sgt", distance, FAR)
        )
        columns = self._slivers * self._lanes

        def block(j: Number, _: list[str]) -> list[str]:
            width = text.least(text.subtract(sizes.n, j), columns)

            def deep(k: Number, _: list[str]) -> list[str]:
                depth = text.least(text.subtract("%k", k), DEPTH)
                b = text.at(sizes.b, text.multiply(k, sizes.bk))
                b = text.at(b, text.multiply(j, sizes.bn))
                part = _Part(
                    sizes=sizes, a=text.at(sizes.a, text.multiply(k, sizes.ak)), b=b,
                    c=text.at(sizes.c, text.multiply(j, sizes.cn)), width=width, depth=depth,
                    again=text.compare("sgt", k, 0), near=near, alone=alone, packed=packed, far=far,
                )  # fmt: skip
                self._part(part)
                return []

            text.loop(0, "%k", DEPTH, deep)
            return []

        text.loop(0, sizes.n, columns, block)

    def _part(self, part: _Part) -> None:
        """A block of columns and of k: pack the right factor, then all rows."""
        text, lanes = self._text, self._lanes
        full = text.divide(part.width, lanes)
        rest = text.remainder(part.width, lanes)
        wide = text.choose(part.alone, text.round_down(full, WIDE), 0)
        text.when_above(wide, 0, lambda: self._only_row(part, wide))
        text.branch(part.packed, lambda: self._pack(part, wide, full))
        text.when_above(rest, 0, lambda: self._pack_rest(part, full, rest))
        part = replace(
            part,
            base=text.choose(part.packed, self._panel(0), part.b, "ptr"),
            across=text.choose(part.packed, self._sliver, self._vector),
            step=text.choose(part.packed, self._vector, part.sizes.bk),
        )

        def rows(i: Number, _: list[str]) -> list[str]:
            self._rows(part, i, (wide, full), rest)
            return []

        text.loop(0, part.sizes.m, ROWS, rows)

    def _panel(self, sliver: Number) -> str:
        return self._text.at("%scratch", self._text.multiply(sliver, self._sliver))

    def _right(self, part: _Part, sliver: Number) -> Source:
        offset = self._text.multiply(self._text.multiply(sliver, self._lanes), part.sizes.bn)
        return Source(self._text.at(part.b, offset), part.sizes.bn, part.sizes.bk)

    def _pack(self, part: _Part, start: Number, stop: Number) -> None:
        """Copy full slivers, in the best of three ways."""
        text, packing = self._text, self._packing
        deep = text.compare("eq", part.sizes.bk, self._size)
        if self._size not in (4, 8):
            deep = "false"
        other = text.opposite(text.let(f"or i1 {part.near}, {deep}"))

        def sliver(s: Number, _: list[str]) -> list[str]:
            source, target = self._right(part, s), self._panel(s)
            beside = Source(source.base, self._size, source.step)
            along = Source(source.base, source.lane, self._size)
            width, depth = self._lanes, part.depth
            text.branch(part.near, lambda: packing.copy_rows(text, beside, target, width, depth))
            if deep != "false":
                text.branch(deep, lambda: packing.transpose(text, along, target, width, depth))
            text.branch(
                other, lambda: packing.copy_elements(text, source, target, width, (0, depth))
            )
            return []

        text.loop(start, stop, 1, sliver)

    def _pack_rest(self, part: _Part, sliver: Number, count: Number) -> None:
        text, target = self._text, self._panel(sliver)
        self._packing.clear(text, target, part.depth)
        source = self._right(part, sliver)
        self._packing.copy_elements(text, source, target, count, (0, part.depth))

    def _rows(self, part: _Part, i: Number, slivers: tuple[Number, Number], rest: Number) -> None:
        """The tiles of up to eight rows."""
        text, sizes = self._text, part.sizes
        count = text.least(text.subtract(sizes.m, i), ROWS)
        a = text.at(part.a, text.multiply(i, sizes.am))
        whole = text.both(part.far, text.compare("eq", count, ROWS))
        copy = text.at("%scratch", PANEL_BYTES)
        source = Source(a, self._size, sizes.ak)
        text.branch(
            whole, lambda: self._left_packing.copy_rows(text, source, copy, ROWS, part.depth)
        )
        few = text.compare("sle", count, FEW_ROWS)
        function = text.choose(few, f"@{self._name}.{FEW_ROWS}", f"@{self._name}.{ROWS}", "ptr")
        base = text.choose(whole, copy, a, "ptr")
        across = text.choose(whole, self._size, sizes.am)
        step = text.choose(whole, ROWS * self._size, sizes.ak)
        left = f"ptr {base}, i64 {across}, i64 {step}"
        c = text.at(part.c, text.multiply(i, sizes.cm))

        def tile(sliver: Number, right: str, step: Number, columns: Number) -> None:
            place = text.at(c, text.multiply(text.multiply(sliver, self._lanes), sizes.cn))
            self._call(part, function, left, (right, step), place, (count, columns))

        def full(sliver: Number, _: list[str]) -> list[str]:
            base = text.at(part.base, text.multiply(sliver, part.across))
            tile(sliver, base, part.step, self._lanes)
            return []

        low, high = slivers
        text.loop(low, high, 1, full)
        text.when_above(rest, 0, lambda: tile(high, self._panel(high), self._vector, rest))

    def _only_row(self, part: _Part, stop: Number) -> None:
        """The only row, several vectors at once; b is read in the order of memory."""
        text, kind = self._text, vector_type(self._dtype, self._lanes)
        offsets = range(0, WIDE * self._vector, self._vector)

        def block(k: Number, depth: Number) -> None:
            left = Factor(text.at(part.a, text.multiply(k, part.sizes.ak)), part.sizes.ak, [0])
            b = text.at(part.b, text.multiply(k, part.sizes.bk))
            goes_on = text.let(f"or i1 {part.again}, {text.compare('sgt', k, 0)}")

            def vectors(sliver: Number, _: list[str]) -> list[str]:
                start = text.multiply(sliver, self._vector)
                places = [text.at(text.at(part.c, start), offset) for offset in offsets]
                sums = []
                for place in places:
                    old = load_lanes(text, self._dtype, place, self._lanes, self._lanes)
                    sums.append(
                        text.let(f"select i1 {goes_on}, {kind} {old}, {kind} zeroinitializer")
                    )
                right = Factor(text.at(b, start), part.sizes.bk, offsets)
                columns = (Column(self._lanes, self._lanes),) * WIDE
                sums = write_tile(text, self._how, left, right, 1, columns, depth, sums)
                for place, value in zip(places, sums, strict=True):
                    store_lanes(text, self._dtype, value, place, self._lanes, self._lanes)
                return []

            text.loop(0, stop, WIDE, vectors)

        def shallow(k: Number, _: list[str]) -> list[str]:
            block(k, SHALLOW)
            return []

        whole = text.round_down(part.depth, SHALLOW)
        text.loop(0, whole, SHALLOW, shallow)
        rest = text.subtract(part.depth, whole)
        text.when_above(rest, 0, lambda: block(whole, rest))

    def _call(
        self,
        part: _Part,
        function: str,
        left: str,
        right: tuple[str, Number],
        place: str,
        counts: tuple[Number, Number],
    ) -> None:
        stage = self._text.at("%scratch", PANEL_BYTES + ROWS * DEPTH * 8)
        self._text.do(
            f"call fastcc void {function}({left}, ptr {right[0]}, i64 {right[1]}, "
            f"i64 {part.depth}, ptr {place}, i64 {part.sizes.cm}, i64 {part.sizes.cn}, "
            f"i64 {counts[0]}, i64 {counts[1]}, i1 {part.again}, ptr {stage})"
        )
