"""`play`: act, step, remember, learn; the one loop of all agents, and the log of its episodes.

It is ordinary code over tensors. `dilim.rl.training` has it sliced: over a tensor environment all
of it is one native program; ``agent.slices()`` shows it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from dilim.dtypes import bool_ as boolean
from dilim.dtypes import float32, float64, int64
from dilim.tensors.creation import asarray, zeros
from dilim.tensors.elementwise import isfinite, where
from dilim.tensors.statistics import cumulative_sum
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.rl.agents.base import Agent
    from dilim.rl.worlds import World

CAPACITY: Final = 1024
"""Finished episodes that fit into an `EpisodeLog`."""


class EpisodeLog:
    """The running episodes, and those that ended since `begin`, in order.

    Args:
        count: N, environments that are stepped at once.

    Attributes:
        totals: (N,), sums of rewards of the running episodes.
        lengths: (N,), their steps.
        finished: how many have ended since `begin`. Of each there is in ``returns``,
            ``ended_lengths``, ``terminations``, ``losses`` (the last one by then) and ``steps`` (of
            the agent's life) an entry.
    """

    def __init__(self, count: int = 1) -> None:
        self.totals = zeros((count,), dtype=float64)
        self.lengths = zeros((count,), dtype=int64)
        self.finished = 0
        size = (CAPACITY + count + 1,)  # the last place takes what is not to be kept
        self.returns = zeros(size, dtype=float64)
        self.ended_lengths = zeros(size, dtype=int64)
        self.terminations = zeros(size, dtype=boolean)
        self.losses = zeros(size, dtype=float32)
        self.steps = zeros(size, dtype=int64)

    def begin(self) -> None:
        """Forget what has ended; the running episodes go on."""
        self.finished = 0

    def add(
        self, reward: Tensor, terminated: Tensor, truncated: Tensor, loss: Tensor, steps: int
    ) -> None:
        """One step of all environments.

        Args:
            reward: (N,).
            terminated: (N,), bool.
            truncated: (N,), bool.
            loss: of the last update, ().
            steps: of the agent's life, these included.
        """
        self.totals = self.totals + reward.astype(float64)
        self.lengths = self.lengths + 1
        ended = terminated | truncated
        if ended.any():
            numbers = cumulative_sum(ended.astype(int64))
            waste = self.returns.shape[0] - 1
            places = where(ended, numbers + (self.finished - 1), waste)
            self.returns[places] = self.totals
            self.ended_lengths[places] = self.lengths
            self.terminations[places] = terminated
            self.losses[places] = loss
            self.steps[places] = steps
            self.finished += int(ended.astype(int64).sum())
            self.totals = where(ended, 0.0, self.totals)
            self.lengths = where(ended, 0, self.lengths)

    def forget(self) -> None:
        """Drop the running episodes."""
        self.totals = zeros(self.totals.shape, dtype=float64)
        self.lengths = zeros(self.lengths.shape, dtype=int64)

    def state_dict(self) -> dict[str, Tensor]:
        """The running episodes."""
        return {"totals": self.totals, "lengths": self.lengths}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` gave."""
        count = len(state["totals"])
        if count != self.totals.shape[0]:
            self.__init__(count)  # type: ignore[misc]
        self.totals = asarray(state["totals"], copy=True)
        self.lengths = asarray(state["lengths"], copy=True)
        self.finished = 0


def play(agent: Agent, world: World, steps: int, episodes: int) -> None:
    """Train for so many more steps, or until so many episodes have ended.

    Args:
        agent: who acts and learns.
        world: in what; see `dilim.rl.worlds`.
        steps: calls of ``world.step`` at most.
        episodes: stop after the step in which the log has so many; at most `CAPACITY`.
    """
    log = agent.log
    log.begin()
    for _ in range(steps):
        world.prepare()
        observation = world.observation
        actions = agent.choose(observation)
        reward, following, terminated, truncated = world.step(agent.actions.outward(actions))
        world.is_sound = bool(isfinite(reward).all() & isfinite(following).all())
        if not world.is_sound:
            break
        agent.take(observation, actions, reward, following, terminated, truncated)
        if log.finished >= episodes or agent.must_pause or world.must_pause:
            break
