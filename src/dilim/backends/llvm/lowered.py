"""A loop nest ready to be emitted: lowered expressions, merged axes, vector lengths."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Final

from dilim import dtypes, shapes
from dilim.backends.llvm.boxes import Range
from dilim.backends.llvm.values import Lanes
from dilim.ir.types import Type
from dilim.ops.affine import Affine
from dilim.ops.lowering import Lowering
from dilim.ops.nest import Nest, Reduction
from dilim.ops.primitives import Expr

NOWHERE: Final = Affine((), 0)
LEAVES = frozenset({"constant", "index", "load", "check", "reduced", "bitcast"})


@dataclass(frozen=True, slots=True)
class LoweredReduction:
    """A reduction with a lowered body.

    Attributes:
        source: with the lowered body.
        leaf: the expression that stands for the result.
        axes: the reduced axes that remain, outermost first.
        level: after how many of the nest's axes it can be computed.
        refers: numbers of the reductions in its body.
    """

    source: Reduction
    leaf: Expr
    axes: tuple[int, ...]
    level: int
    refers: frozenset[int]


@dataclass(frozen=True, slots=True)
class LoweredNest:
    """A nest with lowered expressions and as few loop axes as possible.

    Attributes:
        lowering: knows the addresses.
        sizes: of every axis number, merged ones included.
        axes: the loop axes of the space, outermost first, without those of size 1.
        reductions: in order.
        outputs: lowered.
        place: the position of the element in every result.
        parts: every expression that is emitted.
    """

    lowering: Lowering
    sizes: dict[int, int]
    axes: tuple[int, ...]
    reductions: tuple[LoweredReduction, ...]
    outputs: tuple[Expr, ...]
    place: Affine
    parts: tuple[Expr, ...]

    @property
    def size(self) -> int:
        """How many elements every result has."""
        return math.prod(self.sizes[axis] for axis in self.axes)


def needed(lowering: Lowering, roots: Iterable[Expr]) -> list[Expr]:
    """The expressions whose values are emitted for the roots; indices inside addresses are not."""
    seen: dict[Expr, None] = {}
    stack = list(roots)
    while stack:
        expr = stack.pop()
        if expr in seen:
            continue
        seen[expr] = None
        if expr.op == "load":
            terms = lowering.addresses[expr].terms
            stack += [term for term, _ in terms if term.op != "index"]
            if expr.guarded:
                stack.append(expr.args[0])
        else:
            stack += expr.args
    return list(seen)


def lower_nest(
    nest: Nest, inputs: Sequence[Type], ranges: Sequence[Range] | None = None
) -> LoweredNest:
    """Lower a nest over inputs of these types, or the part of it in some ranges."""
    rank = len(nest.space)
    sizes = dict(enumerate(nest.space))
    moved: dict[int, tuple[int, int]] = {}
    if ranges is not None:
        sizes = {axis: part.count for axis, part in enumerate(ranges)}
        moved = {axis: (part.start, part.step) for axis, part in enumerate(ranges)}
    for reduction in nest.reductions:
        sizes.update(enumerate(reduction.over, reduction.first))
    lowering = Lowering(
        [sizes.get(axis, 1) for axis in range(max(sizes, default=-1) + 1)], inputs, moved
    )
    bodies = [lowering.lower(reduction.body) for reduction in nest.reductions]
    outputs = tuple(lowering.lower(output) for output in nest.outputs)
    checks = [lowering.lower(check) for check in nest.checks]
    parts = needed(lowering, [*bodies, *outputs, *checks])
    indices = [lowering.index(axis) for axis in range(rank)]
    place = lowering.interner.address(indices, nest.space)
    axes = _merge(lowering, parts, sizes, [a for a in range(rank) if sizes[a] != 1], place)
    merged: dict[int, list[int]] = {}
    reductions: list[LoweredReduction] = []
    depths: list[int] = []
    for number, (reduction, body) in enumerate(zip(nest.reductions, bodies, strict=True)):
        first = reduction.first
        if first not in merged:
            inner = [a for a in range(first, first + len(reduction.over)) if sizes[a] != 1]
            merged[first] = _merge(lowering, parts, sizes, inner)
        own = needed(lowering, [body])
        refers = frozenset(part.value for part in own if part.op == "reduced")
        used = axes_used(lowering, own)
        level = max((axes.index(axis) + 1 for axis in used if axis in axes), default=0)
        level = max([level, *(depths[k] for k in refers)])
        depths.append(level)
        leaf = lowering.lower(Expr("reduced", (), body.dtype, number))
        reductions.append(
            LoweredReduction(
                replace(reduction, body=body), leaf, tuple(merged[first]), level, refers
            )
        )
    place = Affine(tuple(t for t in place.terms if t[0].value in axes), place.constant)
    return LoweredNest(
        lowering, sizes, tuple(axes), tuple(reductions), outputs, place, tuple(parts)
    )


def axes_used(lowering: Lowering, parts: Iterable[Expr]) -> set[int]:
    """The axes that values or addresses depend on."""
    used = {part.value for part in parts if part.op == "index"}
    for part in parts:
        if part.op == "load":
            terms = lowering.addresses[part].terms
            used |= {term.value for term, _ in terms if term.op == "index"}
    return used


def _merge(
    lowering: Lowering,
    parts: Sequence[Expr],
    sizes: dict[int, int],
    axes: list[int],
    place: Affine = NOWHERE,
) -> list[int]:
    """Merge neighbours that all loads and the place run through as one; the axes that remain.

    The inner axis of two takes the size of both, the outer one goes.
    """
    fixed = {part.value for part in parts if part.op == "index"}
    loads = [part for part in parts if part.op == "load"]
    remaining: list[int] = []
    for axis in axes:
        if remaining and axis not in fixed and remaining[-1] not in fixed:
            outer, size = remaining[-1], sizes[axis]
            forms = [place, *(lowering.addresses[x] for x in loads)]
            if all(f.coefficient(outer) == size * f.coefficient(axis) for f in forms):
                for x in loads:
                    lowering.addresses[x] = _without(lowering.addresses[x], outer)
                sizes[axis] = size * sizes[outer]
                remaining.pop()
        remaining.append(axis)
    return remaining


def _without(form: Affine, axis: int) -> Affine:
    terms = tuple((t, c) for t, c in form.terms if t.op != "index" or t.value != axis)
    return Affine(terms, form.constant)


# --- vectors ----------------------------------------------------------------------------------


def register_lanes(parts: Iterable[Expr], vector_bytes: int) -> int:
    """Lanes of one register: of four-byte elements, unless there are only wider ones."""
    narrow = any(
        part.dtype.itemsize <= 4 and part.dtype is not dtypes.bool_
        for part in parts
        if part.op not in ("index", "constant")
    )
    return vector_bytes // (4 if narrow else 8)


def weight_of(parts: Iterable[Expr]) -> int:
    """About how many instructions one vector of elements takes."""
    return sum(part.op not in LEAVES for part in parts)


def pieces(size: int, lanes: int, register: int) -> tuple[int, list[tuple[int, int, int]]]:
    """How an axis is cut into vectors.

    Returns:
        The end of the part that is a whole number of ``lanes``, and the rest as (start, lanes,
        count): powers of two, the last of which may stick out if it is no longer than a register.
    """
    end = size - size % lanes
    rest: list[tuple[int, int, int]] = []
    start = end
    while start < size:
        left = size - start
        width = 1 << (left.bit_length() - 1)
        if width < left and width < register:
            width *= 2
        rest.append((start, width, min(width, left)))
        start += width
    return end, rest


def lanes_at(axis: int, lanes: int, count: int) -> Lanes | None:
    """The lanes of a vector along an axis; none for a single element."""
    return Lanes(axis, lanes, count) if lanes > 1 else None


def row_major(shape: Sequence[int]) -> tuple[int, ...]:
    """Elements to step per axis."""
    return shapes.row_major_strides(tuple(shape))
