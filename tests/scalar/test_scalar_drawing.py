"""Pictures of expressions."""

import re
from xml.etree import ElementTree

import pytest

from dilim.scalar import MLP, Value, loss

SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def expression():
    x, y = Value(2.0, label="x"), Value(3.0, label="y")
    s = x * y
    s.label = "s"
    return s * s + 3 * x.tanh() - -y


def test_text_before_and_after_backward(expression):
    assert expression.to_text().split("\n") == [
        "name  made by  data      gradient",
        "x     given    2         not computed",
        "y     given    3         not computed",
        "s     x * y    6         not computed",
        "v1    s * s    36        not computed",
        "v2    tanh(x)  0.964028  not computed",
        "v3    3 * v2   2.89208   not computed",
        "v4    v1 + v3  38.8921   not computed",
        "v5    -y       -3        not computed",
        "v6    v4 - v5  41.8921   not computed",
    ]
    expression.backward()
    text = expression.to_text()
    assert "not computed" not in text
    assert re.search(r"^s +x \* y +6 +12$", text, re.MULTILINE)
    assert re.search(r"^x +given +2 +36\.2\d+$", text, re.MULTILINE)
    expression.zero_grad()
    assert expression.to_text().count("not computed") == 9


def test_gradient_of_zero_is_shown_as_zero():
    x = Value(-1.0, label="x")
    y = x.relu()
    y.backward()
    assert y.to_text() == (
        "name  made by  data  gradient\nx     given    -1    0\nv1    relu(x)  0     1"
    )


def test_value_without_operation():
    assert (
        Value(2.5).to_text() == "name  made by  data  gradient\nv1    given    2.5   not computed"
    )


def test_limit_keeps_what_is_near_the_result():
    x = Value(1.0, label="x")
    y = x
    for _ in range(50):
        y = y.tanh()
    text = y.to_text(limit=4)
    assert text.startswith("... 47 more values are not shown\n")
    assert text.count("tanh(") == 4
    assert "tanh(...)" in text
    assert "x" not in text.split("\n")[2].split()[0]
    for picture in (y.to_svg(limit=4), y.to_dot(limit=4)):
        assert "... 47 more values are not shown" in picture
        assert "tanh(...)" in picture
    with pytest.raises(ValueError, match="limit must be at least 1, got 0"):
        y.to_text(limit=0)


def test_dot(expression):
    expression.label = 'a "b" {c}|<d>\\'
    dot = expression.to_dot()
    assert dot.startswith("digraph expression {")
    assert dot.endswith("}")
    nodes = re.findall(r'^  (n\d+) \[label="((?:\\.|[^"\\])*)"\];$', dot, re.MULTILINE)
    edges = re.findall(r"^  (n\d+) -> (n\d+);$", dot, re.MULTILINE)
    assert len(nodes) == len(expression.graph()) == 10
    assert len(edges) == sum(len(node.inputs) for node in expression.graph())
    names = dict(nodes)
    assert "gradient not computed" in names["n0"]
    assert {names[a].split("|")[0] for a, b in edges if names[b].startswith("s = ")} == {"x", "y"}
    assert r"a \"b\" \{c\}\|\<d\>\\ = v4 - v5|data" in names["n9"]
    assert len(re.findall(r'label="3"', dot)) == 1


def boxes(svg):
    """Return the rectangles as (left, top, right, bottom)."""
    found = []
    for rect in svg.iter(f"{SVG}rect"):
        x, y, width, height = (float(rect.get(key)) for key in ("x", "y", "width", "height"))
        found.append((x, y, x + width, y + height))
    return found


def overlap(a, b):
    return a[0] < b[2] and b[0] < a[2] and a[1] < b[3] and b[1] < a[3]


def check_layout(value):
    order = value.graph()
    svg = ElementTree.fromstring(value.to_svg(limit=1000))
    rectangles = boxes(svg)
    assert len(rectangles) == len(order)
    width, height = float(svg.get("width")), float(svg.get("height"))
    assert all(0 <= b[0] and b[2] <= width and 0 <= b[1] and b[3] <= height for b in rectangles)
    for index, first in enumerate(rectangles):
        assert not any(overlap(first, second) for second in rectangles[:index])
    place = dict(zip(order, rectangles, strict=True))
    assert all(place[source][2] < place[node][0] for node in order for source in node.inputs)
    return svg


def test_svg(expression):
    expression.graph()[0].label = "<x & y>"
    svg = check_layout(expression)
    texts = [text.text for text in svg.iter(f"{SVG}text")]
    assert "<x & y>" in texts
    assert "s = <x & y> * y" in texts
    assert texts.count("gradient not computed") == 9
    assert len(list(svg.iter(f"{SVG}path"))) == sum(len(n.inputs) for n in expression.graph())
    hints = [title.text for title in svg.iter(f"{SVG}title")]
    assert hints.count("local derivative 6") == 2
    expression.backward()
    assert "gradient 12" in expression.to_svg()
    assert "not computed" not in expression.to_svg()
    assert expression._repr_svg_() == expression.to_svg()


def test_svg_of_a_network():
    model = MLP(3, [4, 2, 1], seed=0)
    error = loss.mse([model([1.0, 2.0, 3.0])], [0.5])
    error.backward()
    check_layout(error)
    check_layout(Value(1.0))
