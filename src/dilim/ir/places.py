"""Where in the user's source an operation stands, told with its errors.

Every way of running a graph uses `at_place`, so that an error reads the same: the exception that
eager execution would raise, with a note such as ``in take, from agent.py:42``.
"""

from __future__ import annotations

from collections.abc import Sequence

from dilim.ir.graph import NO_SITE, Node, Site


def at_place(error: BaseException, node: Node, sites: Sequence[Site]) -> None:
    """Add a note to an exception that says which operation of which line it comes from.

    Its attribute ``site`` becomes the file and the line.

    Args:
        error: what a node raised; it gets the note unless it has the same one.
        node: what failed.
        sites: those of the outermost graph.
    """
    if node.site == NO_SITE:
        return
    site = sites[node.site]
    error.site = site.file, site.line  # type: ignore[attr-defined]
    note = f"in {node.op}, from {site}"
    if note not in getattr(error, "__notes__", ()):
        error.add_note(note)
