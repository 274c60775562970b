"""How values are called in pictures, steps and messages."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .value import Value

CONSTANT = "constant"
"""The `op` of a plain number that met a `Value`, such as the 3 in `3 * x`."""

_INFIX = frozenset(("+", "-", "*", "/", "**"))


def number_text(number: float) -> str:
    """Return a number with at most six digits."""
    return f"{number:.6g}"


def gradient_text(node: Value) -> str:
    """Return the gradient of a value, or that no backward pass has computed it."""
    return number_text(node.grad) if node.has_grad else "not computed"


def node_names(order: list[Value]) -> dict[Value, str]:
    """Name each value: by its label, a constant by its number, the others v1, v2, ... in order."""
    names: dict[Value, str] = {}
    unnamed = 0
    for node in order:
        if node.label:
            names[node] = node.label
        elif node.op == CONSTANT:
            names[node] = number_text(node.data)
        else:
            unnamed += 1
            names[node] = f"v{unnamed}"
    return names


def formula(node: Value, names: dict[Value, str]) -> str:
    """Return how a value was made, such as `x * y` or `exp(v1)`; empty for a leaf.

    An input that has no name here appears as `...`.
    """
    if not node.inputs:
        return ""
    left, *rest = (names.get(source, "...") for source in node.inputs)
    if node.op in _INFIX:
        return f"{left} {node.op} {rest[0]}"
    return f"-{left}" if node.op == "neg" else f"{node.op}({left})"
