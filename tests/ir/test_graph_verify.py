"""The verifier lets good graphs pass and names the fault of broken ones."""

import pytest
from hypothesis import given

from dilim import dtypes
from dilim.errors import GraphError
from dilim.ir.graph import Graph, GraphBuilder, Node, Value, Variable
from dilim.ir.text import from_text
from dilim.ir.types import Type
from dilim.ir.verify import verify
from dilim.ops.table import OPERATIONS
from ir.programs import programs

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
    "input twice": (
        Graph((X, X), (), ()),
        "input 1 is the same value as an earlier input or result",
    ),
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
        r"graph: output 0 \(float32\[2,3\]\) is used before it is made, or never made",
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


# --- structure ------------------------------------------------------------------------------


@given(programs(fused=True, errors=True))
def test_random_programs_pass(program):
    verify(program.graph, OPERATIONS)


def structure(lines, inputs="%n: int64[], %c: bool[], %x: float32[3]"):
    body = "\n".join(f"  {line}" for line in lines.split("\n"))
    return f"graph({inputs}; %w: float32[3]) {{\n{body}\n  return\n}}"


ITEM = "(%i: int64[], %a: float32[3])"
FAULTS = {
    # variables
    "a variable as operand": (
        "%1: float32[3] = exp(%w)",
        r"graph: node 0 \(exp\): input 0 is the variable 'w'; only read and write take one",
    ),
    "a variable as output": (
        "%1: float32[3] = if(%c) {\nyield %w\n} else {\nyield %x\n}",
        r"node 0 \(if\), then: output 0 is the variable 'w'",
    ),
    "a variable as value": ("write(%w, %w)", r"\(write\): input 1 is the variable 'w'"),
    "reading a value": (
        "%1: float32[3] = read(%x)",
        r"\(read\): expected a variable as first input, received a plain value",
    ),
    "writing a value": ("write(%x, %x)", r"\(write\): expected a variable as first input"),
    "reading another type": (
        "%1: float32[2] = read(%w)",
        r"\(read\): expected result 0 of type float32\[3\], received float32\[2\]",
    ),
    "writing another type": (
        "write(%w, %n)",
        r"\(write\): expected a value of type float32\[3\], received int64\[\]",
    ),
    "reading twice": ("%1: float32[3] = read(%w, %x)", "expected 1 inputs, received 2"),
    "reading nothing": ("%1: float32[3] = read()", "expected 1 inputs, received 0"),
    "writing nothing": ("write(%w)", "expected 2 inputs, received 1"),
    "a write with a result": ("%1: float32[3] = write(%w, %x)", "expected 0 results, received 1"),
    "a read with parameters": (
        "%1: float32[3] = read[axis=0](%w)",
        r"\(read\): expected no parameters but copy, received axis=0",
    ),
    "an if with parameters": (
        "if[copy=True](%c) {\nyield\n} else {\nyield\n}",
        r"\(if\): expected no parameters but in_place, received copy=True",
    ),
    "memory of another size": (
        "%1: float32[] = fused[alias=((0, 0),)](%x) (%2: float32[3]) {\n"
        "%3: float32[] = sum[axis=(0,), keepdims=False](%2)\nyield %3\n}",
        r"result 0 of type float32\[\] cannot lie in the memory of input 0 of type float32\[3\]",
    ),
    "a read with a region": (
        "%1: float32[3] = read(%w) {\nyield\n}",
        "expected 0 regions, received 1",
    ),
    # if
    "a condition of another type": (
        "if(%n) {\nyield\n} else {\nyield\n}",
        r"\(if\): expected a condition of type bool\[\], received int64\[\]",
    ),
    "no condition": ("if() {\nyield\n} else {\nyield\n}", "expected 1 inputs, received 0"),
    "one branch": ("if(%c) {\nyield\n}", r"\(if\): expected 2 regions, received 1"),
    "a branch with inputs": (
        "if(%c) (%1: bool[]) {\nyield\n} else {\nyield\n}",
        r"\(if\), then: expected 0 inputs, received 1",
    ),
    "branches that differ": (
        "%1: float32[3] = if(%c) {\nyield %x\n} else {\nyield %n\n}",
        r"\(if\), else: expected output 0 of type float32\[3\], received int64\[\]",
    ),
    "a branch with fewer outputs": (
        "%1: float32[3] = if(%c) {\nyield %x\n} else {\nyield\n}",
        r"\(if\), else: expected 1 outputs, received 0",
    ),
    # loop
    "no limit": ("loop() (%i: int64[]) {\nyield\n}", r"\(loop\): expected a limit as first"),
    "a limit of another type": (
        "loop(%x) (%i: int64[]) {\nyield\n}",
        r"\(loop\): expected a limit of type int64\[\], received float32\[3\]",
    ),
    "results that are not carried": (
        "%1: float32[3] = loop(%n) (%i: int64[]) {\nyield %x\n}",
        r"\(loop\): expected 0 results, received 1",
    ),
    "no index": (
        "%1: float32[3] = loop(%n, %x) (%a: float32[3]) {\nyield %a\n}",
        r"\(loop\), body: expected 2 inputs, received 1",
    ),
    "an index of another type": (
        "loop(%n) (%i: int32[]) {\nyield\n}",
        r"\(loop\), body: expected input 0 of type int64\[\], received int32\[\]",
    ),
    "a body that changes a type": (
        f"%1: float32[3] = loop(%n, %x) {ITEM} {{\nyield %i\n}}",
        r"\(loop\), body: expected output 0 of type float32\[3\], received int64\[\]",
    ),
    "a condition that is no bool": (
        f"%1: float32[3] = loop(%n, %x) while {ITEM} {{\nyield %i\n}} do "
        "(%j: int64[], %b: float32[3]) {\nyield %b\n}",
        r"\(loop\), condition: expected output 0 of type bool\[\], received int64\[\]",
    ),
    "three regions": (
        "loop(%n) (%i: int64[]) {\nyield\n} (%j: int64[]) {\nyield\n} (%k: int64[]) {\nyield\n}",
        r"\(loop\): expected 1 or 2 regions, received 3",
    ),
    # what regions see
    "a deep fault": (
        f"%1: float32[3] = loop(%n, %x) {ITEM} {{\nif(%c) {{\nyield\n}} else {{\n"
        "%2: float32[] = exp(%a)\nyield\n}\nyield %a\n}",
        r"graph: node 0 \(loop\), body, node 0 \(if\), else, node 0 \(exp\): expected a result",
    ),
    "a region where none belongs": (
        "%1: float32[3] = exp(%x) {\nyield\n}",
        r"\(exp\): expected 0 regions, received 1",
    ),
    # channels
    "no channel": ("send(%x)", r"\(send\): expected a parameter channel='name', received {}"),
    "a channel that is no name": ("send[channel=3](%x)", "expected a parameter channel='name'"),
    "a send with a result": ("%1: bool[] = send[channel='a'](%c)", "expected 0 results, received"),
    "a receive with an input": ("receive[channel='a'](%c)", "expected 0 inputs, received 1"),
    # kernels
    "a kernel of other inputs": (
        "%1: float32[3] = fused(%x) (%2: float32[2]) {\nyield %2\n}",
        r"\(fused\), body: expected input 0 of type float32\[3\], received float32\[2\]",
    ),
    "a kernel of other results": (
        "%1: float32[3] = fused(%x) (%2: float32[3]) {\nyield\n}",
        r"\(fused\), body: expected 1 outputs, received 0",
    ),
    "a kernel that is not closed": (
        "%1: float32[3] = fused(%x) (%2: float32[3]) {\n%3: float32[3] = add(%2, %x)\nyield %3\n}",
        r"\(fused\), body, node 0 \(add\): input 1 \(float32\[3\]\) cannot be seen from here",
    ),
    "a kernel with state": (
        "fused() {\n%1: float32[3] = read(%w)\nyield\n}",
        r"\(fused\), body, node 0 \(read\): a kernel has operations of the table only",
    ),
    "a kernel of two": (
        "fused() {\nyield\n} and {\nyield\n}",
        r"\(fused\): expected 1 regions, received 2",
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_of_structure_is_named(name):
    lines, message = FAULTS[name]
    with pytest.raises(GraphError, match=message):
        verify(from_text(structure(lines)), OPERATIONS)


COUNT = Type((), dtypes.int64)
STATE = Variable(Type((2, 3), f32), "w")


def looping(body):
    """A graph that runs a region ten times."""
    limit = Value(COUNT)
    ten = Node("full", (), {"shape": (), "value": 10, "dtype": dtypes.int64}, (limit,))
    return ten, Node("loop", (limit,), {}, (), (body,))


def region(nodes, outputs=(), **more):
    return Graph((Value(COUNT),), tuple(nodes), tuple(outputs), **more)


READING = Node("read", (STATE,), {}, (Value(STATE.type),))
HAND_MADE = {
    "inside seen from outside": (
        Graph((X,), (*looping(region([EXP])), SUM), ()),
        r"node 2 \(sum\): input 0 \(float32\[2,3\]\) cannot be seen from here: it is made in",
    ),
    "made in two regions": (
        Graph((X,), (*looping(region([EXP])), *looping(region([EXP]))), ()),
        r"node 3 \(loop\), body, node 0 \(exp\): its result was made before",
    ),
    "seen before it is made": (
        Graph((X,), (*looping(region([SUM])), EXP), ()),
        r"node 1 \(loop\), body, node 0 \(sum\): input 0 .* used before it is made",
    ),
    "an undeclared variable": (
        Graph((), (READING,), ()),
        r"node 0 \(read\): the variable 'w' is not declared by the graph",
    ),
    "a variable declared twice": (
        Graph((), (), (), (STATE, STATE)),
        "variable 1 is declared twice",
    ),
    "a value declared as variable": (Graph((), (), (), (X,)), "variable 0 is a plain value"),
    "a variable as input": (Graph((STATE,), (), ()), "input 0 is a variable; list it as one"),
    "a variable of a region": (
        Graph((), looping(region([], variables=(STATE,))), ()),
        r"node 1 \(loop\), body: regions have no variables and sites of their own",
    ),
    "a site that is not there": (
        Graph((X,), (Node("exp", (X,), {}, (Y,), (), 0),), ()),
        r"node 0 \(exp\): expected a site below 0, received 0",
    ),
    "a parameter that no text can hold": (
        Graph((X,), (Node("sum", (X,), {"axis": [1], "keepdims": False}, (TOTAL,)),), ()),
        r"expected parameters made of .*, received axis=\[1\] of type list",
    ),
}


@pytest.mark.parametrize("name", HAND_MADE)
def test_a_fault_of_scope_is_named(name):
    graph, message = HAND_MADE[name]
    with pytest.raises(GraphError, match=message):
        verify(graph, OPERATIONS)
