"""At which position operations read their operands."""

from __future__ import annotations

from typing import Final

from dilim.ir.graph import Graph, Node, Value
from dilim.ops import binary, comparison, transcendental, unary
from dilim.ops.nest import form_of, recipe_of
from dilim.ops.recipe import Scatter
from dilim.ops.table import OPERATIONS

ELEMENTWISE: Final = frozenset(
    operation.name
    for module in (unary, transcendental, binary, comparison)
    for operation in module.OPS
) | {"astype"}
"""Operations that compute each element from those at the same (broadcast) position."""
_OWN_INPUT: Final = {"take": 1, "take_along_axis": 1, "slice_update": 0}
"""Input that is read at the position that is made, of operations that read others elsewhere."""


def is_own(node: Node, position: int) -> bool:
    """Whether an operand is read only at the position, in row-major order, that is made of it."""
    if node.op not in ELEMENTWISE and node.op != "reshape" and _OWN_INPUT.get(node.op) != position:
        return False
    before, after = node.inputs[position].type, node.results[0].type
    return before.size == after.size and (after.size > 0 or before.shape == after.shape)


def scatter_base(node: Node) -> Value | None:
    """What a scatter starts from: the input that its kernel must find in memory."""
    if form_of(node, OPERATIONS) != "other":
        return None
    recipe = recipe_of(node, OPERATIONS)
    if not isinstance(recipe, Scatter) or recipe.base is None:
        return None
    return node.inputs[recipe.base]


def replaceable(kernel: Node, result: int, operand: int) -> bool:
    """Whether a result of a ``fused`` node may lie in the memory of one of its inputs.

    That is: they have one type, and each element of the input is read only to make the result's
    element at the same position; or the input is what a scatter starts from, and read by no one
    else.
    """
    before, after = kernel.inputs[operand].type, kernel.results[result].type
    if before.size != after.size or before.dtype is not after.dtype:
        return False
    (region,) = kernel.regions
    value = region.inputs[operand]
    return _read_in_place(region, value)


def _read_in_place(region: Graph, value: Value) -> bool:
    uses: dict[Value, list[tuple[Node, int]]] = {}
    for node in region.nodes:
        for position, x in enumerate(node.inputs):
            uses.setdefault(x, []).append((node, position))
    waiting, seen = [value], {value}
    while waiting:
        for node, position in uses.get(waiting.pop(), ()):
            if len(region.outputs) == 1 and scatter_base(node) is value:
                if len(uses[value]) == 1 and node.results[0] is region.outputs[0]:
                    continue
            if not is_own(node, position):
                return False
            if node.results[0] not in seen:
                seen.add(node.results[0])
                waiting.append(node.results[0])
    return True
