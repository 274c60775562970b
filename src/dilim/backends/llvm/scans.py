"""Kernels of `Scan`: running sums and products."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from dilim.backends.llvm import vectors as v
from dilim.backends.llvm.code import Position
from dilim.backends.llvm.form_writer import FormCode, FormWriter, chunks_of, split_axis
from dilim.backends.llvm.lowered import needed, register_lanes, weight_of
from dilim.ir.types import Type
from dilim.ops.affine import Affine
from dilim.ops.recipe import Scan

_LIGHT: Final = 4  # instructions of a body up to which it is not worth a pass in vectors
_NANOSECONDS: Final = (0.1, 1.0)  # per element, in vectors and one by one


def write_scan(form: Scan, inputs: Sequence[Type], vector_bytes: int) -> FormCode:
    """The kernel of a `Scan`; arguments as `write_arg_reduce`.

    Along the last axis the running value stays in a register. Along others, the row before is
    read back from the result.
    """
    return _Scan(form, inputs, vector_bytes).write()


class _Scan:
    def __init__(self, form: Scan, inputs: Sequence[Type], vector_bytes: int) -> None:
        self._form = form
        self._w = FormWriter(inputs, form.space, vector_bytes)
        self._body = self._w.lowering.lower(form.body)
        parts = needed(self._w.lowering, [self._body])
        self._dtype = form.body.dtype
        self._place = self._w.place(form.space)
        self._lanes = register_lanes(parts, vector_bytes)
        self._heavy = weight_of(parts) > _LIGHT

    def write(self) -> FormCode:
        form, w = self._form, self._w
        space, axis = form.space, form.axis
        last = axis == len(space) - 1
        rows = space[:axis]
        cost = math.prod(space) * _NANOSECONDS[last]
        split = split_axis(rows, cost)
        if math.prod(space):
            row = self._along_last_axis if last else self._along_other_axis
            w.loops(range(axis), row, split)
        return FormCode(w.code, 0, chunks_of(rows, split), cost)

    def _load(self, place: Affine, lanes: int, count: int) -> str:
        return v.load(self._w.code, self._dtype, self._w.pointer(self._dtype, place), lanes, count)

    def _store(self, value: str, lanes: int, count: int) -> None:
        address = self._w.pointer(self._dtype, self._place)
        v.store(self._w.code, self._dtype, value, address, lanes, count)

    def _combined(self, before: str, value: str, lanes: int) -> str:
        return self._w.apply(self._form.combine, self._dtype, lanes, before, value)

    def _along_last_axis(self) -> None:
        w, axis = self._w, self._form.axis
        size = w.sizes[axis]
        if self._heavy:  # first everything but the running value, in vectors

            def compute(lanes: int, count: int) -> None:
                self._store(w.values.spread(self._body, lanes), lanes, count)

            w.vectors(axis, self._lanes, compute)

        def element(number: Position, before: list[str]) -> list[str]:
            with w.values.scope({axis: number}):
                value = self._load(self._place, 0, 1) if self._heavy else w.scalar(self._body)
                if before:
                    value = self._combined(before[0], value, 0)
                self._store(value, 0, 1)
            return [value]

        first = element(0, [])
        w.steps(1, size, element, [(v.kind_of(self._dtype, 0), first[0])])

    def _along_other_axis(self) -> None:
        w, form = self._w, self._form
        axis, last = form.axis, len(form.space) - 1
        row = math.prod(form.space[axis + 1 :])
        before = Affine(self._place.terms, self._place.constant - row)

        def turn(number: Position, _: list[str]) -> list[str]:
            def some(lanes: int, count: int) -> None:
                value = w.values.spread(self._body, lanes)
                if number != 0:
                    value = self._combined(self._load(before, lanes, count), value, lanes)
                self._store(value, lanes, count)

            with w.values.scope({axis: number}):
                w.loops(range(axis + 1, last), lambda: w.vectors(last, self._lanes, some))
            return []

        turn(0, [])
        w.code.loop(1, form.space[axis], 1, turn)
