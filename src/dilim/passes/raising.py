"""Which nodes may raise: those whose recipe checks positions, unless the positions are proven."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dilim.ir.graph import Node, Value
from dilim.ir.structure import STRUCTURAL, holds
from dilim.ops.table import OPERATIONS
from dilim.shapes import size_of

RAISING: Final = frozenset(name for name, op in OPERATIONS.items() if op.failure is not None)
"""Operations that may raise."""
POSITIONS: Final = frozenset({"take", "index_add", "take_along_axis", "add_along_axis"})
"""Those that check their second input against the size of an axis."""
_SAME_NUMBERS: Final = frozenset(
    {"reshape", "permute", "expand", "flip", "slice", "identity", "concat", "where"}
)


def may_raise(node: Node, producers: Mapping[Value, Node] | None = None) -> bool:
    """Whether running a node, or one in its regions, may raise.

    Args:
        node: any node.
        producers: value -> the node that makes it; with it, positions that are known to be inside
            their axis are found to be harmless.
    """
    if node.op in RAISING:
        return producers is None or not _harmless(node, producers)
    return holds(node, RAISING)


def _harmless(node: Node, producers: Mapping[Value, Node]) -> bool:
    if node.op not in POSITIONS:
        return False
    size = node.inputs[0].shape[node.params["axis"]]
    found = bounds(node.inputs[1], producers)
    return found is not None and -size <= found[0] and found[1] < size


def bounds(value: Value, producers: Mapping[Value, Node], depth: int = 8) -> tuple[int, int] | None:
    """The smallest and largest number that an integer value can hold, where they are known."""
    node = producers.get(value)
    if node is None or node.op in STRUCTURAL or depth == 0:
        return None
    params = node.params
    if node.op == "full":
        return int(params["value"]), int(params["value"])
    if node.op in ("argmax", "argmin"):
        shape = node.inputs[0].shape
        return 0, size_of(tuple(shape[axis] for axis in params["axis"])) - 1
    if node.op == "random_integers":
        return int(params["low"]), int(params["high"]) - 1
    if node.op == "random_permutation":
        return 0, int(params["count"]) - 1
    if node.op in _SAME_NUMBERS:
        inputs = node.inputs[1:] if node.op == "where" else node.inputs
        parts = [bounds(x, producers, depth - 1) for x in inputs]
        known = [part for part in parts if part is not None]
        if len(known) == len(parts):
            return min(low for low, _ in known), max(high for _, high in known)
    return None
