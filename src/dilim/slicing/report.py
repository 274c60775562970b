"""What the slicer notes for the user: which lines are graph, which are host, and why."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from dilim.slicing import program

Line = tuple[str, int]
"""File and line."""
RAISES: Final = "it raises"
"""The reason for what the host runs only to raise the error that the graph has seen coming."""


@dataclass(slots=True)
class Notes:
    """Notes of one region.

    Attributes:
        on_graph: lines with operations of the graph program.
        on_host: lines with statements of the host program, and why.
        reached: functions of the user, and their statements that can be reached.
        asked: statements that call something which only the host can do.
    """

    on_graph: dict[Line, int] = field(default_factory=dict)
    on_host: dict[Line, list[str]] = field(default_factory=dict)
    reached: dict[program.Function, dict[program.Statement, None]] = field(default_factory=dict)
    asked: set[program.Statement] = field(default_factory=set)

    def graph(self, code: program.Function, line: int) -> None:
        """A line has an operation of the graph."""
        key = code.filename, line
        self.on_graph[key] = self.on_graph.get(key, 0) + 1

    def host(self, code: program.Function, line: int, reason: str) -> None:
        """A line has a statement of the host."""
        reasons = self.on_host.setdefault((code.filename, line), [])
        if reason and reason not in reasons:
            reasons.append(reason)

    def reach(self, code: program.Function, statement: program.Statement) -> None:
        """A statement is interpreted."""
        self.reached.setdefault(code, {})[statement] = None
