"""Estimates how long a kernel takes, for the decision to use threads."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from dilim.ops.primitives import Expr

_INSTRUCTION: Final = 0.15
"""Nanoseconds of one instruction on one register."""
_HARD: Final = {"divide": 10, "sqrt": 12, "floor_divide": 60, "remainder": 60}
_FREE: Final = frozenset({"constant", "index", "reduced", "check", "bitcast"})


def cost_of(parts: Iterable[Expr], elements: int, vector_bytes: int) -> float:
    """Nanoseconds on one core for computing the parts for so many elements with vectors."""
    total = 0.0
    for part in parts:
        if part.op not in _FREE:
            registers = elements * part.dtype.itemsize / vector_bytes
            total += _HARD.get(part.op, 1) * registers
    return total * _INSTRUCTION
