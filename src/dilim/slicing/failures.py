"""When an operation that may fail does not: known before it runs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

from dilim import dtypes
from dilim.ir.graph import Value
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor
from dilim.tensors.tracer import Trace

_AT_POSITIONS: Final = frozenset(
    {"take", "index_add", "index_update", "take_along_axis", "add_along_axis"}
)
"""Operations whose second input are positions along an axis of the first."""


def is_fine(
    trace: Trace, op: str, values: Sequence[Value], params: dict[str, Any]
) -> Tensor | None:
    """Whether an operation does not fail, a bool of shape (); None where only it can tell."""
    with no_grad():
        if op in _AT_POSITIONS or op == "require_position":
            positions = trace.symbol(values[-1] if op == "require_position" else values[1])
            size = params["size"] if "size" in params else values[0].shape[params["axis"]]
            inside = positions < size
            if positions.dtype not in dtypes.UNSIGNED:
                inside = inside & (positions >= -size)
            fine: Tensor = inside.all()
            return fine
        if op == "require_finite":
            return (abs(trace.symbol(values[0])) < math.inf).all()
        if op == "random_integers_between":
            return trace.symbol(values[1]) < trace.symbol(values[2])
        if op == "random_categorical":
            largest = trace.symbol(values[1]).max(axis=params["axis"])
            return (abs(largest) < math.inf).all()
        if op == "pow":
            return (trace.symbol(values[1]) >= 0).all()
    return None
