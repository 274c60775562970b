import re
import subprocess
import sys
from pathlib import Path

import pytest

from dilim import __version__
from dilim.cli.app import application

COMMANDS = ["train", "resume", "play", "evaluate", "runs", "plot", "grad", "ops", "cache"]


def test_help_names_every_command_and_the_first_step(dilim):
    result = dilim("--help")
    assert result.exit_code == 0
    assert "dilim train cartpole" in result.stdout
    for name in COMMANDS:
        assert f"│ {name} " in result.stdout


def test_no_arguments_print_the_help(dilim):
    assert dilim().stdout == dilim("--help").stdout


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_a_help_with_an_example(dilim, name):
    result = dilim(name, "--help")
    assert result.exit_code == 0
    assert f"dilim {name}" in result.stdout
    assert "Example:" in result.stdout
    assert all(len(line) <= 120 for line in result.stdout.splitlines())


def test_version(dilim):
    assert dilim("--version").stdout == f"dilim {__version__}\n"


def test_unknown_command_suggests_the_nearest(mistake):
    assert "did you mean 'train'?" in mistake("trian", "cartpole").lower()


def test_unknown_option_suggests_the_nearest(mistake):
    line = mistake("train", "cartpole", "--episode", "3")
    assert "no such option: --episode" in line
    assert "--episodes" in line
    assert line.endswith("see: dilim train --help")


@pytest.mark.parametrize("package", ["typer", "rich"])
def test_without_the_extra_one_line_says_how_to_install_it(package):
    text = f"import sys; sys.modules[{package!r}] = None; from dilim.cli import main; main()"
    done = subprocess.run(
        [sys.executable, "-c", text, "train", "cartpole"], capture_output=True, text=True
    )
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr == "dilim: the command needs its extra: pip install 'dilim[lab]'\n"


def test_a_missing_part_of_dilim_itself_is_not_taken_for_the_extra():
    text = "import sys; sys.modules['dilim.dtypes'] = None; from dilim.cli import main; main()"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True)
    assert done.returncode == 1
    assert "No module named 'dilim.dtypes'" in done.stderr or "dilim.dtypes" in done.stderr


def test_help_of_the_installed_command_is_the_same_application():
    assert application.info.name == "dilim"


def documented():
    page = Path(__file__).parents[2] / "docs" / "cli.md"
    return re.findall(r"^\$ dilim (\S+)(.*)$", page.read_text(encoding="utf-8"), re.M)


@pytest.mark.parametrize(("verb", "rest"), documented(), ids=lambda text: text.strip())
def test_documented_commands_have_these_options(dilim, verb, rest):
    help_text = dilim(verb, "--help").stdout
    for option in re.findall(r" (--[a-z-]+)", rest):
        assert f"{option} " in help_text
