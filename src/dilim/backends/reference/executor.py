"""Runs a graph node by node: the meaning of a graph."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from dilim import dtypes
from dilim.backends.reference.interpreter import interpret
from dilim.errors import ShapeError, UnsupportedError
from dilim.ir.graph import Graph, Value
from dilim.ir.types import Type
from dilim.ops.expansions import expanded
from dilim.ops.opdef import OpDef
from dilim.ops.table import OPERATIONS

Evaluate = Callable[[OpDef, Sequence[np.ndarray], Mapping[str, Any]], Any]
"""How one operation is carried out on arrays: `by_reference`, `by_kernel` or `by_recipe`."""


def by_reference(op: OpDef, arrays: Sequence[np.ndarray], params: Mapping[str, Any]) -> Any:
    """By the operation's NumPy reference, which is its meaning."""
    return op.reference(*arrays, **params)


def by_kernel(op: OpDef, arrays: Sequence[np.ndarray], params: Mapping[str, Any]) -> Any:
    """By what eager execution on the CPU calls, so with exactly its bits."""
    return op.eager(*arrays, **params)


def by_recipe(op: OpDef, arrays: Sequence[np.ndarray], params: Mapping[str, Any]) -> Any:
    """By the operation's recipe, interpreted, with own transcendental functions.

    So it has the bits of every back end with strict arithmetic.

    Raises:
        UnsupportedError: the operation has no recipe.
    """
    if op.recipe is None:
        raise UnsupportedError(f"{op.name}: it has no recipe to interpret")
    types = [Type(x.shape, dtypes.from_numpy(x.dtype)) for x in arrays]
    return interpret(expanded(op.recipe(*types, **params)), arrays)


def execute(
    graph: Graph, inputs: Sequence[np.ndarray], evaluate: Evaluate = by_reference
) -> list[np.ndarray]:
    """Run a graph.

    Args:
        graph: a well-formed graph.
        inputs: one array per input of the graph, of its shape and dtype.
        evaluate: how each operation is carried out.

    Returns:
        One new array per output.

    Raises:
        ShapeError: an input is missing or of another type.
    """
    check_inputs(graph, inputs)
    arrays: dict[Value, np.ndarray] = dict(zip(graph.inputs, inputs, strict=True))
    with np.errstate(all="ignore"):
        for node in graph.nodes:
            operands = [arrays[value] for value in node.inputs]
            (result,) = node.results
            arrays[result] = np.asarray(evaluate(OPERATIONS[node.op], operands, node.params))
    return [np.array(arrays[value], order="C") for value in graph.outputs]


def check_inputs(graph: Graph, inputs: Sequence[np.ndarray]) -> None:
    """Raise a ShapeError unless the arrays have the types of the graph's inputs."""
    if len(inputs) != len(graph.inputs):
        raise ShapeError(f"graph: expected {len(graph.inputs)} inputs, received {len(inputs)}")
    for position, (value, array) in enumerate(zip(graph.inputs, inputs, strict=True)):
        if array.shape != value.shape or array.dtype != value.dtype.numpy:
            name = f" {value.name!r}" if value.name else ""
            raise ShapeError(
                f"graph: expected input {position}{name} of type {value.type}, received shape "
                f"{array.shape} and dtype {array.dtype}"
            )
