"""The package as a whole: what it imports, its examples in docs, its tutorial, its size."""

import contextlib
import doctest
import importlib
import io
import pkgutil
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import dilim.scalar

PACKAGE = Path(dilim.scalar.__file__).parent
SOURCE = PACKAGE.parents[1]
ROOT = Path(__file__).parents[2]
MODULES = [module.name for module in pkgutil.iter_modules([str(PACKAGE)])]


def test_import_loads_only_the_standard_library():
    script = (
        "import sys; sys.path.insert(0, sys.argv[1]); before = set(sys.modules)\n"
        "import dilim.scalar\n"
        "print(*sorted(set(sys.modules) - before))"
    )
    # -S: no packages that the environment loads at start.
    command = [sys.executable, "-S", "-c", script, str(SOURCE)]
    loaded = subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()
    # `copy` looks for Jython's `org.python`; without it, an empty folder of that name may load.
    known = sys.stdlib_module_names | {"org"}
    foreign = {name for name in loaded if name.split(".")[0] not in known}
    assert {f"dilim.scalar.{name}" for name in MODULES} < foreign
    others = {name for name in foreign if not name.startswith("dilim.scalar")}
    assert others <= {"dilim", "dilim._version", "dilim.errors"}


def test_public_names():
    assert sorted(dilim.scalar.__all__) == [
        "Adam",
        "ChainRuleStep",
        "Layer",
        "MLP",
        "Neuron",
        "SGD",
        "Value",
        "build_expression",
        "check_grad",
        "compare_gradients",
        "evaluate",
        "loss",
    ]
    assert all(hasattr(dilim.scalar, name) for name in dilim.scalar.__all__)


def test_engine_can_be_read_in_one_sitting():
    assert len((PACKAGE / "value.py").read_text().splitlines()) < 250


@pytest.mark.parametrize("name", ["", *MODULES])
def test_docstring_examples(name):
    module = importlib.import_module(f"dilim.scalar.{name}".rstrip("."))
    assert doctest.testmod(module).failed == 0


def test_tutorial_runs_and_prints_what_it_says():
    page = (ROOT / "docs" / "scalar.md").read_text(encoding="utf-8")
    blocks = re.findall(r"^```(\w+)\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert len(blocks) > 10
    names: dict[str, object] = {}
    printed = ""
    for language, body in blocks:
        if language == "python":
            assert printed == "", "a block that prints is followed by what it prints"
            output = io.StringIO()
            with contextlib.redirect_stdout(output):
                exec(body, names)
            printed = output.getvalue()
        else:
            assert printed == body
            printed = ""
    assert printed == ""


def test_moons_example_learns(capsys):
    main = runpy.run_path(str(ROOT / "examples" / "scalar_moons.py"))["main"]
    accuracy = main(steps=3)
    output = capsys.readouterr().out
    assert "MLP(2 -> 16 -> 16 -> 1, relu, 337 parameters)" in output
    losses = [float(text) for text in re.findall(r"loss ([\d.]+)", output)]
    assert losses[-1] < 0.8 * losses[0]
    assert accuracy > 0.6
    assert output.endswith("of the points are on the right side.\n")
