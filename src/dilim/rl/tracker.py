"""`RewardTracker`: how the episodes went so far."""

from __future__ import annotations

import math
from collections import deque
from typing import Any

from dilim.errors import NonFiniteError


class RewardTracker:
    """Counts episodes and remembers the last returns.

    Before the first episode there is nothing to average: the numbers are None, never NaN.

    Args:
        window_size: over how many of the last episodes `running_average` goes, at least 1.

    Attributes:
        window_size: see above.
        total_episodes: episodes so far.
        best_reward: the highest return so far, or None.

    Example:
        >>> tracker = RewardTracker(window_size=2)
        >>> tracker.running_average is None
        True
        >>> for reward in (1.0, 2.0, 4.0):
        ...     tracker.add(reward)
        >>> tracker.total_episodes, tracker.last_reward, tracker.running_average
        (3, 4.0, 3.0)
    """

    def __init__(self, window_size: int = 100) -> None:
        if window_size < 1:
            raise ValueError(f"RewardTracker: expected window_size >= 1, received {window_size}")
        self.window_size = window_size
        self.total_episodes = 0
        self.best_reward: float | None = None
        self._recent: deque[float] = deque(maxlen=window_size)

    def add(self, reward: float) -> None:
        """Take in the return (sum of rewards) of a finished episode.

        Raises:
            NonFiniteError: it is NaN or infinite; nothing was counted.
        """
        value = float(reward)
        if not math.isfinite(value):
            raise NonFiniteError(f"RewardTracker.add: expected a finite return, received {value}")
        self._recent.append(value)
        self.total_episodes += 1
        self.best_reward = value if self.best_reward is None else max(value, self.best_reward)

    @property
    def last_reward(self) -> float | None:
        """The return of the last episode, or None."""
        return self._recent[-1] if self._recent else None

    @property
    def running_average(self) -> float | None:
        """The mean return of the last `window_size` episodes (or of fewer at first), or None."""
        return math.fsum(self._recent) / len(self._recent) if self._recent else None

    def state_dict(self) -> dict[str, Any]:
        """Plain JSON from which `load_state_dict` goes on."""
        return {
            "window_size": self.window_size,
            "total_episodes": self.total_episodes,
            "best_reward": self.best_reward,
            "recent": list(self._recent),
        }

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self.window_size = int(state["window_size"])
        self.total_episodes = int(state["total_episodes"])
        self.best_reward = state["best_reward"]
        self._recent = deque(state["recent"], maxlen=self.window_size)

    def __str__(self) -> str:
        average = self.running_average
        if average is None:
            return "no finished episode yet"
        return (
            f"episode {self.total_episodes}: last {self.last_reward:.1f}, average {average:.1f}, "
            f"best {self.best_reward:.1f}"
        )

    def __repr__(self) -> str:
        return f"<RewardTracker: {self}>"
