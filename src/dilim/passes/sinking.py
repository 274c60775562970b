"""Sinking: what only the last turn of a loop leaves behind is computed after the loop.

A loss that each turn computes anew, and that is looked at only after the loop, is such a value. The
loop carries in its place what the last turn began with, where that is little.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from dilim import dtypes
from dilim.ir.graph import Graph, Node, Value
from dilim.ir.structure import FUSED, IF, LOOP, free_values
from dilim.ir.types import Type
from dilim.passes.branch_sinking import into_branches
from dilim.passes.dead_code import dead_code
from dilim.passes.raising import is_movable
from dilim.passes.rewriting import rebuilt, with_nodes

_INDEX, _TRUTH = Type((), dtypes.INDEX), Type((), dtypes.bool_)
_LEAST_WORK: Final = 16
"""Elements computed in a turn for which it is worth while."""
_COPY: Final = 4
"""Elements that could be computed in the time in which one is copied."""
_FREE: Final = frozenset({"full", "reshape", "permute", "expand", "identity", "slice", "flip"})


def sinking(graph: Graph) -> Graph:
    """Take values out of loops that no turn looks at, and compute them from the last turn's start.

    Only operations that cannot raise move. A value keeps what it was before the loop if there was
    no turn.
    """
    nodes: list[Node] = []
    for node in graph.nodes:
        if node.regions and node.op != FUSED:
            node = rebuilt(node, node.inputs, tuple([sinking(x) for x in node.regions]))
        nodes += _sunk(node) if node.op == LOOP else [node]
    return with_nodes(graph, nodes)


@dataclass(frozen=True, slots=True)
class _Slice:
    """What a loop computes for some of its values alone.

    Attributes:
        places: of these values among those carried.
        nodes: all that they need, in order.
        starts: inputs of the body that these use.
        rest: the body without them; what only one of its branches looks at is computed there.
    """

    places: tuple[int, ...]
    nodes: tuple[Node, ...]
    starts: tuple[Value, ...]
    rest: Graph


def _sunk(loop: Node) -> list[Node]:
    found = _slice_of(loop)
    if found is None:
        return [loop]
    body = loop.regions[-1]
    stay = [k for k in range(len(loop.results)) if k not in found.places]
    # Carried from now on: what the last turn began with, and, where a condition may end the loop
    # before its first turn, whether there was a turn.
    zero, no, yes = _full(0, _INDEX), _full(False, _TRUTH), _full(True, _TRUTH)
    firsts = {body.inputs[0]: zero.results[0]} | dict(
        zip(body.inputs[1:], loop.inputs[1:], strict=True)
    )
    more = [(firsts[start], start) for start in found.starts]
    before = [Value(start.type) for start in found.starts]
    if len(loop.regions) == 2:
        more.append((no.results[0], yes.results[0]))
        began, flag = Value(_TRUTH), []
        results = [*before, began]
    else:
        began, results = Value(_TRUTH), before
        flag = [Node("greater", (loop.inputs[0], zero.results[0]), {}, (began,))]
    regions = []
    for region in loop.regions:
        inputs = [region.inputs[0], *(region.inputs[k + 1] for k in stay)]
        inputs += [Value(first.type) for first, _ in more]
        if region is body:
            region = found.rest
            outputs = (*region.outputs, *(then for _, then in more))
            region = with_nodes(region, region.nodes, outputs)
        regions.append(Graph(tuple(inputs), region.nodes, region.outputs))
    shorter = Node(
        LOOP,
        (loop.inputs[0], *(loop.inputs[k + 1] for k in stay), *(first for first, _ in more)),
        loop.params,
        (*(loop.results[k] for k in stay), *results),
        tuple(regions),
        loop.site,
    )
    return [zero, no, yes, shorter, *flag, _after(loop, found, began, before)]


def _after(loop: Node, found: _Slice, began: Value, before: Sequence[Value]) -> Node:
    """The branch that computes the values after the loop, if there was a turn."""
    body = loop.regions[-1]
    names = dict(zip(found.starts, before, strict=True))
    copies = []
    for node in found.nodes:
        results = tuple([Value(x.type, x.name) for x in node.results])
        inputs = tuple([names.get(x, x) for x in node.inputs])
        copies.append(Node(node.op, inputs, node.params, results, (), node.site))
        names.update(zip(node.results, results, strict=True))
    then = Graph((), tuple(copies), tuple(names[body.outputs[k]] for k in found.places))
    otherwise = Graph((), (), tuple(loop.inputs[k + 1] for k in found.places))
    results = tuple(loop.results[k] for k in found.places)
    return Node(IF, (began,), {}, results, (then, otherwise), loop.site)


def _slice_of(loop: Node) -> _Slice | None:
    """The values that can be sunk, if that is worth while."""
    body = loop.regions[-1]
    seen = [set(Graph((), region.nodes, region.outputs).captured()) for region in loop.regions]
    made = {result for node in body.nodes for result in node.results}
    places = tuple(
        k
        for k, output in enumerate(body.outputs)
        if output in made
        and not any(x.inputs[k + 1] in used for x, used in zip(loop.regions, seen, strict=True))
        and all(map(is_movable, _needed(body, [output])))
    )
    if not places:
        return None
    others = tuple([x for k, x in enumerate(body.outputs) if k not in places])
    rest = into_branches(dead_code(Graph(body.inputs, body.nodes, others)))
    staying = set(_needed(rest, others, (x for x in rest.nodes if not is_movable(x))))
    nodes = _needed(body, [body.outputs[k] for k in places])
    used = {x for node in nodes for x in node.inputs}
    starts = tuple(x for x in body.inputs if x in used)
    work = sum(_work(node) for node in nodes if node not in staying)
    if work < _LEAST_WORK + _COPY * sum(x.type.size for x in starts):
        return None
    return _Slice(places, tuple(nodes), starts, rest)


def _needed(body: Graph, outputs: Sequence[Value], kept: Iterable[Node] = ()) -> list[Node]:
    """The nodes that some values need, and some nodes with all that these need; in order."""
    wanted, keep = set(outputs), set(kept)
    found = []
    for node in reversed(body.nodes):
        if node in keep or not wanted.isdisjoint(node.results):
            wanted.update(free_values(node))
            found.append(node)
    found.reverse()
    return found


def _work(node: Node) -> int:
    """About how many elements are computed."""
    if node.op in _FREE:
        return 0
    return max(value.type.size for value in (*node.inputs, *node.results))


def _full(value: bool | int, kind: Type) -> Node:
    params = {"shape": kind.shape, "value": value, "dtype": kind.dtype}
    return Node("full", (), params, (Value(kind),))
