"""The lines of the two programs, side by side."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Final, Literal, TypeAlias

CODE: Final = "code"
NOTE: Final = "note"
FLOW: Final = "flow"
Kind: TypeAlias = Literal["code", "note", "flow"]
"""Part of a program; a comment on what the other one does; or ``break`` and the like, which stand
in a program if the block around them does."""
_INDENT: Final = "    "


@dataclass(slots=True)
class Row:
    """A statement of a program, or a comment.

    Attributes:
        text: without indentation; may have several lines.
        depth: in how many blocks it is.
        kind: see `Kind`.
        channels: points of exchange that it stands for.
    """

    text: str
    depth: int
    kind: Kind = CODE
    channels: tuple[str, ...] = ()

    def lines(self) -> list[str]:
        """The text with its indentation."""
        return [f"{_INDENT * self.depth}{line}".rstrip() for line in self.text.split("\n")]


@dataclass(slots=True)
class Pair:
    """What the two programs have for one statement of the user."""

    graph: list[Row] = field(default_factory=list)
    host: list[Row] = field(default_factory=list)


@dataclass(slots=True)
class Listing:
    """A function in both programs.

    Attributes:
        name: of the function.
        place: file and line.
        pairs: its statements; the first is its head.
        in_graph: whether the graph program has a part of it.
        on_host: likewise.
    """

    name: str
    place: str
    pairs: list[Pair]
    in_graph: bool
    on_host: bool


def note(side: str, text: str, depth: int) -> Row:
    """A comment that says what happens to a statement."""
    first, *rest = text.split("\n")
    lines = [f"# {side}: {first}", *(f"#{' ' * (len(side) + 3)}{line}" for line in rest)]
    return Row("\n".join(lines), depth, NOTE)


def has_code(rows: Iterable[Row]) -> bool:
    """Whether something is done there."""
    return any(row.kind == CODE for row in rows)


def fill(pairs: list[Pair], depth: int, on_host: bool = True) -> None:
    """Complete a block: ``pass`` where it has no code.

    Args:
        pairs: its statements.
        depth: in how many blocks they are.
        on_host: whether the host program has the block.
    """
    rest = Pair()
    if all(row.kind == NOTE for row in graph_of(pairs)):
        rest.graph.append(Row("pass", depth))
    if on_host and all(row.kind == NOTE for row in host_of(pairs)):
        rest.host.append(Row("pass", depth))
    if not on_host:
        for pair in pairs:
            pair.host = [
                note("graph", row.text, row.depth) if row.kind == FLOW else row for row in pair.host
            ]
    pairs.append(rest)


def graph_of(pairs: Iterable[Pair]) -> list[Row]:
    """The rows of the graph program."""
    return [row for pair in pairs for row in pair.graph]


def host_of(pairs: Iterable[Pair]) -> list[Row]:
    """The rows of the host program."""
    return [row for pair in pairs for row in pair.host]


def text_of(rows: Iterable[Row]) -> str:
    """Rows as text."""
    return "\n".join(line for row in rows for line in row.lines())
