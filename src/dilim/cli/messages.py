"""What commands say: consoles, nearest names, and the error that becomes one line."""

from __future__ import annotations

import difflib
import os
import sys
from collections.abc import Iterable, Sequence

from rich.console import Console
from rich.table import Table

_PIPED_WIDTH = 120  # characters a line; a file or pipe has no width of its own


class CommandError(Exception):
    """Something the person at the keyboard can put right.

    The command prints the message on stderr, without a traceback, and exits with code 2.
    """


def output() -> Console:
    """A console for stdout that neither colours nor cuts what goes to a file or pipe."""
    piped = not sys.stdout.isatty() and "COLUMNS" not in os.environ
    return Console(width=_PIPED_WIDTH if piped else None, highlight=False, markup=False)


def plain_table(*columns: str, right: Sequence[str] = ()) -> Table:
    """A table without frames.

    Args:
        *columns: the headings.
        right: those of `columns` that are aligned to the right.
    """
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    for name in columns:
        justify = "right" if name in right else "left"
        table.add_column(name, justify=justify, no_wrap=True, overflow="ellipsis")
    return table


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
