"""Kernels of `Scatter`: adding to, or replacing, elements at computed positions."""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from typing import Final

from dilim import dtypes
from dilim.backends.llvm import vectors as v
from dilim.backends.llvm.code import Position
from dilim.backends.llvm.form_writer import RESERVED, FormCode, FormWriter
from dilim.backends.llvm.lowered import axes_used, needed, register_lanes
from dilim.dtypes import INDEX
from dilim.ir.types import Type
from dilim.ops.affine import Affine
from dilim.ops.recipe import Scatter

_NANOSECONDS: Final = (0.25, 1.0)  # per element added, in vectors and one by one
_NANOSECONDS_PER_BYTE: Final = 0.02  # of the base, copied
_PIECE: Final = 64


def write_scatter(
    form: Scatter, inputs: Sequence[Type], vector_bytes: int, in_place: bool
) -> FormCode:
    """The kernel of a `Scatter`; arguments as `write_arg_reduce`.

    All positions are checked before anything is written. Where the result lies in the memory of
    the base, only the elements at the positions are touched; all that is computed from the base is
    then computed beforehand.

    Args:
        form: what to compute.
        inputs: types of its inputs.
        vector_bytes: of one register.
        in_place: whether the result lies where the base is.
    """
    return _Scatter(form, inputs, vector_bytes, in_place).write()


class _Scatter:
    def __init__(
        self, form: Scatter, inputs: Sequence[Type], vector_bytes: int, in_place: bool
    ) -> None:
        self._form = form
        self._in_place = in_place
        self._w = w = FormWriter(inputs, form.space, vector_bytes)
        self._target = [w.lowering.lower(part) for part in form.target]
        self._body = w.lowering.lower(form.body)
        self._place = w.address(self._target, form.shape)
        self._dtype = form.body.dtype
        self._count = math.prod(form.space)
        self._checks = w.checks_of(*self._target)
        parts = needed(w.lowering, [*self._target, self._body])
        self._lanes = register_lanes([self._body], vector_bytes)
        self._staged = in_place and any(
            part.op == "load" and part.value == form.base for part in parts
        )
        self._values = RESERVED + 8 * self._count  # where staged values begin

    def write(self) -> FormCode:
        w, form = self._w, self._form
        size = math.prod(form.shape) * self._dtype.itemsize
        axes = range(len(form.space))
        for check in self._checks:
            depends = sorted(axes_used(w.lowering, needed(w.lowering, [check])))
            if all(w.sizes[axis] for axis in depends):
                w.loops(depends, functools.partial(w.test, check))
        if self._count and self._staged:
            w.loops(axes, self._stage)
        if not self._in_place:
            _copy(w, None if form.base is None else w.pointers[form.base], size)
        if self._count:
            self._write_all()
        cost = self._count * _NANOSECONDS[not self._in_rows()]
        if not self._in_place:
            cost += size * _NANOSECONDS_PER_BYTE
        scratch = RESERVED if self._checks else 0
        if self._staged:
            scratch = self._values + self._count * self._dtype.itemsize
        return FormCode(w.code, scratch, 1, cost, bool(self._checks))

    def _number(self) -> Affine:
        return self._w.place(self._form.space)

    def _offset(self) -> str:
        """The place of an element in the result, as a number."""
        w = self._w
        address = w.pointer(dtypes.uint8, self._place, "null")
        return w.code.let(f"ptrtoint ptr {address} to i64")

    def _stage(self) -> None:
        """Keep the place and the value of one element in the scratch memory."""
        w, number = self._w, self._number()
        places, values = w.scratch(INDEX), w.scratch(self._dtype, 0, self._values)
        v.store(w.code, INDEX, self._offset(), w.pointer(INDEX, number, places), 0, 1)
        value = w.scalar(self._body)
        v.store(w.code, self._dtype, value, w.pointer(self._dtype, number, values), 0, 1)

    def _write_all(self) -> None:
        w, rank = self._w, len(self._form.space)
        if self._staged:
            w.code.loop(0, self._count, 1, self._write_staged)
        elif self._in_rows():
            last = rank - 1
            # What a mask has written cannot be read back before it has reached the memory.
            w.loops(range(last), lambda: w.vectors(last, self._lanes, self._write_some, exact=True))
        else:
            w.loops(range(rank), lambda: self._write_some(0, 1))

    def _in_rows(self) -> bool:
        """Whether neighbours along the last axis go to neighbouring places."""
        w, last = self._w, len(self._form.space) - 1
        if last < 0 or self._form.space[last] < 2 or self._place.coefficient(last) != 1:
            return False
        computed = [term for term, _ in self._place.terms if term.op != "index"]
        return last not in axes_used(w.lowering, needed(w.lowering, computed))

    def _write_some(self, lanes: int, count: int) -> None:
        value = self._w.values.spread(self._body, lanes)
        self._put(self._w.pointer(self._dtype, self._place), value, lanes, count)

    def _write_staged(self, number: Position, _: list[str]) -> list[str]:
        w, dtype = self._w, self._dtype
        offset = v.load(w.code, INDEX, w.scratch(INDEX, number), 0, 1)
        value = v.load(w.code, dtype, w.scratch(dtype, number, self._values), 0, 1)
        self._put(v.place(w.code, dtype, "%r0", offset), value, 0, 1)
        return []

    def _put(self, address: str, value: str, lanes: int, count: int) -> None:
        w, dtype = self._w, self._dtype
        if self._form.combine:
            old = v.load(w.code, dtype, address, lanes, count)
            value = w.apply(self._form.combine, dtype, lanes, old, value)
        v.store(w.code, dtype, value, address, lanes, count)


def _copy(w: FormWriter, source: str | None, size: int) -> None:
    """Copy so many bytes to the result, or fill it with zeros."""

    def piece(offset: Position, width: int) -> None:
        value = "zeroinitializer"
        if source is not None:
            place = v.place(w.code, dtypes.uint8, source, offset)
            value = v.load(w.code, dtypes.uint8, place, width, width)
        place = v.place(w.code, dtypes.uint8, "%r0", offset)
        v.store(w.code, dtypes.uint8, value, place, width, width)

    def turn(offset: Position, _: list[str]) -> list[str]:
        piece(offset, _PIECE)
        return []

    done, width = size - size % _PIECE, _PIECE
    w.code.loop(0, done, _PIECE, turn)
    while done < size:
        width //= 2
        if size - done >= width:
            piece(done, width)
            done += width
