"""How training goes, in one line: live in a terminal, now and then elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field
from types import TracebackType

from rich.console import Console
from rich.live import Live
from rich.text import Text

from dilim.rl.runs import Metrics

_REFRESHES_PER_SECOND = 8
_QUIET_S = 10.0  # without a terminal: the longest silence
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
    unfinished: tuple[int, float],
    speed: float,
    seconds: float,
    width: int,
) -> str:
    """The line; parts that do not fit into `width` are left out, the least important first.

    Args:
        last: the last finished episode.
        limit: episodes to train.
        evaluation: mean return of the last evaluation.
        unfinished: steps and rewards of the episode that goes on.
        speed: steps per second.
        seconds: of training so far.
        width: characters.
    """
    clock = f"{int(seconds) // 60}:{int(seconds) % 60:02d}"
    if last is None:
        steps, reward = unfinished
        parts = ["no finished episode yet", f"step {steps:,}", f"reward so far {reward:g}"]
    else:
        parts = [
            f"episode {last['episode']:,} of {limit:,}",
            f"return {_number(last['return'])}",
            f"average {_number(last['average'])}",
        ]
    parts.append(f"{speed:,.0f} steps/s" if speed >= 10 else f"{speed:.1f} steps/s")
    optional = [f"evaluation {evaluation:.1f}"] if evaluation is not None else []
    for part in (*optional, clock):
        if len("  ".join([*parts, part])) <= width:
            parts.append(part)
    return "  ".join(parts)


def _number(value: float | None) -> str:
    return "none" if value is None else f"{value:.1f}"


class Progress:
    """Shows progress from `__enter__` to `__exit__`."""

    def __init__(self, console: Console, *, limit: int, evaluation: float | None = None) -> None:
        """Prepare.

        Args:
            console: where to show it.
            limit: episodes to train.
            evaluation: mean return of the last evaluation before this session.
        """
        self._console = console
        self._limit = limit
        self._evaluation = evaluation
        self._last: Metrics | None = None
        self._unfinished = (0, 0.0)
        self._total_steps = 0
        self._speed = Speed()
        self._seconds = 0.0
        self._stopping = ""
        self._last_shown = time.monotonic()
        self._started = time.monotonic()
        self._live: Live | None = None

    def __enter__(self) -> Progress:
        self._started = time.monotonic()
        if self._console.is_terminal:
            self._live = Live(
                get_renderable=self._text,
                console=self._console,
                refresh_per_second=_REFRESHES_PER_SECOND,
            )
            self._live.start(refresh=True)
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._live is not None:
            self._live.stop()

    def on_step(self, steps: int, reward: float, total_steps: int) -> None:
        """Take note of a step.

        Args:
            steps: of this episode.
            reward: sum of rewards of this episode.
            total_steps: of the run.
        """
        self._unfinished = (steps, reward)
        self._total_steps = total_steps
        if self._live is None and time.monotonic() - self._last_shown > _QUIET_S:
            self._print()

    def on_episode(self, metrics: Metrics) -> None:
        """Take note of a finished episode."""
        self._last = metrics
        self._total_steps = metrics["steps"]
        if metrics["evaluation"] is not None:
            self._evaluation = metrics["evaluation"]
            if self._live is None:
                self._print()

    def say(self, text: str) -> None:
        """Print a line that stays."""
        self._console.print(text, soft_wrap=True)

    def stop_requested(self, text: str) -> None:
        """Show that a stop was asked for; safe to call in a signal handler."""
        self._stopping = text
        if self._live is None:
            # No print: the signal may have come in the middle of one.
            os.write(sys.__stderr__.fileno(), f"{text}\n".encode()) if sys.__stderr__ else None

    def _line(self, width: int) -> str:
        return progress_line(
            self._last,
            limit=self._limit,
            evaluation=self._evaluation,
            unfinished=self._unfinished,
            speed=self._speed.update(self._total_steps),
            seconds=time.monotonic() - self._started,
            width=width,
        )

    def _text(self) -> Text:
        text = Text(self._line(self._console.width), no_wrap=True, overflow="ellipsis")
        if self._stopping:
            text.append(f"\n{self._stopping}", style="bold")
        return text

    def _print(self) -> None:
        self._last_shown = time.monotonic()
        self._console.print(self._line(self._console.width), soft_wrap=True)
