"""Kernels of `Pick`: a draw from categories per row.

The exponentials of a row are computed in vectors; their running sums one after the other.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from dilim.backends.llvm import vectors as v
from dilim.backends.llvm.code import Position
from dilim.backends.llvm.form_writer import RESERVED, UNROLLED, FormCode, FormWriter
from dilim.backends.llvm.lowered import pieces
from dilim.dtypes import INDEX
from dilim.ir.types import Type
from dilim.ops.primitives import Expr
from dilim.ops.recipe import Pick

_NANOSECONDS: Final = (25.0, 1.5)  # per row and per element


def write_pick(form: Pick, inputs: Sequence[Type], vector_bytes: int) -> FormCode:
    """The kernel of a `Pick`; arguments as `write_arg_reduce`."""
    return _Pick(form, inputs, vector_bytes).write()


class _Pick:
    def __init__(self, form: Pick, inputs: Sequence[Type], vector_bytes: int) -> None:
        self._form = form
        self._axis = len(form.space)
        self._w = w = FormWriter(inputs, (*form.space, form.count), vector_bytes)
        lower = w.lowering.lower
        self._score, self._body = lower(form.score), lower(form.body)
        self._fraction = lower(form.fraction)
        self._top = lower(Expr("reduced", (), form.score.dtype, 0))
        self._dtype = form.body.dtype
        self._place = w.place(form.space)
        self._lanes = vector_bytes // self._dtype.itemsize
        self._short = form.count <= UNROLLED

    def write(self) -> FormCode:
        form, w = self._form, self._w
        w.loops(range(self._axis), self._row)
        rows = math.prod(form.space)
        cost = rows * (_NANOSECONDS[0] + form.count * _NANOSECONDS[1])
        scratch = RESERVED + form.count * self._dtype.itemsize
        return FormCode(w.code, scratch, 1, cost, bool(w.checks_of(self._fraction)))

    def _row(self) -> None:
        w = self._w
        with w.values.scope({}):
            w.values.define(self._top, self._largest(), 0)
            for check in w.checks_of(self._fraction):
                w.test(check)
            fraction = w.scalar(self._fraction)
            sums = self._running_sums()
            limit = w.apply("multiply", self._dtype, 0, fraction, sums[-1])
            picked = self._counted(sums, limit)
            v.store(w.code, INDEX, picked, w.pointer(INDEX, self._place), 0, 1)

    def _largest(self) -> str:
        """The largest score of the row, NaN if there is one."""
        w, dtype, count = self._w, self._dtype, self._form.count
        lowest = v.literal(-math.inf, dtype, self._lanes)
        kind = v.kind_of(dtype, self._lanes)

        def some(index: Position, count: int) -> str:
            with w.along(self._axis, index, self._lanes, count):
                return w.values.spread(self._score, self._lanes)

        def turn(index: Position, now: list[str]) -> list[str]:
            value = some(index, self._lanes)
            return [w.apply("maximum", dtype, self._lanes, now[0], value)]

        end, _ = pieces(count, self._lanes, self._lanes)
        (best,) = w.code.loop(0, end, self._lanes, turn, [(kind, lowest)])
        if count > end:
            mask = v.mask(self._lanes, count - end)
            value = w.apply("select", dtype, self._lanes, mask, some(end, count - end), lowest)
            best = value if end == 0 else w.apply("maximum", dtype, self._lanes, best, value)
        lanes = self._lanes
        while lanes > 1:
            low, high = w.halves(best, dtype, lanes)
            lanes //= 2
            best = w.apply("maximum", dtype, lanes, low, high)
        return v.element(w.code, best, dtype, 1, 0)

    def _running_sums(self) -> list[str]:
        """The running sums, or only the last one where they are kept in the scratch memory."""
        w, dtype, count = self._w, self._dtype, self._form.count
        weights: list[str] = []

        def compute(lanes: int, count: int) -> None:
            value = w.values.spread(self._body, lanes)
            if not self._short:
                number = w.pointer(
                    dtype, w.place((self._form.count,), [self._axis]), w.scratch(dtype)
                )
                v.store(w.code, dtype, value, number, lanes, count)
            elif lanes:
                weights.extend(v.element(w.code, value, dtype, lanes, i) for i in range(count))
            else:
                weights.append(value)

        if self._short:
            lanes = 1 << (count - 1).bit_length()
            with w.along(self._axis, 0, lanes, count) as width:
                compute(width, count)
            sums = weights[:1]
            for weight in weights[1:]:
                sums.append(w.apply("add", dtype, 0, sums[-1], weight))
            return sums
        w.vectors(self._axis, self._lanes, compute)

        def add(number: Position, now: list[str]) -> list[str]:
            address = w.scratch(dtype, number)
            total = w.apply("add", dtype, 0, *now, v.load(w.code, dtype, address, 0, 1))
            v.store(w.code, dtype, total, address, 0, 1)
            return [total]

        first = v.load(w.code, dtype, w.scratch(dtype), 0, 1)
        return w.code.loop(1, count, 1, add, [(v.kind_of(dtype, 0), first)])

    def _counted(self, sums: list[str], limit: str) -> str:
        """How many running sums are at most the limit."""
        w, dtype = self._w, self._dtype

        def more(before: str, total: str) -> str:
            below = w.apply("less_equal", dtype, 0, total, limit)
            one = w.code.let(f"zext i1 {below} to i64")
            return w.code.let(f"add i64 {before}, {one}")

        if self._short:
            picked = "0"
            for total in sums:
                picked = more(picked, total)
            return picked

        def turn(number: Position, now: list[str]) -> list[str]:
            return [more(now[0], v.load(w.code, dtype, w.scratch(dtype, number), 0, 1))]

        return w.code.loop(0, self._form.count, 1, turn, [("i64", "0")])[0]
