"""Nodes of the tape that are made when somebody asks for them."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dilim.tensors.tape import Node

if TYPE_CHECKING:
    from dilim.ops.opdef import OpDef
    from dilim.tensors.replays import Replay
    from dilim.tensors.tensor import Tensor


class Deferred(Node):
    """The node of a result of a `Replay`."""

    __slots__ = ("__weakref__", "_made", "_number", "_replay", "_resolved")

    def __init__(self, replay: Replay, number: int, made: Tensor) -> None:
        self._replay = replay
        self._number = number
        self._made = weakref.ref(made)
        self._resolved: Node | None = None
        self.version = made._storage.version
        made._node, made._requires_grad = self, True
        made._storage.on_tape = True
        _all.add(self)

    def resolved(self) -> Node:
        """The node that eager execution would have recorded."""
        if self._resolved is None:
            made = self._made()
            if made is None:
                made = self._replay.results()[self._number]
            self._resolved = self._replay.adopt(self._number, made, self.version)
            if made._node is self:
                made._node = self._resolved
        return self._resolved

    @property
    def op(self) -> OpDef:  # type: ignore[override]
        """The operation."""
        return self.resolved().op

    @property
    def inputs(self) -> Any:  # type: ignore[override]
        """None once it was used up."""
        return self._replay.inputs

    @property
    def edges(self) -> Any:  # type: ignore[override]
        """See `Node`."""
        return self.resolved().edges

    def release(self) -> None:
        """See `Node.release`."""
        self._replay.release()


_all: weakref.WeakSet[Deferred] = weakref.WeakSet()


def settle(roots: Sequence[Tensor]) -> None:
    """Have recorded what leads to these tensors, if it is still to be recorded."""
    if not _all:
        return
    stack: list[Any] = []
    for x in roots:
        if x._node.__class__ is Deferred:
            x._node = x._node.resolved()
        stack.append(x._node)
    seen: set[int] = set()
    while stack:
        node = stack.pop()
        if node.__class__ is not Node or id(node) in seen:
            continue
        seen.add(id(node))
        if any(edge.__class__ is Deferred for edge in node.edges):
            _settle_edges(node)
        stack.extend(node.edges)


def _settle_edges(node: Node) -> None:
    edges = list(node.edges)
    for position, edge in enumerate(edges):
        if edge.__class__ is Deferred:
            edges[position] = edge.resolved()
            x: Any = node.inputs[position]  # type: ignore[index]
            if x._node is edge:
                x._node = edges[position]
    node.edges = tuple(edges)
