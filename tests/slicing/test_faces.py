import json

import pytest

import dilim
from dilim.errors import PerformanceWarning
from dilim.slicing.listing import Slices

X = [1.0, 2.0]


def plain(x, n=3):
    for i in range(n):
        x = x * 2.0
        print(i)
    return x


def text_of(compiled, *arguments, **keywords):
    """What explain() says, line by line."""
    return str(compiled.explain(*arguments, **keywords)).splitlines()


def test_example_arguments_are_enough_and_nothing_runs(capsys):
    compiled = dilim.compile(plain)
    shown = compiled.slices(dilim.tensor(X), n=4)
    assert "for i in range(n):" in shown.graph
    first, remark, *_ = text_of(compiled, dilim.tensor(X))
    assert first == "plain: a graph program and a host program"
    assert remark == "Sliced for these arguments, and not run."
    assert capsys.readouterr().out == ""
    assert compiled.statistics.calls == 0
    assert compiled.statistics.variants == 0


def test_before_the_first_call_they_say_what_is_missing():
    compiled = dilim.compile(plain)
    shown = compiled.slices()
    assert shown.graph == shown.host == ""
    assert shown._repr_svg_() is None
    assert str(shown) == (
        "plain was not called yet, so its arguments are not known. Call it until it is compiled "
        "(compile_after=0: at once), or give example arguments: x."
    )
    assert text_of(compiled)[:2] == ["plain: plain Python", str(shown)]


def test_while_it_runs_as_plain_python_they_say_so(capsys):
    compiled = dilim.compile(plain, compile_after=1000.0)
    compiled(dilim.tensor(X))
    assert str(compiled.slices()).startswith("plain ran as plain Python so far, so its arguments")


def test_a_function_that_needs_no_arguments_is_sliced_without_any():
    def nothing_needed(n=3):
        return dilim.zeros((2,)) + n

    assert "dilim.zeros((2,)) + n" in dilim.compile(nothing_needed).slices().graph


def test_wrong_example_arguments_are_an_error():
    with pytest.raises(TypeError, match="plain"):
        dilim.compile(plain).slices(1, 2, 3, 4)
    with pytest.raises(TypeError, match="plain"):
        dilim.compile(plain).explain(1, 2, 3, 4)


def test_a_function_without_source_is_plain_python():
    space = {}
    exec("def f(x):\n    return x", space)
    with pytest.warns(PerformanceWarning, match="cannot be read"):
        compiled = dilim.compile(space["f"])
    text = str(compiled.slices(1))
    assert text == "f runs as plain Python: the source of <string> is not at hand (<string>:1)."
    assert text_of(compiled)[:2] == ["f: plain Python", text]
    assert "  <string>:1  the source of <string> is not at hand" in text_of(compiled)


def test_the_newest_of_several_programs_is_shown(capsys):
    compiled = dilim.compile(plain, backend="reference", compile_after=0)
    for shape in [(2,), (3,)]:
        for _ in range(2):
            compiled(dilim.ones(shape), 20)
    assert text_of(compiled)[1] == "The newest of 2 programs, which differ in their arguments."
    results = [x.types for x in compiled.explain().transfers if x.values == ("the result",)]
    assert [types[0] for types in results] == ["float32[3]"]


def test_example_arguments_choose_among_programs(capsys):
    compiled = dilim.compile(plain, backend="reference", compile_after=0)
    for shape in [(2,), (3,)]:
        for _ in range(2):
            compiled(dilim.ones(shape), 20)
    explanation = compiled.explain(dilim.ones((2,)), 20)
    [result] = [x for x in explanation.transfers if x.values == ("the result",)]
    assert result.types[0] == "float32[2]"
    assert result.runs in (1, 2)
    assert "not run" not in str(explanation)


def learning(x):
    return x * json.loads(str(x.sum().item()))


def test_after_a_run_that_showed_types_the_next_one_is_announced():
    compiled = dilim.compile(learning, backend="reference", compile_after=0)
    compiled(dilim.tensor(X))
    remark = (
        "A first look: what host code binds was not known yet, so lines that use it are the host's "
        "here. The next call slices the function anew, knowing more."
    )
    assert text_of(compiled)[1] == remark
    compiled(dilim.tensor(X))
    assert "return x * receive()" in compiled.slices().graph
    assert remark not in text_of(compiled)


def test_slices_of_nothing_are_the_reason():
    assert str(Slices([], "no reason")) == "no reason"
