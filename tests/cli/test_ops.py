import linecache
import re

import pytest

from dilim.cli.places import code_place, object_place
from dilim.ops.table import OPERATIONS


def places(text):
    """{part: source line that the place points at} of what `dilim ops NAME` printed."""
    found = {}
    for part, file, line in re.findall(r"^(\w[\w ]*?)  +(\S+\.py):(\d+)", text, re.M):
        found.setdefault(part, linecache.getline(file, int(line)).strip())
    return found


def test_each_part_of_tanh_is_where_it_says(dilim, monkeypatch):
    monkeypatch.chdir("/")  # paths are shown relative to what is below the working directory
    result = dilim("ops", "tanh")
    assert result.exit_code == 0
    lines = places(result.stdout)
    assert lines["function"].startswith("tanh = ")
    assert lines["definition"].startswith("tanh = ")
    assert lines["derivative"].startswith("lambda b, g, out, x:")
    assert lines["recipe"].startswith("lambda x:")
    assert lines["shape rule"].startswith("def ")
    assert lines["samples"].startswith("def ")
    assert "numpy.tanh" in result.stdout
    assert "loop form Map" in result.stdout
    assert "float32, float64" in result.stdout


def test_inputs_without_derivative_are_named(dilim):
    text = dilim("ops", "where").stdout
    assert "to condition: none" in text
    assert text.count("derivative  ") == 3


def test_an_operation_without_a_recipe_says_who_serves_it(dilim):
    text = dilim("ops", "nonzero").stdout
    assert "none: no loop form fits" in text
    assert re.search(r"^back ends +- +reference$", text, re.M)


def test_a_composite_function_is_found_too(dilim, monkeypatch):
    monkeypatch.chdir("/")
    text = dilim("ops", "softmax").stdout
    assert "Composed of other operations." in text
    assert places(text)["function"].startswith("def softmax(")


def test_the_list_has_every_operation_with_its_place(dilim, monkeypatch):
    monkeypatch.chdir("/")
    text = dilim("ops").stdout
    for name in OPERATIONS:
        assert re.search(rf"^{name} +\S+ +(yes|-) +\S+\.py:\d+ ", text, re.M), name
    assert f"{len(OPERATIONS)} operations." in text


def test_unknown_operation_suggests_the_nearest(mistake):
    assert mistake("ops", "tanhh") == "dilim: unknown operation 'tanhh'; did you mean 'tanh'?"


@pytest.mark.parametrize("op", OPERATIONS.values(), ids=lambda op: op.name)
def test_every_part_has_a_place(op):
    assert object_place(op, "dilim.ops.") is not None
    parts = [op.samples, op.infer, *(rule for rule in op.derivative if rule is not None)]
    assert all(code_place(part) for part in parts)
