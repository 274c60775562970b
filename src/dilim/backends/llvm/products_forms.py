"""What a matrix-product kernel is asked to compute, and what it asks for its results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, Protocol

from dilim.backends.llvm.products_text import Number, Text
from dilim.backends.llvm.vectors import element, kind_of, load, store
from dilim.dtypes import DType


@dataclass(frozen=True, slots=True)
class Operand:
    """Where the elements of one factor are: ``offset + sum(batch) + row * m + column * k``.

    Attributes:
        argument: LLVM name of the pointer that holds it, ``"%a0"``.
        row: elements from one row to the next.
        column: elements from one column to the next.
        batch: elements from one position of each batch axis to the next; 0 where it is shared.
        offset: of the first element, counted in elements.
    """

    argument: str
    row: int
    column: int
    batch: tuple[int, ...] = ()
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Product:
    """``c[b, i, j] = sum over k, ascending, of left[b, i, k] * right[b, k, j]``.

    Attributes:
        batch: sizes of the batch axes.
        m: rows of the result.
        n: columns of the result.
        k: length of the sums; 0 gives zeros.
        dtype: of the factors, the accumulators and the sums.
        left: rows are i, columns are k.
        right: rows are k, columns are j.
    """

    batch: tuple[int, ...]
    m: int
    n: int
    k: int
    dtype: DType
    left: Operand
    right: Operand

    def swapped(self) -> Product:
        """The transposed product: right and left exchanged, rows and columns exchanged."""
        left, right = self.left, self.right
        return Product(
            self.batch,
            self.n,
            self.m,
            self.k,
            self.dtype,
            Operand(right.argument, right.column, right.row, right.batch, right.offset),
            Operand(left.argument, left.column, left.row, left.batch, left.offset),
        )


@dataclass(frozen=True, slots=True)
class Position:
    """Where the sums that an epilogue receives lie in the result.

    Attributes:
        batch: position on each batch axis.
        i: row of lane 0.
        j: column of lane 0.
        axis: ``"n"``: lane l is element (i, j + l); ``"m"``: it is (i + l, j).
        lanes: elements in the vector; 1 means a scalar, not a vector.
        count: lanes that exist, the first ones; the others must neither be read nor written.
    """

    batch: tuple[Number, ...]
    i: Number
    j: Number
    axis: Literal["m", "n"]
    lanes: int
    count: int


class Epilogue(Protocol):
    """What becomes of the sums.

    Attributes:
        weight: about how many instructions `write` emits per vector. Heavy ones are written once
            and looped over, light ones are written once for every vector of a tile.
        columns: whether `write` takes vectors along axis ``"m"`` too (worth having where the
            result has few columns).
    """

    @property
    def weight(self) -> int:
        """About how many instructions."""

    @property
    def columns(self) -> bool:
        """Whether vectors along m are welcome."""

    def write(self, text: Text, sums: str, position: Position) -> None:
        """Emit everything that follows the sums, with the stores."""


@dataclass(frozen=True, slots=True)
class ProductOptions:
    """What the target has, and which numbers are wanted.

    Attributes:
        vector_bytes: of one register.
        registers: how many vector registers there are.
        numerics: ``"strict"`` rounds every product before it is added; ``"fast"`` may fuse.
        masked: whether loads and stores with a mask are one instruction.
        broadcast: whether arithmetic takes a scalar in memory as a vector of copies.
    """

    vector_bytes: int = 64
    registers: int = 32
    numerics: Literal["strict", "fast"] = "strict"
    masked: bool = True
    broadcast: bool = True

    @classmethod
    def of(
        cls, vector_bytes: int, numerics: Literal["strict", "fast"] = "strict"
    ) -> ProductOptions:
        """What x86-64 with vectors of this size has; others are taken to be like it."""
        wide = vector_bytes >= 64
        return cls(vector_bytes, 32 if wide else 16, numerics, masked=wide, broadcast=wide)


@dataclass(frozen=True, slots=True)
class KernelCode:
    """One compiled unit: a function ``i32 name(ptr args, i64 begin, i64 end, ptr scratch)``.

    Attributes:
        name: of the function.
        text: a complete LLVM module body, without a target triple.
        scratch_bytes: memory that each participant must bring, aligned to 64 bytes.
        chunks: the work is ``[0, chunks)``; 1 means that it cannot be split.
        cost: estimated nanoseconds for all chunks on one core.
        checks: whether it can fail.
    """

    name: str
    text: str
    scratch_bytes: int
    chunks: int
    cost: float
    checks: bool = False


@dataclass(frozen=True, slots=True)
class StoreResult:
    """The epilogue that only stores the sums, to a result of any strides.

    Attributes:
        argument: LLVM name of the result's pointer.
        dtype: of the result.
        batch: elements from one position of each batch axis to the next.
        row: elements from one row to the next.
        column: elements from one column to the next.
    """

    argument: str
    dtype: DType
    batch: Sequence[int]
    row: int
    column: int = 1
    weight: int = field(default=1, init=False)
    columns: bool = field(default=True, init=False)

    def write(self, text: Text, sums: str, position: Position) -> None:
        """Store the lanes that exist."""
        size = self.dtype.itemsize
        offset = text.multiply(position.i, self.row * size)
        offset = text.add(offset, text.multiply(position.j, self.column * size))
        for index, stride in zip(position.batch, self.batch, strict=True):
            offset = text.add(offset, text.multiply(index, stride * size))
        place = text.at(self.argument, offset)
        step = self.row if position.axis == "m" else self.column
        lanes, count = position.lanes, position.count
        if lanes == 1 or step == 1:
            store_lanes(text, self.dtype, sums, place, lanes, count)
            return
        for lane in range(count):
            item = element(text, sums, self.dtype, lanes, lane)
            store_lanes(text, self.dtype, item, text.at(place, lane * step * size), 1, 1)


def vector_type(dtype: DType, lanes: int) -> str:
    """The LLVM type of ``lanes`` elements; a scalar for 1."""
    return kind_of(dtype, lanes if lanes > 1 else 0)


def zero(dtype: DType, lanes: int) -> str:
    """The constant 0 (+0.0), which sums start from."""
    if lanes > 1:
        return "zeroinitializer"
    return "0.0" if dtype.is_floating else "0"


def load_lanes(text: Text, dtype: DType, place: str, lanes: int, count: int) -> str:
    """``count`` elements in a row as ``lanes`` lanes; the other lanes are 0."""
    return load(text, dtype, place, lanes if lanes > 1 else 0, count if lanes > 1 else 0)


def store_lanes(text: Text, dtype: DType, value: str, place: str, lanes: int, count: int) -> None:
    """Store the first ``count`` lanes in a row."""
    store(text, dtype, value, place, lanes if lanes > 1 else 0, count if lanes > 1 else 0)
