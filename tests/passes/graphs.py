"""Graphs of tests, written as text and compared as text."""

from textwrap import dedent

from dilim.ir.graph import Node
from dilim.ir.structure import STRUCTURAL, walk
from dilim.ir.text import digest, from_text, to_text
from dilim.ir.verify import verify
from dilim.ops.table import OPERATIONS
from dilim.passes.rewriting import with_nodes


def parsed(text):
    """The graph of a text, verified."""
    result = from_text(dedent(text).strip())
    verify(result, OPERATIONS)
    return result


def body(lines, inputs="%x: float32[3]"):
    """The graph of some lines, with %x and perhaps other inputs."""
    return parsed(f"graph({inputs}) {{\n{dedent(lines).strip()}\n}}")


def becomes(one, before, after, inputs="%x: float32[3]"):
    """Assert that a pass makes of some lines exactly others, but for names."""
    got = one(body(before, inputs))
    verify(got, OPERATIONS)
    if digest(got) != digest(body(after, inputs)):
        raise AssertionError(to_text(got))


def ops(graph):
    """Names of all nodes in order, those of regions after their node."""
    return [node.op for node in walk(graph)]


def find(graph, op):
    """The nodes of one name, in order."""
    return [node for node in walk(graph) if node.op == op]


def without_permissions(graph):
    """The graph without what `in_place` adds."""
    nodes = []
    for node in graph.nodes:
        params = node.params
        if node.op in STRUCTURAL:
            params = {key: x for key, x in params.items() if key == "channel"}
        regions = tuple(without_permissions(region) for region in node.regions)
        nodes.append(Node(node.op, node.inputs, params, node.results, regions, node.site))
    return with_nodes(graph, nodes)
