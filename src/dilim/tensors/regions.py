"""Regions of a graph: the insides of branches and loops."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import NamedTuple

from dilim import dtypes
from dilim.errors import GradientError
from dilim.ir.graph import Graph, Node, Value
from dilim.ir.structure import IF, READ, RECEIVE, SEND, WRITE, holds
from dilim.ir.types import Type
from dilim.runtime import devices
from dilim.tensors.cells import Frame
from dilim.tensors.sites import user_site
from dilim.tensors.tracer import Trace


@contextmanager
def inside(trace: Trace, is_loop: bool) -> Iterator[Frame]:
    """A context in which nodes go to a new region."""
    trace.top.settle()
    with devices.epoch() as made_here:
        frame = Frame(trace.top.builder.region(), is_loop, made_here)
        trace.frames.append(frame)
        try:
            yield frame
        finally:
            frame.is_active = False
            trace.frames.pop()


@contextmanager
def entered_again(trace: Trace, frame: Frame) -> Iterator[None]:
    """A context in which nodes go to the end of a region that was left already."""
    frame.is_active = True
    trace.frames.append(frame)
    try:
        yield
    finally:
        frame.is_active = False
        trace.frames.pop()


class Built(NamedTuple):
    """A node with regions.

    Attributes:
        results: its values.
        regions: its finished regions.
        renamed: per region, values of variables read inside -> the same values from outside.
    """

    results: tuple[Value, ...]
    regions: list[Graph]
    renamed: list[dict[Value, Value]]


def add_region_node(
    trace: Trace,
    op: str,
    inputs: Sequence[Value],
    frames: Sequence[Frame],
    outputs: Sequence[Sequence[Value]],
    results: Sequence[Type],
) -> Built:
    """A node with regions that were built by `inside`.

    A variable that none of them writes is read outside, once; for a branch, any variable.
    """
    top = trace.top
    written = {cell: None for frame in frames for cell in frame.written}
    kept = {} if op == IF else written
    renamed = [
        {value: trace.contents(cell) for cell, value in frame.reads.items() if cell not in kept}
        for frame in frames
    ]
    regions = [
        _closed(frame, values, outside)
        for frame, values, outside in zip(frames, outputs, renamed, strict=True)
    ]
    top.settle()
    made = top.builder.add_node(op, inputs, {}, results, regions, user_site())
    for cell in written:
        top.contents[cell] = None
        top.written[cell] = None
    return Built(made, regions, renamed)


def _closed(frame: Frame, outputs: Sequence[Value], outside: Mapping[Value, Value]) -> Graph:
    nodes = [
        node for node in frame.nodes() if not (node.op == READ and node.results[0] in outside)
    ]  # fmt: skip
    return renamed_in(Graph(tuple(frame.builder.inputs), tuple(nodes), tuple(outputs)), outside)


def renamed_in(graph: Graph, values: Mapping[Value, Value]) -> Graph:
    """A region in which some values from outside are others."""
    if not values:
        return graph
    nodes = tuple(
        replace(
            node,
            inputs=tuple(values.get(x, x) for x in node.inputs),
            regions=tuple(renamed_in(region, values) for region in node.regions),
        )
        for node in graph.nodes
    )
    return replace(graph, nodes=nodes, outputs=tuple(values.get(x, x) for x in graph.outputs))


def zeros_of(trace: Trace, kind: Type) -> Value:
    """Zeros of a type, in the region that is being built."""
    zero = False if kind.dtype is dtypes.bool_ else 0.0 if kind.dtype.is_floating else 0
    return trace.emit("full", [], {"shape": kind.shape, "value": zero, "dtype": kind.dtype})


# --- computing again ------------------------------------------------------------------------


def cloned(trace: Trace, graph: Graph, given: Mapping[Value, Value]) -> dict[Value, Value]:
    """Compute the nodes of a region again, without their effects, in the region being built.

    Args:
        trace: the graph.
        graph: the region.
        given: values that stand for others; nodes that make one of these are left out.

    Returns:
        ``given``, and what stands for each value of the region.

    Raises:
        GradientError: the region receives values, or reads state that it has written itself.
    """
    values = dict(given)
    for node in graph.nodes:
        copy = _clone_of(node, values)
        if copy is not None:
            trace.top.builder.nodes.append(copy)
    return values


def _clone_of(node: Node, values: dict[Value, Value]) -> Node | None:
    if node.op in (WRITE, SEND) or (node.results and all(x in values for x in node.results)):
        return None
    if node.op in (READ, RECEIVE):
        what = (
            "receives values from the host" if node.op == RECEIVE else "reads what it has written"
        )
        raise GradientError(
            f"backward: a branch or loop {what}, so it cannot be computed again for its "
            "derivative; do that outside of it, or use detach()"
        )
    inputs = tuple(values.get(x, x) for x in node.inputs)
    regions = tuple(_clone_of_region(region, values) for region in node.regions)
    results = tuple(Value(x.type, x.name) for x in node.results)
    values.update(zip(node.results, results, strict=True))
    return replace(node, inputs=inputs, regions=regions, results=results)


def _clone_of_region(region: Graph, values: Mapping[Value, Value]) -> Graph:
    inner = dict(values)
    inputs = tuple(Value(x.type, x.name) for x in region.inputs)
    inner.update(zip(region.inputs, inputs, strict=True))
    copies = [_clone_of(node, inner) for node in region.nodes]
    nodes = tuple(node for node in copies if node is not None)
    return replace(
        region, inputs=inputs, nodes=nodes, outputs=tuple(inner.get(x, x) for x in region.outputs)
    )


def without_effects(graph: Graph, known: Container[Value]) -> Graph:
    """What of a region it takes to compute its values where some are known."""
    nodes = tuple(
        replace(node, regions=tuple(without_effects(region, ()) for region in node.regions))
        for node in graph.nodes
        if not (
            node.op in (WRITE, SEND) or (node.results and all(x in known for x in node.results))
        )
        and (node.results or not node.regions)
    )
    return replace(graph, nodes=nodes)


def unrepeatable(frame: Frame) -> list[Value]:
    """The values of a branch that cannot be computed again: of the host, and of state."""
    outside = set(frame.reads.values())
    return [
        value
        for node in frame.nodes()
        if holds(node, (READ, RECEIVE))
        for value in node.results
        if value not in outside
    ]
