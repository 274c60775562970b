"""Shared pieces of operation definitions: shape rules, samples, and constructors by family."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dilim import dtypes, shapes
from dilim.dtypes import DType
from dilim.errors import AxisError, DtypeError
from dilim.ir.types import Typed
from dilim.ops.opdef import InferRule, Kernel, OpDef, Rule, Sample
from dilim.ops.primitives import Expr
from dilim.ops.recipe import elementwise
from dilim.shapes import Shape

# --- shape and dtype rules ------------------------------------------------------------------


def require(operation: str, value: Typed, allowed: tuple[DType, ...], wanted: str) -> None:
    """Raise a DtypeError unless the dtype of ``value`` is one of ``allowed``."""
    if value.dtype not in allowed:
        raise DtypeError(
            f"{operation}: expected a {wanted} dtype, received {value.dtype.name}; "
            f"cast first, for example x.astype(dilim.{allowed[0].name})"
        )


def same_type(operation: str, allowed: tuple[DType, ...], wanted: str) -> InferRule:
    """Result has the shape and dtype of the only input."""

    def infer(x: Typed) -> tuple[Shape, DType]:
        if x.dtype not in allowed:
            require(operation, x, allowed, wanted)
        return x.shape, x.dtype

    return infer


def to_bool(operation: str, allowed: tuple[DType, ...], wanted: str) -> InferRule:
    """Result has the shape of the only input and dtype bool."""

    def infer(x: Typed) -> tuple[Shape, DType]:
        require(operation, x, allowed, wanted)
        return x.shape, dtypes.bool_

    return infer


def promoted(
    operation: str, allowed: tuple[DType, ...], wanted: str, result: DType | None = None
) -> InferRule:
    """Two inputs broadcast and promote; ``result`` replaces the promoted dtype."""

    def infer(x: Typed, y: Typed) -> tuple[Shape, DType]:
        a, b = x.dtype, y.dtype
        dtype = a if a is b else dtypes.promote(operation, a, b)
        if dtype not in allowed:
            require(operation, x if a not in allowed else y, allowed, wanted)
        shape = x.shape
        if shape != y.shape:
            shape = shapes.broadcast(operation, shape, y.shape)
        return shape, result or dtype

    return infer


def require_axes(operation: str, axes: Shape, rank: int) -> None:
    """Raise an AxisError unless ``axes`` are distinct, sorted numbers from 0 to rank - 1.

    Public functions normalize axes; this guards programs that are put together by hand.
    """
    before = -1
    for axis in axes:
        if not before < axis < rank:
            raise AxisError(
                f"{operation}: expected sorted axes of a tensor of {rank} dimensions, received "
                f"{axes}"
            )
        before = axis


# --- samples --------------------------------------------------------------------------------


def draw(
    rng: np.random.Generator, shape: Shape, dtype: DType, low: float = -2.0, high: float = 2.0
) -> np.ndarray:
    """Random numbers in [low, high) (floats) or in the overlap with the dtype (integers)."""
    if dtype is dtypes.bool_:
        return np.asarray(rng.random(shape) < 0.5)
    if dtype.is_floating:
        return np.asarray(rng.uniform(low, high, shape), dtype.numpy)
    floor = 0 if dtype.kind == "uint" else int(np.floor(low))
    return np.asarray(
        rng.integers(floor, max(int(high), floor + 1), shape, endpoint=True), dtype.numpy
    )


def layouts(
    rng: np.random.Generator, dtype: DType, low: float = -2.0, high: float = 2.0
) -> Iterator[np.ndarray]:
    """Scalar, vector, matrix, empty and size-1 arrays, and transposed, reversed and sliced ones."""
    for shape in ((), (5,), (3, 4), (0, 3), (1,), (2, 1, 3)):
        yield draw(rng, shape, dtype, low, high)
    yield draw(rng, (4, 3), dtype, low, high).T
    yield draw(rng, (5, 7), dtype, low, high)[::2, 1::3]
    yield draw(rng, (6,), dtype, low, high)[::-1]


def unary_samples(
    low: float = -2.0, high: float = 2.0, avoid: tuple[float, ...] = ()
) -> Callable[[np.random.Generator, DType], Iterator[Sample]]:
    """One array per layout; values nearer than 0.05 to a point of ``avoid`` are moved away."""

    def samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
        for x in layouts(rng, dtype, low, high):
            if dtype.is_floating:
                for kink in avoid:
                    near = np.abs(x - kink) < 0.05
                    x[...] = np.where(near, x + dtype.numpy.type(0.1), x)
            yield Sample((x,), {})

    return samples


def binary_samples(
    low: float = -2.0,
    high: float = 2.0,
    second: tuple[float, float] | None = None,
    smooth: bool = True,
) -> Callable[[np.random.Generator, DType], Iterator[Sample]]:
    """Pairs with equal, broadcast, transposed, sliced and scalar shapes."""
    low2, high2 = second or (low, high)

    def samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
        for x in layouts(rng, dtype, low, high):
            yield Sample((x, draw(rng, x.shape, dtype, low2, high2)), {}, smooth)
        for a, b in (((3, 1), (1, 4)), ((2, 3), (3,)), ((), (2, 2)), ((0, 2), (1, 2))):
            x, y = draw(rng, a, dtype, low, high), draw(rng, b, dtype, low2, high2)
            yield Sample((x, y), {}, smooth)
        x, y = draw(rng, (4, 3), dtype, low, high).T, draw(rng, (3, 8), dtype, low2, high2)[:, ::2]
        yield Sample((x, y), {}, smooth)

    return samples


# --- families -------------------------------------------------------------------------------


def unary(
    name: str,
    doc: str,
    reference: Kernel,
    body: Callable[[Expr], Expr],
    derivative: Rule | None = None,
    *,
    formula: Callable[..., Any] | None = None,
    infer: InferRule | None = None,
    allowed: tuple[DType, ...] = dtypes.FLOATING,
    wanted: str = "floating",
    low: float = -2.0,
    high: float = 2.0,
    avoid: tuple[float, ...] = (),
    tolerance: int = 0,
    kernel: Kernel | None = None,
) -> OpDef:
    """An elementwise operation of one input; see `OpDef` for the arguments."""
    return OpDef(
        name=name,
        doc=doc,
        infer=infer or same_type(name, allowed, wanted),
        reference=reference,
        samples=unary_samples(low, high, avoid),
        sample_dtypes=allowed,
        derivative=(derivative,) if derivative else (),
        recipe=elementwise(body),
        formula=formula,
        kernel=kernel,
        tolerance=tolerance,
    )


def binary(
    name: str,
    doc: str,
    reference: Kernel,
    body: Callable[[Expr, Expr], Expr],
    derivative: tuple[Rule | None, ...] = (),
    *,
    formula: Callable[..., Any] | None = None,
    allowed: tuple[DType, ...] = dtypes.NUMERIC,
    wanted: str = "numeric",
    result: DType | None = None,
    low: float = -2.0,
    high: float = 2.0,
    second: tuple[float, float] | None = None,
    smooth: bool = True,
    tolerance: int = 0,
    kernel: Kernel | None = None,
    failure: Callable[..., Exception] | None = None,
    failing: tuple[DType, ...] = dtypes.ALL,
) -> OpDef:
    """An elementwise operation of two inputs; see `OpDef` for the arguments."""

    def common(x: Typed, y: Typed) -> DType:
        return dtypes.promote(name, x.dtype, y.dtype)

    return OpDef(
        name=name,
        doc=doc,
        infer=promoted(name, allowed, wanted, result),
        reference=reference,
        samples=binary_samples(low, high, second, smooth),
        sample_dtypes=allowed,
        derivative=derivative,
        recipe=elementwise(body, common),
        formula=formula,
        kernel=kernel,
        failure=failure,
        failing=failing,
        tolerance=tolerance,
    )


def zero_like(b: Any, g: Any, out: Any, x: Any, *rest: Any, **params: Any) -> Any:
    """The derivative of piecewise constant functions: zero wherever it exists."""
    return b.full(shape=x.shape, value=0.0, dtype=x.dtype)
