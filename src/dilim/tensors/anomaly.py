"""Finding the first operation that makes a NaN, and the user's line in a traceback."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, Any

import numpy as np

from dilim.errors import NonFiniteError
from dilim.ops.opdef import OpDef

if TYPE_CHECKING:
    from dilim.tensors.tensor import Tensor

_PACKAGE = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep


def user_line() -> str:
    """``file:line`` of the innermost frame outside this package."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename.startswith(_PACKAGE):
        frame = frame.f_back
    return f"{frame.f_code.co_filename}:{frame.f_lineno}"


def _has_nan(value: Any) -> bool:
    if isinstance(value, (bool, int)):
        return False
    if isinstance(value, float):
        return value != value
    array = value.numpy()
    return array.dtype.kind == "f" and bool(np.isnan(array).any())


def check_finite(op: OpDef, inputs: tuple[Any, ...], result: Tensor) -> None:
    """Raise if ``result`` holds a NaN and no input does.

    Raises:
        NonFiniteError: names the operation, the inputs and the user's line.
    """
    if not _has_nan(result) or any(_has_nan(x) for x in inputs):
        return
    lines = ", ".join(_describe(x) for x in inputs)
    raise NonFiniteError(
        f"{op.name}: made the first NaN, at {user_line()}; inputs: {lines}; the result has "
        f"{int(np.isnan(result.numpy()).sum())} NaN of {result.size} elements"
    )


def _describe(value: Any) -> str:
    if isinstance(value, (bool, int, float)):
        return repr(value)
    array = value.numpy()
    if array.size == 0:
        return f"{value.dtype.name}{list(value.shape)}"
    low, high = array.min(), array.max()
    label = f"'{value.name}' " if value.name else ""
    return f"{label}{value.dtype.name}{list(value.shape)} from {low} to {high}"
