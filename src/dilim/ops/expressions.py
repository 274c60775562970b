"""Questions about scalar expressions."""

from __future__ import annotations

from collections.abc import Iterable

from dilim.ops.primitives import Expr


def postorder(roots: Iterable[Expr]) -> list[Expr]:
    """Every expression below the roots once, operands first."""
    seen: set[Expr] = set()
    order: list[Expr] = []
    for root in roots:
        stack = [(root, False)]
        while stack:
            expr, ready = stack.pop()
            if ready:
                order.append(expr)
            elif expr not in seen:
                seen.add(expr)
                stack.append((expr, True))
                stack.extend((arg, False) for arg in reversed(expr.args) if arg not in seen)
    return order


def axes_of(expr: Expr) -> set[int]:
    """The loop axes that an expression depends on, not counting those of reductions in it."""
    return {e.value for e in postorder([expr]) if e.op == "index"}


def reductions_in(expr: Expr) -> set[int]:
    """The numbers of the reductions that an expression refers to itself."""
    return {e.value for e in postorder([expr]) if e.op == "reduced"}


def reads_memory(expr: Expr) -> bool:
    """Whether an expression depends on data."""
    return any(e.op in ("load", "reduced") for e in postorder([expr]))
