"""Executes a loop nest with NumPy, one reduced element at a time: the meaning of `Nest`."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from dilim.backends.reference.interpreter import Arrays, evaluate, interpret, reduced_key
from dilim.ir.types import Type
from dilim.ops.expansions import EXPANSIONS, has_expansion
from dilim.ops.expressions import postorder
from dilim.ops.nest import Form, Nest, Reduction
from dilim.ops.primitives import PRIMITIVES, Expr
from dilim.ops.recipe import BLOCK, LANES

Combine = Callable[[Any, Any], Any]


def interpret_form(form: Form, inputs: Arrays, results: Sequence[Type]) -> list[np.ndarray]:
    """Run what `dilim.ops.nest.compose` gave; one array per result of the region.

    Args:
        form: a nest or another loop form.
        inputs: one array per input of the region.
        results: the types of the region's outputs.

    Raises:
        CheckFailed: a check does not hold.
    """
    if not isinstance(form, Nest):
        return [interpret(_expanded_form(form), inputs)]
    with np.errstate(all="ignore"):
        values = interpret_nest(expanded_nest(form), inputs)
    return [value.reshape(result.shape) for value, result in zip(values, results, strict=True)]


def expanded_nest(nest: Nest) -> Nest:
    """The nest with every primitive that has an expansion replaced by it."""
    done: dict[Expr, Expr] = {}
    bodies = [reduction.body for reduction in nest.reductions]
    roots = [_expanded(root, done) for root in (*bodies, *nest.outputs, *nest.checks)]
    first, last = len(bodies), len(bodies) + len(nest.outputs)
    reductions = tuple(
        replace(reduction, body=body)
        for reduction, body in zip(nest.reductions, roots, strict=False)
    )
    return Nest(nest.space, reductions, tuple(roots[first:last]), tuple(roots[last:]))


def _expanded_form(form: Any) -> Any:
    done: dict[Expr, Expr] = {}
    changes = {
        name: _expanded(value, done)
        for name in ("body", "score", "fraction")
        if isinstance(value := getattr(form, name, None), Expr)
    }
    return replace(form, **changes)


def _expanded(root: Expr, done: dict[Expr, Expr]) -> Expr:
    for part in postorder([root]):
        if part not in done:
            made = replace(part, args=tuple(done[arg] for arg in part.args))
            if has_expansion(made):
                arguments = {arg: arg for arg in made.args}
                made = _expanded(EXPANSIONS[made.op](*made.args), arguments)
            done[part] = made
    return done[root]


def interpret_nest(nest: Nest, inputs: Arrays) -> list[np.ndarray]:
    """One array of the nest's space per output."""
    totals: list[np.ndarray] = []
    for check in nest.checks:
        _evaluate(nest, check, inputs, _grid(nest), totals)
    for reduction in nest.reductions:
        totals.append(_reduce(nest, reduction, inputs, totals))
    grid = _grid(nest)
    return [_evaluate(nest, output, inputs, grid, totals) for output in nest.outputs]


def _grid(nest: Nest) -> list[np.ndarray]:
    return list(np.indices(nest.space, dtype=np.int64, sparse=True)) if nest.space else []


def _evaluate(
    nest: Nest, expr: Expr, inputs: Arrays, indices: list[np.ndarray], totals: list[np.ndarray]
) -> np.ndarray:
    memo: dict[int, Any] = {reduced_key(number): total for number, total in enumerate(totals)}
    value = evaluate(expr, inputs, indices, memo)
    return np.array(np.broadcast_to(value, nest.space), expr.dtype.numpy)


def _reduce(
    nest: Nest, reduction: Reduction, inputs: Arrays, totals: list[np.ndarray]
) -> np.ndarray:
    dtype = reduction.body.dtype.numpy
    padding = [np.asarray(0)] * (reduction.first - len(nest.space))

    def element(number: int) -> np.ndarray:
        inner = [np.asarray(i, np.int64) for i in np.unravel_index(number, reduction.over)]
        indices = [*_grid(nest), *padding, *inner]
        return _evaluate(nest, reduction.body, inputs, indices, totals)

    function = PRIMITIVES[reduction.combine].compute

    def combine(a: Any, b: Any) -> Any:
        return np.asarray(function(a, b), dtype)

    elements = [element(number) for number in range(math.prod(reduction.over))]
    empty = np.full(nest.space, reduction.identity, dtype)
    if reduction.order == "ascending":
        for value in elements:
            empty = combine(empty, value)
        return empty
    blocks = [
        _block(combine, elements[start : start + BLOCK]) for start in range(0, len(elements), BLOCK)
    ]
    return _tree(combine, blocks) if blocks else empty


def _block(combine: Combine, elements: list[np.ndarray]) -> np.ndarray:
    lanes = elements[:LANES]
    for number, value in enumerate(elements[LANES:]):
        lanes[number % LANES] = combine(lanes[number % LANES], value)
    return _tree(combine, lanes, LANES)


def _tree(combine: Combine, parts: list[np.ndarray], width: int = 0) -> np.ndarray:
    """First half with second half; a part without partner passes through."""
    width = width or len(parts)
    while len(parts) > 1:
        width = (width + 1) // 2
        pairs = [combine(a, b) for a, b in zip(parts, parts[width:], strict=False)]
        parts = [*pairs, *parts[len(pairs) : width]]
    return parts[0]
