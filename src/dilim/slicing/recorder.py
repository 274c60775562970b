"""The host's side of a run: operations of the graph that are put on its tape; see `tapes`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, TypeAlias

import numpy as np

from dilim.ir.graph import Value
from dilim.ops.opdef import OpDef
from dilim.runtime.devices import Storage
from dilim.tensors.deferred import Deferred
from dilim.tensors.dispatch import record
from dilim.tensors.replays import Replay
from dilim.tensors.tape import ROOM, SPACING, now
from dilim.tensors.tensor import Tensor

Turn: TypeAlias = tuple[int, ...]
"""At which turn each of some loops is, from the outermost."""


class Recorder:
    """Puts operations of one run at a time on the tape.

    Attributes:
        nodes: what was recorded, by number.
        results: the tensors that they have made.
        recorded: in which turn.
        moments: when code of the host ran, by number.
        given: tensors from outside, and what had made them when the program began.
        disturbed: gives the memory that somebody else has written, with the version that it had.
    """

    nodes: dict[int, Any]
    results: dict[int, Tensor]
    recorded: dict[int, Turn]
    moments: dict[int, dict[int, tuple[Turn, int]]]
    disturbed: Callable[[], dict[Storage, int]]
    given: list[tuple[Any, Any]]

    def forget_tape(self) -> None:
        """Begin a run."""
        self.nodes, self.results, self.recorded, self.moments = {}, {}, {}, {}

    def moment(self, number: int, turn: Turn) -> int:
        """The moment at which this runs.

        Of each number the first is kept, in all and in the present turn of each loop around it.
        """
        made = now()
        known = self.moments.setdefault(number, {})
        for depth in range(len(turn) + 1):
            if depth not in known or known[depth][0] != turn[:depth]:
                known[depth] = turn[:depth], made
        return made

    def _first(self, number: int, turn: Turn) -> int | None:
        """The first moment of a number in a turn."""
        known = self.moments.get(number, {}).get(len(turn))
        return known[1] if known is not None and known[0] == turn else None

    def place(self, later: Sequence[int], moment: int, rank: int, turn: Turn) -> int:
        """A serial before the first of some moments of a turn, and among others by rank."""
        found = (self._first(number, turn) for number in later)
        first = next((at for at in found if at is not None), moment)
        return first - SPACING + (1 + rank) * ROOM

    def _is_recorded(self, number: int, turn: Turn, x: Tensor | None = None) -> bool:
        """Whether an operation was recorded already in the turn that it belongs to."""
        is_known = self.recorded.get(number) == turn and number in self.nodes
        self.recorded[number] = turn
        if is_known and x is not None and x._node is None:  # another object for the same
            x._node, x._requires_grad = self.nodes[number], True
        return is_known

    def record(
        self,
        number: int,
        turn: Turn,
        x: Tensor,
        op: OpDef,
        inputs: tuple[Any, ...],
        params: dict[str, Any],
        serial: int,
    ) -> None:
        """Put an operation that the graph has computed on the tape, as the maker of ``x``.

        There is nothing to record where a branch of the graph gave it no input with a gradient.
        """
        has_gradient = any(y._requires_grad for y in inputs if isinstance(y, Tensor))
        if not has_gradient or self._is_recorded(number, turn, x):
            return
        with self.as_it_was():
            record(op, inputs, params, x)
        node: Any = x._node
        node.serial = serial
        self.nodes[number] = node
        self.results[number] = x

    def defer(
        self,
        number: int,
        turn: Turn,
        region: Any,
        inputs: tuple[Any, ...],
        values: Sequence[Value],
        arrays: Sequence[np.ndarray],
        serial: int,
        moments: tuple[tuple[int, int], ...],
        plain: dict[int, Tensor | None],
    ) -> None:
        """Keep what it takes to record what a branch or loop of the graph has computed."""
        if self._is_recorded(number, turn):
            return
        known = {value: np.array(array) for value, array in zip(values, arrays, strict=True)}
        firsts = ((at, self._first(k, turn)) for at, k in moments)
        passed = [(at, first - ROOM) for at, first in firsts if first is not None]
        there = {key: x for key, x in plain.items() if x is not None}
        with self.as_it_was():
            self.nodes[number] = Replay(region, inputs, known, serial, passed, there)

    def makers(self) -> Iterator[tuple[Any, Any]]:
        """Tensors, and what has made them as far as the program knows."""
        yield from self.given
        for number, x in self.results.items():
            yield x, self.nodes.get(number)

    @contextmanager
    def as_it_was(self) -> Iterator[None]:
        """A context in which the tape has memory as it was before somebody else wrote into it."""
        disturbed = self.disturbed()
        if not disturbed:
            yield
            return
        now = [(storage, storage.version, storage.recorded) for storage in disturbed]
        made = [(x, x._node, node) for x, node in self.makers() if x._storage in disturbed]
        for x, _, node in made:
            x._node = node
        for storage, version in disturbed.items():
            storage.version, storage.recorded = version, min(storage.recorded, version)
        try:
            yield
        finally:
            for x, node, _ in made:
                x._node = node
            for storage, version, recorded in now:
                storage.version, storage.recorded = version, recorded

    def attach(
        self, number: int, turn: Turn, x: Tensor, whole: int, part: int, is_certain: bool
    ) -> None:
        """Let a branch or loop be the maker of one of its results, if it has a gradient."""
        if self._is_recorded(number, turn, x):
            return
        replay = self.nodes[whole]
        if is_certain and replay.is_certain:
            self.nodes[number], self.results[number] = Deferred(replay, part, x), x
        elif replay.results()[part].requires_grad:
            self.nodes[number], self.results[number] = Deferred(replay, part, x).resolved(), x

    def release(self, number: int) -> None:
        """Use up a recorded operation that the host may have, as the graph program has."""
        node = self.nodes.pop(number, None)
        if node is not None:
            node.release()
