"""Chooses the tile, the packing and the blocks of a matrix product, and estimates its time.

Estimates count clock cycles of a core that does one multiplication and one addition of 64-byte
vectors per cycle; they have to rank the alternatives, no more.

What was measured and decides (Zen 4): a scalar operand in memory is spread over all lanes for free
when only one instruction uses it, otherwise the spreading takes the place of an addition. So tiles
are one vector wide and up to eight rows high, unless there are too few rows to hide the latency of
additions.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final, Literal

from dilim.backends.llvm.products_forms import Operand, Product, ProductOptions
from dilim.backends.llvm.products_tile import UNROLLED, Column

CYCLES_PER_NANOSECOND: Final = 3.7
LATENCY: Final = 4.1
"""Cycles per k of a tile with few accumulators: an addition waits for the one before."""
STREAM: Final = 4.8
"""Cycles for a vector of the right factor that comes from the second-level cache."""
NEAR: Final = 24 * 1024
"""Bytes of a right factor that stays in the first-level cache."""
TILE_OVERHEAD: Final = 16.0
"""Cycles per tile whose loop over k is a loop: its end is predicted wrongly."""
LOOPLESS_OVERHEAD: Final = 2.0
CALL: Final = 15.0
VARIANT_PENALTY: Final = 1.01
"""Per kind of tile, for the time it takes to compile."""
SIZE_PENALTY: Final = 0.001
"""Per vector of a tile, for the same reason."""
STRIDED_PENALTY: Final = 0.03
"""More per vector where an epilogue stores lanes one by one."""
HIGHEST: Final = 8
"""Rows of a tile that is one vector wide."""
ONE_TILE: Final = 12
"""Products of no more rows may be one tile."""
FEW_ROWS: Final = 4
RIGHT_FACTOR: Final = 192 * 1024
"""Bytes of a right factor from which on it is packed."""
LEFT_BLOCK: Final = 192 * 1024
"""Bytes of the left factor that stay in the second-level cache."""
RIGHT_BLOCK: Final = 4 * 1024 * 1024
"""Bytes of the right factor that are packed at once."""
FAR: Final = 64 * 1024
"""Bytes between the first and the last k from which on a left factor is packed."""
DEEPEST: Final = 4096
"""With more k they come in blocks."""
LONG_BLOCK: Final = (1024, 2 * 1024 * 1024, 1024 * 1024)
"""Then: k of a block, bytes of its left factor, bytes of its right factor."""
TRANSPOSED_BLOCK: Final = (64, LEFT_BLOCK, 1)
"""The same for few rows: a packed part of the right factor is used while it is near."""
STREAMED: Final = 128 * 1024
"""Bytes of a right factor from which on few rows read it in short blocks of k."""
SHALLOW: Final = 8
"""Then: k of a block."""


@dataclass(frozen=True, slots=True)
class Plan:
    """How one product is computed.

    Attributes:
        product: possibly the swapped one.
        swapped: whether it is.
        rows: rows of a full tile.
        vectors: vectors of a full tile.
        lanes: of a full vector.
        last_columns: vectors of the last tile along n; empty if all are full.
        pack_left: whether the left factor is copied to slivers.
        pack_right: whether the right factor is.
        depth: k per block.
        row_tiles: tiles per block of rows.
        column_tiles: tiles per block of columns.
        split: which loop is shared among threads.
        cycles: the estimate.
    """

    product: Product
    swapped: bool
    rows: int
    vectors: int
    lanes: int
    last_columns: tuple[Column, ...]
    pack_left: bool
    pack_right: bool
    depth: int
    row_tiles: int
    column_tiles: int
    split: Literal["batch", "m", "n"]
    cycles: float

    @property
    def columns(self) -> tuple[Column, ...]:
        """The vectors of a full tile."""
        return (Column(self.lanes, self.lanes),) * self.vectors

    @property
    def width(self) -> int:
        """Lanes of a full tile."""
        return self.lanes * self.vectors

    @property
    def full_rows(self) -> int:
        """Tiles along m with all their rows."""
        return self.product.m // self.rows

    @property
    def last_rows(self) -> int:
        """Rows of the last tile along m; 0 if all are full."""
        return self.product.m % self.rows

    @property
    def full_columns(self) -> int:
        """Tiles along n with all their vectors."""
        return self.product.n // self.width

    @property
    def in_blocks(self) -> bool:
        """Whether there are several blocks of k."""
        return self.depth < self.product.k

    @property
    def tiles(self) -> dict[Literal["batch", "m", "n"], int]:
        """How many steps each loop has."""
        return {
            "batch": math.prod(self.product.batch),
            "m": self.full_rows + (self.last_rows > 0),
            "n": self.full_columns + bool(self.last_columns),
        }


def choose_plan(product: Product, columns_allowed: bool, options: ProductOptions) -> Plan:
    """The alternative with the least estimated time.

    Args:
        product: what is multiplied; no size is 0, except perhaps k.
        columns_allowed: whether vectors may run along m.
        options: the target and the numbers wanted.
    """
    candidates = list(_candidates(product, False, options))
    if columns_allowed and product.n < options.vector_bytes // product.dtype.itemsize:
        candidates += _candidates(product.swapped(), True, options)
    return min(candidates, key=lambda plan: plan.cycles)


def _candidates(product: Product, swapped: bool, options: ProductOptions) -> Iterator[Plan]:
    lanes = min(options.vector_bytes // product.dtype.itemsize, _power_above(product.n))
    whole, rest = divmod(product.n, lanes)
    columns = [Column(lanes, lanes)] * whole
    if rest:
        columns.append(Column(_power_above(rest), rest))
    for vectors in range(1, min(4, len(columns)) + 1):
        largest = (options.registers - 2 - vectors) // vectors
        if vectors == 1:
            largest = min(largest, ONE_TILE if product.m <= ONE_TILE else HIGHEST)
        for rows in range(1, min(largest, product.m) + 1):
            yield _plan(product, swapped, (rows, vectors), columns, options)


def _power_above(number: int) -> int:
    """The least power of two that is not below ``number``."""
    return 1 << max(number - 1, 0).bit_length()


def _plan(
    product: Product,
    swapped: bool,
    tile: tuple[int, int],
    columns: list[Column],
    options: ProductOptions,
) -> Plan:
    size, (rows, vectors) = product.dtype.itemsize, tile
    lanes = columns[0].lanes
    pack_left, pack_right = _packed_left(product, rows, lanes), _packed_right(product, options)
    deepest, row_bytes, column_bytes = _blocks(product, pack_right)
    depth = -(-product.k // max(1, -(-product.k // max(1, deepest))))
    width = lanes * vectors * size
    return Plan(
        product=product,
        swapped=swapped,
        rows=rows,
        vectors=vectors,
        lanes=lanes,
        last_columns=tuple(columns[product.n // (lanes * vectors) * vectors :]),
        pack_left=pack_left,
        pack_right=pack_right,
        depth=depth,
        row_tiles=max(1, row_bytes // max(1, rows * depth * size)),
        column_tiles=max(1, column_bytes // max(1, depth * width)),
        split=_split(product, -(-product.m // rows), -(-len(columns) // vectors)),
        cycles=_cycles(product, swapped, tile, columns, options, (pack_left, pack_right)),
    )


def _blocks(product: Product, pack_right: bool) -> tuple[int, int, int]:
    """k of a block, bytes of its left factor, bytes of its right factor."""
    right_bytes = product.k * product.n * product.dtype.itemsize
    if product.m <= FEW_ROWS and pack_right and right_bytes > STREAMED:
        return TRANSPOSED_BLOCK
    if product.m <= FEW_ROWS and not pack_right and right_bytes > STREAMED:
        return SHALLOW, LEFT_BLOCK, RIGHT_BLOCK
    return LONG_BLOCK if product.k > DEEPEST else (product.k, LEFT_BLOCK, RIGHT_BLOCK)


def _packed_left(product: Product, rows: int, lanes: int) -> bool:
    """Rows are read in place unless k jumps so far that every step hits another page."""
    far = abs(product.left.column) * product.dtype.itemsize * product.k > FAR
    return (
        far and product.m > FEW_ROWS and (product.n > 8 * lanes and abs(product.left.column) > rows)
    )


def _packed_right(product: Product, options: ProductOptions) -> bool:
    size = product.dtype.itemsize
    if product.right.column != 1 and product.n > 1:
        return True
    lanes = options.vector_bytes // size
    rest = product.n % lanes
    if rest & (rest - 1) and not options.masked:
        return True
    return product.m > ONE_TILE and product.k * product.n * size > RIGHT_FACTOR


def _split(product: Product, tiles_m: int, tiles_n: int) -> Literal["batch", "m", "n"]:
    """Many batches first; else the longer side, since the other factor is packed by everybody."""
    batch = math.prod(product.batch)
    if batch > 1 and (batch >= 4 or batch >= max(tiles_m, tiles_n)):
        return "batch"
    if tiles_m < 2 or (product.n >= product.m and tiles_n > 1):
        return "n"
    return "m"


def _cycles(
    product: Product,
    swapped: bool,
    tile: tuple[int, int],
    columns: list[Column],
    options: ProductOptions,
    packed: tuple[bool, bool],
) -> float:
    size, (rows, vectors) = product.dtype.itemsize, tile
    batch = math.prod(product.batch)
    total = variants = 0.0
    stream = STREAM if product.k * product.n * size > NEAR else 1.0
    groups = [tuple(columns[at : at + vectors]) for at in range(0, len(columns), vectors)]
    for group in dict.fromkeys(groups):
        for height, times in ((rows, product.m // rows), (product.m % rows, 1)):
            if height and times:
                work = sum(_issue(column.lanes * size) for column in group)
                step = max(_step(height, len(group), work, options), stream * work)
                looped = product.k * height * len(group) > UNROLLED
                overhead = TILE_OVERHEAD if looped else LOOPLESS_OVERHEAD
                each = product.k * step + overhead + height * work
                total += groups.count(group) * times * each
                variants += 1
    size_penalty = 1 + SIZE_PENALTY * rows * vectors
    if swapped and product.m > 1:
        size_penalty += STRIDED_PENALTY * vectors
    penalty = VARIANT_PENALTY**variants * size_penalty
    copied = _copying(product.left, product.m * product.k, packed[0])
    shared = not any(product.right.batch)
    copied += _copying(product.right, product.k * product.n, packed[1]) / (batch if shared else 1)
    return float(batch * (total * penalty + copied) + CALL)


def _step(height: int, vectors: int, work: float, options: ProductOptions) -> float:
    """Cycles for one k of a tile."""
    spread = 0.0
    if not options.broadcast:
        spread = 0.5
    elif vectors > 1:
        spread = 1.0 if options.numerics == "strict" else 0.1
    arithmetic = height * (work + spread)
    instructions = vectors + height * (2 * vectors + (spread > 0)) + 4
    return max(arithmetic, LATENCY, instructions / 6)


def _issue(byte_count: int) -> float:
    """Cycles that one vector instruction keeps its unit."""
    return byte_count / 64 if byte_count > 32 else 0.55


def _copying(operand: Operand, elements: int, packed: bool) -> float:
    if not packed:
        return 0.0
    return elements * (0.2 if 1 in (operand.row, operand.column) else 1.5)
