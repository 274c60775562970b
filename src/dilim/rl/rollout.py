"""`Rollout`: the last steps of an agent that learns from what its present policy does."""

from __future__ import annotations

from typing import Any, Final

from dilim.dtypes import float32, int64
from dilim.tensors.creation import asarray, zeros
from dilim.tensors.tensor import Tensor

_ROWS: Final = ("observations", "actions", "rewards", "ends")


class Rollout:
    """T steps of N environments; it is filled, learned from, and filled anew.

    Args:
        length: T.
        count: N.
        observation_size: F, numbers in an observation.
        action_shape: () for one of several actions, (A,) for A numbers.

    Attributes:
        observations: float32 (T, N, F).
        actions: int64 (T, N), or float32 (T, N, A).
        rewards: float32 (T, N).
        ends: float32 (T, N), 1 where an episode was over after the step.
        place: steps in it.
    """

    def __init__(
        self, length: int, count: int, observation_size: int, action_shape: tuple[int, ...] = ()
    ) -> None:
        self.length, self.count = length, count
        self.observations = zeros((length, count, observation_size))
        kind = float32 if action_shape else int64
        self.actions = zeros((length, count, *action_shape), dtype=kind)
        self.rewards = zeros((length, count))
        self.ends = zeros((length, count))
        self.place = 0

    @property
    def is_full(self) -> bool:
        """Whether it is time to learn."""
        return self.place == self.length

    def add(self, observations: Tensor, actions: Tensor, rewards: Tensor, ends: Tensor) -> None:
        """A step: (N, F), (N,) or (N, A), (N,), (N,)."""
        row = self.place
        self.observations[row] = observations
        self.actions[row] = actions
        self.rewards[row] = rewards
        self.ends[row] = ends.astype(float32)
        self.place += 1

    def steps(self) -> tuple[Tensor, Tensor]:
        """Observations (T N, F) and actions (T N,) or (T N, A) of a full rollout."""
        size, shape = self.observations.shape[2], self.actions.shape[2:]
        return self.observations.reshape((-1, size)), self.actions.reshape((-1, *shape))

    def clear(self) -> None:
        """Begin anew."""
        self.place = 0

    def state_dict(self) -> dict[str, Any]:
        """What is in it."""
        rows = {name: getattr(self, name)[: self.place].clone() for name in _ROWS}
        return {**rows, "place": self.place, "count": self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave, also of another number of environments."""
        if int(state["count"]) != self.count:
            self.__init__(  # type: ignore[misc]
                *(self.length, int(state["count"])),
                *(self.observations.shape[2], self.actions.shape[2:]),
            )
        self.place = int(state["place"])
        for name in _ROWS:
            getattr(self, name)[: self.place] = asarray(state[name])
