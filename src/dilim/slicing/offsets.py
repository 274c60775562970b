"""How far ints of the program are apart, where that is the same in every run.

``i * 32`` and ``(i + 1) * 32`` are 32 apart whatever i is: both are a known multiple of one int
and a known number. So ``x[i * 32 : (i + 1) * 32]`` has a known shape.
"""

from __future__ import annotations

import operator
from typing import Any

Form = tuple[Any, int, int]
"""An int of the program, or None; by what it is multiplied; what is added."""


def form_of(x: Any) -> Form | None:
    """An int as a multiple of another, and a number; None for what is no int."""
    if x.__class__ is int:
        return None, 0, x
    if getattr(x, "kind", None) is not int:
        return None
    known: Form | None = x.form
    return (x, 1, 0) if known is None else known


def combined(function: Any, a: Any, b: Any) -> Form | None:
    """The form of a sum, difference or product; None where it is an int of its own."""
    first, second = form_of(a), form_of(b)
    if first is None or second is None:
        return None
    (root, factor, offset), (other, by, number) = first, second
    if function is operator.mul:
        if root is None:
            (root, factor, offset), (other, by, number) = second, first
        return (root, factor * number, offset * number) if other is None else None
    if function not in (operator.add, operator.sub) or (
        root is not other and None not in (root, other)
    ):
        return None
    root = other if root is None else root
    return root, function(factor, by), function(offset, number)


def distance(a: Any, b: Any) -> int | None:
    """How much an int is larger than another; None where it is not known."""
    form = combined(operator.sub, b, a)
    return form[2] if form is not None and form[1] == 0 else None
