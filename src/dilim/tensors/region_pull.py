"""Gradients through what a branch or loop of a graph has recorded; see `region_tape`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dilim.autodiff.walk import Unsure, plain
from dilim.ops.table import OPERATIONS
from dilim.tensors.backward import pulled
from dilim.tensors.dispatch import apply
from dilim.tensors.region_tape import Record, Values
from dilim.tensors.tape import enable_grad, mode, now
from dilim.tensors.tensor import Tensor
from dilim.tensors.tracer import Trace


def fresh(trace: Trace, x: Tensor) -> Tensor:
    """A tensor equal to x to differentiate by; on x's tape where derivatives are recorded."""
    if mode.recording:
        linked: Tensor = apply(OPERATIONS["identity"], x)
        return linked
    return trace.symbol(trace.value(trace.handle(x))).requires_grad_()


def pulled_through(
    trace: Trace,
    record: Record,
    given: Values,
    inputs: Mapping[int, Tensor],
    seeds: Sequence[Tensor | None],
    before: Sequence[Any],
    reached: list[tuple[set[int], set[int]]],
) -> list[Tensor]:
    """Gradients through one region, inside the region that is being built.

    Args:
        trace: the graph.
        record: what the region records.
        given: see `Record.again`.
        inputs: id of an edge -> the tensor to differentiate by.
        seeds: gradients of the results, None for none.
        before: per input what the gradient is added to, or None; it may be `Unsure`.
        reached: takes the numbers of the inputs that may have a gradient, and of those that have
            one for certain.

    Returns:
        One gradient per input; `Trace.nothing` where there is none.
    """
    leaves = {key: fresh(trace, x) for key, x in inputs.items()}
    since = now()
    with enable_grad():
        results = record.again(trace, given, leaves)
    found = pulled(results, seeds, list(leaves.values()), since, list(before))
    some = {number for number, gradient in enumerate(found) if gradient is not None}
    reached.append((some, {number for number in some if found[number].__class__ is not Unsure}))
    return [
        trace.full(shape=x.shape, value=trace.nothing, dtype=x.dtype)
        if gradient is None
        else plain(gradient)
        for x, gradient in zip(inputs.values(), found, strict=True)
    ]
