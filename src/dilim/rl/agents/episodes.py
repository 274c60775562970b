"""`EpisodeBatch`: whole episodes that wait to be learned from."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from dilim.rl.door import Vector
from dilim.rl.returns import discounted_returns
from dilim.tensors.creation import asarray
from dilim.tensors.tensor import Tensor


class Steps(NamedTuple):
    """The steps of finished episodes, one after the other.

    Attributes:
        observations: float32 (B, F).
        actions: int64 (B, 1).
        returns: float32 (B,), discounted.
        episodes: how many.
    """

    observations: Tensor
    actions: Tensor
    returns: Tensor
    episodes: int


class EpisodeBatch:
    """Collects steps; at the end of an episode it finds their discounted returns.

    Args:
        observation_size: F, numbers in an observation.
        gamma: discount per step.

    Attributes:
        episodes: finished episodes that were not taken yet.
    """

    def __init__(self, observation_size: int, gamma: float) -> None:
        self.observation_size = observation_size
        self.gamma = gamma
        self.episodes = 0
        self._observations: list[Vector] = []
        self._actions: list[int] = []
        self._returns: list[float] = []  # of finished episodes
        self._rewards: list[float] = []  # of the running one

    def add(self, observation: Vector, action: int, reward: float) -> None:
        """A step of the running episode."""
        self._observations.append(observation)
        self._actions.append(action)
        self._rewards.append(reward)

    def end_episode(self) -> None:
        """The running episode is complete."""
        self._returns.extend(discounted_returns(self._rewards, self.gamma).tolist())
        self._rewards = []
        self.episodes += 1

    def drop_running(self) -> None:
        """Forget the running episode."""
        finished = len(self._returns)
        del self._observations[finished:], self._actions[finished:]
        self._rewards = []

    def take(self) -> Steps:
        """All finished episodes, which are removed; the running one stays."""
        count = len(self._returns)
        with np.errstate(over="ignore"):  # infinite returns are found in the loss
            returns = np.array(self._returns, np.float32)
        steps = Steps(
            observations=asarray(self._stacked(self._observations[:count])),
            actions=asarray(np.array(self._actions[:count], np.int64).reshape(count, 1)),
            returns=asarray(returns),
            episodes=self.episodes,
        )
        del self._observations[:count], self._actions[:count]
        self._returns = []
        self.episodes = 0
        return steps

    def _stacked(self, observations: list[Vector]) -> np.ndarray:
        return np.array(observations, np.float32).reshape(-1, self.observation_size)

    def state_dict(self) -> dict[str, Any]:
        """Arrays and plain values."""
        return {
            "observations": self._stacked(self._observations),
            "actions": np.array(self._actions, np.int64),
            "returns": np.array(self._returns, np.float64),
            "rewards": np.array(self._rewards, np.float64),
            "episodes": self.episodes,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        self._observations = list(np.array(state["observations"], np.float32))
        self._actions = np.asarray(state["actions"]).tolist()
        self._returns = np.asarray(state["returns"]).tolist()
        self._rewards = np.asarray(state["rewards"]).tolist()
        self.episodes = int(state["episodes"])
