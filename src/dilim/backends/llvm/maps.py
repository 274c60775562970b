"""Emits loop nests: loops over the space, vectors along its last axis, reductions, stores."""

from __future__ import annotations

import math
from typing import Final

from dilim.backends.llvm.code import Code, Position
from dilim.backends.llvm.costs import cost_of
from dilim.backends.llvm.lowered import (
    LoweredNest,
    lanes_at,
    needed,
    pieces,
    register_lanes,
    weight_of,
)
from dilim.backends.llvm.reductions import Reducer, wants_vectors
from dilim.backends.llvm.results import Results
from dilim.backends.llvm.values import Values

LIGHT, MEDIUM = 12, 30
WORTH_SPLITTING: Final = 20_000.0
"""Nanoseconds below which threads do not pay."""
MOST_CHUNKS: Final = 64


class NestWriter:
    """Emits a lowered nest.

    Args:
        code: takes the instructions.
        values: of the expressions.
        nest: what to compute.
        results: where to.
        vector_bytes: of one register.
        splits: whether the work may be cut into chunks, ``%begin`` to ``%end`` of them.

    Attributes:
        cost: estimated nanoseconds for everything on one core.
        chunks: into how many parts it splits.
    """

    def __init__(
        self,
        code: Code,
        values: Values,
        nest: LoweredNest,
        results: Results,
        vector_bytes: int,
        splits: bool = True,
    ) -> None:
        self._code = code
        self._values = values
        self._nest = nest
        self._results = results
        self._register = register_lanes(nest.parts, vector_bytes)
        self._reducer = Reducer(code, values, nest)
        full = [r for r in nest.reductions if r.level == len(nest.axes)]
        self._vectors = not full or wants_vectors(nest, full, self._register)
        weight = weight_of(needed(nest.lowering, nest.outputs))
        unrolled = 4 if weight <= LIGHT else 2 if weight <= MEDIUM else 1
        self._lanes = self._register * (1 if full else unrolled)
        self.cost = self._cost(vector_bytes)
        self.chunks, self._share = self._split() if splits else (1, 0)

    @property
    def scratch_bytes(self) -> int:
        """Memory that the reductions need."""
        return self._reducer.scratch_bytes

    def write(self) -> None:
        """Emit everything."""
        if self._nest.size:
            self._level(0)

    def _cost(self, vector_bytes: int) -> float:
        nest = self._nest
        total = cost_of(needed(nest.lowering, nest.outputs), nest.size, vector_bytes)
        for reduction in nest.reductions:
            axes = nest.axes[: reduction.level]
            count = math.prod(nest.sizes[axis] for axis in axes)
            parts = [*needed(nest.lowering, [reduction.source.body]), reduction.source.body]
            total += cost_of(parts, count * math.prod(reduction.source.over), vector_bytes)
        return total

    def _split(self) -> tuple[int, int]:
        """The number of chunks, and how far a chunk reaches along the outermost axis."""
        nest = self._nest
        if self.cost < WORTH_SPLITTING or not nest.axes or nest.size == 0:
            return 1, 0
        if any(reduction.level == 0 for reduction in nest.reductions):
            return 1, 0
        unit = self._lanes if len(nest.axes) == 1 and self._vectors else 1
        size = nest.sizes[nest.axes[0]]
        share = unit * -(-size // (unit * MOST_CHUNKS))
        return -(-size // share), share

    def _range(self, stop: int) -> tuple[Position, Position]:
        """The part of 0 .. stop of the outermost axis that this call does."""
        if self.chunks == 1:
            return 0, stop
        start = self._code.let(f"mul nuw nsw i64 %begin, {self._share}")
        end = self._code.let(f"mul nuw nsw i64 %end, {self._share}")
        return start, self._code.let(f"call i64 @llvm.smin.i64(i64 {end}, i64 {stop})")

    def _level(self, level: int) -> None:
        """What is inside the first ``level`` axes."""
        nest = self._nest
        self._reduce(level)
        if level == len(nest.axes):
            self._results.store(self._code, self._values, nest, None, 0, 1)
            return
        axis = nest.axes[level]
        if level == len(nest.axes) - 1 and self._vectors:
            self._vector_axis(axis, level)
            return

        def turn(index: Position, _: list[str]) -> list[str]:
            with self._values.scope({axis: index}):
                self._level(level + 1)
            return []

        size = nest.sizes[axis]
        start, stop = self._range(size) if level == 0 else (0, size)
        self._code.loop(start, stop, 1, turn)

    def _vector_axis(self, axis: int, level: int) -> None:
        end, rest = pieces(self._nest.sizes[axis], self._lanes, self._register)

        def turn(index: Position, _: list[str]) -> list[str]:
            self._vector(axis, index, self._lanes, self._lanes)
            return []

        def tail() -> None:
            for start, lanes, count in rest:
                self._vector(axis, start, lanes, count)

        start, stop = self._range(end) if level == 0 else (0, end)
        self._code.loop(start, stop, self._lanes, turn)
        if rest and level == 0 and self.chunks > 1:
            last = self._code.let(f"icmp eq i64 %end, {self.chunks}")
            self._code.branch(last, tail)
        else:
            tail()

    def _vector(self, axis: int, index: Position, lanes: int, count: int) -> None:
        with self._values.scope({axis: index}, lanes_at(axis, lanes, count)):
            self._reduce(len(self._nest.axes))
            width = lanes if lanes > 1 else 0
            self._results.store(self._code, self._values, self._nest, axis, width, count)

    def _reduce(self, level: int) -> None:
        self._reducer.write([r for r in self._nest.reductions if r.level == level])
