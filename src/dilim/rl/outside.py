"""`Outside`: environments that Python steps, whose numbers come together in one array."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from dilim.rl import adapters, door
from dilim.rl.actions import several
from dilim.tensors.tensor import Tensor

Rows = npt.NDArray[np.float32]
"""(N, 4 + F): reward, terminated, truncated, whether to pause (in the first row), what is seen."""
FIRST: Final = 4
"""Where in a row that begins."""


class Outside:
    """N environments, stepped one after the other.

    Args:
        envs: these.
        first: the number of the first one, for messages.

    Attributes:
        count: N.
        size: F, numbers in an observation.
        ended: those whose episode is over, or was never begun.
        is_interrupted: whether to pause after a step.
    """

    def __init__(self, envs: list[adapters.Environment], first: int = 0) -> None:
        self.envs, self.count = envs, len(envs)
        self.size = math.prod(envs[0].observation_space.shape)
        self._rows = np.zeros((len(envs), FIRST + self.size), np.float32)
        self._each = [
            (env, row, row[FIRST:], partial(door.unplaced, first + k))
            for k, (env, row) in enumerate(zip(envs, self._rows, strict=True))
        ]
        self._all = frozenset(range(len(envs)))
        self.ended = self._all
        self.is_interrupted: Callable[[], bool] = bool

    def begin(self, seeds: list[int] | None = None) -> Rows:
        """Begin episodes in all of them, (N, F), from seeds if there are any."""
        self.ended = self._all
        for k, (env, _, row, place) in enumerate(self._each):
            seed = None if seeds is None else seeds[k]
            self._see(row, adapters.reset(env, seed), place)
        self.ended = frozenset()
        return self._rows[:, FIRST:]

    def go_on(self) -> Rows:
        """Begin episodes where there is none, (N, F)."""
        for k in sorted(self.ended):
            env, _, row, place = self._each[k]
            self._see(row, adapters.reset(env), place)
        self.ended = frozenset()
        return self._rows[:, FIRST:]

    def step(self, actions: Tensor) -> Rows:
        """`move` with actions in a tensor."""
        return self.move(several(actions))

    def move(self, actions: list[Any]) -> Rows:
        """One step of all; the array is written anew by the next call.

        Args:
            actions: one for each, as the environments have them.

        Raises:
            NonFiniteError, ShapeError, EnvironmentContractError: an environment gave what cannot
                be. Then, and where it raises something itself, all episodes are over.
        """
        ended, self.ended = [], self._all
        for k, ((env, row, seen, place), action) in enumerate(
            zip(self._each, actions, strict=True)
        ):
            observation, reward, terminated, truncated, _ = adapters.check_step(env.step(action))
            row[0] = door.finite_reward(reward, place)
            row[1] = bool(terminated)
            row[2] = bool(truncated)
            self._see(seen, observation, place)
            if terminated or truncated:
                ended.append(k)
        self._rows[0, 3] = self.is_interrupted()
        self.ended = frozenset(ended)
        return self._rows

    def see(self, observations: Rows) -> None:
        """The environments are in the middle of episodes, in which these are seen."""
        self._rows[:, FIRST:] = observations
        self.ended = frozenset()

    def _see(self, row: Rows, observation: Any, place: Callable[[], str]) -> None:
        if type(observation) is np.ndarray and observation.dtype == np.float32:
            if observation.size == self.size:
                row[:] = observation if observation.ndim == 1 else observation.reshape(-1)
                if math.isfinite(row.dot(row)):
                    return
        row[:] = door.observation_vector(observation, self.size, place)
