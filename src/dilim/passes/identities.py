"""Algebraic identities that keep every bit, for all inputs: -0.0, NaN and infinities included.

Not among them: ``x + 0.0`` (turns -0.0 into 0.0), ``0 - x``, ``x * 0``, ``x - x``, ``x / x``,
``(x + y) - y``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import numpy as np

from dilim.dtypes import DType
from dilim.ir.graph import Graph, Node, Value
from dilim.passes.rewriting import Rewriter, simplify


def identities(graph: Graph) -> Graph:
    """Replace operations that give one of their inputs, or that a cheaper one replaces."""
    return simplify(graph, _apply)


def _apply(rewriter: Rewriter, node: Node) -> Value | None:
    rule = _RULES.get(node.op)
    found = None if rule is None else rule(rewriter, node)
    if found is None or found.type == node.results[0].type:
        return found
    return None


def _number(rewriter: Rewriter, value: Value) -> Any:
    """The number that a value holds everywhere, as a NumPy scalar of its dtype, or None."""
    node = rewriter.maker(value, "full")
    return None if node is None else np.asarray(node.params["value"]).astype(value.dtype.numpy)[()]


def _keeps(number: Any, *, zero: bool, negative_zero: bool) -> bool:
    """Whether adding this number (a zero) keeps all bits: the sign of a floating zero matters."""
    if number is None or number != 0:
        return False
    if number.dtype.kind != "f":
        return True
    return negative_zero if math.copysign(1.0, number) < 0 else zero


def _add(rewriter: Rewriter, node: Node) -> Value | None:
    x, y = node.inputs
    if _keeps(_number(rewriter, y), zero=False, negative_zero=True):
        return x
    return y if _keeps(_number(rewriter, x), zero=False, negative_zero=True) else None


def _subtract(rewriter: Rewriter, node: Node) -> Value | None:
    x, y = node.inputs
    return x if _keeps(_number(rewriter, y), zero=True, negative_zero=False) else None


def _multiply(rewriter: Rewriter, node: Node) -> Value | None:
    x, y = node.inputs
    if _number(rewriter, y) == 1:
        return x
    return y if _number(rewriter, x) == 1 else None


def _multiply_no_nan(rewriter: Rewriter, node: Node) -> Value | None:
    """A plain product where nothing can be singular: the second is finite, or the first is not 0.

    The plain product is what the operation gives except at (0, not finite).
    """
    x, y = node.inputs
    first, second = _number(rewriter, x), _number(rewriter, y)
    if second is not None and math.isfinite(second):
        plain = True
    else:
        plain = first is not None and first != 0
    if not plain:
        return None
    return x if second == 1 else y if first == 1 else rewriter.add("multiply", x, y)


def _divide(rewriter: Rewriter, node: Node) -> Value | None:
    """``x / 1`` is x; a division by a power of two is a product with its inverse, also rounded."""
    x, y = node.inputs
    number = _number(rewriter, y)
    if number is None:
        return None
    if number == 1:
        return x
    inverse = exact_inverse(float(number), y.dtype)
    if inverse is None:
        return None
    return rewriter.add("multiply", x, rewriter.constant(inverse, y.type))


def exact_inverse(number: float, dtype: DType) -> float | None:
    """1 / number where both are powers of two and normal numbers of the dtype, else None."""
    if number == 0 or not math.isfinite(number) or abs(math.frexp(number)[0]) != 0.5:
        return None
    limits = np.finfo(dtype.numpy)
    smallest, largest = float(limits.smallest_normal), float(limits.max)
    inverse = 1.0 / number
    return inverse if smallest <= abs(number) and smallest <= abs(inverse) <= largest else None


def _power(rewriter: Rewriter, node: Node) -> Value | None:
    """``x ** 1`` is x for integers; ``x ** 2`` is ``x * x``, correctly rounded in both."""
    x, y = node.inputs
    number = _number(rewriter, y)
    if number == 2 and x.type == node.results[0].type:
        return rewriter.add("multiply", x, x)
    return x if not x.dtype.is_floating and number == 1 else None


def _negative(rewriter: Rewriter, node: Node) -> Value | None:
    inner = rewriter.maker(node.inputs[0], "negative")
    return inner.inputs[0] if inner else None


def _inverted(rewriter: Rewriter, node: Node) -> Value | None:
    inner = rewriter.maker(node.inputs[0], node.op)
    return inner.inputs[0] if inner else None


def _relu(rewriter: Rewriter, node: Node) -> Value | None:
    (x,) = node.inputs
    if rewriter.maker(x, "relu"):
        return x
    rewriter.facts.put(("relu", x), node.results[0])
    return None


def _abs(rewriter: Rewriter, node: Node) -> Value | None:
    (x,) = node.inputs
    if x.dtype.kind == "uint" or rewriter.maker(x, "abs"):
        return x
    inner = rewriter.maker(x, "negative")
    if inner is not None and x.dtype.is_floating:
        return rewriter.add("abs", inner.inputs[0])
    return None


def _astype(rewriter: Rewriter, node: Node) -> Value | None:
    """Nothing changes, or a cast undoes one that lost nothing."""
    (x,) = node.inputs
    if x.dtype is node.params["dtype"]:
        return x
    inner = rewriter.maker(x, "astype")
    if inner is None:
        return None
    source = inner.inputs[0]
    if source.dtype is node.params["dtype"] and _holds(x.dtype, source.dtype):
        return source
    return None


def _holds(wide: DType, narrow: DType) -> bool:
    """Whether the wide dtype holds every number of the narrow one, bit for bit."""
    return (
        np.can_cast(narrow.numpy, wide.numpy, "safe")
        and narrow.kind in ("bool", wide.kind)
        and not (narrow.kind == "bool" and wide.is_floating)
    )


def _where(rewriter: Rewriter, node: Node) -> Value | None:
    condition, x, y = node.inputs
    if x is y:
        return x
    chosen = _number(rewriter, condition)
    if chosen is None:
        return None
    return x if chosen else y


def _same_type(rewriter: Rewriter, node: Node) -> Value | None:
    """A view or copy that changes nothing; the type is checked by the caller."""
    return node.inputs[0]


def _greater(rewriter: Rewriter, node: Node) -> Value | None:
    """``x > 0`` is ``relu(x) > 0``: then x itself need not be kept for the backward pass."""
    x, y = node.inputs
    rectified = rewriter.facts.get(("relu", x))
    if rectified is None or _number(rewriter, y) != 0:
        return None
    return rewriter.add("greater", rectified, y)


def _concat(rewriter: Rewriter, node: Node) -> Value | None:
    """Parts without elements add nothing."""
    parts = tuple(x for x in node.inputs if x.type.size)
    axis = node.params["axis"]
    if len(parts) == 1:
        return parts[0]
    if parts and len(parts) < len(node.inputs):
        if all(x.dtype is node.results[0].dtype for x in parts):
            return rewriter.add("concat", *parts, axis=axis)
    return None


Rule = Callable[[Rewriter, Node], Value | None]
_RULES: Final[Mapping[str, Rule]] = {
    "add": _add,
    "subtract": _subtract,
    "multiply": _multiply,
    "multiply_no_nan": _multiply_no_nan,
    "divide": _divide,
    "pow": _power,
    "negative": _negative,
    "logical_not": _inverted,
    "bitwise_invert": _inverted,
    "relu": _relu,
    "abs": _abs,
    "astype": _astype,
    "where": _where,
    "concat": _concat,
    "greater": _greater,
    "reshape": _same_type,
    "expand": _same_type,
    "identity": _same_type,
}
