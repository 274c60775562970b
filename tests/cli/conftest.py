import pytest
from typer.testing import CliRunner

from dilim.cli.app import application


@pytest.fixture
def dilim(monkeypatch):
    """Runs a command in this process, as from a pipe 120 characters wide."""
    monkeypatch.delenv("COLUMNS", raising=False)

    def run(*arguments):
        return CliRunner().invoke(application, list(arguments), prog_name="dilim")

    return run


@pytest.fixture
def mistake(dilim):
    """Runs a command that must fail with one line on stderr; returns that line."""

    def run(*arguments, lines=1):
        result = dilim(*arguments)
        assert result.exit_code == 2, result.output
        assert result.stdout == ""
        text = result.stderr.splitlines()
        assert len(text) == lines
        assert text[0].startswith("dilim: ")
        return text[0] if lines == 1 else text

    return run
