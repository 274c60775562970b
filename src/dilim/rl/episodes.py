"""`EpisodeMemory`: whole episodes that wait to be learned from."""

from __future__ import annotations

from typing import Any, Final

from dilim.dtypes import bool_ as boolean
from dilim.dtypes import float64, int64
from dilim.rl.returns import discounted
from dilim.tensors.creation import asarray, zeros
from dilim.tensors.manipulation import concat
from dilim.tensors.tensor import Tensor

_ROWS: Final = ("observations", "actions", "rewards", "ends")
_CAPACITY: Final = 512  # an episode of most environments, and of CartPole


class EpisodeMemory:
    """The steps of one environment, in order; room for more is got by doubling.

    Args:
        observation_size: F, numbers in an observation.

    Attributes:
        observations: float32 (C, F), of which the first ``count`` rows are filled.
        actions: int64 (C,).
        rewards: float64 (C,).
        ends: bool (C,), whether the episode was over after the step.
        count: steps in it.
        finished: steps in it that belong to episodes that are over.
        episodes: how many episodes those are.
    """

    def __init__(self, observation_size: int) -> None:
        self.observations = zeros((_CAPACITY, observation_size))
        self.actions = zeros((_CAPACITY,), dtype=int64)
        self.rewards = zeros((_CAPACITY,), dtype=float64)
        self.ends = zeros((_CAPACITY,), dtype=boolean)
        self.count = 0
        self.finished = 0
        self.episodes = 0

    @property
    def is_full(self) -> bool:
        """Whether `grow` has to come before the next step."""
        return self.count == self.actions.shape[0]

    def add(self, observation: Tensor, action: Tensor, reward: Tensor, end: Tensor) -> None:
        """A step: (F,), (), (), ()."""
        row = self.count
        self.observations[row] = observation
        self.actions[row] = action
        self.rewards[row] = reward.astype(float64)
        self.ends[row] = end
        self.count += 1
        if end:
            self.finished = self.count
            self.episodes += 1

    def returns(self, gamma: float) -> Tensor:
        """float64 (C,): the discounted returns; beyond ``finished`` they mean nothing."""
        return discounted(self.rewards, self.ends, gamma, self.finished)

    def clear(self) -> None:
        """Forget all steps."""
        self.count = 0
        self.finished = 0
        self.episodes = 0

    def drop_running(self) -> None:
        """Forget the steps of the running episode."""
        self.count = self.finished

    def grow(self) -> None:
        """Double the room."""
        for name in _ROWS:
            column = getattr(self, name)
            more = zeros(column.shape, dtype=column.dtype)
            setattr(self, name, concat([column, more], axis=0))

    def state_dict(self) -> dict[str, Any]:
        """What is in it, and for how much there is room."""
        rows = {name: getattr(self, name)[: self.count].clone() for name in _ROWS}
        numbers = {"count": self.count, "finished": self.finished, "episodes": self.episodes}
        return {**rows, **numbers, "capacity": self.actions.shape[0]}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        while self.actions.shape[0] < state["capacity"]:
            self.grow()
        self.count = int(state["count"])
        self.finished, self.episodes = int(state["finished"]), int(state["episodes"])
        for name in _ROWS:
            getattr(self, name)[: self.count] = asarray(state[name])
