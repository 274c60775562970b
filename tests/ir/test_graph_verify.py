"""The verifier lets good graphs pass and names the fault of broken ones."""

import pytest

from dilim import dtypes
from dilim.errors import GraphError
from dilim.ir.graph import Graph, GraphBuilder, Node, Value
from dilim.ir.types import Type
from dilim.ir.verify import verify
from dilim.ops.table import OPERATIONS

f32 = dtypes.float32
X = Value(Type((2, 3), f32))
Y = Value(Type((2, 3), f32))
TOTAL = Value(Type((2,), f32))
EXP = Node("exp", (X,), {}, (Y,))
SUM = Node("sum", (Y,), {"axis": (1,), "keepdims": False}, (TOTAL,))


def test_a_good_graph_passes():
    verify(Graph((X,), (EXP, SUM), (TOTAL, TOTAL, X)), OPERATIONS)
    verify(Graph((), (), ()), OPERATIONS)


def result(type_):
    return (Value(type_),)


BROKEN = {
    "input twice": (Graph((X, X), (), ()), "input 1 is the same value as an earlier input"),
    "use before it is made": (
        Graph((X,), (SUM, EXP), (TOTAL,)),
        r"node 0 \(sum\): input 0 \(float32\[2,3\]\) is used before it is made",
    ),
    "input from nowhere": (Graph((), (EXP,), (Y,)), r"node 0 \(exp\): input 0"),
    "made twice": (Graph((X,), (EXP, EXP), (Y,)), r"node 1 \(exp\): its result was made before"),
    "input made again": (
        Graph((X, Y), (EXP,), (Y,)),
        r"node 0 \(exp\): its result was made before",
    ),
    "output from nowhere": (
        Graph((X,), (), (Y,)),
        r"output 0 \(float32\[2,3\]\) is made by no node",
    ),
    "unknown operation": (
        Graph((X,), (Node("expp", (X,), {}, (Y,)),), ()),
        r"node 0 \(expp\): there is no operation of that name",
    ),
    "wrong shape": (
        Graph((X,), (Node("exp", (X,), {}, result(Type((3, 2), f32))),), ()),
        r"expected a result of type float32\[2,3\], received float32\[3,2\]",
    ),
    "wrong dtype": (
        Graph((X,), (Node("exp", (X,), {}, result(Type((2, 3), dtypes.float64))),), ()),
        r"expected a result of type float32\[2,3\], received float64\[2,3\]",
    ),
    "too many inputs": (
        Graph((X,), (Node("exp", (X, X), {}, (Y,)),), ()),
        "the operation refuses its inputs",
    ),
    "no inputs": (Graph((), (Node("matmul", (), {}, (Y,)),), ()), "refuses its inputs"),
    "a missing parameter": (Graph((X,), (Node("sum", (X,), {}, (Y,)),), ()), "axis"),
    "an unknown parameter": (Graph((X,), (Node("exp", (X,), {"base": 2}, (Y,)),), ()), "base"),
    "inner sizes": (Graph((X,), (Node("matmul", (X, X), {}, (Y,)),), ()), "inner sizes differ"),
    "two results": (
        Graph((X,), (Node("exp", (X,), {}, (Y, TOTAL)),), ()),
        "expected one result, received 2",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_broken_graph_is_refused(name):
    graph, message = BROKEN[name]
    with pytest.raises(GraphError, match=message):
        verify(graph, OPERATIONS)


def test_an_output_can_be_an_input_and_the_builder_keeps_the_order():
    builder = GraphBuilder()
    x = builder.input(X.type, "x")
    y = builder.add("exp", [x], {}, x.type)
    z = builder.add("negative", [y], {}, y.type)
    graph = builder.build([z, x])
    verify(graph, OPERATIONS)
    assert [node.op for node in graph.nodes] == ["exp", "negative"]
    assert (x.shape, x.dtype) == ((2, 3), f32)
