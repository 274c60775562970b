"""The `dilim` command; `docs/cli.md` shows what it can do.

Nothing here is imported before `main` has found that the extra ``lab`` is installed.
"""

from __future__ import annotations

import os
import signal
import sys
from typing import Any

_INTERRUPTED = 130  # 128 + SIGINT, as shells count
_LAB_PACKAGES = frozenset({"typer", "rich", "click"})


def main() -> None:
    """Run the command with the arguments of the process, and exit.

    Exit codes: 0 done; 2 a mistake in what was asked, said in one line on stderr; 130 interrupted.
    """
    # There is nothing to tidy up before the command runs, and an exception in the middle of an
    # import could be swallowed there.
    former = signal.getsignal(signal.SIGINT)
    if former is signal.default_int_handler:
        signal.signal(signal.SIGINT, _quit)
    try:
        from dilim.cli.app import application
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _LAB_PACKAGES:
            raise
        sys.stderr.write("dilim: the command needs its extra: pip install 'dilim[lab]'\n")
        sys.exit(2)
    try:
        signal.signal(signal.SIGINT, former)
        application(prog_name="dilim")
    except KeyboardInterrupt:
        sys.exit(_INTERRUPTED)


def _quit(*_: Any) -> None:
    os._exit(_INTERRUPTED)
