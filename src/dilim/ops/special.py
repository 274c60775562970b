"""Special functions that NumPy lacks, and how exact constants are written."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

_erf = np.frompyfunc(math.erf, 1, 1)


def erf(x: Any) -> Any:
    """The error function 2/sqrt(pi) * integral of exp(-t^2) from 0 to x, in double precision."""
    array = np.asarray(x)
    return np.asarray(_erf(array), dtype=np.float64).astype(array.dtype)


def sigmoid(x: Any) -> Any:
    """1 / (1 + exp(-x)) without overflow: exp is only taken of numbers <= 0."""
    array = np.asarray(x)
    e = np.exp(-np.abs(array))
    numerator = np.where(array >= 0, np.ones_like(e), e)
    return (numerator / (1 + e)).astype(array.dtype, copy=False)


def hex_floats(numbers: str) -> tuple[float, ...]:
    """Numbers in C's hexadecimal notation, in which they are exact."""
    return tuple(float.fromhex(number) for number in numbers.split())
