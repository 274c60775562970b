"""The innermost part of a matrix product: one tile of accumulators, k ascending."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dilim.backends.llvm.products_forms import load_lanes, vector_type
from dilim.backends.llvm.products_text import Number, Text
from dilim.backends.llvm.vectors import splat
from dilim.dtypes import DType

UNROLLED: Final = 40


@dataclass(frozen=True, slots=True)
class Column:
    """One vector of a tile: its lanes, and how many of them exist."""

    lanes: int
    count: int


@dataclass(frozen=True, slots=True)
class Factor:
    """Where a tile reads one factor.

    Attributes:
        base: address of the element for k = 0 and row (or lane) 0.
        step: bytes from one k to the next.
        offsets: bytes from there to each row (left) or vector (right).
        masked: whether lanes that do not exist lie outside of the memory (right only).
    """

    base: str
    step: Number
    offsets: Sequence[Number]
    masked: bool = False


@dataclass(frozen=True, slots=True)
class Arithmetic:
    """How a product is added to its sum.

    Attributes:
        dtype: of everything.
        fused: whether one rounding may do for both.
    """

    dtype: DType
    fused: bool

    def accumulate(self, text: Text, kind: str, total: str, x: str, y: str) -> str:
        """``total + x * y``."""
        if self.dtype.is_integer:
            return text.let(f"add {kind} {total}, {text.let(f'mul {kind} {x}, {y}')}")
        if self.fused:
            bits = f"f{8 * self.dtype.itemsize}"
            lanes = f"v{kind[1:].split()[0]}" if kind[0] == "<" else ""
            operands = f"{kind} {x}, {kind} {y}, {kind} {total}"
            return text.let(f"call {kind} @llvm.fmuladd.{lanes}{bits}({operands})")
        return text.let(f"fadd {kind} {total}, {text.let(f'fmul {kind} {x}, {y}')}")


def write_tile(
    text: Text,
    how: Arithmetic,
    left: Factor,
    right: Factor,
    rows: int,
    columns: Sequence[Column],
    depth: Number,
    first: Sequence[str],
) -> list[str]:
    """Write the loop over k for ``rows`` x ``columns`` accumulators.

    Args:
        text: to write to.
        how: the arithmetic.
        left: elements that are copied to all lanes, one per row.
        right: vectors, one per column.
        rows: rows of the tile.
        columns: vectors of a row.
        depth: how many k; at least 1 where it is not known.
        first: what the accumulators start from, row by row.

    Returns:
        The accumulators, row by row.
    """
    kinds = [vector_type(how.dtype, column.lanes) for column in columns]

    def step(k: Number, sums: list[str]) -> list[str]:
        a = text.at(left.base, text.multiply(k, left.step))
        b = text.at(right.base, text.multiply(k, right.step))
        vectors = [
            load_lanes(
                text,
                how.dtype,
                text.at(b, offset),
                column.lanes,
                column.count if right.masked else column.lanes,
            )
            for offset, column in zip(right.offsets, columns, strict=True)
        ]
        results = []
        for row, offset in enumerate(left.offsets):
            copies: dict[int, str] = {}
            item = text.let(f"load {vector_type(how.dtype, 1)}, ptr {text.at(a, offset)}")
            for number, column in enumerate(columns):
                if column.lanes not in copies:
                    copies[column.lanes] = _copies(text, how.dtype, item, column.lanes)
                total = sums[row * len(columns) + number]
                x, y = copies[column.lanes], vectors[number]
                results.append(how.accumulate(text, kinds[number], total, x, y))
        return results

    if isinstance(depth, int) and depth * rows * len(columns) <= UNROLLED:
        sums = list(first)
        for k in range(depth):
            sums = step(k, sums)
        return sums
    carried = [(kinds[index % len(columns)], value) for index, value in enumerate(first)]
    return text.turns(depth, step, carried)


def _copies(text: Text, dtype: DType, item: str, lanes: int) -> str:
    return item if lanes == 1 else splat(text, item, dtype, lanes)
