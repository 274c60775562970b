"""Stores the results of a loop nest."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dilim.backends.llvm import vectors as v
from dilim.backends.llvm.code import Code
from dilim.backends.llvm.lowered import LoweredNest
from dilim.backends.llvm.values import Values
from dilim.ir.types import Type


@dataclass(frozen=True, slots=True)
class Results:
    """Where the results go.

    Attributes:
        pointers: LLVM names of their addresses.
        types: of the results.
    """

    pointers: Sequence[str]
    types: Sequence[Type]

    def store(
        self,
        code: Code,
        values: Values,
        nest: LoweredNest,
        axis: int | None,
        lanes: int,
        count: int,
    ) -> None:
        """Emit the outputs at the position that the axes have, and store them.

        All values come first, then all stores: a result may lie where an input was.

        Args:
            code: takes the instructions.
            values: of the expressions.
            nest: whose outputs they are.
            axis: that the lanes run along.
            lanes: of a vector, 0 for one element.
            count: lanes that exist.
        """
        step = 0 if axis is None else nest.place.coefficient(axis)
        computed = [values.spread(output, lanes) for output in nest.outputs]
        for value, pointer, result in zip(computed, self.pointers, self.types, strict=True):
            base, distance = values.pointer(pointer, result.dtype, nest.place)
            address = v.place(code, result.dtype, base, distance)
            if not lanes or step == 1:
                v.store(code, result.dtype, value, address, lanes, count)
                continue
            if step and result.dtype.itemsize >= v.SCATTERED:
                v.scatter(code, result.dtype, value, address, step, lanes, count)
                continue
            for lane in range(count):
                item = v.element(code, value, result.dtype, lanes, lane)
                place = v.place(code, result.dtype, address, lane * step)
                v.store(code, result.dtype, item, place, 0, 1)
