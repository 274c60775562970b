"""Gradients from `backward()` beside gradients from the definition of the derivative."""

from __future__ import annotations

import math
import operator
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass

from .expression import FUNCTIONS, build_expression
from .naming import CONSTANT, node_names, number_text
from .value import Value, as_value

_TOLERANCE = 1e-5  # of max(1, size of the gradient): far above noise, far below a wrong rule
_OPERATIONS: dict[str, Callable[..., Value]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    "neg": operator.neg,
    **FUNCTIONS,
}
_Build = Callable[[list[float]], tuple[Value, list[Value]]]


@dataclass(frozen=True)
class GradientComparison:
    """The two gradients of one leaf.

    Attributes:
        name: The leaf's name.
        value: Its number.
        ours: Its gradient from `backward()`.
        numeric: (f(value + h) - f(value - h)) / 2h.
    """

    name: str
    value: float
    ours: float
    numeric: float

    @property
    def difference(self) -> float:
        """|ours - numeric|."""
        return abs(self.ours - self.numeric)

    @property
    def agrees(self) -> bool:
        """Whether the difference is at most 1e-5 of max(1, size of the gradient)."""
        return self.difference <= _TOLERANCE * max(1.0, abs(self.ours), abs(self.numeric))


def check_grad(
    expression: str | Callable[..., Value] | Value, /, *, h: float = 1e-5, **values: float
) -> bool:
    """Print our gradient of each leaf beside a central difference, and whether they agree.

    Args:
        expression: Text as for `evaluate`, a function of `Value`s, or a finished `Value`, whose
            expression is then computed anew for changed leaves. Its own gradients stay as they
            are.
        h: How far to move each leaf up and down.
        **values: The number for each name of the text or each parameter of the function.

    Returns:
        Whether all agree. At a kink, such as relu at 0, they may differ with nothing wrong.

    Raises:
        ExpressionError: The text cannot be evaluated.
        TypeError: The function does not return a `Value`, or values came with a finished `Value`.
        ValueError: Nothing to check, or h is not above 0.

    Warns:
        UserWarning: h is so small that rounding spoils the central difference.

    Example:
        >>> check_grad("x * x", x=3.0)  # doctest: +ELLIPSIS
        leaf  value  ours  numeric  difference
        x     3      6     6        ...  agrees
        True
    """
    comparisons = compare_gradients(expression, h=h, **values)
    rows = [["leaf", "value", "ours", "numeric", "difference", ""]]
    for item in comparisons:
        numbers = [number_text(n) for n in (item.value, item.ours, item.numeric)]
        verdict = "agrees" if item.agrees else "DIFFERS"
        rows.append([item.name, *numbers, f"{item.difference:.1e}", verdict])
    widths = [max(len(row[column]) for row in rows) for column in range(6)]
    for row in rows:
        print("  ".join(c.ljust(width) for c, width in zip(row, widths, strict=True)).rstrip())
    return all(item.agrees for item in comparisons)


def compare_gradients(
    expression: str | Callable[..., Value] | Value, /, *, h: float = 1e-5, **values: float
) -> list[GradientComparison]:
    """Do the work of `check_grad` and return the numbers instead of printing them.

    See `check_grad` for arguments, errors and the warning.

    Returns:
        One comparison per leaf.
    """
    if not h > 0.0:
        raise ValueError(f"check_grad: h must be above 0, got {h!r}")
    names, point, build = _prepare(expression, values)
    if not names:
        raise ValueError("check_grad: no leaves to check; pass values such as x=2.0")
    result, leaves = build(point)
    result.backward()
    _warn_if_too_small(h, result, point)
    comparisons = []
    for index, name in enumerate(names):
        above, below = list(point), list(point)
        above[index] += h
        below[index] -= h
        rise = build(above)[0].data - build(below)[0].data
        # The step that was really taken: value + h is rounded.
        run = above[index] - below[index]
        numeric = rise / run if run else math.nan
        comparisons.append(GradientComparison(name, point[index], leaves[index].grad, numeric))
    return comparisons


def _prepare(
    expression: str | Callable[..., Value] | Value, values: dict[str, float]
) -> tuple[list[str], list[float], _Build]:
    """Bring the three forms to one: names, a point, and a function that builds the graph there."""
    names = list(values)
    if isinstance(expression, Value):
        if values:
            raise TypeError("check_grad: a finished Value has its numbers; drop the values")
        order = expression.graph()
        all_names = node_names(order)
        leaves = [node for node in order if not node.inputs and node.op != CONSTANT]
        point = [leaf.data for leaf in leaves]
        return [all_names[leaf] for leaf in leaves], point, lambda p: _replay(order, p)
    if isinstance(expression, str):

        def build_text(point: list[float]) -> tuple[Value, list[Value]]:
            result, leaves = build_expression(expression, dict(zip(names, point, strict=True)))
            return result, list(leaves.values())

        return names, list(values.values()), build_text
    if not callable(expression):
        kind = type(expression).__name__
        raise TypeError(f"check_grad: expected text, a function or a Value, got {kind}")

    def build_call(point: list[float]) -> tuple[Value, list[Value]]:
        leaves = [Value(number, label=name) for name, number in zip(names, point, strict=True)]
        result = expression(**dict(zip(names, leaves, strict=True)))
        if not isinstance(result, Value):
            kind = type(result).__name__
            raise TypeError(f"check_grad: expected the function to return a Value, got {kind}")
        return result, leaves

    return names, list(values.values()), build_call


def _replay(order: list[Value], point: list[float]) -> tuple[Value, list[Value]]:
    """Compute an expression again with other numbers in its leaves."""
    numbers = iter(point)
    leaves: list[Value] = []
    copies: dict[Value, Value] = {}
    for node in order:
        if node.inputs:
            copies[node] = _OPERATIONS[node.op](*(copies[source] for source in node.inputs))
        elif node.op == CONSTANT:
            copies[node] = as_value(node.data)
        else:
            copies[node] = Value(next(numbers), label=node.label)
            leaves.append(copies[node])
    return copies[order[-1]], leaves


def _warn_if_too_small(h: float, result: Value, point: list[float]) -> None:
    largest = max(abs(node.data) for node in result.graph())
    noise = sys.float_info.epsilon * largest / h
    lost = any(number + h == number for number in point)
    scale = max(1.0, max(abs(node.grad) for node in result.graph()))
    if lost or noise > _TOLERANCE * scale:
        warnings.warn(
            f"check_grad: h={h:g} is too small here: rounding alone can move the numeric gradients "
            f"by {noise:.0e}. {'Leave h at 1e-05.' if h < 1e-5 else 'Try a larger h.'}",
            stacklevel=3,
        )
