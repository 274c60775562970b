"""The structural operations: state, control flow, channels and fused kernels.

``read(variable) -> value``
    The contents of a variable at this point of the program.
``write(variable, value)``
    Replace the contents. No result.
``if(condition) {then} {else} -> results``
    ``condition`` is a bool of shape (). Both regions have no inputs and outputs of the same types.
``loop(limit, *carried) {body} -> results``, ``loop(limit, *carried) {condition} {body} -> results``
    ``limit`` is an int64 of shape (). Regions take ``(index, *carried)``, index being an int64 of
    shape () that counts from 0. While ``index < limit`` and the condition (one bool of shape ())
    holds, the body gives the next carried values, of the same types. The results are the last ones.
``send[channel=name](*values)``
    Hand values to the host. No result. A channel point. With ``final=True`` the program does not go
    on from there: the host leaves it. With ``quiet=True`` the host writes no variable there. With
    ``stop=True`` the program passes by, unless it was told to stop.
``receive[channel=name]() -> results``
    Take values from the host. A channel point; ``quiet=True`` as above.
``fused(*inputs) {body} -> results``
    One kernel. The region has one input per input, operations of the table only, and gives the
    results; what lies between is never stored.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from typing import Final

from dilim.ir.graph import Graph, Node, Value, Variable

READ: Final = "read"
WRITE: Final = "write"
IF: Final = "if"
LOOP: Final = "loop"
SEND: Final = "send"
RECEIVE: Final = "receive"
FUSED: Final = "fused"

STRUCTURAL: Final = frozenset({READ, WRITE, IF, LOOP, SEND, RECEIVE, FUSED})
"""Names that are no operations of the table."""
CONTROL: Final = frozenset({IF, LOOP})
CHANNELS: Final = frozenset({SEND, RECEIVE})
EFFECTS: Final = frozenset({WRITE, SEND, RECEIVE})
"""Operations that must stay, once each and in order, whether or not a result is used."""


def walk(graph: Graph) -> Iterator[Node]:
    """All nodes of a graph, each before those of its regions."""
    for node in graph.nodes:
        yield node
        for region in node.regions:
            yield from walk(region)


def fused_nodes(graph: Graph) -> list[Node]:
    """The kernel calls of a program, in order."""
    return [node for node in walk(graph) if node.op == FUSED]


def holds(node: Node, operations: Container[str]) -> bool:
    """Whether a node, or one in its regions, applies one of some operations."""
    return node.op in operations or any(
        inner.op in operations for region in node.regions for inner in walk(region)
    )


def has_effect(node: Node) -> bool:
    """Whether a node, or one in its regions, writes, sends or receives."""
    return holds(node, EFFECTS)


def host_may_write(node: Node) -> bool:
    """Whether a node, or one in its regions, meets the host, which may write, and goes on."""
    if node.op in CHANNELS:
        return not (node.params.get("final") or node.params.get("quiet"))
    return any(
        any(map(host_may_write, region.nodes)) and not any(map(_is_final, region.nodes))
        for region in node.regions
    )


def final(send: Node) -> Node:
    """A send from which the program does not go on."""
    return Node(send.op, send.inputs, {**send.params, "final": True}, (), (), send.site)


def _is_final(node: Node) -> bool:
    return node.op == SEND and bool(node.params.get("final"))


def written(node: Node) -> set[Value]:
    """The variables that a node, or one in its regions, writes."""
    found = {node.inputs[0]} if node.op == WRITE else set()
    for region in node.regions:
        found |= {inner.inputs[0] for inner in walk(region) if inner.op == WRITE}
    return found


def free_values(node: Node) -> list[Value]:
    """The values from outside that a node uses, its regions included, in order of first use."""
    found: dict[Value, None] = dict.fromkeys(node.inputs)
    for region in node.regions:
        found.update(dict.fromkeys(region.captured()))
    return list(found)


def is_variable(value: Value) -> bool:
    """Whether a value is a `Variable`."""
    return isinstance(value, Variable)
