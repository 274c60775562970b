"""Graphs print readably and read back the same."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dilim import dtypes
from dilim.errors import GraphError
from dilim.ir.graph import Graph, GraphBuilder, Value
from dilim.ir.text import from_text, to_text
from dilim.ir.types import Type

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
    "": "expected 'graph",
    "graph() {\n}": "expected 'graph",
    "graph(%x: float32) {\n  return\n}": r"line 1: expected '%name: dtype\[sizes\]'",
    "graph(%x: float16[]) {\n  return\n}": "line 1: dtype: expected one of",
    "graph(%x: bool[], %x: bool[]) {\n  return\n}": "line 1: .* with a new name",
    "graph() {\n  %1: bool[] = f(%2)\n  return\n}": "line 2: expected a value .* received '%2'",
    "graph() {\n  %1: bool[] = f\n  return\n}": "line 2: expected '%name: type = op",
    "graph() {\n  %1: bool[] = f[1]()\n  return\n}": "line 2: expected parameters",
    "graph() {\n  %1: bool[] = f[a=g()]()\n  return\n}": "line 2: expected parameters",
    "graph() {\n  %1: bool[] = f[a=quaternion]()\n  return\n}": "line 2: expected parameters",
    "graph() {\n  %1: bool[] = f()\n  %1\n}": "line 3: expected 'return'",
    "graph() {\n  return %1\n}": "line 2: expected a value",
}


@pytest.mark.parametrize("text", BROKEN)
def test_a_broken_text_is_refused_at_its_line(text):
    with pytest.raises(GraphError, match=BROKEN[text]):
        from_text(text)
