"""Constant folding: what depends on constants alone is computed now.

A constant is a `full`: one number everywhere. An elementwise operation of constants gives one as
well, computed once by the operation's own recipe on NumPy scalars, so with the bits that every back
end gives. Reductions of small constants are computed by their reference, whose order is fixed.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dilim.ir.graph import Graph, Node, Value
from dilim.ops.expansions import expanded
from dilim.ops.primitives import PRIMITIVES, Expr, converted
from dilim.ops.recipe import Map
from dilim.ops.table import OPERATIONS
from dilim.passes.rewriting import Rewriter, simplify

LARGEST_REDUCED: Final = 65_536
"""Most elements of a constant that is reduced while compiling."""
_INEXACT: Final = frozenset(
    {"exp", "expm1", "log", "log1p", "sin", "cos", "tanh", "atan2", "pow", "erf", "sigmoid"}
)  # primitives that only an expansion gives the same bits everywhere
_EXTREMA: Final = frozenset({"maximum", "minimum"})  # of equal numbers the second, also of zeros
_REDUCTIONS: Final = frozenset({"sum", "prod", "max", "min", "any", "all"})
_MOVES: Final = frozenset({"reshape", "permute", "expand", "flip", "slice", "identity"})


def constant_folding(graph: Graph) -> Graph:
    """Replace operations on constants by constants."""
    return simplify(graph, _fold)


def _fold(rewriter: Rewriter, node: Node) -> Value | None:
    if node.op == "full" or not node.inputs:
        return None
    numbers = []
    for value in node.inputs:
        maker = rewriter.producers.get(value)
        if maker is None or maker.op != "full":
            return None
        numbers.append(maker.params["value"])
    result = node.results[0].type
    if node.op in _MOVES:
        return rewriter.constant(numbers[0], result)
    scalar = _folded(node, numbers)
    return None if scalar is None else rewriter.constant(scalar.item(), result)


def _folded(node: Node, numbers: list[Any]) -> Any:
    """The one number of the result, or None where there is not one, or it is not known exactly."""
    arrays = [
        np.asarray(number).astype(value.dtype.numpy)
        for number, value in zip(numbers, node.inputs, strict=True)
    ]
    operation = OPERATIONS[node.op]
    with np.errstate(all="ignore"):
        if node.op in _REDUCTIONS:
            value = node.inputs[0]
            if value.type.size > LARGEST_REDUCED or not node.results[0].type.size:
                return None
            result = operation.reference(np.full(value.shape, arrays[0]), **node.params)
            return np.asarray(result).flat[0]
        if operation.recipe is None or node.op == "concat":
            return None
        if operation.can_fail(node.results[0].dtype):
            return None
        recipe = expanded(operation.recipe(*(value.type for value in node.inputs), **node.params))
        return _evaluate(recipe.body, arrays, {}) if type(recipe) is Map else None


def _evaluate(expr: Expr, constants: list[np.ndarray], memo: dict[int, Any]) -> Any:
    """The value of an expression that is the same at every position, or None."""
    key = id(expr)
    if key not in memo:
        memo[key] = _apply(expr, constants, memo)
    return memo[key]


def _apply(expr: Expr, constants: list[np.ndarray], memo: dict[int, Any]) -> Any:
    if expr.op == "constant":
        return np.asarray(expr.value).astype(expr.dtype.numpy)[()]
    if expr.op == "load":
        return None if expr.guarded else constants[expr.value][()]
    if expr.op not in PRIMITIVES and expr.op not in ("cast", "bitcast"):
        return None
    if expr.op in _INEXACT:
        return None
    operands = [_evaluate(argument, constants, memo) for argument in expr.args]
    if any(operand is None for operand in operands):
        return None
    if expr.op == "cast":
        return converted(np.asarray(operands[0]), expr.dtype)[()]
    if expr.op == "bitcast":
        return np.asarray(operands[0]).view(expr.dtype.numpy)[()]
    if expr.op in _EXTREMA:
        x, y = operands
        if x != x or y != y:
            return x + y
        return x if (x > y) == (expr.op == "maximum") and x != y else y
    return np.asarray(PRIMITIVES[expr.op].compute(*operands))[()]
