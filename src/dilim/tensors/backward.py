"""The eager reverse pass: `backward`, and gradients of results with respect to inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dilim.autodiff.walk import added, certain, leading_to, pull_back, reachable
from dilim.errors import DtypeError, GradientError, ShapeError
from dilim.ops.opdef import OpDef
from dilim.ops.table import OPERATIONS
from dilim.runtime.devices import CPU
from dilim.tensors import transfer
from dilim.tensors.deferred import settle
from dilim.tensors.dispatch import EagerBuilder, apply, tracer_of
from dilim.tensors.tape import Node, Overwritten, mode

if TYPE_CHECKING:
    from dilim.tensors.tensor import Tensor


def _operation(name: str) -> Any:
    op = OPERATIONS[name]

    def function(*inputs: Any, **params: Any) -> Any:
        return apply(op, *inputs, **params)

    return function


def _is_node(edge: Any) -> bool:
    return edge.__class__ is Node


class _Walk:
    """One reverse pass over eager nodes: hands out inputs and results, checked for overwriting."""

    def __init__(self, roots: Sequence[Any], since: int = 0) -> None:
        self._tracer = mode.tracer
        settle(roots)
        self.outs: dict[int, Any] = {id(x._node): x for x in roots if x._node is not None}
        made = [x._node for x in roots if x._node is not None]
        self.nodes = reachable(made, lambda edge: _is_node(edge) and edge.serial >= since)

    def operands(self, node: Node) -> tuple[list[Any], Any]:
        """Inputs and result of a node; overwritten ones as placeholders that refuse use."""
        if self._tracer is not None:
            self._tracer.before_pull(node)
        if node.inputs is None:
            raise GradientError(
                "backward: this part of the tape was used up by an earlier backward(); call that "
                "one with retain_graph=True, or compute the result again"
            )
        if not isinstance(node.op, OpDef):
            self._meet(node)
            return [], None
        inputs = []
        for x, edge, version in zip(node.inputs, node.edges, node.versions, strict=True):
            if not hasattr(x, "_storage"):
                inputs.append(x)
                continue
            if edge.__class__ is Node and x._node is edge:
                self.outs[id(edge)] = x
            fresh = x._storage.version == version
            inputs.append(x if fresh else Overwritten(x, node.op.name))
        out = self.outs.pop(id(node), None)
        if out is None or out._storage.version != node.version:
            out = Overwritten(out if out is not None else inputs[0], node.op.name)
        return inputs, out

    def _meet(self, node: Node) -> None:
        """See what a branch or loop was made from; it needs the values again."""
        for x, edge, version in zip(node.inputs or (), node.edges, node.versions, strict=True):
            if x is None:
                continue
            if edge.__class__ is Node and x._node is edge:
                self.outs[id(edge)] = x
            if x._storage.version != version:
                raise Overwritten(x, node.op.name).refusal()


_OPERATIONS: Final = {name: _operation(name) for name in OPERATIONS} | {
    "to_device": transfer.to_device
}
_builders: dict[tuple[Any, Any], EagerBuilder] = {}


def _builder_for(x: Any) -> EagerBuilder:
    """The builder whose constants live where ``x`` does."""
    tracer = tracer_of(x)
    if tracer is not None:
        return EagerBuilder(_OPERATIONS | {"full": tracer.full})
    key = (type(x), x.device)
    if key not in _builders:

        def full(*, shape: Any, value: Any, dtype: Any) -> Any:
            result = key[0]._from_array(np.full(shape, value, dtype.numpy))
            return result if key[1] is CPU else result.to(key[1])

        _builders[key] = EagerBuilder(_OPERATIONS | {"full": full})
    return _builders[key]


def _seed(root: Any, gradient: Any, operation: str) -> Any:
    """The gradient to start with, checked against the result."""
    if not root.requires_grad:
        raise GradientError(
            f"{operation}: nothing to differentiate: the result of shape {root.shape} was not "
            "computed from a tensor with requires_grad=True (or was computed under no_grad)"
        )
    if gradient is None:
        if root.size != 1:
            raise ShapeError(
                f"{operation}: expected a result with one element, received shape {root.shape}; "
                "reduce it first, for example with .sum(), or pass gradient="
            )
        return _builder_for(root).full(shape=root.shape, value=1.0, dtype=root.dtype)
    if not hasattr(gradient, "_data"):
        raise DtypeError(
            f"{operation}: expected a Tensor as gradient, received {type(gradient).__name__}; "
            "use dilim.full(x.shape, number)"
        )
    if gradient.shape != root.shape or gradient.dtype is not root.dtype:
        raise ShapeError(
            f"{operation}: expected a gradient of shape {root.shape} and dtype {root.dtype.name}, "
            f"received {gradient.shape} and {gradient.dtype.name}"
        )
    return gradient


def backward(
    root: Any, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False
) -> None:
    """See `Tensor.backward`."""
    seed = _seed(root, gradient, "backward")
    keep = create_graph if retain_graph is None else retain_graph
    if root._node is None:
        _accumulate(root, seed, set())
        return
    walk = _Walk([root])
    leaves = {id(e): e for node in walk.nodes for e in node.edges if _is_leaf(e)}
    gradients = {id(root._node): seed}
    before, mode.recording = mode.recording, create_graph
    try:
        for _ in pull_back(walk.nodes, gradients, _builder_for(root), walk.operands):
            pass
        shared: set[int] = {id(seed)}
        for key, value in gradients.items():
            _accumulate(leaves[key], certain(value), shared)
    finally:
        mode.recording = before
    if not keep:
        for node in walk.nodes:
            node.release()


def _is_leaf(edge: Any) -> bool:
    return edge is not None and edge.__class__ is not Node


def _accumulate(leaf: Any, gradient: Any, shared: set[int]) -> None:
    """Add to ``leaf.grad``; its first gradient gets memory of its own."""
    tracer = tracer_of(gradient)
    if tracer is not None:
        tracer.expect_gradient(leaf)
    if leaf.grad is not None:
        leaf.grad = apply(OPERATIONS["add"], leaf.grad, gradient)
        return
    if gradient._is_view or id(gradient) in shared:
        gradient = apply(OPERATIONS["astype"], gradient, dtype=gradient.dtype)
    shared.add(id(gradient))
    leaf.grad = gradient


def gradients(
    outputs: Sequence[Tensor],
    inputs: Sequence[Tensor],
    seeds: Sequence[Tensor | None] | None = None,
    *,
    create_graph: bool = False,
    retain_graph: bool | None = None,
) -> list[Tensor]:
    """Gradients of outputs with respect to inputs, without touching any ``grad``.

    Args:
        outputs: results of recorded operations.
        inputs: leaves or intermediate results that they were made from.
        seeds: one gradient per output to start with; None means 1 for single elements.
        create_graph: record the derivatives, for derivatives of higher order.
        retain_graph: keep the tape; by default only with create_graph.

    Returns:
        One gradient per input; zeros where an output does not depend on it.

    Raises:
        GradientError: an input does not require a gradient, or the tape was used up.
    """
    keep = create_graph if retain_graph is None else retain_graph
    settle(inputs)
    for x in inputs:
        if not x.requires_grad:
            raise GradientError(
                f"gradients: an input of shape {x.shape} does not require a gradient; create it "
                "with requires_grad=True"
            )
    pairs = zip(outputs, seeds or [None] * len(outputs), strict=True)
    started = [(x, _seed(x, seed, "gradients")) for x, seed in pairs]
    walk = _Walk(outputs)
    keys = [id(_edge(x)) for x in inputs]
    useful = leading_to(walk.nodes, set(keys))
    found: dict[int, Any] = {}
    builder = _builder_for(outputs[0])
    before, mode.recording = mode.recording, create_graph
    try:
        pending: dict[int, Any] = {}
        for x, seed in started:
            key = id(_edge(x))
            pending[key] = seed if key not in pending else builder.add(pending[key], seed)
        for node, gradient in pull_back(walk.nodes, pending, builder, walk.operands, useful):
            found[id(node)] = gradient
        found.update(pending)
    finally:
        mode.recording = before
    if not keep:
        for node in walk.nodes:
            node.release()
    return [
        certain(found[key])
        if key in found
        else builder.full(shape=x.shape, value=0.0, dtype=x.dtype)
        for key, x in zip(keys, inputs, strict=True)
    ]


def pulled(
    outputs: Sequence[Any],
    seeds: Sequence[Any],
    inputs: Sequence[Any],
    since: int,
    before: list[Any],
) -> list[Any]:
    """Gradients of inputs through what was recorded since a moment, added to those before.

    Args:
        outputs: results.
        seeds: their gradients; None for none.
        inputs: tensors that require gradients.
        since: a `tape.now`; what was recorded earlier is not walked.
        before: per input a gradient to which is added, or None; it may be `Unsure`.

    Returns:
        One gradient per input; None where there is none. It may be `Unsure`.
    """
    pairs = [(x, g) for x, g in zip(outputs, seeds, strict=True) if g is not None]
    pending = {id(_edge(x)): g for x, g in zip(inputs, before, strict=True) if g is not None}
    roots = [x for x, _ in pairs if x.requires_grad]
    if roots:
        builder = _builder_for(roots[0])
        for x, seed in pairs:
            if x.requires_grad:
                known = pending.get(id(_edge(x)))
                pending[id(_edge(x))] = seed if known is None else added(builder, known, seed)
        walk = _Walk(roots, since)
        for _ in pull_back(walk.nodes, pending, builder, walk.operands):
            pass
    return [pending.get(id(_edge(x))) for x in inputs]


def depends_on_others(result: Any, inputs: Sequence[Any]) -> bool:
    """Whether ``result`` was made from leaves that require gradients beside ``inputs``."""
    known = {id(x) for x in inputs}
    settle([result])
    if result._node is None:
        return bool(result.requires_grad) and id(result) not in known
    nodes = reachable([_edge(result)], _is_node)
    return any(_is_leaf(e) and id(e) not in known for node in nodes for e in node.edges)


def _edge(x: Any) -> Any:
    return x if x._node is None else x._node
