"""Kernels of `Blocks`: random numbers, a vector of blocks at a time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Final

from dilim.backends.llvm import vectors as v
from dilim.backends.llvm.code import Position
from dilim.backends.llvm.form_writer import RESERVED, WORTH_SPLITTING, FormCode, FormWriter
from dilim.backends.llvm.lowered import needed, weight_of
from dilim.ir.types import Type
from dilim.ops.recipe import Blocks

_NANOSECONDS: Final = 0.13  # per instruction on a vector of 64 bytes


def write_blocks(form: Blocks, inputs: Sequence[Type], vector_bytes: int) -> FormCode:
    """The kernel of a `Blocks`; arguments as `write_arg_reduce`."""
    return _Blocks(form, inputs, vector_bytes).write()


class _Blocks:
    def __init__(self, form: Blocks, inputs: Sequence[Type], vector_bytes: int) -> None:
        self._size = len(form.parts)
        self._count = math.prod(form.space)
        blocks = -(-self._count // self._size)
        self._w = FormWriter(inputs, (max(blocks, 2),), vector_bytes)
        self._parts = [self._w.lowering.lower(part) for part in form.parts]
        self._dtype = form.body.dtype
        self._lanes = vector_bytes // 8  # the words are computed in 64 bits

    def write(self) -> FormCode:
        w, group = self._w, self._lanes * self._size
        groups, rest = divmod(self._count, group)
        weight = weight_of(needed(w.lowering, self._parts))
        each = weight * _NANOSECONDS * 64 / w.vector_bytes
        cost = (groups + bool(rest)) * each
        together = max(1, int(WORTH_SPLITTING // each))  # groups in one chunk
        chunks = max(1, groups // together)
        checks = w.checks_of(*self._parts)
        for check in checks:  # of other inputs than the state, which have one element
            w.test(check)
        scratch = RESERVED if checks else 0

        def turn(number: Position, _: list[str]) -> list[str]:
            self._group(w.multiply(number, self._lanes), self._lanes, group)
            return []

        if chunks == 1:
            w.code.loop(0, groups, 1, turn)
            self._rest(groups, rest)
            return FormCode(w.code, scratch, 1, cost, bool(checks))
        is_last = w.code.let(f"icmp eq i64 %end, {chunks}")
        start = w.code.let(f"mul i64 %begin, {together}")
        stop = w.code.let(f"mul i64 %end, {together}")
        stop = w.code.let(f"select i1 {is_last}, i64 {groups}, i64 {stop}")
        w.code.loop(start, stop, 1, turn)
        w.code.branch(is_last, lambda: self._rest(groups, rest))
        return FormCode(w.code, scratch, chunks, cost, bool(checks))

    def _rest(self, groups: int, count: int) -> None:
        if count:
            blocks = -(-count // self._size)
            with self._w.values.scope({}):
                self._group(groups * self._lanes, 1 << (blocks - 1).bit_length(), count)

    def _group(self, block: Position, lanes: int, count: int) -> None:
        """Compute and store the elements of ``lanes`` blocks, ``count`` of which exist."""
        w, dtype = self._w, self._dtype
        address = v.place(w.code, dtype, "%r0", w.multiply(block, self._size))
        with w.along(0, block, lanes, lanes) as width:
            parts = [w.values.spread(part, width) for part in self._parts]
        if not width:
            for number, part in enumerate(parts[:count]):
                v.store(w.code, dtype, part, v.place(w.code, dtype, address, number), 0, 1)
            return
        v.store(w.code, dtype, self._woven(parts, lanes), address, lanes * self._size, count)

    def _woven(self, parts: list[str], lanes: int) -> str:
        """Lane 0 of every part in turn, then lane 1 of every part, and so on."""
        if len(parts) == 1:
            return parts[0]
        even, odd = (self._woven(parts[start::2], lanes) for start in (0, 1))
        width = lanes * len(parts) // 2
        kind = v.kind_of(self._dtype, width)
        order = [lane + width * side for lane in range(width) for side in (0, 1)]
        return self._w.code.let(
            f"shufflevector {kind} {even}, {kind} {odd}, <{2 * width} x i32> {v.numbers(*order)}"
        )
