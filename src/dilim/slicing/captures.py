"""Inner functions see the variables of the function around them as they are when they run.

A frame of the slicer holds values, not variables that could be shared. That makes no difference
unless a variable changes after an inner function that uses it was made.
"""

from __future__ import annotations

from collections.abc import Iterable

from dilim.slicing.errors import Unsliceable
from dilim.slicing.program import Block, For, Statement, Step, Unit, While, With
from dilim.slicing.scopes import inner_blocks


def refuse_changes(body: Block, captures: Iterable[tuple[Statement, set[str]]]) -> None:
    """Raises if a variable changes after it was captured.

    Args:
        body: of the function.
        captures: statements that make inner functions, and the variables that these may read.

    Raises:
        Unsliceable: at the first such statement.
    """
    places = _Places(body)
    for maker, names in captures:
        changed = sorted(names & places.bound_after(maker))
        if changed:
            raise Unsliceable(
                f"{changed[0]} changes after an inner function that uses it was made", maker.line
            )


class _Places:
    """Where in the order of a body its statements stand, and which loops are around them."""

    def __init__(self, body: Block) -> None:
        self._places: dict[int, tuple[int, frozenset[int]]] = {}
        self._binding: list[tuple[Statement, tuple[str, ...]]] = []
        self._visit(body, frozenset())

    def bound_after(self, maker: Statement) -> set[str]:
        """Names that may be bound when a statement has run."""
        if id(maker) not in self._places:  # It can never run.
            return set()
        place, loops = self._places[id(maker)]
        bound: set[str] = set()
        for statement, names in self._binding:
            other_place, other_loops = self._places[id(statement)]
            if other_place > place or loops & other_loops:
                bound.update(names)
        return bound

    def _visit(self, block: Block, loops: frozenset[int]) -> None:
        for statement in block:
            inside = loops | {id(statement)} if isinstance(statement, While | For) else loops
            self._places[id(statement)] = (len(self._places), inside)
            match statement:
                case Step() | Unit():
                    self._binding.append((statement, statement.writes))
                case For(target=str(target)) | With(target=str(target)):
                    self._binding.append((statement, (target,)))
            for inner in inner_blocks(statement):
                self._visit(inner, inside)
