"""Pictures of graphs: nothing overlaps, everything is there, and it is read by an XML parser."""

import re
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dilim import dtypes
from dilim.ir.arrange import Arrow, arrange
from dilim.ir.draw import to_svg
from dilim.ir.graph import Graph, GraphBuilder, Site
from dilim.ir.structure import walk
from dilim.ir.text import from_text
from dilim.ir.types import Type
from ir.programs import programs
from ir.test_graph_text import STRUCTURE

f32 = dtypes.float32
SVG = "{http://www.w3.org/2000/svg}"


# --- places ---------------------------------------------------------------------------------

SIZE = st.tuples(st.sampled_from([10.0, 80.0, 300.0]), st.sampled_from([20.0, 60.0, 200.0]))


@st.composite
def plans(draw):
    sizes = draw(st.lists(SIZE, min_size=1, max_size=12))
    arrows = []
    for target in range(1, len(sizes)):
        sources = draw(st.lists(st.integers(0, target - 1), max_size=3))
        arrows += [Arrow(source, target) for source in sources]
    return sizes, arrows, draw(st.sampled_from([150.0, 1000.0]))


def apart(a, b):
    """Whether two (left, top, right, bottom) have no point in common."""
    return a[2] <= b[0] or b[2] <= a[0] or a[3] <= b[1] or b[3] <= a[1]


@given(plans())
def test_boxes_are_apart_and_arrows_go_down_between_them(plan):
    sizes, arrows, widest = plan
    placed = arrange(sizes, arrows, widest)
    boxes = [
        (x, y, x + width, y + height)
        for (x, y), (width, height) in zip(placed.corners, sizes, strict=True)
    ]
    for number, box in enumerate(boxes):
        assert box[0] >= -1e-6
        assert box[1] >= 0
        assert box[2] <= placed.width + 1e-6
        assert box[3] <= placed.height + 1e-6
        assert all(apart(box, other) for other in boxes[:number])
    for arrow, route in zip(arrows, placed.routes, strict=True):
        heights = [y for _, y in route]
        assert heights == sorted(heights)
        assert route[0][1] == pytest.approx(boxes[arrow.source][3])
        assert route[-1][1] == pytest.approx(boxes[arrow.target][1])
        for (x, top), (x2, bottom) in zip(route[::2], route[1::2], strict=True):
            assert x == x2
            line = (x, top, x, bottom)
            assert all(apart(line, box) for box in boxes if box[0] < x < box[2] and top < bottom)


def test_rows_follow_the_arrows_and_wide_rows_are_broken():
    sizes = [(100.0, 20.0)] * 31
    arrows = [Arrow(k, 30) for k in range(30)]
    one = arrange(sizes, arrows, widest=10_000)
    assert len({y for _, y in one.corners}) == 2
    several = arrange(sizes, arrows, widest=600)
    assert len({y for _, y in several.corners}) == 7
    assert several.width < one.width / 2
    assert max(y for _, y in several.corners) == several.corners[30][1]


def test_crossings_are_undone():
    sizes = [(50.0, 20.0)] * 6
    placed = arrange(sizes, [Arrow(0, 5), Arrow(1, 4), Arrow(2, 3)])
    ends = sorted((route[0][0], route[-1][0]) for route in placed.routes)
    assert [end for _, end in ends] == sorted(end for _, end in ends)
    assert all(start == pytest.approx(end) for start, end in ends)


def test_nothing_can_be_placed():
    placed = arrange([], [])
    assert (placed.width, placed.height, placed.corners) == (0, 0, [])


# --- pictures -------------------------------------------------------------------------------


def parsed(svg):
    """(groups of one level, all texts, all titles) of a picture."""
    root = ElementTree.fromstring(svg)
    texts = [element.text for element in root.iter(f"{SVG}text")]
    titles = [element.text for element in root.iter(f"{SVG}title")]
    return root, texts, titles


def extent(group):
    x, y = map(float, re.fullmatch(r"translate\((.*) (.*)\)", group.get("transform")).groups())
    sizes = [(float(r.get("width")), float(r.get("height"))) for r in group.findall(f"{SVG}rect")]
    return x, y, x + max(w for w, _ in sizes), y + max(h for _, h in sizes)


@settings(max_examples=40)
@given(programs(fused=True))
def test_boxes_of_one_region_are_apart_and_hold_their_text(program):
    root, texts, _ = parsed(to_svg(program.graph))
    for group in root.iter():
        boxes = [g for g in group.findall(f"{SVG}g") if g.find(f"{SVG}rect") is not None]
        extents = [extent(box) for box in boxes]
        for number, box in enumerate(extents):
            assert all(apart(box, other) for other in extents[:number])
        for box, (left, _, right, _) in zip(boxes, extents, strict=True):
            for text in box.findall(f"{SVG}text"):
                assert float(text.get("x")) + 7.2 * len(text.text) <= right - left + 1
    words = {re.split(r"[( ]", text)[0] for text in texts}
    boxed = {
        node.op
        for node in walk(program.graph)
        if not (node.op == "full" and node.params["shape"] == ())
    }
    assert boxed <= words


def test_what_a_person_needs_is_written():
    _, texts, titles = parsed(to_svg(from_text(STRUCTURE)))
    for wanted in (
        "variables", "if", "then", "else", "loop", "go on while", "each turn", "fused", "send",
        "write(%w, ·)", "axis=(0,)", "channel='in'", "float32[3]", "return %21", "yield %b, %15",
    ):  # fmt: skip
        assert wanted in texts, wanted
    assert any(text.startswith("%w: float32[3]") for text in texts)
    assert "%18: bool[] = all[axis=(0,), keepdims=False](%9)" in titles


def test_numbers_are_written_into_their_users():
    text = """\
graph(%x: float32[4,4]) {
  %1: float32[] = full[shape=(), value=0.5, dtype=float32]()
  %2: float32[4,4] = multiply(%x, %1)
  %3: float32[2,4] = slice[index=((3, 2, -2), (0, 4, 1))](%2)
  %4: float32[8] = reshape[shape=(8,)](%3)
  return %4, %1
}"""
    _, texts, _ = parsed(to_svg(from_text(text)))
    assert "multiply(·, 0.5)" in texts
    assert "[3::-2, 0:4]" in texts
    assert "return %4, 0.5" in texts
    assert not any(text.startswith(("full", "shape=")) for text in texts)


def chain(count):
    builder = GraphBuilder()
    x = value = builder.input(Type((3,), f32), "x")
    for _ in range(count):
        value = builder.add("exp", [value], {}, x.type, Site("a<b>&c.py", 7))
    return builder.build([value])


def test_big_graphs_are_cut_and_say_so():
    _, texts, _ = parsed(to_svg(chain(50), limit=20))
    assert texts.count("exp") == 20
    assert "... 30 more operations are not shown" in texts
    assert "%30" in texts  # where the cut is
    _, texts, _ = parsed(to_svg(chain(50)))
    assert texts.count("exp") == 50
    assert not any("not shown" in text for text in texts)


def test_places_are_shown_and_everything_is_escaped():
    _, _, titles = parsed(to_svg(chain(1)))
    assert "%1: float32[3] = exp(%x)\na<b>&c.py:7" in titles


def test_an_empty_graph_has_a_picture():
    assert to_svg(Graph((), (), ())).startswith('<svg xmlns="http://www.w3.org/2000/svg"')
