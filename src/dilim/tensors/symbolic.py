"""Symbolic tensors: tensors that stand for values of a graph being built.

A symbolic tensor is an ordinary `Tensor` whose device is a `Trace`. Operations on it pass the one
dispatch point, which asks the device to carry them out; this device notes a node instead. Shape
rules, the tape, `backward`, `gradients`, `no_grad` and all library functions therefore work as they
are, and derivative rules add nodes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from dilim import dtypes, shapes
from dilim.dtypes import DType
from dilim.errors import GradientError, GraphError
from dilim.ir.graph import Graph, GraphBuilder, Value
from dilim.ir.types import Type, type_of
from dilim.ops.opdef import OpDef
from dilim.ops.table import OPERATIONS
from dilim.runtime.devices import Storage
from dilim.shapes import Shape
from dilim.tensors.dispatch import Tracer
from dilim.tensors.tensor import Tensor


@dataclass(frozen=True, slots=True)
class Handle:
    """What a symbolic tensor holds in place of memory: a value of the graph, in row-major order."""

    value: Value
    offset = 0

    @property
    def buffer(self) -> Value:
        """The value; no two results share one."""
        return self.value

    @property
    def shape(self) -> Shape:
        """Sizes."""
        return self.value.shape

    @property
    def strides(self) -> Shape:
        """Row-major ones."""
        return shapes.row_major_strides(self.value.shape)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        raise _no_numbers(self.value)


class Trace(Tracer):
    """A graph being built, as the device of the symbolic tensors that stand for its values.

    An eager tensor that meets a symbolic one becomes a further input of the graph, bound to that
    tensor. Operations between eager tensors alone are computed while tracing; `binding` makes
    parameters symbolic for a while, so that all operations on them are noted.
    """

    name = "graph"

    def __init__(self) -> None:
        self._builder = GraphBuilder()
        self._bound: dict[Value, Tensor] = {}
        self._adopted: dict[int, Tensor] = {}

    def input(self, type: Type, name: str = "") -> Tensor:
        """A symbolic tensor that stands for a new input of the graph."""
        handle = Handle(self._builder.input(type, name))
        result = Tensor._wrap(handle, type.shape, type.dtype, self)
        result.name = name or None
        return result

    def build(self, outputs: Sequence[Tensor]) -> Traced:
        """The graph so far, with these results."""
        values = [self.adopt(x)._data.value for x in outputs]
        graph = self._builder.build(values)
        own = tuple(value for value in graph.inputs if value not in self._bound)
        return Traced(
            Graph((*own, *self._bound), graph.nodes, graph.outputs), tuple(self._bound.values())
        )

    @contextmanager
    def binding(self, tensors: Sequence[Tensor]) -> Iterator[None]:
        """A context in which leaves are symbolic: inputs of the graph bound to these tensors.

        Every object that refers to such a tensor sees it symbolic, so that layers and losses
        trace unchanged, ``backward()`` fills ``grad`` with symbolic tensors, and other threads must
        wait. At the end all attributes are as before.

        Raises:
            GradientError: a tensor is the result of a recorded operation.
        """
        for x in tensors:
            self._check_leaf(x)
        kept = [(x, x._data, x._storage, x._device, x.grad) for x in tensors]
        try:
            for x in tensors:
                value = self._builder.input(type_of(x), x.name or "")
                self._bound[value] = x
                x._data, x._storage, x._device = Handle(value), Storage(self, value), self
                x.grad = None
            yield
        finally:
            for x, data, storage, device, grad in kept:
                x._data, x._storage, x._device, x.grad = data, storage, device, grad

    # --- what dispatch asks for -----------------------------------------------------------

    def adopt(self, x: Tensor) -> Tensor:
        """``x`` itself if it belongs to this graph, else a symbolic tensor bound to it.

        Raises:
            GraphError: x belongs to another graph.
            GradientError: x requires a gradient, which would be lost.
        """
        if x.device is self:
            return x
        if isinstance(x.device, Trace):
            raise GraphError(f"graph: a tensor of shape {x.shape} belongs to another graph")
        if id(x) not in self._adopted:
            self._check_leaf(x)
            if x.requires_grad:
                raise GradientError(
                    f"graph: an eager tensor of shape {x.shape} that requires a gradient meets a "
                    "symbolic one, and its gradient would be lost; make it an argument or bind "
                    "it, or use x.detach()"
                )
            symbol = self.input(type_of(x), x.name or "")
            self._bound[symbol._data.value] = x
            self._adopted[id(x)] = symbol
        return self._adopted[id(x)]

    def _check_leaf(self, x: Tensor) -> None:
        if x._node is not None:
            raise GradientError(
                f"graph: a tensor of shape {x.shape} was computed eagerly with a gradient, which "
                "would be cut off here; compute it inside the traced function, or use x.detach()"
            )

    def full(self, *, shape: Shape, value: Any, dtype: DType) -> Tensor:
        """A symbolic tensor of one repeated number."""
        params = {"shape": shape, "value": value, "dtype": dtype}
        return Tensor._wrap(self.execute(OPERATIONS["full"], [], params), shape, dtype, self)

    # --- the device interface -------------------------------------------------------------

    def execute(self, op: OpDef, operands: list[Any], params: dict[str, Any]) -> Handle:
        """Note a node; 0-d arrays (from Python numbers) become `full` nodes."""
        values = [x.value if isinstance(x, Handle) else self._number(x) for x in operands]
        shape, dtype = op.infer(*values, **params)
        return Handle(self._builder.add(op.name, values, params, Type(shape, dtype)))

    def _number(self, array: np.ndarray) -> Value:
        dtype = dtypes.from_numpy(array.dtype)
        value = array.item()
        if dtype.is_floating:
            short = float(str(array))  # 0.1, not 0.10000000149011612
            value = short if array == array.dtype.type(short) else value
        handle: Handle = self.full(shape=(), value=value, dtype=dtype)._data
        return handle.value

    def upload(self, flat: np.ndarray) -> Value:
        """A value bound to a copy of a flat array."""
        handle: Handle = self.adopt(Tensor._from_array(np.array(flat)))._data
        return handle.value

    def view(self, buffer: Value, shape: Shape, strides: Shape, offset: int) -> Handle:
        """A flat value under another shape.

        Raises:
            GraphError: the elements are not in row-major order; no memory is there to stride over.
        """
        whole = offset == 0 and shapes.size_of(shape) == buffer.type.size
        if not whole or strides != shapes.row_major_strides(shape):
            raise GraphError("graph: expected a row-major view of a whole symbolic tensor")
        if buffer.shape == shape:
            return Handle(buffer)
        return self.execute(OPERATIONS["reshape"], [Handle(buffer)], {"shape": shape})

    def download(self, buffer: Value) -> np.ndarray:
        """Refuse: there are no numbers yet."""
        raise _no_numbers(buffer)

    def write(self, target: Any, source: Any) -> None:
        """Refuse: values of a graph are assigned once."""
        raise GraphError(
            "in-place write: a symbolic tensor cannot be written into; make a new tensor, for "
            "example x = x + y"
        )

    def __repr__(self) -> str:
        return f"<trace of {len(self._builder.nodes)} nodes>"


@dataclass(frozen=True, slots=True)
class Traced:
    """A graph and the tensors whose numbers its last inputs take at each run."""

    graph: Graph
    bound: tuple[Tensor, ...]


def trace(function: Callable[..., Any], *arguments: Type, bind: Sequence[Tensor] = ()) -> Traced:
    """The graph of what a function of tensors computes.

    Args:
        function: from tensors to a tensor or a sequence of tensors; run once.
        arguments: the type of each argument.
        bind: tensors that are inputs as well, though not arguments (parameters); see
            `Trace.binding`.

    Returns:
        The graph, its inputs being the arguments, then those of ``bound``.

    Raises:
        GraphError: the function needs numbers (``if``, ``print``, ``item``) or writes in place.
    """
    building = Trace()
    with building.binding(bind):
        results = function(*(building.input(type) for type in arguments))
        return building.build([results] if isinstance(results, Tensor) else list(results))


def _no_numbers(value: Value) -> GraphError:
    return GraphError(
        f"symbolic tensor of type {value.type}: its numbers are not known while a graph is being "
        "built, so print, if, float(), item() and numpy() cannot have them"
    )
