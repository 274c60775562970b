"""The tiles of the product function: fixed sizes, but only the elements that exist are stored."""

from __future__ import annotations

from typing import Final

from dilim.backends.llvm.products_forms import load_lanes, store_lanes, vector_type
from dilim.backends.llvm.products_text import Number, Text
from dilim.backends.llvm.products_tile import Arithmetic, Column, Factor, write_tile

PARAMETERS: Final = (
    "ptr %a, i64 %am, i64 %ak, ptr %b, i64 %bk, i64 %depth, ptr %c, i64 %cm, i64 %cn, "
    "i64 %rows, i64 %columns, i1 %again, ptr noalias %stage"
)
"""Of a tile function: the left rows, the right sliver, k, the result, how much of the tile exists,
whether the sums go on from those in the result, and memory for one tile."""


def function_text(name: str, parameters: str, text: Text, linkage: str = "") -> str:
    """The text of a function without a result."""
    head = f"define {linkage} void @{name}({parameters}) #0 {{"
    return "\n".join([head, *text.lines(), "  ret void", "}"])


def write_tile_function(name: str, rows: int, lanes: int, how: Arithmetic) -> str:
    """The function that computes one tile, of at most ``rows`` rows and ``lanes`` columns."""
    tile = _Tile(rows, lanes, how)
    tile.write()
    return function_text(name, PARAMETERS, tile.text, "internal fastcc")


class _Tile:
    """Writes the body of a tile function."""

    def __init__(self, rows: int, lanes: int, how: Arithmetic) -> None:
        self.text = Text()
        self._rows, self._lanes, self._how = rows, lanes, how
        self._dtype, self._size = how.dtype, how.dtype.itemsize
        self._vector = lanes * self._size

    def write(self) -> None:
        """Rows that do not exist repeat the last one and are not stored."""
        text, dtype, rows = self.text, self._dtype, self._rows
        kind = vector_type(dtype, self._lanes)
        whole = text.both(
            text.compare("eq", "%cn", self._size), text.compare("eq", "%columns", self._lanes)
        )
        direct = text.both(whole, text.compare("eq", "%rows", rows))
        places = [text.at("%stage", number * self._vector) for number in range(rows)]
        for place in places:
            text.do(f"store {kind} zeroinitializer, ptr {place}, align {self._vector}")
        text.branch("%again", lambda: self._exchange(whole, load=True))
        sums = [load_lanes(text, dtype, place, self._lanes, self._lanes) for place in places]
        last = text.subtract("%rows", 1)
        offsets = [text.multiply(text.least(row, last), "%am") for row in range(rows)]
        sums = write_tile(
            text,
            self._how,
            Factor("%a", "%ak", offsets),
            Factor("%b", "%bk", [0]),
            rows,
            [Column(self._lanes, self._lanes)],
            "%depth",
            sums,
        )

        def store_directly() -> None:
            for row, value in enumerate(sums):
                place = text.at("%c", text.multiply(row, "%cm"))
                store_lanes(text, dtype, value, place, self._lanes, self._lanes)

        def store_staged() -> None:
            for place, value in zip(places, sums, strict=True):
                store_lanes(text, dtype, value, place, self._lanes, self._lanes)
            self._exchange(whole, load=False)

        text.branch(direct, store_directly)
        text.branch(text.opposite(direct), store_staged)

    def _exchange(self, whole: str, load: bool) -> None:
        """Copy the elements that exist from the result to the stage (load), or back."""
        text, dtype, lanes = self.text, self._dtype, self._lanes

        def move(i: Number, offset: Number, stride: Number, count: int) -> None:
            far = text.at("%c", text.add(text.multiply(i, "%cm"), text.multiply(offset, stride)))
            near = text.add(text.multiply(i, self._vector), text.multiply(offset, self._size))
            pair = (far, text.at("%stage", near))
            value = load_lanes(text, dtype, pair[0 if load else 1], count, count)
            store_lanes(text, dtype, value, pair[1 if load else 0], count, count)

        def vector_row(i: Number, _: list[str]) -> list[str]:
            move(i, 0, self._size, lanes)
            return []

        def element_row(i: Number, _: list[str]) -> list[str]:
            def element(j: Number, _: list[str]) -> list[str]:
                move(i, j, "%cn", 1)
                return []

            text.loop(0, "%columns", 1, element)
            return []

        text.branch(whole, lambda: text.loop(0, "%rows", 1, vector_row))
        text.branch(text.opposite(whole), lambda: text.loop(0, "%rows", 1, element_row))
