"""Tensors that the host has handed over to the graph, which has their numbers only."""

from __future__ import annotations

from collections.abc import Sequence

from dilim.tensors.cells import Cell


class Lent:
    """Which memory of the graph is that of a tensor of the host.

    Args:
        turns: when the present turn of each open loop began; it changes.
    """

    def __init__(self, turns: Sequence[int]) -> None:
        self._turns = turns
        self._known: dict[Cell, tuple[int, list[int]]] = {}

    def add(self, cell: Cell) -> int:
        """Take note of memory; the number under which the host has the tensor."""
        self._known[cell] = len(self._known), list(self._turns)
        return self._known[cell][0]

    def number_of(self, cell: Cell) -> int | None:
        """The number of the tensor; None if there is none, or it is one of another turn."""
        number, turns = self._known.get(cell, (None, []))
        return number if turns == self._turns[: len(turns)] else None
