"""Which nodes may raise: those whose recipe has a check, unless its numbers are proven.

And which may never end: loops that only a condition stops.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dilim.ir.graph import Node, Value
from dilim.ir.structure import LOOP, STRUCTURAL, walk
from dilim.ops.table import OPERATIONS
from dilim.shapes import size_of

POSITIONS: Final = frozenset({"take", "index_add", "take_along_axis", "add_along_axis"})
"""Those that check their second input against the size of an axis."""
ENDLESS: Final = 1 << 40
"""Turns that nobody waits for: a loop with this limit or a larger one is taken for endless."""
_SAME_NUMBERS: Final = frozenset(
    {"reshape", "permute", "expand", "flip", "slice", "identity", "concat", "where"}
)


def has_check(node: Node) -> bool:
    """Whether the recipe of a node has a check, though it may be known to hold."""
    operation = OPERATIONS.get(node.op)
    return operation is not None and operation.can_fail(node.results[0].dtype)


def may_raise(node: Node, producers: Mapping[Value, Node] | None = None) -> bool:
    """Whether running a node, or one in its regions, may raise.

    Args:
        node: any node.
        producers: value -> the node that makes it; with it, positions that are known to be inside
            their axis, and exponents that are known not to be negative, are found to be harmless.
    """
    if has_check(node):
        return producers is None or not _harmless(node, producers)
    return any(has_check(inner) for region in node.regions for inner in walk(region))


def is_movable(node: Node) -> bool:
    """Whether an operation may be computed elsewhere, or not at all."""
    return node.op not in STRUCTURAL and not may_raise(node)


def may_never_end(node: Node, producers: Mapping[Value, Node]) -> bool:
    """Whether running a node, or one in its regions, may take for ever.

    Args:
        node: any node.
        producers: value -> the node that makes it.
    """
    inside = [inner for region in node.regions for inner in walk(region)]
    loops = [loop for loop in (node, *inside) if loop.op == LOOP]
    if loops:
        producers = {**producers, **{value: inner for inner in inside for value in inner.results}}
    return any(_is_endless(loop, producers) for loop in loops)


def _is_endless(loop: Node, producers: Mapping[Value, Node]) -> bool:
    limit = bounds(loop.inputs[0], producers)
    if limit is None:
        return len(loop.regions) == 2  # what is only counted is left at some time
    return limit[1] >= ENDLESS


def _harmless(node: Node, producers: Mapping[Value, Node]) -> bool:
    if node.op != "pow" and node.op not in POSITIONS:
        return False
    found = bounds(node.inputs[1], producers)
    if found is None:
        return False
    if node.op == "pow":
        return found[0] >= 0
    size: int = node.inputs[0].shape[node.params["axis"]]
    return -size <= found[0] and found[1] < size


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
