"""What ``trace=True`` prints: the run of the two programs, step by step."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dilim.slicing.actions import BIND, CHECK, END, FRAGMENT, LEAVE, RECEIVE, TRIED, TURN, WRITE
from dilim.slicing.findings import Findings, Point

if TYPE_CHECKING:
    from dilim.slicing.region import Region

Handler = Callable[[Sequence[np.ndarray]], Any]
_GRAPH: Final = "graph"
_HOST: Final = "host"


class Narrator:
    """Tells what happens in the runs of a region.

    Args:
        region: what runs.
        write: takes each line; by default it goes to stderr, in order with what is printed.
    """

    def __init__(self, region: Region, write: Callable[[str], Any] | None = None) -> None:
        self._findings = Findings(region)
        if region.after is None:
            self._first = f"starts the graph program of {region.code.name}"
            self._last = f"returns from {region.code.name}"
        else:
            place = f"the loop at line {region.code.body[0].line} of {region.code.name}"
            self._first = f"starts the graph program of {place}"
            self._last = f"goes on after {place}"
        self._write = _to_stderr if write is None else write
        self._steps: list[int] = []
        self._received: list[bool] = []

    def told(self, run: Callable[[], Any]) -> Any:
        """Run, with a first and a last step around it; what the run gives."""
        self._steps.append(0)
        self._received.append(False)
        try:
            self._step(_HOST, self._first)
            result = run()
            self._step(_HOST, self._last)
            return result
        finally:
            self._steps.pop()
            self._received.pop()

    def wrapped(self, handlers: Mapping[str, Handler]) -> dict[str, Handler]:
        """Handlers that tell what they do."""
        found = dict(handlers)
        for point in self._findings.points:
            found[point.channel] = self._telling(point, handlers[point.channel])
        return found

    def _telling(self, point: Point, handler: Handler) -> Handler:
        if point.letter == RECEIVE:
            return lambda values: self._receive(point, handler, values)
        if point.letter == END:
            return lambda values: self._end(point, handler, values)
        if point.letter in (FRAGMENT, BIND, WRITE):
            return lambda values: self._send(point, handler, values)
        if point.letter in (TURN, CHECK, TRIED, LEAVE):
            return lambda values: self._other(point, handler, values)
        return handler

    # --- steps ------------------------------------------------------------------------------

    def _step(self, side: str, text: str) -> None:
        self._steps[-1] += 1
        self._write(f"{self._steps[-1]:4d}  {side:<5}  {text}")

    def _computes(self, where: str) -> None:
        before = "receives it and " if self._received[-1] else ""
        self._received[-1] = False
        self._step(_GRAPH, f"{before}computes {where}")

    def _end(self, point: Point, handler: Handler, values: Sequence[np.ndarray]) -> None:
        labels = ", ".join(point.labels())
        gives = f" and sends {labels}: {_shown(point, values)}" if labels else ""
        self._computes(f"to the end{gives}")
        handler(values)

    def _send(self, point: Point, handler: Handler, values: Sequence[np.ndarray]) -> None:
        self._computes(f"up to line {point.line[1]}")
        labels = ", ".join(point.labels())
        if labels:
            self._step(_GRAPH, f"sends {labels}: {_shown(point, values)}")
        runs = self._runs(point)
        if runs or labels:
            takes = f"receives {labels}" if labels else ""
            self._step(_HOST, " and ".join(filter(None, [takes, runs])))
        handler(values)

    def _receive(self, point: Point, handler: Handler, values: Sequence[np.ndarray]) -> None:
        handler(values)
        self._step(_HOST, f"sends {', '.join(point.labels())}: {_shown(point, values)}")
        self._received[-1] = True

    def _other(self, point: Point, handler: Handler, values: Sequence[np.ndarray]) -> None:
        if point.letter == LEAVE:
            self._step(_HOST, "runs the rest as plain Python: something is not as it was")
        handler(values)
        if point.letter == CHECK and not values[0]:
            self._step(_HOST, "has changed something that the graph program relies on")
        elif point.letter == TRIED and not values[0]:
            self._step(_HOST, "has failed")
        elif point.letter == TURN:
            turn = "the next item" if values[0] else "that there is none left"
            self._step(_HOST, f"line {point.line[1]}: sends word of {turn}")

    def _runs(self, point: Point) -> str:
        source = point.source
        if source is None or not point.action.statements:
            return ""
        parts = source.outermost(point.action.statements)
        texts = [f"line {node.lineno}: {source.quote(node)}" for node in parts]  # type: ignore[attr-defined]
        return f"runs {'; '.join(texts)}" if texts else ""


def _shown(point: Point, values: Sequence[np.ndarray]) -> str:
    """Types and size of values; a single number itself."""
    shown = values[len(values) - len(point.types) :]
    if len(shown) == 1 and shown[0].size == 1:
        return f"{shown[0].item()!r}, {point.types[0]}"
    kinds = list(map(str, point.types))
    if len(kinds) > 4:
        kinds = [*kinds[:3], f"{len(kinds) - 3} more"]
    return f"{', '.join(kinds)}, {point.bytes:,} bytes"


def _to_stderr(line: str) -> None:
    sys.stdout.flush()
    print(line, file=sys.stderr, flush=True)
