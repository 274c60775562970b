"""Which run is meant, and how commands about it are written."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from dilim.cli.messages import CommandError, program, unknown_name
from dilim.rl.runs import Run, find_runs

DEFAULT_FOLDER = Path("runs")


def open_run(name: str | None, folder: Path) -> Run:
    """The run that a person means.

    Args:
        name: a name in `folder`, or a path; None is the run in `folder` that changed last.
        folder: the folder that holds the runs.

    Raises:
        CommandError: there is no such run; the nearest name is suggested.
        FileFormatError: its configuration cannot be read.
    """
    found = find_runs(folder)
    if name is None:
        if not found:
            raise CommandError(
                f"there is no run in {folder}{os.sep} yet; begin with: {program()} train cartpole"
            )
        return Run.open(found[0])
    for path in (folder / name, Path(name)):
        if (path / "config.json").is_file():
            return Run.open(path)
    if not found:
        raise CommandError(f"there is no run {name!r} in {folder}{os.sep}; none was made yet")
    raise CommandError(unknown_name("run", name, (path.name for path in found)))


def shown(run: Run) -> str:
    """How a run is named in a command that is typed in the same working directory."""
    return run.name if run.folder.parent == DEFAULT_FOLDER else str(run.folder)


def command(verb: str, run: Run, *options: str) -> str:
    """What to type to do something with a run."""
    return shlex.join([program(), verb, shown(run), *options])
