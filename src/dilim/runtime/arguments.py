"""Looks at the arrays that a program is given before it works on their memory."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from dilim.errors import ShapeError
from dilim.ir.graph import Graph, Value
from dilim.ir.structure import written


def check_inputs(graph: Graph, arrays: Sequence[np.ndarray]) -> list[np.ndarray]:
    """The inputs as native code wants them, or a ShapeError."""
    if len(arrays) != len(graph.inputs):
        raise ShapeError(f"graph: expected {len(graph.inputs)} inputs, received {len(arrays)}")
    return [prepared(*pair) for pair in zip(graph.inputs, arrays, strict=True)]


def prepared(value: Value, array: np.ndarray) -> np.ndarray:
    """An input as native code wants it: checked, and copied if it is not in row-major order."""
    _check_type("input", value, array)
    return array if array.flags.c_contiguous else np.ascontiguousarray(array)


def check_variables(graph: Graph, arrays: Sequence[np.ndarray]) -> None:
    """Raise a ShapeError unless the arrays can be the memory of the graph's variables.

    Only what the graph writes has to be writable.
    """
    if len(arrays) != len(graph.variables):
        raise ShapeError(
            f"graph: expected {len(graph.variables)} variables, received {len(arrays)}"
        )
    for variable, array in zip(graph.variables, arrays, strict=True):
        _check_type("variable", variable, array)
        if not array.flags.c_contiguous:
            raise ShapeError(
                f"graph: expected variable{_name(variable)} in row-major order, received strides "
                f"of {array.strides} bytes for shape {array.shape}; pass "
                "numpy.ascontiguousarray(array), a copy"
            )
        if not array.flags.writeable and any(variable in written(node) for node in graph.nodes):
            raise ShapeError(
                f"graph: variable{_name(variable)} of type {variable.type} is written by the "
                "program, but its array is read-only; pass a writable one, such as array.copy()"
            )


def _check_type(what: str, value: Value, array: np.ndarray) -> None:
    if array.shape != value.shape or array.dtype != value.dtype.numpy:
        raise ShapeError(
            f"graph: expected {what}{_name(value)} of type {value.type}, received shape "
            f"{array.shape} and dtype {array.dtype}"
        )


def _name(value: Value) -> str:
    return f" {value.name!r}" if value.name else ""
