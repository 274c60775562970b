"""Reductions, in the fixed order of summation that every back end keeps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dilim import dtypes, shapes
from dilim.dtypes import DType
from dilim.errors import ShapeError
from dilim.ir.types import Type, Typed
from dilim.ops.build import draw, require, require_axes
from dilim.ops.opdef import OpDef, Rule, Sample
from dilim.ops.primitives import Expr, load, loop_index
from dilim.ops.recipe import ArgReduce, Reduce
from dilim.ops.summation import lane_reduce
from dilim.shapes import Shape

# --- definitions ----------------------------------------------------------------------------


def _samples(smooth: bool, low: float = -2.0, high: float = 2.0) -> Callable[..., Iterator[Sample]]:
    def samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
        def case(x: np.ndarray, axis: Shape, keepdims: bool = False) -> Sample:
            return Sample((x,), {"axis": axis, "keepdims": keepdims}, smooth)

        def random(*shape: int) -> np.ndarray:
            return draw(rng, shape, dtype, low, high)

        yield case(random(), ())
        yield case(random(5), (0,))
        yield case(random(37), (0,), True)
        yield case(random(1, 3), (0,))
        yield case(random(4, 3).T, (1,))
        yield case(random(3, 2, 4), (0, 2), True)
        yield case(random(6, 8)[::2, ::-1], (0, 1))
        yield case(random(2, 0, 3), (2,))

    return samples


def _infer(name: str, allowed: tuple[DType, ...], wanted: str, needs_element: bool = False) -> Any:
    def infer(x: Typed, *, axis: Shape, keepdims: bool) -> tuple[Shape, DType]:
        if x.dtype not in allowed:
            require(name, x, allowed, wanted)
        require_axes(name, axis, len(x.shape))
        if needs_element and any(x.shape[a] == 0 for a in axis):
            raise ShapeError(f"{name}: a tensor of shape {x.shape} has no elements along {axis}")
        return shapes.reduced(x.shape, axis, keepdims), x.dtype

    return infer


def _source(x: Type, axis: Shape, space: Shape, keepdims: bool) -> tuple[Shape, Expr]:
    """The reduced sizes, and the load of x at (output indices, reduction indices)."""
    over = tuple(x.shape[a] for a in axis)
    kept = iter(range(len(space)))
    index: list[Expr] = []
    for dimension in range(len(x.shape)):
        if dimension in axis:
            if keepdims:
                next(kept)
            index.append(loop_index(len(space) + axis.index(dimension)))
        else:
            index.append(loop_index(next(kept)))
    return over, load(0, x.dtype, *index)


def _recipe(combine: str, identity: Callable[[DType], Any]) -> Any:
    def recipe(x: Type, *, axis: Shape, keepdims: bool) -> Reduce:
        space = shapes.reduced(x.shape, axis, keepdims)
        over, body = _source(x, axis, space, keepdims)
        return Reduce(space, over, body, combine, identity(x.dtype))

    return recipe


def _reduction(
    name: str,
    doc: str,
    combine: np.ufunc,
    primitive: str,
    identity: Callable[[DType], Any],
    formula: Callable[..., Any],
    derivative: Rule | None = None,
    *,
    allowed: tuple[DType, ...] = dtypes.NUMERIC,
    wanted: str = "numeric",
    needs_element: bool = False,
    smooth: bool = True,
    low: float = -2.0,
) -> OpDef:
    def reference(x: np.ndarray, *, axis: Shape, keepdims: bool) -> np.ndarray:
        result = lane_reduce(combine, identity(dtypes.from_numpy(x.dtype)), x, axis)
        return result.reshape(shapes.reduced(x.shape, axis, keepdims))

    def kernel(x: np.ndarray, *, axis: Shape, keepdims: bool) -> np.ndarray:
        if x.dtype.kind == "f" and primitive in ("add", "multiply"):
            return reference(x, axis=axis, keepdims=keepdims)
        result = np.asarray(combine.reduce(x, axis=axis, keepdims=keepdims, dtype=x.dtype))
        if x.dtype.kind == "f" and not result.all():  # of 0.0 and -0.0 the order chooses one
            return reference(x, axis=axis, keepdims=keepdims)
        return result

    return OpDef(
        name=name,
        doc=doc,
        infer=_infer(name, allowed, wanted, needs_element),
        reference=reference,
        samples=_samples(smooth, low),
        sample_dtypes=allowed,
        derivative=(derivative,) if derivative else (),
        recipe=_recipe(primitive, identity),
        formula=formula,
        kernel=kernel,
    )


def _restore(b: Any, g: Any, x: Any, axis: Shape, keepdims: bool) -> Any:
    """A reduced value stretched back over the shape of ``x``."""
    if not keepdims and g.shape:
        g = b.reshape(g, shape=shapes.reduced(x.shape, axis, True))
    return b.expand(g, shape=x.shape)


def _sum_rule(b: Any, g: Any, out: Any, x: Any, *, axis: Shape, keepdims: bool) -> Any:
    return _restore(b, g, x, axis, keepdims)


def _prod_rule(b: Any, g: Any, out: Any, x: Any, *, axis: Shape, keepdims: bool) -> Any:
    """g times the product of all other elements, without division, so that zeros are right."""
    kept = tuple(a for a in range(len(x.shape)) if a not in axis)
    order = (*kept, *axis)
    moved = b.permute(x, order=order)
    count = math.prod(x.shape[a] for a in axis)
    outer = tuple(x.shape[a] for a in kept)
    rows = b.reshape(moved, shape=(*outer, count))
    last = len(outer)
    before = _exclusive_product(b, rows, last)
    after = b.flip(_exclusive_product(b, b.flip(rows, axis=(last,)), last), axis=(last,))
    others = b.reshape(b.multiply(before, after), shape=moved.shape)
    inverse = tuple(order.index(a) for a in range(len(order)))
    others = b.permute(others, order=inverse)
    return b.multiply(_restore(b, g, x, axis, keepdims), others)


def _exclusive_product(b: Any, x: Any, axis: int) -> Any:
    """Products of all earlier elements along the last axis; 1 for the first."""
    size = x.shape[axis]
    if size == 0:
        return x
    one = b.full(shape=(*x.shape[:axis], 1), value=1.0, dtype=x.dtype)
    index = (*((0, n, 1) for n in x.shape[:axis]), (0, size - 1, 1))
    return b.cumulative_prod(b.concat(one, b.slice(x, index=index), axis=axis), axis=axis)


def _extremum_rule(b: Any, g: Any, out: Any, x: Any, *, axis: Shape, keepdims: bool) -> Any:
    """A tie shares the gradient equally."""
    best = b.equal(x, _restore(b, out, x, axis, keepdims))
    hits = b.astype(best, dtype=x.dtype)
    count = b.sum(hits, axis=axis, keepdims=True)
    if not keepdims:
        g = b.reshape(g, shape=count.shape)
    return b.where(best, b.expand(b.divide(g, count), shape=x.shape), 0.0)


def _lowest(dtype: DType) -> Any:
    return -math.inf if dtype.is_floating else int(np.iinfo(dtype.numpy).min)


def _highest(dtype: DType) -> Any:
    return math.inf if dtype.is_floating else int(np.iinfo(dtype.numpy).max)


sum_ = _reduction(
    "sum",
    "Sum over axes; 0 for none.",
    np.add,
    "add",
    lambda dtype: 0,
    lambda x, axis, keepdims: np.sum(x, axis=axis, keepdims=keepdims),
    _sum_rule,
)
prod = _reduction(
    "prod",
    "Product over axes; 1 for none.",
    np.multiply,
    "multiply",
    lambda dtype: 1,
    lambda x, axis, keepdims: np.prod(x, axis=axis, keepdims=keepdims),
    _prod_rule,
    low=0.2,
)
max_ = _reduction(
    "max",
    "Largest element over axes, NaN if there is one; a tie shares the gradient equally.",
    np.maximum,
    "maximum",
    _lowest,
    lambda x, axis, keepdims: np.max(x, axis=axis, keepdims=keepdims),
    _extremum_rule,
    needs_element=True,
)
min_ = _reduction(
    "min",
    "Smallest element over axes, NaN if there is one; a tie shares the gradient equally.",
    np.minimum,
    "minimum",
    _highest,
    lambda x, axis, keepdims: np.min(x, axis=axis, keepdims=keepdims),
    _extremum_rule,
    needs_element=True,
)
any_ = _reduction(
    "any",
    "True where some element over axes is True.",
    np.logical_or,
    "bit_or",
    lambda dtype: False,
    lambda x, axis, keepdims: np.any(x, axis=axis, keepdims=keepdims),
    allowed=(dtypes.bool_,),
    wanted="bool",
)
all_ = _reduction(
    "all",
    "True where every element over axes is True.",
    np.logical_and,
    "bit_and",
    lambda dtype: True,
    lambda x, axis, keepdims: np.all(x, axis=axis, keepdims=keepdims),
    allowed=(dtypes.bool_,),
    wanted="bool",
)


# --- positions of the best ------------------------------------------------------------------


def _position(name: str, doc: str, function: Callable[..., Any], largest: bool) -> OpDef:
    def infer(x: Typed, *, axis: Shape, keepdims: bool) -> tuple[Shape, DType]:
        shape, _ = _infer(name, dtypes.NUMERIC, "numeric", True)(x, axis=axis, keepdims=keepdims)
        return shape, dtypes.INDEX

    def reference(x: np.ndarray, *, axis: Shape, keepdims: bool) -> np.ndarray:
        kept = tuple(a for a in range(x.ndim) if a not in axis)
        rows = np.transpose(x, (*kept, *axis))
        count = math.prod(x.shape[a] for a in axis)
        rows = rows.reshape((*rows.shape[: len(kept)], count))
        result = np.asarray(function(rows, axis=-1), np.int64)
        return result.reshape(shapes.reduced(x.shape, axis, keepdims))

    def recipe(x: Type, *, axis: Shape, keepdims: bool) -> ArgReduce:
        space = shapes.reduced(x.shape, axis, keepdims)
        over, body = _source(x, axis, space, keepdims)
        return ArgReduce(space, over, body, largest)

    def samples(rng: np.random.Generator, dtype: DType) -> Iterator[Sample]:
        for sample in _samples(False)(rng, dtype):
            if all(sample.inputs[0].shape[a] for a in sample.params["axis"]):
                yield sample

    def formula(x: np.ndarray, axis: Shape, keepdims: bool) -> Any:
        best = (np.max if largest else np.min)(x, axis=axis, keepdims=True)
        position = np.zeros(x.shape, np.int64)
        for number, a in enumerate(axis):
            stride = math.prod(x.shape[other] for other in axis[number + 1 :])
            steps = np.arange(x.shape[a]).reshape([-1 if d == a else 1 for d in range(x.ndim)])
            position = position + stride * steps
        return np.min(np.where(x == best, position, x.size), axis=axis, keepdims=keepdims)

    return OpDef(
        name=name,
        doc=doc,
        infer=infer,
        reference=reference,
        samples=samples,
        sample_dtypes=dtypes.NUMERIC,
        recipe=recipe,
        formula=formula,
    )


argmax = _position("argmax", "Position of the first largest element; NaN wins.", np.argmax, True)
argmin = _position("argmin", "Position of the first smallest element; NaN wins.", np.argmin, False)

OPS = (
    sum_, prod, max_, min_, any_, all_, argmax, argmin,
)  # fmt: skip
