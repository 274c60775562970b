"""Graphs print readably and read back the same."""

import math
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dilim import dtypes
from dilim.errors import GraphError
from dilim.ir.graph import Graph, GraphBuilder, Site, Value, Variable
from dilim.ir.text import digest, from_text, to_text
from dilim.ir.types import Type
from dilim.ir.verify import verify
from dilim.ops.table import OPERATIONS
from ir.programs import programs, same_run

f32 = dtypes.float32
EXAMPLE = """\
graph(%x: float32[2,3], %w: float32[3,4]) {
  %2: float32[2,4] = matmul(%x, %w)
  %3: float32[2] = sum[axis=(1,), keepdims=False](%2)
  return %3, %x
}"""


def example():
    builder = GraphBuilder()
    x, w = builder.input(Type((2, 3), f32), "x"), builder.input(Type((3, 4), f32), "w")
    product = builder.add("matmul", [x, w], {}, Type((2, 4), f32))
    total = builder.add("sum", [product], {"axis": (1,), "keepdims": False}, Type((2,), f32))
    return builder.build([total, x])


def test_the_text_is_as_documented():
    assert to_text(example()) == EXAMPLE


def test_reading_gives_the_same_values_nodes_and_names():
    graph = from_text(EXAMPLE)
    assert [value.name for value in graph.inputs] == ["x", "w"]
    assert [value.type for value in graph.inputs] == [Type((2, 3), f32), Type((3, 4), f32)]
    first, second = graph.nodes
    assert (first.op, first.params, second.op) == ("matmul", {}, "sum")
    assert first.inputs == graph.inputs
    assert second.inputs == first.results
    assert second.params == {"axis": (1,), "keepdims": False}
    assert graph.outputs == (second.results[0], graph.inputs[0])
    assert to_text(graph) == EXAMPLE


def test_names_that_cannot_stand_or_repeat_become_numbers():
    builder = GraphBuilder()
    for name in ("a", "a", "not a name", "7", ""):
        builder.input(Type((), dtypes.bool_), name)
    text = to_text(builder.build([]))
    kinds = "%a: bool[], %1: bool[], %2: bool[], %3: bool[], %4: bool[]"
    assert text == f"graph({kinds}) {{\n  return\n}}"
    assert to_text(from_text(text)) == text


literals = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text("ab'\"\\\n%#(),[]= é", max_size=8)
    | st.sampled_from(dtypes.ALL),
    lambda inner: st.lists(inner, max_size=3).map(tuple),
    max_leaves=6,
)


def identical(a, b):
    """Equal and of one type; NaNs are equal and zeros have signs."""
    if type(a) is not type(b):
        return False
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(identical, a, b))
    if isinstance(a, float):
        return (a != a and b != b) or (a == b and math.copysign(1, a) == math.copysign(1, b))
    return a == b


@given(
    st.dictionaries(st.sampled_from(["axis", "shape", "value", "dtype", "if_"]), literals),
    st.lists(st.integers(0, 99), max_size=4).map(tuple),
    st.sampled_from(dtypes.ALL),
)
def test_every_parameter_and_type_survives(params, shape, dtype):
    builder = GraphBuilder()
    result = builder.add("made_up", [builder.input(Type(shape, dtype), "x")], params, Type((), f32))
    text = to_text(builder.build([result]))
    again = from_text(text)
    (node,) = again.nodes
    assert again.inputs[0].type == Type(shape, dtype)
    assert identical(tuple(node.params), tuple(params))
    assert identical(tuple(node.params.values()), tuple(params.values()))
    assert to_text(again) == text


def test_a_parameter_that_cannot_be_written_is_refused():
    builder = GraphBuilder()
    builder.add("full", [], {"value": np.float32(1)}, Type((), f32))
    with pytest.raises(GraphError, match=r"parameters made of numbers, .* received float32"):
        to_text(builder.build([]))


def test_a_broken_graph_can_still_be_printed():
    assert "return %undefined" in to_text(Graph((), (), (Value(Type((), f32)),)))


BROKEN = {
    "": r"line 1: expected 'graph\(",
    "graph() {\n}": "line 2: expected 'return'",
    "graph() {\n  return\n": "line 3: expected '}' and the end, received ''",
    "graph() {\n  return\n}\n}": "expected '}' and the end",
    "graph(%x: float32) {\n  return\n}": r"line 1: expected '%name: dtype\[sizes\]'",
    "graph(%x: float16[]) {\n  return\n}": "line 1: dtype: expected one of",
    "graph(%x: bool[], %x: bool[]) {\n  return\n}": "line 1: .* with a new name",
    "graph(%x: bool[]; %x: bool[]) {\n  return\n}": "line 1: .* with a new name",
    "graph() {\n  %1: bool[] = f(%2)\n  return\n}": "line 2: expected a value .* received '%2'",
    "graph() {\n  %1: bool[] = f\n  return\n}": "line 2: expected '%name: type = op",
    "graph() {\n  %1: bool[] = f[1]()\n  return\n}": "line 2: expected parameters",
    "graph() {\n  %1: bool[] = f[a=g()]()\n  return\n}": "line 2: expected parameters",
    "graph() {\n  %1: bool[] = f[a=quaternion]()\n  return\n}": "line 2: expected parameters",
    "graph() {\n  %1: bool[] = f()\n  %1\n}": "line 3: expected '%name: type = op",
    "graph() {\n  return %1\n}": "line 2: expected a value",
    "graph() {\n  f() {\n  return\n}": "line 3: expected '%name: type = op",
    "graph() {\n  f() {\n  }\n  return\n}": "line 3: expected 'yield'",
    "graph() {\n  f() {\n    yield\n  return\n}": "line 4: expected '}' or '} word",
    "graph() {\n  f() {\n    %a: bool[] = g()\n    yield\n  }\n  return %a\n}": "line 6: .* '%a'",
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_text_is_refused_at_its_line(text):
    with pytest.raises(GraphError, match=BROKEN[text]):
        from_text(text)


# --- structure ------------------------------------------------------------------------------

STRUCTURE = """\
graph(%n: int64[], %x: float32[3]; %w: float32[3], %5: bool[]) {
  %4: bool[] = read(%5)
  %6: float32[3], %7: int64[] = if(%4) {
    %8: float32[3] = read(%w)
    yield %8, %n
  } else {
    yield %x, %n
  }
  send[channel='a = b](%n) {'](%x, %6)
  %9: float32[3], %10: bool[] = receive[channel='in']()
  %z: float32[3], %y: float32[3] = loop(%7, %9, %x) (%i: int64[], %a: float32[3], %b: float32[3]) {
    %14: float32[3] = loop(%i, %a) while (%15: int64[], %16: float32[3]) {
      %17: bool[] = all[axis=(0,), keepdims=False](%10)
      yield %17
    } do (%18: int64[], %19: float32[3]) {
      write(%w, %19)
      yield %19
    }
    yield %b, %14
  }
  %20: float32[3] = fused(%z, %y) (%21: float32[3], %22: float32[3]) {
    %23: float32[3] = add(%21, %22)
    yield %23
  }
  loop(%n) (%24: int64[]) {
    yield
  }
  return %20
}"""


def test_structure_reads_back():
    graph = from_text(STRUCTURE)
    again = to_text(graph)
    assert to_text(from_text(again)) == again
    assert digest(from_text(again)) == digest(graph)
    assert [type(x) for x in graph.variables] == [Variable, Variable]
    reading, branch, sending, receiving, loop, kernel, empty = graph.nodes
    assert reading.inputs == (graph.variables[1],)
    assert branch.regions[0].outputs == (branch.regions[0].nodes[0].results[0], graph.inputs[0])
    assert branch.regions[1].outputs == (graph.inputs[1], graph.inputs[0])
    assert (sending.results, sending.params) == ((), {"channel": "a = b](%n) {"})
    assert [x.type.dtype for x in receiving.results] == [f32, dtypes.bool_]
    (body,) = loop.regions
    assert body.outputs == (body.inputs[2], body.nodes[0].results[0])
    assert body.nodes[0].regions[1].nodes[0].inputs[0] is graph.variables[0]
    assert kernel.regions[0].nodes[0].inputs == kernel.regions[0].inputs
    assert empty.results == ()


def test_the_layout_of_structure_is_as_documented():
    lines = to_text(from_text(STRUCTURE)).splitlines()
    wanted = STRUCTURE.splitlines()
    assert [line[: len(line) - len(line.lstrip())] for line in lines] == [
        line[: len(line) - len(line.lstrip())] for line in wanted
    ]
    assert lines[0] == wanted[0].replace("%5", "%3")
    assert "  } else {" in lines
    assert "  send[channel='a = b](%n) {'](%x, %5)" in lines


@given(programs(fused=True, errors=True))
def test_random_programs_read_back(program):
    text = to_text(program.graph)
    again = from_text(text)
    verify(again, OPERATIONS)
    assert to_text(again) == text
    assert digest(again) == digest(program.graph)
    same_run(program.on(again).run(), program.run())


# --- fingerprints ---------------------------------------------------------------------------


def two_terms(names=("", ""), swapped=False, site=None, value=0.0):
    builder = GraphBuilder()
    x, y = (builder.input(Type((), f32), name) for name in names)
    term = builder.add("subtract", [y, x] if swapped else [x, y], {}, x.type, site)
    number = builder.add("full", [], {"shape": (), "value": value, "dtype": f32}, x.type)
    return builder.build([builder.add("add", [term, number], {}, x.type)])


def test_a_digest_ignores_names_and_places():
    plain = digest(two_terms())
    assert re.fullmatch("[0-9a-f]{64}", plain)
    assert digest(two_terms(("a", "b"))) == plain
    assert digest(two_terms(("b", "7"), site=Site("x.py", 3))) == plain


def test_a_digest_tells_meanings_apart():
    graphs = [two_terms(), two_terms(swapped=True)]
    graphs += [two_terms(value=value) for value in (-0.0, 0, False, 1.0, math.nan)]
    assert len(set(map(digest, graphs))) == len(graphs)
