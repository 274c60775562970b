import ast
import os
import sys
import textwrap

import pytest

PROGRAM = """\
    import math
    import sys

    import dilim
    import dilim_slices_helper as helper

    print("begin")


    def grown(x, n):
        for i in range(n):
            x = x * 0.5
            print("at", i)
        return x * math.cosh(x.sum().item())


    def alone(n=2, *, scale=0.5):
        return helper.VALUES * n * scale


    class Model:
        def __init__(self):
            self.w = dilim.ones((2,))

        def step(self, x):
            self.w = self.w + x
            return self.w


    @dilim.compile
    def marked(x):
        return x + helper.ONE


    def broken(x):
        raise KeyError("no such key")


    def unused(x):
        return x


    table = 3

    if __name__ == "__main__":
        faster = dilim.compile(grown)
        Model().step(dilim.ones((2,)))
        marked(dilim.ones((3,)))
        faster(dilim.ones((2,)) * 0.01, n=int(sys.argv[1]) if sys.argv[1:] else 20)
        print("never reached for grown")
        broken(1)
    """


@pytest.fixture
def file(tmp_path, monkeypatch):
    (tmp_path / "dilim_slices_helper.py").write_text(
        "import dilim\n\nONE = 1.0\nVALUES = dilim.ones((2,))\n"
    )
    path = tmp_path / "program.py"
    path.write_text(textwrap.dedent(PROGRAM))
    monkeypatch.chdir(tmp_path)
    yield path
    sys.modules.pop("dilim_slices_helper", None)


def test_the_script_runs_until_the_call_and_its_arguments_are_used(dilim, file):
    before = list(sys.argv), list(sys.path)
    result = dilim("slices", "program.py:grown")
    assert result.exit_code == 0, result.output
    head, *_ = result.stdout.splitlines()
    assert head == "# The graph program of grown, program.py:10"
    assert "    return x * receive()\n" in result.stdout
    assert "    send(math.cosh(receive()))\n    return receive()\n" in result.stdout
    ast.parse(result.stdout)
    assert result.stderr.startswith("begin\nat 0\n")
    assert result.stderr.endswith("at 19\n")
    assert "never reached" not in result.stderr
    assert (sys.argv, sys.path) == before
    assert sys.getprofile() is None


def test_the_script_takes_arguments(dilim, file):
    result = dilim("slices", "program.py:grown", "--", "30")
    assert result.stderr.endswith("at 29\n")


def test_explain_follows(dilim, file):
    result = dilim("slices", "program.py:grown", "--explain")
    programs, explanation = result.stdout.split("\n\n\ngrown: a graph program and a host program\n")
    assert programs.startswith("# The graph program of grown")
    assert '  host   13 |         print("at", i)\n' in explanation
    assert "  line 14  to the graph: math.cosh(x.sum().item())\n" in explanation


def test_a_picture(dilim, file):
    assert dilim("slices", "program.py:grown", "--svg", "picture.svg").exit_code == 0
    text = (file.parent / "picture.svg").read_text(encoding="utf-8")
    assert text.startswith("<svg ")
    assert "def grown(x, n):" in text


def test_a_function_that_needs_no_arguments_is_sliced_without_a_call(dilim, file):
    result = dilim("slices", "program.py:alone")
    assert "def alone(n=2, *, scale=0.5):\n    return helper.VALUES * n * scale" in result.stdout
    assert result.stderr == "begin\n"  # what stands under __main__ has not run


def test_a_method_and_a_compiled_function(dilim, file):
    assert "    self.w = self.w + x\n" in dilim("slices", "program.py:Model.step").stdout
    assert "    return x + helper.ONE\n" in dilim("slices", "program.py:marked").stdout


def test_a_path_with_folders(dilim, file, monkeypatch):
    monkeypatch.chdir(file.parent.parent)
    target = os.path.join(file.parent.name, "program.py:marked")
    assert "    return x + helper.ONE\n" in dilim("slices", target).stdout


# --- mistakes --------------------------------------------------------------------------------


def test_a_target_of_another_form(mistake):
    assert mistake("slices", "program.py") == (
        "dilim: expected FILE:FUNCTION, received 'program.py'; for example train.py:train"
    )


def test_no_such_file(mistake, tmp_path):
    path = tmp_path / "nothing.py"
    assert mistake("slices", f"{path}:f") == f"dilim: there is no file {path}"


def test_no_such_function(mistake, file):
    line = mistake("slices", "program.py:grow")
    assert line == "dilim: unknown function in program.py 'grow'; did you mean 'grown'?"


def test_not_python(mistake, tmp_path):
    path = tmp_path / "bad.py"
    path.write_text("def f(:\n")
    assert mistake("slices", f"{path}:f") == f"dilim: {path}:1: this is not Python: invalid syntax"


def test_no_function_at_all(mistake, tmp_path):
    path = tmp_path / "empty.py"
    path.write_text("x = 1\n")
    assert mistake("slices", f"{path}:f") == f"dilim: {path} defines no function"


def test_a_function_that_is_never_called(dilim, tmp_path):
    path = tmp_path / "quiet.py"
    path.write_text("def f(x):\n    return x\n")
    result = dilim("slices", f"{path}:f")
    assert result.exit_code == 2
    assert result.stderr == (
        f"dilim: {path} ended without a call of f, so its arguments are not known; give them "
        "defaults, or give the script what it needs after --\n"
    )


def test_a_script_that_fails_before(dilim, tmp_path):
    path = tmp_path / "failing.py"
    path.write_text("def f(x):\n    return x\n\n\n1 / 0\n")
    result = dilim("slices", f"{path}:f")
    assert result.exit_code == 2
    assert result.stderr == f"dilim: {path}:5 raised ZeroDivisionError: division by zero\n"


def test_a_function_that_fails(dilim, tmp_path):
    path = tmp_path / "failing.py"
    path.write_text("def f(x):\n    raise KeyError('no such key')\n\n\nf(1)\n")
    result = dilim("slices", f"{path}:f")
    assert result.exit_code == 2
    assert result.stderr == f"dilim: {path}:2 raised KeyError: 'no such key'\n"
