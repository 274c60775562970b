"""Executes a recipe with NumPy: every loop index at once for maps, one step at a time for sums.

It shares nothing with the references of the operations, so that each checks the other.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dilim.ops.primitives import PRIMITIVES, Expr, converted
from dilim.ops.recipe import (
    BLOCK,
    LANES,
    ArgReduce,
    Blocks,
    Map,
    Pick,
    Recipe,
    Reduce,
    Scan,
    Scatter,
    Sort,
)
from dilim.shapes import Shape

Arrays = Sequence[np.ndarray]


class CheckFailed(Exception):
    """A `check` of a recipe did not hold.

    Attributes:
        number: of the check.
        value: the first value, in row-major order, for which it did not hold.
    """

    def __init__(self, number: int, value: int) -> None:
        super().__init__(f"check {number} failed for {value}")
        self.number = number
        self.value = value


def interpret(recipe: Recipe, inputs: Arrays) -> np.ndarray:
    """Run a recipe on NumPy inputs (Python numbers as 0-d arrays of the right dtype).

    Raises:
        CheckFailed: a check of the recipe does not hold.
    """
    with np.errstate(all="ignore"):
        return _FORMS[type(recipe)](recipe, inputs)


# --- expressions ----------------------------------------------------------------------------


def evaluate(expr: Expr, inputs: Arrays, indices: Arrays, memo: dict[int, Any]) -> Any:
    """The value of ``expr`` for arrays of loop indices; shared parts are computed once.

    Results of reductions that it refers to must be in ``memo`` under their `reduced_key`.
    """
    key = reduced_key(expr.value) if expr.op == "reduced" else id(expr)
    if key not in memo:
        memo[key] = _evaluate(expr, inputs, indices, memo)
    return memo[key]


def reduced_key(number: int) -> int:
    """Where `evaluate` finds the result of a reduction: below zero, where no object lives."""
    return -1 - number


def _evaluate(expr: Expr, inputs: Arrays, indices: Arrays, memo: dict[int, Any]) -> Any:
    if expr.op == "constant":
        return np.asarray(expr.value).astype(expr.dtype.numpy)
    if expr.op == "index":
        return indices[expr.value]
    operands = [evaluate(arg, inputs, indices, memo) for arg in expr.args]
    if expr.op == "load":
        return _load(expr, inputs[expr.value], operands)
    if expr.op == "check":
        return _check(expr.value, *operands)
    if expr.op == "cast":
        return converted(np.asarray(operands[0]), expr.dtype)
    if expr.op == "bitcast":
        return np.asarray(operands[0]).view(expr.dtype.numpy)
    result = np.asarray(PRIMITIVES[expr.op].compute(*operands))
    if result.dtype != expr.dtype.numpy:
        raise TypeError(
            f"primitive {expr.op}: expected {expr.dtype.name}, computed {result.dtype.name} from "
            f"{[str(np.asarray(x).dtype) for x in operands]}"
        )
    return result


def _check(number: int, ok: Any, value: Any) -> Any:
    bad, values = np.broadcast_arrays(np.logical_not(ok), value)
    if bad.any():
        raise CheckFailed(number, int(values[bad].flat[0]))
    return value


def _load(expr: Expr, array: np.ndarray, operands: list[Any]) -> Any:
    if not expr.guarded:
        return array[tuple(operands)]
    guard, *index = operands
    if array.size == 0:
        return np.zeros(np.shape(guard), array.dtype)
    safe = (np.where(guard, position, 0) for position in index)
    return np.where(guard, array[tuple(safe)], np.zeros((), array.dtype))


@functools.lru_cache(maxsize=256)
def _grid(space: Shape) -> tuple[np.ndarray, ...]:
    """The loop indices of a space; nobody may write into them."""
    grid = np.indices(space, dtype=np.int64, sparse=True) if space else ()
    for indices in grid:
        indices.flags.writeable = False
    return tuple(grid)


def _spread(value: Any, space: Shape, expr: Expr) -> np.ndarray:
    return np.array(np.broadcast_to(value, space), expr.dtype.numpy)


# --- loop forms -----------------------------------------------------------------------------


def _map(recipe: Map, inputs: Arrays) -> np.ndarray:
    value = evaluate(recipe.body, inputs, _grid(recipe.space), {})
    return _spread(value, recipe.space, recipe.body)


def _element(recipe: Reduce | ArgReduce, inputs: Arrays) -> Callable[[int], np.ndarray]:
    """The function r -> body at the r-th reduced element, over the whole output space."""
    grid = _grid(recipe.space)

    def at(number: int) -> np.ndarray:
        inner = [np.asarray(i, np.int64) for i in np.unravel_index(number, recipe.over)]
        value = evaluate(recipe.body, inputs, [*grid, *inner], {})
        return _spread(value, recipe.space, recipe.body)

    return at


def _balanced(combine: Callable[..., Any], parts: list[np.ndarray]) -> np.ndarray:
    while len(parts) > 1:
        half = (len(parts) + 1) // 2
        tail = parts[half:]
        parts = [combine(parts[i], tail[i]) if i < len(tail) else parts[i] for i in range(half)]
    return parts[0]


def _reduce(recipe: Reduce, inputs: Arrays) -> np.ndarray:
    combine = PRIMITIVES[recipe.combine].compute
    dtype = recipe.body.dtype.numpy
    count = math.prod(recipe.over)
    element = _element(recipe, inputs)
    empty = np.full(recipe.space, recipe.identity, dtype)
    if recipe.order == "ascending":
        total = empty
        for number in range(count):
            total = np.asarray(combine(total, element(number)), dtype)
        return total
    blocks: list[np.ndarray] = []
    for start in range(0, count, BLOCK):
        lanes: list[np.ndarray | None] = [None] * LANES
        for number in range(start, min(start + BLOCK, count)):
            lane = lanes[(number - start) % LANES]
            value = element(number)
            lanes[(number - start) % LANES] = value if lane is None else combine(lane, value)
        blocks.append(_tree_of_lanes(combine, lanes))
    return np.asarray(_balanced(combine, blocks) if blocks else empty, dtype)


def _tree_of_lanes(combine: Callable[..., Any], lanes: list[np.ndarray | None]) -> np.ndarray:
    """A lane without elements adds nothing: its partner passes through."""
    while len(lanes) > 1:
        half = len(lanes) // 2
        merged: list[np.ndarray | None] = []
        for left, right in zip(lanes[:half], lanes[half:], strict=True):
            merged.append(left if right is None else combine(left, right))
        lanes = merged
    if lanes[0] is None:
        raise RuntimeError("a block without elements")
    return lanes[0]


def _arg_reduce(recipe: ArgReduce, inputs: Arrays) -> np.ndarray:
    element = _element(recipe, inputs)
    best = element(0)
    where = np.zeros(recipe.space, np.int64)
    better = np.greater if recipe.largest else np.less
    for number in range(1, math.prod(recipe.over)):
        value = element(number)
        wins = better(value, best) | (np.not_equal(value, value) & np.equal(best, best))
        best = np.where(wins, value, best)
        where = np.where(wins, number, where)
    return np.asarray(where, np.int64)


def _scatter(recipe: Scatter, inputs: Arrays) -> np.ndarray:
    dtype = recipe.body.dtype.numpy
    if recipe.base is None:
        out = np.zeros(recipe.shape, dtype)
    else:
        out = np.array(inputs[recipe.base]).reshape(recipe.shape)
    combine: Callable[..., Any] = lambda old, new: new  # noqa: E731
    if recipe.combine:
        combine = PRIMITIVES[recipe.combine].compute
    targets = [_map(Map(recipe.space, part), inputs) for part in recipe.target]
    values = _map(Map(recipe.space, recipe.body), inputs)
    for position in np.ndindex(recipe.space):
        target = tuple([int(part[position]) for part in targets])
        out[target] = combine(out[target], values[position])
    return out if recipe.base is None else out.reshape(inputs[recipe.base].shape)


def _scan(recipe: Scan, inputs: Arrays) -> np.ndarray:
    out = _map(Map(recipe.space, recipe.body), inputs)
    combine = PRIMITIVES[recipe.combine].compute
    rows = np.moveaxis(out, recipe.axis, 0)
    for number in range(1, len(rows)):
        rows[number] = combine(rows[number - 1], rows[number])
    return out


def _blocks(recipe: Blocks, inputs: Arrays) -> np.ndarray:
    dtype = recipe.body.dtype.numpy
    count, size = math.prod(recipe.space), len(recipe.parts)
    blocks = -(-count // size)
    memo: dict[int, Any] = {}
    out = np.empty((blocks, size), dtype)
    for number, part in enumerate(recipe.parts):
        out[:, number] = evaluate(part, inputs, _grid((blocks,)), memo)
    return out.reshape(-1)[:count].reshape(recipe.space)


def _sort(recipe: Sort, inputs: Arrays) -> np.ndarray:
    keys = _map(Map(recipe.space, recipe.body), inputs)
    rows = np.moveaxis(keys, recipe.axis, -1)
    out = np.empty(rows.shape, np.int64)
    for place in np.ndindex(rows.shape[:-1]):
        row = rows[place].tolist()
        out[place] = sorted(range(len(row)), key=row.__getitem__)
    return np.ascontiguousarray(np.moveaxis(out, -1, recipe.axis))


def _pick(recipe: Pick, inputs: Arrays) -> np.ndarray:
    grid = _grid(recipe.space)
    steps = [np.asarray(k, np.int64) for k in range(recipe.count)]

    def at(expr: Expr, memo: dict[int, Any], *inner: np.ndarray) -> np.ndarray:
        indices = [*grid, *inner]
        return _spread(evaluate(expr, inputs, indices, memo), recipe.space, expr)

    top = functools.reduce(np.maximum, [at(recipe.score, {}, k) for k in steps])
    sums: list[np.ndarray] = []
    for k in steps:
        weight = at(recipe.body, {reduced_key(0): top}, k)
        sums.append(sums[-1] + weight if sums else weight)
    limit = at(recipe.fraction, {reduced_key(0): top}) * sums[-1]
    return np.asarray(sum(np.asarray(total <= limit, np.int64) for total in sums), np.int64)


_FORMS: dict[type[Any], Callable[[Any, Arrays], np.ndarray]] = {
    Map: _map,
    Blocks: _blocks,
    Reduce: _reduce,
    ArgReduce: _arg_reduce,
    Scatter: _scatter,
    Scan: _scan,
    Sort: _sort,
    Pick: _pick,
}
