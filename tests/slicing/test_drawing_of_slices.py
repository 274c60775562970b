import math
import xml.etree.ElementTree as ElementTree

import dilim
from slicing.showing import slices

X = [1.0, 2.0]


def scaled(x):
    y = x * 2.0
    print(y)
    return y


def stopped(x, n):
    for i in range(n):
        x = x * 2.0
        if math.cosh(x.max().item()) > 1e30:
            print("stop at", i)
            break
    return x


def parts(shown, tag):
    root = ElementTree.fromstring(shown._repr_svg_())
    return [part for part in root.iter() if part.tag.endswith(tag)]


def test_the_picture_has_both_programs_and_an_arrow_for_each_transfer():
    shown = slices(stopped, dilim.tensor(X), 30)
    texts = [part.text for part in parts(shown, "text")]
    assert texts[0] == "graph program"
    assert "host program" in texts
    assert texts.count("def stopped(x, n):") == 2
    assert "if send(math.cosh(receive()) > 1e30):" in texts
    heads = [part.get("d") for part in parts(shown, "path") if part.get("fill") != "none"]
    assert len(heads) == 4
    assert sum("l-8 -4z" in head for head in heads) == 1  # to the graph


WEIGHT = dilim.tensor(X, requires_grad=True)


def differentiated(x):
    loss = (WEIGHT * x).sum()
    loss.backward()
    return loss.detach()


def test_what_is_handed_over_in_two_lines_has_two_arrows_that_do_not_cross():
    shown = slices(differentiated, dilim.tensor(X))
    texts = [part.text for part in parts(shown, "text")]
    assert "send(state)" in texts
    assert "return receive()" in texts
    lines = [part.get("d") for part in parts(shown, "path") if part.get("fill") == "none"]
    ends = [(line.split()[1].split("C")[0], line.split()[-1]) for line in lines]
    assert len(ends) == 2
    assert all(left == right for left, right in ends)


def test_statements_line_up():
    shown = slices(scaled, dilim.tensor(X))
    height = {part.text: part.get("y") for part in parts(shown, "text")}
    assert height["y = x * 2.0"] == height["# graph: y = x * 2.0"]
    assert height["send(y)"] == height["y = receive()"]


def test_signs_of_markup_are_escaped():
    shown = slices(lambda x: dilim.where(x < 1.0, x, -x), dilim.tensor(X))
    texts = [part.text for part in parts(shown, "text")]
    assert "return dilim.where(x < 1.0, x, -x)" in texts


def test_long_lines_are_cut():
    shown = slices(
        lambda x: x + 1.0 + 2.0 + 3.0 + 4.0 + 5.0 + 6.0 + 7.0 + 8.0 + 9.0 + 10.0 + 11.0,
        dilim.tensor(X),
    )
    [long] = [part.text for part in parts(shown, "text") if part.text.endswith("…")]
    assert len(long) == 76 - 4
    assert long.startswith("return x + 1.0 + 2.0")
