"""Recipes: how an operation is computed, as a loop form with a scalar body.

There are seven loop forms. ``Map`` covers elementwise operations, movement, gathers (a gather is a
map whose load index is itself loaded) and searches (a bisection, written out); ``Reduce`` covers
reductions and contractions.

Order of summation, on every target:

* ``order="lanes"``: the reduced elements, row-major over the reduced axes, are cut into blocks of
  4,096. In a block, element ``i`` goes to lane ``i % 16``; a lane adds its elements in order. The
  16 lanes, and then the blocks, are combined by a balanced tree (first half with second half).
* ``order="ascending"``: one accumulator per output, elements in order (contractions).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Literal

from dilim import shapes
from dilim.dtypes import DType
from dilim.ir.types import Type
from dilim.ops.primitives import Expr, cast, constant, load, loop_index
from dilim.shapes import Shape

LANES: Final = 16
BLOCK: Final = 4096


@dataclass(frozen=True, slots=True)
class Map:
    """``out[i] = body(i)`` for every ``i`` in ``space``."""

    space: Shape
    body: Expr


@dataclass(frozen=True, slots=True)
class Blocks(Map):
    """A map of which neighbours share work: ``out.flat[n b + k] = parts[k](b)``, n parts in all.

    ``b`` is loop axis 0 of the parts. The last block may stick out of ``space``. ``body`` says the
    same for one element on its own, for whoever has no use for blocks.
    """

    parts: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Reduce:
    """``out[i] = combine over r of body(i, r)``, beginning with ``identity``.

    Loop axes ``0 .. len(space) - 1`` run over the output, the following ones over ``over``.
    """

    space: Shape
    over: Shape
    body: Expr
    combine: str
    identity: Any
    order: Literal["lanes", "ascending"] = "lanes"


@dataclass(frozen=True, slots=True)
class ArgReduce:
    """``out[i]`` = the first position r (row-major over ``over``) of the best ``body(i, r)``.

    The best is the largest or the smallest; NaN is better than anything.
    """

    space: Shape
    over: Shape
    body: Expr
    largest: bool


@dataclass(frozen=True, slots=True)
class Scatter:
    """Start from input ``base``; for ``i`` in ``space`` in order ``out[target(i)] += body(i)``.

    ``combine`` is the primitive that takes the place of ``+``; None replaces what was there. A
    ``base`` of None means zeros of ``shape``. The targets may hold a `check`, which comes before
    all else, also where ``space`` has no elements; the body holds none.
    """

    space: Shape
    target: tuple[Expr, ...]
    body: Expr
    combine: str | None
    base: int | None
    shape: Shape


@dataclass(frozen=True, slots=True)
class Scan:
    """``out[.., j, ..] = combine(out[.., j - 1, ..], body(.., j, ..))`` along ``axis``."""

    space: Shape
    axis: int
    body: Expr
    combine: str


@dataclass(frozen=True, slots=True)
class Sort:
    """``out[.., j, ..]`` = the position along ``axis`` of the j-th smallest ``body``.

    The body is an integer; equal ones keep their order.
    """

    space: Shape
    axis: int
    body: Expr


@dataclass(frozen=True, slots=True)
class Pick:
    """``out[i]`` = how many running sums of ``body(i, k)`` are <= ``fraction(i)`` times the last.

    ``k`` ascends from 0 to ``count - 1``. ``Expr("reduced", (), dtype, 0)`` in the body and in the
    fraction is the largest ``score(i, k)``, NaN if there is one; of equal zeros either.
    """

    space: Shape
    count: int
    score: Expr
    body: Expr
    fraction: Expr


Recipe = Map | Reduce | ArgReduce | Scatter | Scan | Sort | Pick
RecipeRule = Callable[..., Recipe]


def aligned_load(number: int, value: Type, rank: int) -> Expr:
    """Load ``value`` broadcast to a space of ``rank`` axes."""
    offset = rank - len(value.shape)
    zero = constant(0, loop_index(0).dtype)
    index = (
        loop_index(offset + axis) if size != 1 else zero for axis, size in enumerate(value.shape)
    )
    return load(number, value.dtype, *index)


def elementwise(
    body: Callable[..., Expr], promote: Callable[..., DType] | None = None
) -> RecipeRule:
    """A recipe that applies ``body`` to aligned elements of all inputs.

    Args:
        body: from one `Expr` per input (and the parameters) to the result.
        promote: from the input types to a dtype that all loads are cast to before ``body``.
    """

    def recipe(*types: Type, **params: Any) -> Map:
        space = shapes.broadcast("recipe", *(value.shape for value in types))
        loads = [aligned_load(number, value, len(space)) for number, value in enumerate(types)]
        if promote is not None:
            common = promote(*types)
            loads = [cast(x, common) for x in loads]
        return Map(space, body(*loads, **params))

    return recipe


def flat_index(index: tuple[Expr, ...], shape: Shape) -> Expr:
    """Row-major position of a multi-index."""
    total = constant(0, loop_index(0).dtype)
    for position, stride in zip(index, shapes.row_major_strides(shape), strict=True):
        total = total + position * stride
    return total


def unravel(flat: Expr, shape: Shape) -> tuple[Expr, ...]:
    """Multi-index of a row-major position."""
    return tuple(
        (flat // stride) % size
        for stride, size in zip(shapes.row_major_strides(shape), shape, strict=True)
    )


def loop_indices(rank: int, start: int = 0) -> tuple[Expr, ...]:
    """The loop axes ``start .. start + rank - 1``."""
    return tuple(loop_index(start + axis) for axis in range(rank))
