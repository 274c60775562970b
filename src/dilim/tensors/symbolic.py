"""`trace`: the graph of what a function of tensors does. See `dilim.tensors.tracer` for how."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dilim.errors import GraphError
from dilim.ir.graph import Graph
from dilim.ir.types import Type
from dilim.tensors.cells import Cell
from dilim.tensors.tensor import Tensor
from dilim.tensors.tracer import Trace


@dataclass(frozen=True, slots=True)
class Traced:
    """A graph and the memory of its variables.

    Attributes:
        graph: the program.
        cells: one per variable of the graph, in order.
        structure: what the function returned, with the number of an output for each tensor.
    """

    graph: Graph
    cells: tuple[Cell, ...]
    structure: Any = None

    def arrays(self) -> list[np.ndarray]:
        """The memory of the variables; a copy where it is not in row-major order."""
        return [np.ascontiguousarray(cell.array).reshape(cell.array.shape) for cell in self.cells]

    def written(self, arrays: Sequence[np.ndarray]) -> None:
        """Bring back copies that a run has written, and count its writes."""
        for cell, array in zip(self.cells, arrays, strict=True):
            if not cell.is_written:
                continue
            if not np.may_share_memory(array, cell.array):
                cell.array[...] = array
            if cell.storage is not None:
                cell.storage.version += 1


def trace(
    function: Callable[..., Any],
    *arguments: Type,
    bind: Sequence[Tensor] = (),
    into: Trace | None = None,
) -> Traced:
    """The graph of what a function of tensors does.

    The function runs once. All operations on its arguments, and on tensors that were there before,
    become nodes; so do writes in place into these. Tensors keep their numbers.

    Args:
        function: from tensors to tensors; lists, tuples and dicts of them, or None.
        arguments: the type of each argument.
        bind: tensors whose variables come first, in this order. All others are found by use.
        into: an empty trace to use.

    Returns:
        The graph, its inputs being the arguments and its outputs the tensors that were returned.

    Raises:
        GraphError: the function needs numbers (``if``, ``print``, ``item``), or two variables share
            memory that is written.
    """
    building = into or Trace()
    with building.tracing():
        for x in bind:
            building.variable(x)
        returned = function(*(building.input(kind) for kind in arguments))
        outputs: list[Any] = []
        structure = numbered(returned, outputs)
        values = [building.value(building.handle(x)) for x in outputs]
    return finish(building, values, structure)


def finish(building: Trace, outputs: Sequence[Any], structure: Any = None) -> Traced:
    """The graph of a trace with these values as outputs.

    Raises:
        GraphError: two variables share memory that is written.
    """
    frame = building.frames[0]
    built = frame.builder.build(outputs)
    graph = Graph(
        built.inputs, tuple(frame.nodes()), built.outputs, built.variables, built.sites
    )  # fmt: skip
    cells = tuple(building.cells)
    _check_apart(cells)
    return Traced(graph, cells, structure)


def numbered(
    returned: Any, outputs: list[Any], what: str = "trace: expected a function that returns"
) -> Any:
    """The structure with tensors replaced by their numbers in ``outputs``.

    Raises:
        GraphError: something else than a tensor is in it; the message begins with ``what``.
    """
    if isinstance(returned, Tensor):
        outputs.append(returned)
        return len(outputs) - 1
    if isinstance(returned, dict):
        return {key: numbered(item, outputs, what) for key, item in returned.items()}
    if isinstance(returned, (list, tuple)):
        items = [numbered(item, outputs, what) for item in returned]
        if hasattr(returned, "_fields"):
            return type(returned)(*items)
        return type(returned)(items)
    if returned is None:
        return None
    raise GraphError(
        f"{what} tensors, in lists, tuples or dicts, received {type(returned).__name__}"
    )


def _check_apart(cells: Sequence[Cell]) -> None:
    """Refuse variables that share memory, if one of them is written."""
    spans = [(*np.lib.array_utils.byte_bounds(cell.array), cell) for cell in cells]
    spans.sort(key=lambda span: span[:2])
    reach, owner = 0, None
    for low, high, cell in spans:
        if low < reach and owner is not None and (cell.is_written or owner.is_written):
            raise GraphError(
                f"graph: a variable of shape {cell.array.shape} shares memory with one of shape "
                f"{owner.array.shape}, and one of them is written; use views that dilim made of "
                "one tensor, or copies"
            )
        if high > reach and low < high:
            reach, owner = high, cell
