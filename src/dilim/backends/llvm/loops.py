"""Emits loop forms: each recipe becomes one function over row-major arrays.

The function is ``void name(ptr in0, ..., ptr out, ptr scratch)``. Reductions keep the order of
`dilim.ops.recipe` exactly.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final

from dilim import shapes
from dilim.backends.llvm.expressions import Body, flat_offset, literal, primitive
from dilim.backends.llvm.writer import REGISTER, FunctionWriter
from dilim.errors import UnsupportedError
from dilim.ir.types import Type
from dilim.ops.expansions import expanded
from dilim.ops.recipe import BLOCK, LANES, Map, Recipe, Reduce
from dilim.shapes import Shape

Indices = tuple[str, ...]
OUT: Final = "%out"
SCRATCH: Final = "%scratch"


@dataclass(frozen=True, slots=True)
class Kernel:
    """The code of one operation.

    Attributes:
        text: the LLVM function.
        scratch_bytes: memory it needs while it runs.
    """

    text: str
    scratch_bytes: int


def write_kernel(name: str, operation: str, recipe: Recipe, inputs: Sequence[Type]) -> Kernel:
    """The function that runs a recipe.

    Args:
        name: of the function.
        operation: named in errors.
        recipe: what to compute.
        inputs: types of the operation's inputs.

    Raises:
        UnsupportedError: the loop form, or a primitive of the body, has no emission here.
    """
    pointers = [f"ptr noalias %in{number}" for number in range(len(inputs))]
    writer = FunctionWriter(name, [*pointers, f"ptr noalias {OUT}", f"ptr noalias {SCRATCH}"])
    recipe = expanded(recipe)
    scratch = 0
    if isinstance(recipe, Map):
        _write_map(writer, operation, recipe, inputs)
    elif isinstance(recipe, Reduce):
        scratch = _Reduction(writer, operation, recipe, inputs).write()
    else:
        raise UnsupportedError(
            f"llvm: {operation}: the loop form {type(recipe).__name__} cannot be emitted; run it "
            "on the reference back end"
        )
    return Kernel(writer.text(), scratch)


def _nest(
    writer: FunctionWriter, space: Shape, body: Callable[[Indices], None], outer: Indices = ()
) -> None:
    """One loop per axis, the last one innermost."""
    if len(outer) == len(space):
        body(outer)
        return

    def inner(index: str, _: list[str]) -> list[str]:
        _nest(writer, space, body, (*outer, index))
        return []

    writer.loop(space[len(outer)], inner)


def _write_map(writer: FunctionWriter, operation: str, recipe: Map, inputs: Sequence[Type]) -> None:
    def element(indices: Indices) -> None:
        value = Body(writer, inputs, indices, operation).emit(recipe.body)
        offset = flat_offset(writer, indices, recipe.space)
        writer.store(recipe.body.dtype, value, OUT, offset)

    _nest(writer, recipe.space, element)


class _Reduction:
    """Emits a `Reduce`."""

    def __init__(
        self, writer: FunctionWriter, operation: str, recipe: Reduce, inputs: Sequence[Type]
    ) -> None:
        self._writer = writer
        self._operation = operation
        self._recipe = recipe
        self._inputs = inputs
        self._dtype = recipe.body.dtype
        self._kind = REGISTER[self._dtype]
        self._count = shapes.size_of(recipe.over)
        self._blocks = -(-self._count // BLOCK) if recipe.order == "lanes" else 1

    def write(self) -> int:
        """Emit everything; the scratch memory it needs, in bytes."""
        _nest(self._writer, self._recipe.space, self._output)
        return self._blocks * self._dtype.itemsize if self._blocks > 1 else 0

    def _output(self, outer: Indices) -> None:
        identity = literal(self._recipe.identity, self._dtype)
        if self._count == 0:
            total = identity
        elif self._recipe.order == "ascending":
            total = self._ascending(outer, identity)
        elif self._blocks == 1:
            total = self._block(outer, "0", self._count)
        else:
            total = self._all_blocks(outer)
        offset = flat_offset(self._writer, outer, self._recipe.space)
        self._writer.store(self._dtype, total, OUT, offset)

    def _combine(self, a: str, b: str) -> str:
        return primitive(self._writer, self._operation, self._recipe.combine, self._dtype, a, b)

    def _element(self, outer: Indices, number: str) -> str:
        """The body at one reduced element, counted row-major."""
        over = self._recipe.over
        inner = [number]
        if len(over) != 1:
            inner = []
            for stride, size in zip(shapes.row_major_strides(over), over, strict=True):
                quotient = self._writer.let(f"udiv i64 {number}, {stride}")
                inner.append(self._writer.let(f"urem i64 {quotient}, {size}"))
        body = Body(self._writer, self._inputs, (*outer, *inner), self._operation)
        return body.emit(self._recipe.body)

    def _ascending(self, outer: Indices, identity: str) -> str:
        def step(k: str, total: list[str]) -> list[str]:
            return [self._combine(total[0], self._element(outer, k))]

        return self._writer.loop(self._count, step, [(self._kind, identity)])[0]

    def _lane(self, outer: Indices, start: str, number: int) -> str:
        return self._element(outer, self._writer.let(f"add i64 {start}, {number}"))

    def _block(self, outer: Indices, start: str, length: int) -> str:
        """Reduce one block: element i goes to lane i % 16, then a balanced tree over lanes."""
        steps, rest = divmod(length, LANES)
        lanes = [self._lane(outer, start, i) for i in range(min(length, LANES))]

        def step(index: str, values: list[str]) -> list[str]:
            offset = self._writer.let(f"mul i64 {index}, {LANES}")
            offset = self._writer.let(f"add i64 {offset}, {start}")
            return [
                self._combine(value, self._lane(outer, offset, LANES + i))
                for i, value in enumerate(values)
            ]

        if steps:
            lanes = self._writer.loop(steps - 1, step, [(self._kind, lane) for lane in lanes])
            for i in range(rest):
                last = self._lane(outer, start, steps * LANES + i)
                lanes[i] = self._combine(lanes[i], last)
        half = LANES // 2
        while half:
            pairs = [self._combine(a, b) for a, b in zip(lanes, lanes[half:], strict=False)]
            lanes = [*pairs, *lanes[len(pairs) : half]]
            half //= 2
        return lanes[0]

    def _all_blocks(self, outer: Indices) -> str:
        """Reduce block by block into scratch memory, then a balanced tree over blocks."""
        w, dtype = self._writer, self._dtype
        full, tail = divmod(self._count, BLOCK)

        def block(number: str, _: list[str]) -> list[str]:
            start = w.let(f"mul i64 {number}, {BLOCK}")
            w.store(dtype, self._block(outer, start, BLOCK), SCRATCH, number)
            return []

        w.loop(full, block)
        if tail:
            w.store(dtype, self._block(outer, str(full * BLOCK), tail), SCRATCH, str(full))
        count = self._blocks
        while count > 1:
            half = (count + 1) // 2

            def merge(number: str, _: list[str], half: int = half) -> list[str]:
                other = w.load(dtype, SCRATCH, w.let(f"add i64 {number}, {half}"))
                w.store(
                    dtype, self._combine(w.load(dtype, SCRATCH, number), other), SCRATCH, number
                )
                return []

            w.loop(count - half, merge)
            count = half
        return w.load(dtype, SCRATCH, "0")
