"""How training goes, in one line: live in a terminal, now and then elsewhere."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from dilim.rl.agents.base import Agent
from dilim.rl.runs import Metrics

_REFRESHES_PER_SECOND = 8
_QUIET_S = 10.0  # without a terminal: the longest silence
_TICK_S = 0.25
_SPEED_WINDOW_S = 3.0


@dataclass(slots=True)
class Speed:
    """Steps per second over the last three seconds or so.

    Attributes:
        clock: gives the time in seconds.
    """

    clock: Callable[[], float] = time.monotonic
    _marks: deque[tuple[float, int]] = field(default_factory=deque)

    def update(self, steps: int) -> float:
        """Take note of the steps made so far; returns steps per second, 0 at first."""
        now = self.clock()
        self._marks.append((now, steps))
        while len(self._marks) > 2 and now - self._marks[1][0] > _SPEED_WINDOW_S:
            self._marks.popleft()
        started, before = self._marks[0]
        return (steps - before) / (now - started) if now > started else 0.0


def progress_line(
    last: Metrics | None,
    *,
    limit: int,
    evaluation: float | None,
    steps: int,
    speed: float,
    seconds: float,
    width: int,
) -> str:
    """The line; parts that do not fit into `width` are left out, the least important first.

    Args:
        last: the last finished episode.
        limit: episodes to train.
        evaluation: mean return of the last evaluation.
        steps: made so far, also of the episode that goes on.
        speed: steps per second.
        seconds: of training so far.
        width: characters.
    """
    if last is None:
        parts = ["no finished episode yet", f"step {steps:,}"]
    else:
        parts = [
            f"episode {last['episode']:,} of {limit:,}",
            f"return {_number(last['return'])}",
            f"average {_number(last['average'])}",
        ]
    parts.append(f"{speed:,.0f} steps/s" if speed >= 10 else f"{speed:.1f} steps/s")
    optional = [f"evaluation {evaluation:.1f}"] if evaluation is not None else []
    for part in (*optional, clock(seconds)):
        if len("  ".join([*parts, part])) <= width:
            parts.append(part)
    return "  ".join(parts)


def clock(seconds: float) -> str:
    """Minutes and seconds, and hours where there are any: ``1:15``, ``2:00:00``."""
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.1f}"


class Progress:
    """Shows how an agent's training goes, from `__enter__` to `__exit__`.

    In a terminal one line is drawn over and over by a thread that only reads counters. Elsewhere a
    line is printed after every evaluation, and when nothing was printed for ten seconds.
    """

    def __init__(
        self,
        console: Console,
        agent: Agent,
        *,
        limit: int,
        evaluation: float | None = None,
        seconds: float = 0.0,
    ) -> None:
        """Prepare.

        Args:
            console: where to show it.
            agent: whose steps are counted.
            limit: episodes to train.
            evaluation: mean return of the last evaluation before this session.
            seconds: of training before this session.
        """
        self._console = console
        self._agent = agent
        self._limit = limit
        self._evaluation = evaluation
        self._last: Metrics | None = None
        self._speed = Speed()
        self._earlier_s = seconds
        self._started = self._last_shown = time.monotonic()
        self._live: Live | None = None
        self._ended = threading.Event()
        self._ticker = threading.Thread(target=self._break_silence, daemon=True)

    def __enter__(self) -> Progress:
        self._started = self._last_shown = time.monotonic()
        self._speed.update(self._agent.steps)
        if self._console.is_terminal:
            self._live = Live(
                get_renderable=self._text,
                console=self._console,
                refresh_per_second=_REFRESHES_PER_SECOND,
            )
            self._live.start(refresh=True)
        else:
            self._ticker.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._ended.set()
        if self._live is not None:
            self._live.stop()
        else:
            self._ticker.join()

    def on_episode(self, metrics: Metrics) -> None:
        """Take note of a finished episode."""
        self._last = metrics
        if metrics["evaluation"] is not None:
            self._evaluation = metrics["evaluation"]
            if self._live is None:
                self._print()

    def _line(self) -> str:
        return progress_line(
            self._last,
            limit=self._limit,
            evaluation=self._evaluation,
            steps=self._agent.steps,
            speed=self._speed.update(self._agent.steps),
            seconds=self._earlier_s + time.monotonic() - self._started,
            width=self._console.width,
        )

    def _text(self) -> Text:
        return Text(self._line(), no_wrap=True, overflow="ellipsis")

    def _print(self) -> None:
        self._last_shown = time.monotonic()
        self._console.print(self._line(), soft_wrap=True)

    def _break_silence(self) -> None:
        while not self._ended.wait(_TICK_S):
            if time.monotonic() - self._last_shown > _QUIET_S:
                self._print()
