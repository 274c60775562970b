"""Kernels of `ArgReduce`: where the largest or smallest element is.

A vector holds neighbouring outputs, or neighbouring elements of one long row. In a row, each lane
keeps its best element and where it was; of two equal lanes the earlier position wins.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

import numpy as np

from dilim import dtypes
from dilim.backends.llvm import vectors as v
from dilim.backends.llvm.code import Position
from dilim.backends.llvm.form_writer import FormCode, FormWriter, chunks_of, split_axis
from dilim.backends.llvm.lowered import needed, pieces
from dilim.dtypes import INDEX
from dilim.ir.types import Type
from dilim.ops.recipe import ArgReduce

_LONG: Final = 32  # elements of a row from which on it is cut into lanes
_NANOSECONDS: Final = (0.25, 1.0)  # per element, in vectors and one by one


def write_arg_reduce(form: ArgReduce, inputs: Sequence[Type], vector_bytes: int) -> FormCode:
    """The kernel of an `ArgReduce`.

    Args:
        form: what to compute.
        inputs: types of its inputs.
        vector_bytes: of one register.
    """
    return _ArgReduce(form, inputs, vector_bytes).write()


class _ArgReduce:
    def __init__(self, form: ArgReduce, inputs: Sequence[Type], vector_bytes: int) -> None:
        self._form = form
        rank, inner = len(form.space), len(form.over)
        self._w = w = FormWriter(inputs, (*form.space, *form.over), vector_bytes)
        self._body = w.lowering.lower(form.body)
        self._dtype = form.body.dtype
        self._over = range(rank, rank + inner)
        self._place = w.place(form.space)
        # What a lane remembers is as wide as the elements, where it can be.
        small = self._dtype.itemsize <= 4 and math.prod(form.over) < 2**31
        self._where = dtypes.int32 if small else INDEX
        register = vector_bytes // max(self._dtype.itemsize, self._where.itemsize)
        loads = [part for part in needed(w.lowering, [self._body]) if part.op == "load"]

        def neighbours(axis: int) -> bool:
            return all(w.lowering.addresses[x].coefficient(axis) in (0, 1) for x in loads)

        self._across = bool(rank) and form.space[-1] >= 4 and neighbours(rank - 1)
        self._lanes = 0
        if self._across:
            self._lanes = register
        elif inner and form.over[-1] >= max(_LONG, 2 * register) and neighbours(self._over[-1]):
            self._lanes = 2 * register

    def write(self) -> FormCode:
        form, w = self._form, self._w
        rank = len(form.space)
        cost = math.prod(form.space) * math.prod(form.over) * _NANOSECONDS[self._lanes == 0]
        if self._across:
            rows = form.space[:-1]
            split = split_axis(rows, cost)
            last = rank - 1
            w.loops(range(last), lambda: w.vectors(last, self._lanes, self._outputs), split)
        else:
            rows = form.space
            split = split_axis(rows, cost)
            w.loops(range(rank), self._row if self._lanes else lambda: self._outputs(0, 1), split)
        return FormCode(w.code, 0, chunks_of(rows, split), cost)

    # --- one lane per output ----------------------------------------------------------------

    def _outputs(self, lanes: int, count: int) -> None:
        """Walk along the reduced axes; every lane is an output."""
        w, form, where = self._w, self._form, self._where

        def walk(axes: Sequence[int], start: Position, now: list[str]) -> list[str]:
            if not axes:
                value = w.values.spread(self._body, lanes)
                place = self._number(start, lanes)
                return self._kept(now, value, place, lanes)

            def step(number: Position, now: list[str]) -> list[str]:
                place = w.add(w.multiply(start, w.sizes[axes[0]]), number)
                with w.values.scope({axes[0]: number}):
                    return walk(axes[1:], place, now)

            kinds = [v.kind_of(self._dtype, lanes), v.kind_of(where, lanes)]
            return w.steps(0, w.sizes[axes[0]], step, list(zip(kinds, now, strict=True)))

        worst = v.literal(_worst(form, self._dtype), self._dtype, lanes)
        _, best = walk(self._over, 0, [worst, v.literal(0, where, lanes)])
        self._store(best, lanes, count)

    def _number(self, place: Position, lanes: int) -> str:
        """A position as the lanes remember it."""
        w, where = self._w, self._where
        if isinstance(place, int):
            return v.literal(place, where, lanes)
        if where is not INDEX:
            place = w.code.let(f"trunc i64 {place} to i32")
        return v.splat(w.code, place, where, lanes) if lanes else place

    def _store(self, best: str, lanes: int, count: int) -> None:
        w = self._w
        if self._where is not INDEX:
            kind = v.kind_of(self._where, lanes)
            best = w.code.let(f"zext {kind} {best} to {v.kind_of(INDEX, lanes)}")
        v.store(w.code, INDEX, best, w.pointer(INDEX, self._place), lanes, count)

    def _kept(
        self, now: list[str], value: str, place: str, lanes: int, valid: str = ""
    ) -> list[str]:
        """The better of what is remembered and a later element, where that is valid."""
        w, truth = self._w, v.kind_of(dtypes.bool_, lanes)
        better = self._better(value, now[0], lanes)
        if valid:
            better = w.code.let(f"and {truth} {better}, {valid}")
        return [
            w.apply("select", self._dtype, lanes, better, value, now[0]),
            w.apply("select", self._where, lanes, better, place, now[1]),
        ]

    def _better(self, value: str, best: str, lanes: int) -> str:
        """Whether an element is strictly better; NaN is better than all but NaN."""
        w, largest = self._w, self._form.largest
        if not self._dtype.is_floating:
            pair = (best, value) if largest else (value, best)
            return w.apply("less", self._dtype, lanes, *pair)
        kind, truth = v.kind_of(self._dtype, lanes), v.kind_of(dtypes.bool_, lanes)
        beyond = w.code.let(f"fcmp {'ugt' if largest else 'ult'} {kind} {value}, {best}")
        number = w.code.let(f"fcmp ord {kind} {best}, {best}")
        return w.code.let(f"and {truth} {beyond}, {number}")

    # --- one long row -----------------------------------------------------------------------

    def _row(self) -> None:
        """Walk along the reduced axes in vectors; every lane sees a part of the row."""
        w, form, lanes, where = self._w, self._form, self._lanes, self._where
        *outer, axis = self._over
        end, rest = pieces(w.sizes[axis], lanes, lanes)
        kinds = [v.kind_of(self._dtype, lanes), v.kind_of(where, lanes)]

        def one(start: Position, index: Position, now: list[str], count: int) -> list[str]:
            with w.along(axis, index, lanes, count):
                value = w.values.spread(self._body, lanes)
            first = self._number(w.add(start, index), lanes)
            place = w.apply("add", where, lanes, first, _steps(where.itemsize, lanes))
            return self._kept(
                now, value, place, lanes, "" if count == lanes else v.mask(lanes, count)
            )

        def walk(axes: Sequence[int], start: Position, now: list[str]) -> list[str]:
            pairs = list(zip(kinds, now, strict=True))
            if axes:

                def step(number: Position, now: list[str]) -> list[str]:
                    place = w.add(start, number)
                    with w.values.scope({axes[0]: number}):
                        size = w.sizes[axes[1] if axes[1:] else axis]
                        return walk(axes[1:], w.multiply(place, size), now)

                return w.code.loop(0, w.sizes[axes[0]], 1, step, pairs)

            def turn(index: Position, now: list[str]) -> list[str]:
                return one(start, index, now, lanes)

            now = w.code.loop(0, end, lanes, turn, pairs)
            left = sum(count for _, _, count in rest)
            return one(start, end, now, left) if left else now

        worst = v.literal(_worst(form, self._dtype), self._dtype, lanes)
        best, place = walk(outer, 0, [worst, _steps(where.itemsize, lanes)])
        self._store(self._first(best, place), 0, 1)

    def _first(self, best: str, place: str) -> str:
        """The position of the best lane, the earliest of equal ones."""
        w, lanes = self._w, self._lanes
        while lanes > 1:
            (low, high) = w.halves(best, self._dtype, lanes)
            (low_place, high_place) = w.halves(place, self._where, lanes)
            lanes //= 2
            truth = v.kind_of(dtypes.bool_, lanes)
            better = self._better(high, low, lanes)
            worse = self._better(low, high, lanes)
            earlier = w.apply("less", self._where, lanes, high_place, low_place)
            not_worse = w.code.let(f"xor {truth} {worse}, {v.literal(True, dtypes.bool_, lanes)}")
            tie = w.code.let(f"and {truth} {not_worse}, {earlier}")
            wins = w.code.let(f"or {truth} {better}, {tie}")
            best = w.apply("select", self._dtype, lanes, wins, high, low)
            place = w.apply("select", self._where, lanes, wins, high_place, low_place)
        return v.element(w.code, place, self._where, 1, 0)


def _steps(itemsize: int, lanes: int) -> str:
    kind = f"i{8 * itemsize}"
    return f"<{', '.join(f'{kind} {lane}' for lane in range(lanes))}>"


def _worst(form: ArgReduce, dtype: dtypes.DType) -> float:
    """What every element is at least as good as, so that a row may begin with it at position 0."""
    if dtype.is_floating:
        return -math.inf if form.largest else math.inf
    limits = np.iinfo(dtype.numpy)
    return int(limits.min if form.largest else limits.max)
