"""Layers in hand-built graphs: forward and backward nodes, named after the layer."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from dilim.errors import GraphError, ShapeError
from dilim.tensors import elementwise as e
from dilim.tensors.backward import gradients
from dilim.tensors.tape import enable_grad
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.nn.module import Module
    from dilim.tensors.graphs import Graph

_building: Final[list[Graph]] = []


@contextmanager
def named_after(layer: Module) -> Iterator[None]:
    """A context in which nodes of the graph that is being built are named after a layer."""
    graph = _building[-1]
    with graph.scope(_label(graph, layer), "out"):
        yield


def is_building() -> bool:
    """Whether `add_forward` is at work."""
    return bool(_building)


def add_forward(layer: Module, graph: Graph, x: Tensor) -> Tensor:
    """See `Module.add_forward_to_graph`."""
    given = x
    if x.dtype.is_floating and not x.requires_grad:
        given = x.detach().requires_grad_()
    _building.append(graph)
    try:
        with graph.noting(), enable_grad():
            y = layer(given)
    finally:
        _building.pop()
    if not isinstance(y, Tensor):
        raise GraphError(
            f"add_forward_to_graph: expected {layer.described} to give one tensor, received "
            f"{type(y).__name__}"
        )
    graph.forwards[id(y)] = layer, x, given, y
    return y


def add_backward(layer: Module, graph: Graph, grad: Tensor, x: Tensor, y: Tensor) -> Tensor | None:
    """See `Module.add_backward_to_graph`."""
    if grad.shape != y.shape or grad.dtype is not y.dtype:
        raise ShapeError(
            f"add_backward_to_graph: expected a gradient of the output's type, {y.dtype.name} "
            f"{y.shape}, received {grad.dtype.name} {grad.shape}"
        )
    known = graph.forwards.get(id(y))
    if known is None or known[0] is not layer or known[1] is not x:
        raise GraphError(
            f"add_backward_to_graph: expected y = {layer.described}.add_forward_to_graph(graph, x) "
            "of this graph, with the same x"
        )
    given = known[2]
    inputs: list[Any] = [given] if given.requires_grad else []
    parameters = layer.parameters()
    if not y.requires_grad:
        return None
    with graph.scope(_label(graph, layer), "bwd"):
        with graph.noting():
            found = gradients([y], [*inputs, *parameters], [grad], retain_graph=True)
        for parameter, gradient in zip(parameters, found[len(inputs) :], strict=True):
            before = parameter.grad
            ours = before is not None and before.device is gradient.device
            parameter.grad = e.add(before, gradient) if ours else gradient
    return found[0] if inputs else None


def _label(graph: Graph, layer: Module) -> str:
    """A name for a layer that no other layer of the graph has."""
    known: dict[int, tuple[Module, str]] = graph.layers
    if id(layer) not in known:
        plain = layer.name or re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", type(layer).__name__).lower()
        plain = re.sub(r"\W", "_", plain)
        taken = {label for _, label in known.values()}
        label, number = plain, 2
        while label in taken:
            label, number = f"{plain}_{number}", number + 1
        known[id(layer)] = layer, label
    return known[id(layer)][1]
