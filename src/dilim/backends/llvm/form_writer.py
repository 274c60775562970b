"""What the kernels of all loop forms but nests and products share."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Final

from dilim import dtypes
from dilim.backends.llvm import vectors as v
from dilim.backends.llvm.code import Code, Position
from dilim.backends.llvm.instructions import convert, primitive
from dilim.backends.llvm.lowered import needed, pieces
from dilim.backends.llvm.values import Lanes, Values
from dilim.dtypes import DType
from dilim.ir.types import Type
from dilim.ops.affine import Affine
from dilim.ops.lowering import Lowering
from dilim.ops.primitives import Expr
from dilim.shapes import Shape

SCRATCH: Final = "%scratch"
RESERVED: Final = 64
"""Bytes at the beginning of the scratch memory that belong to checks."""
UNROLLED: Final = 8
"""Loops of at most so many steps are written out."""
WORTH_SPLITTING: Final = 20_000.0
"""Nanoseconds below which threads do not pay."""
Step = Callable[[Position, list[str]], Sequence[str]]


@dataclass(frozen=True, slots=True)
class FormCode:
    """The body of a kernel.

    Attributes:
        code: its instructions, but for the last return.
        scratch_bytes: memory that every caller at the same time needs of its own.
        chunks: into how many parts it splits; 1 for not at all.
        cost: estimated nanoseconds for all of it on one core.
        checks: whether it can fail.
    """

    code: Code
    scratch_bytes: int
    chunks: int
    cost: float
    checks: bool = False


class Text(Code):
    """Instructions of a form."""

    def repeat(
        self, start: Position, stop: Position, body: Step, carried: Sequence[tuple[str, str]]
    ) -> list[str]:
        """A `loop` of unknown length that carries values; it runs at least once."""
        return self._turns(start, stop, 1, body, carried)


class FormWriter:
    """Instructions, and the values of the expressions of one form.

    Args:
        inputs: types of the inputs, whose addresses are ``%a0``, ``%a1``, ...; the result is at
            ``%r0``.
        sizes: of the loop axes.
        vector_bytes: of one register.
    """

    def __init__(self, inputs: Sequence[Type], sizes: Sequence[int], vector_bytes: int) -> None:
        self.code = Text()
        self.sizes = tuple(sizes)
        self.pointers = [f"%a{number}" for number in range(len(inputs))]
        self.lowering = Lowering(sizes, inputs)
        self.values = Values(self.code, self.lowering, self.pointers, inputs)
        self.vector_bytes = vector_bytes

    # --- loops ------------------------------------------------------------------------------

    def loops(
        self, axes: Sequence[int], body: Callable[[], object], split: int | None = None
    ) -> None:
        """Run ``body`` for all positions along the axes, the last one fastest.

        Args:
            axes: loop axes.
            body: writes what is inside.
            split: the axis of which this call does only the part from ``%begin`` to ``%end``.
        """
        if not axes:
            body()
            return
        axis = axes[0]

        def turn(index: Position, _: list[str]) -> list[str]:
            with self.values.scope({axis: index}):
                self.loops(axes[1:], body, split)
            return []

        if axis == split:
            self.code.loop("%begin", "%end", 1, turn)
        else:
            self.code.loop(0, self.sizes[axis], 1, turn)

    def steps(
        self, start: int, stop: int, body: Step, carried: Sequence[tuple[str, str]] = ()
    ) -> list[str]:
        """`Code.loop`, written out where it is short."""
        if stop - start > UNROLLED:
            return self.code.loop(start, stop, 1, body, carried)
        values = [value for _, value in carried]
        for number in range(start, stop):
            values = list(body(number, values))
        return values

    def vectors(
        self, axis: int, lanes: int, body: Callable[[int, int], object], exact: bool = False
    ) -> None:
        """Run ``body(lanes, count)`` for vectors along an axis until it is done.

        ``lanes`` is 0 for a single element; ``count`` lanes exist: all of them where ``exact``.
        """
        end, rest = pieces(self.sizes[axis], lanes, 0 if exact else lanes)

        def turn(index: Position, _: list[str]) -> list[str]:
            with self.along(axis, index, lanes, lanes) as width:
                body(width, lanes)
            return []

        self.code.loop(0, end, lanes, turn)
        for start, some, count in rest:
            with self.along(axis, start, some, count) as width:
                body(width, count)

    @contextmanager
    def along(self, axis: int, index: Position, lanes: int, count: int) -> Iterator[int]:
        """A vector along an axis; its lanes, 0 for a single element."""
        some = Lanes(axis, lanes, count) if lanes > 1 else None
        with self.values.scope({axis: index}, some):
            yield lanes if lanes > 1 else 0

    # --- expressions and memory -------------------------------------------------------------

    def address(self, index: Sequence[Expr], shape: Shape) -> Affine:
        """The row-major place of lowered index expressions in a shape."""
        return self.lowering.interner.address(index, shape)

    def place(self, shape: Shape, axes: Sequence[int] | None = None) -> Affine:
        """The place of the loop axes (0, 1, ... unless told) in a shape."""
        index = self.lowering.interner.index
        return self.address([index(axis) for axis in axes or range(len(shape))], shape)

    def pointer(self, dtype: DType, form: Affine, base: str = "%r0") -> str:
        """The address of the element at a place of the result."""
        for term, _ in form.terms:
            if term.op != "index":
                self.values.value(term)
        address, distance = self.values.pointer(base, dtype, form)
        return v.place(self.code, dtype, address, distance)

    def scalar(self, expr: Expr) -> str:
        """The value of a lowered expression where no axis is a vector."""
        return self.values.spread(expr, 0)

    def apply(self, name: str, dtype: DType, lanes: int, *operands: str) -> str:
        """A primitive on operands of a dtype."""
        return primitive(self.code, name, dtype, lanes, *operands)

    def scratch(self, dtype: DType, number: Position = 0, start: int = RESERVED) -> str:
        """The address of an element of an array that begins at byte ``start``."""
        return v.place(self.code, dtype, v.place(self.code, dtypes.uint8, SCRATCH, start), number)

    def add(self, x: Position, y: Position) -> Position:
        """``x + y``."""
        if isinstance(x, int) and isinstance(y, int):
            return x + y
        if x == 0 or y == 0:
            return y if x == 0 else x
        return self.code.let(f"add nsw i64 {x}, {y}")

    def multiply(self, x: Position, y: int) -> Position:
        """``x * y``."""
        if isinstance(x, int) or y == 1:
            return x * y if isinstance(x, int) else x
        return self.code.let(f"mul nsw i64 {x}, {y}")

    def halves(self, vector: str, dtype: DType, lanes: int) -> tuple[str, str]:
        """The first and the second half of a vector."""
        kind, half = v.kind_of(dtype, lanes), lanes // 2
        low, high = (
            self.code.let(
                f"shufflevector {kind} {vector}, {kind} poison, "
                f"<{half} x i32> {v.numbers(*range(first, first + half))}"
            )
            for first in (0, half)
        )
        return low, high

    # --- checks -----------------------------------------------------------------------------

    def test(self, check: Expr) -> None:
        """Leave the kernel where a lowered check does not hold here."""
        ok, value = check.args
        bad = self.code.let(f"xor i1 {self.scalar(ok)}, true")
        offending = self.scalar(value)

        def fail() -> str:
            wide = convert(self.code, offending, value.dtype, dtypes.INDEX, 0)
            self.code.do(f"store i64 {wide}, ptr {SCRATCH}")
            return str(check.value + 1)

        self.code.leave(bad, fail)

    def checks_of(self, *roots: Expr) -> list[Expr]:
        """The checks in lowered expressions, inner ones first."""
        found = [part for part in needed(self.lowering, roots) if part.op == "check"]
        return sorted(found, key=lambda part: len(needed(self.lowering, [part])))


def split_axis(space: Shape, cost: float) -> int | None:
    """The first axis worth dividing among threads; None where the work is too small for it."""
    if cost < WORTH_SPLITTING:
        return None
    return next((axis for axis, size in enumerate(space) if size > 1), None)


def chunks_of(space: Shape, split: int | None) -> int:
    """Into how many parts a loop over a space falls that is divided along an axis."""
    return 1 if split is None else space[split]
