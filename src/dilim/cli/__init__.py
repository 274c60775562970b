"""The `dilim` command; `docs/cli.md` shows what it can do.

Nothing here is imported before `main` has found that the extra ``lab`` is installed.
"""

from __future__ import annotations

import sys

_LAB_PACKAGES = frozenset({"typer", "rich", "click"})


def main() -> None:
    """Run the command with the arguments of the process, and exit.

    Exit codes: 0 done; 2 a mistake in what was asked, said in one line on stderr; 130 interrupted.
    """
    try:
        from dilim.cli.app import application
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _LAB_PACKAGES:
            raise
        sys.stderr.write("dilim: the command needs its extra: pip install 'dilim[lab]'\n")
        sys.exit(2)
    application(prog_name="dilim")
