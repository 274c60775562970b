"""Tensors with gradients that a region comes to know, and the gradients that are there at entry."""

from __future__ import annotations

from typing import Any

from dilim.slicing.slicer import Slicer
from dilim.tensors.tensor import Tensor


def follow_leaves(slicer: Slicer) -> dict[int, tuple[Tensor, Any]]:
    """Note each leaf that the slicer comes to know, with the gradient that it has at entry."""
    trace = slicer.trace
    grads: dict[int, tuple[Tensor, Any]] = {}
    know = slicer.know_leaves

    def know_leaves(value: Any) -> None:
        before = len(slicer.leaves)
        know(value)
        if len(slicer.leaves) > before:
            for key, leaf in slicer.leaves.items():
                if key not in grads:
                    grads[key] = leaf, leaf.grad
                    _enter_grad(slicer, leaf)

    def use_grad(leaf: Tensor) -> None:
        slicer.know_leaves(leaf)
        slicer.use_grad(leaf)

    slicer.know_leaves = know_leaves  # type: ignore[method-assign]
    slicer.initial_grads = grads
    trace.before_failure = slicer.before_failure
    trace.use_grad = use_grad
    trace.before_record = slicer.one_of.refuse_torn
    return grads


def _enter_grad(slicer: Slicer, leaf: Tensor) -> None:
    """A gradient that is there at entry is memory of the program, found through its leaf."""
    grad = leaf.grad
    if grad is None:
        return

    def adopt(x: Tensor) -> None:
        slicer.entry.enter(x, slicer.grad_path(leaf))

    slicer.trace.grads_at_entry[id(grad)] = adopt
