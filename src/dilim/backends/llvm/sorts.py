"""Kernels of `Sort`: a stable merge sort without data-dependent branches.

An element becomes one unsigned number, its key followed by its position, so that no two are equal
and the order of numbers is the order wanted. Eight neighbours are sorted by a network of
comparisons; runs are then merged, each step choosing the smaller head by a select.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from dilim import dtypes
from dilim.backends.llvm import vectors as v
from dilim.backends.llvm.code import Position
from dilim.backends.llvm.form_writer import RESERVED, FormCode, FormWriter, chunks_of, split_axis
from dilim.backends.llvm.lowered import needed, weight_of
from dilim.dtypes import INDEX
from dilim.ir.types import Type
from dilim.ops.recipe import Sort

RUN: Final = 8
NETWORK: Final = (
    *((0, 1), (2, 3), (4, 5), (6, 7), (0, 2), (1, 3), (4, 6), (5, 7), (1, 2), (5, 6)),
    *((0, 4), (3, 7), (1, 5), (2, 6), (1, 4), (3, 6), (2, 4), (3, 5), (3, 4)),
)
"""Pairs to put in order, one after the other, to sort eight numbers."""
_LIGHT: Final = 8  # instructions of a key that may be written out eight times
_NANOSECONDS: Final = (1.6, 3.0)  # per element and merge, of narrow and of wide numbers


def write_sort(form: Sort, inputs: Sequence[Type], vector_bytes: int) -> FormCode:
    """The kernel of a `Sort`; arguments as `write_arg_reduce`."""
    return _Sort(form, inputs, vector_bytes).write()


class _Sort:
    def __init__(self, form: Sort, inputs: Sequence[Type], vector_bytes: int) -> None:
        self._form = form
        self._w = FormWriter(inputs, form.space, vector_bytes)
        self._key = self._w.lowering.lower(form.body)
        self._place = self._w.place(form.space)
        self._length = form.space[form.axis]
        self._wide = form.body.dtype.itemsize > 4
        self._kind = "i128" if self._wide else "i64"
        self._half = 64 if self._wide else 32
        self._bytes = 2 * self._half // 8
        self._padded = -(-self._length // RUN) * RUN
        self._light = weight_of(needed(self._w.lowering, [self._key])) <= _LIGHT
        self._direct = self._light and self._length <= RUN
        self._numbers = ""
        self._merges = max(0, (self._padded - 1).bit_length() - (RUN - 1).bit_length())

    def write(self) -> FormCode:
        form, w = self._form, self._w
        rows = (*form.space[: form.axis], 1, *form.space[form.axis + 1 :])
        each = _NANOSECONDS[self._wide] * (self._merges + 3)
        cost = math.prod(form.space) * each
        split = split_axis(rows, cost)
        if self._length:
            axes = [axis for axis in range(len(rows)) if axis != form.axis]
            w.loops(axes, self._row, split)
        # Merging looks at one number before the first run and at one beyond the last.
        scratch = 0 if self._direct else RESERVED + 2 * (self._padded + RUN) * self._bytes
        return FormCode(w.code, scratch, chunks_of(rows, split), cost)

    # --- numbers and memory -----------------------------------------------------------------

    def _load(self, base: str, number: Position) -> str:
        address = self._at(base, number)
        return self._w.code.let(f"load {self._kind}, ptr {address}, align {self._bytes}")

    def _store(self, value: str, base: str, number: Position) -> None:
        address = self._at(base, number)
        self._w.code.do(f"store {self._kind} {value}, ptr {address}, align {self._bytes}")

    def _at(self, base: str, number: Position) -> str:
        if number == 0:
            return base
        return self._w.code.let(f"getelementptr inbounds {self._kind}, ptr {base}, i64 {number}")

    def _joined(self, number: Position) -> str:
        """The key at a place of the row, followed by the place."""
        w, dtype, kind = self._w, self._form.body.dtype, self._kind
        with w.values.scope({self._form.axis: number}):
            key = w.scalar(self._key)
        small = v.kind_of(dtype, 0)
        if dtype.kind == "int":  # the order of signed numbers is that of shifted unsigned ones
            key = w.code.let(f"xor {small} {key}, {1 << (8 * dtype.itemsize - 1)}")
        if isinstance(number, str) and self._wide:
            number = w.code.let(f"zext i64 {number} to i128")
        wide = w.code.let(f"zext {small} {key} to {kind}")
        shifted = w.code.let(f"shl {kind} {wide}, {self._half}")
        return w.code.let(f"or {kind} {shifted}, {number}")

    def _finish(self, value: str, number: Position) -> None:
        """Store the position of the number that ends at a place of the row."""
        w = self._w
        position = w.code.let(f"and {self._kind} {value}, {(1 << self._half) - 1}")
        if self._wide:
            position = w.code.let(f"trunc i128 {position} to i64")
        with w.values.scope({self._form.axis: number}):
            v.store(w.code, INDEX, position, w.pointer(INDEX, self._place), 0, 1)

    # --- sorting ----------------------------------------------------------------------------

    def _row(self) -> None:
        w, length = self._w, self._length
        if self._direct:
            values = self._network([self._joined(number) for number in range(length)])
            for place, value in enumerate(values):
                self._finish(value, place)
            return
        self._numbers = w.scratch(dtypes.uint8)
        self._sort_runs()
        result = self._merged()

        def copy(place: Position, _: list[str]) -> list[str]:
            self._finish(self._load(result, place), place)
            return []

        w.code.loop(0, length, 1, copy)

    def _sort_runs(self) -> None:
        """Fill the scratch memory with sorted runs of eight."""
        w, length = self._w, self._length
        numbers, light = self._numbers, self._light

        def fill(number: Position, _: list[str]) -> list[str]:
            self._store(self._joined(number), numbers, number)
            return []

        def run(start: Position, count: int, light: bool) -> None:
            places = [w.add(start, number) for number in range(count)]
            values = [self._joined(p) if light else self._load(numbers, p) for p in places]
            for place, value in zip(places, self._network(values), strict=True):
                self._store(value, numbers, place)

        def whole_run(start: Position, _: list[str]) -> list[str]:
            run(start, RUN, light)
            return []

        whole = length - length % RUN
        w.code.loop(whole if light else 0, length, 1, fill)
        w.code.loop(0, whole, RUN, whole_run)
        if length > whole:
            run(whole, length - whole, False)
            for place in range(length, self._padded):
                self._store("-1", numbers, place)  # the largest number

    def _network(self, values: list[str]) -> list[str]:
        """At most eight numbers, sorted."""
        let, kind = self._w.code.let, self._kind
        values = list(values)
        for low, high in NETWORK:
            if high < len(values):
                a, b = values[low], values[high]
                less = let(f"icmp ult {kind} {a}, {b}")
                values[low] = let(f"select i1 {less}, {kind} {a}, {kind} {b}")
                values[high] = let(f"select i1 {less}, {kind} {b}, {kind} {a}")
        return values

    def _merged(self) -> str:
        """Merge runs of 8, 16, ... until one is left; the address of the sorted numbers."""
        code = self._w.code
        other = self._at(self._numbers, self._padded + RUN)

        def double(_: Position, now: list[str]) -> list[str]:
            source, target, width = now

            def pair(_: Position, ends: list[str]) -> list[str]:
                low = ends[0]
                middle = ends[1]
                high = self._end(middle, width)
                self._merge(source, target, low, middle, high)
                return [high, self._end(high, width)]

            twice = code.let(f"shl nuw nsw i64 {width}, 1")
            rounded = code.let(f"add nuw nsw i64 {twice}, {self._padded - 1}")
            pairs = code.let(f"udiv i64 {rounded}, {twice}")
            code.repeat(0, pairs, pair, [("i64", "0"), ("i64", width)])
            return [target, source, twice]

        carried = [("ptr", self._numbers), ("ptr", other), ("i64", str(RUN))]
        return code.loop(0, self._merges, 1, double, carried)[0]

    def _end(self, start: str, width: str) -> str:
        """The end of the run that starts somewhere."""
        code = self._w.code
        end = code.let(f"add nuw nsw i64 {start}, {width}")
        inside = code.let(f"icmp ult i64 {end}, {self._padded}")
        return code.let(f"select i1 {inside}, i64 {end}, i64 {self._padded}")

    def _merge(self, source: str, target: str, low: str, middle: str, high: str) -> None:
        """Merge [low, middle) with [middle, high), at once from the front and from the back.

        Both ways take half of the steps; an element in the middle is written by both.
        """
        let, kind = self._w.code.let, self._kind
        last = let(f"sub nuw nsw i64 {high}, 1")
        length = let(f"sub nuw nsw i64 {high}, {low}")
        steps = let(f"lshr i64 {let(f'add nuw nsw i64 {length}, 1')}, 1")

        def chosen(better: str, only: str, some: str) -> str:
            """Whether the left run gives the next element."""
            return let(f"and i1 {let(f'or i1 {better}, {only}')}, {some}")

        def step(number: Position, now: list[str]) -> list[str]:
            left, right, left_end, right_end = now
            a, b = self._load(source, left), self._load(source, right)
            smaller = chosen(
                let(f"icmp ult {kind} {a}, {b}"),
                let(f"icmp uge i64 {right}, {high}"),
                let(f"icmp ult i64 {left}, {middle}"),
            )
            place = let(f"add nuw nsw i64 {low}, {number}")
            self._store(let(f"select i1 {smaller}, {kind} {a}, {kind} {b}"), target, place)
            c, d = self._load(source, left_end), self._load(source, right_end)
            larger = chosen(
                let(f"icmp ugt {kind} {c}, {d}"),
                let(f"icmp slt i64 {right_end}, {middle}"),
                let(f"icmp sge i64 {left_end}, {low}"),
            )
            place = let(f"sub nuw nsw i64 {last}, {number}")
            self._store(let(f"select i1 {larger}, {kind} {c}, {kind} {d}"), target, place)
            moved, moved_back = (let(f"zext i1 {taken} to i64") for taken in (smaller, larger))
            stayed, stayed_back = (let(f"xor i64 {taken}, 1") for taken in (moved, moved_back))
            return [
                let(f"add nuw nsw i64 {left}, {moved}"),
                let(f"add nuw nsw i64 {right}, {stayed}"),
                let(f"sub nsw i64 {left_end}, {moved_back}"),
                let(f"sub nsw i64 {right_end}, {stayed_back}"),
            ]

        ends = [low, middle, let(f"sub nuw nsw i64 {middle}, 1"), last]
        self._w.code.repeat(0, steps, step, [("i64", end) for end in ends])
