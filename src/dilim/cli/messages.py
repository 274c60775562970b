"""What commands say: consoles, nearest names, and the error that becomes one line."""

from __future__ import annotations

import difflib
import os
import shutil
import sys
import textwrap
from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console

INTERRUPTED = 130  # 128 + SIGINT, as shells count
_PIPED_WIDTH = 120  # characters a line; a file or pipe has no width of its own


class CommandError(Exception):
    """Something the person at the keyboard can put right.

    The command prints the message on stderr, without a traceback, and exits with code 2.
    """


def program() -> str:
    """How this command is typed: by its path, if the shell would not find it by its name."""
    called = sys.argv[0]
    on_path = shutil.which("dilim")
    if Path(called).stem != "dilim":
        return "dilim"  # started in another way, for example by a test
    same = on_path is not None and os.path.realpath(on_path) == os.path.realpath(called)
    return "dilim" if same else called


def output() -> Console:
    """A console for stdout that neither colours nor cuts what goes to a file or pipe."""
    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(width=_PIPED_WIDTH if piped else None, highlight=False, markup=False)


def table_text(
    headings: Sequence[str], rows: Iterable[Sequence[str]], width: int, right: Sequence[str] = ()
) -> str:
    """A table without frames; only the last column gives way, its text goes on below itself.

    Args:
        headings: one per column.
        rows: as many texts each.
        width: characters that a line may have.
        right: the headings whose columns are aligned to the right.

    Example:
        >>> print(table_text(["name", "size"], [["a", "10"], ["bcdef", "9"]], 80, right=["size"]))
        name   size
        a        10
        bcdef     9
    """
    lines = [tuple(headings), *(tuple(row) for row in rows)]
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    indent = sum(widths[:-1]) + 2 * (len(widths) - 1)
    text = []
    for line in lines:
        cells = [
            cell.rjust(size) if heading in right else cell.ljust(size)
            for heading, cell, size in zip(headings, line, widths, strict=True)
        ]
        first = "".join(cell + "  " for cell in cells[:-1])
        last = textwrap.wrap(cells[-1].rstrip(), max(width - indent, 20), drop_whitespace=False)
        text += [(first + (last[0] if last else "")).rstrip()]
        text += [" " * indent + more.strip() for more in last[1:]]
    return "\n".join(text)


def unknown_name(kind: str, name: str, known: Iterable[str]) -> str:
    """The text for a name that does not exist: the nearest one, or all of them.

    Example:
        >>> unknown_name("environment", "cartpol", ["bandit", "cartpole"])
        "unknown environment 'cartpol'; did you mean 'cartpole'?"
    """
    names = sorted(known)
    near = difflib.get_close_matches(name.lower(), names, n=1, cutoff=0.5)
    hint = f"did you mean {near[0]!r}?" if near else f"known are: {', '.join(names)}"
    return f"unknown {kind} {name!r}; {hint}"
