"""`Bandit`: slot machines with unknown means; find the best one."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from gymnasium import spaces

from dilim.dtypes import bool_
from dilim.errors import EnvironmentContractError
from dilim.rl.envs.base import TensorEnvironment
from dilim.rl.envs.drawing import Canvas
from dilim.tensors.creation import asarray, full, zeros
from dilim.tensors.indexing import take
from dilim.tensors.random import Generator
from dilim.tensors.tensor import Tensor

_BAR_COLUMNS = 40


BanditState = tuple[Tensor, Tensor]
"""The payout of the last pull, and whether there was one."""


class Bandit(TensorEnvironment):
    """Pull one of several arms; each pays a random amount with a mean of its own.

    An episode is one pull. There is nothing to see, so that what is learned is one distribution
    over arms.

    **Observation**: float32, shape (1,): always 0.

    **Action**: Discrete(number of arms): the arm to pull.

    **Reward**: normal with the arm's mean and the standard deviation ``std``.

    **Start**: no arm is pulled.

    **End**: terminated after the first step; there is no limit to reach.

    **Solved**: the best arm is pulled with a probability above 0.9.

    Args:
        means: the mean payout of each arm. None draws ten of them from U(0, 1) with ``arms_seed``.
        std: standard deviation of a payout, at least 0.
        arms_seed: for the means that are drawn; it belongs to the task and not to an episode.
        render_mode: see `TensorEnvironment`.

    Attributes:
        means: a tuple.
        best_arm: the arm with the highest mean.

    Source: Robbins, Some aspects of the sequential design of experiments, 1952.
    """

    def __init__(
        self,
        means: Sequence[float] | None = None,
        *,
        std: float = 1.0,
        arms_seed: int = 0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps=None, render_mode=render_mode)
        drawn = Generator(arms_seed).uniform((10,)).tolist() if means is None else means
        self.means = tuple(float(mean) for mean in drawn)
        if not self.means or not np.isfinite(self.means).all() or not 0 <= std < np.inf:
            raise EnvironmentContractError(
                "Bandit: expected at least one finite mean and a finite std >= 0, received "
                f"means={means!r}, std={std!r}"
            )
        self.std = float(std)
        self.best_arm = int(np.argmax(self.means))
        self.observation_space = spaces.Box(-1.0, 1.0, (1,), dtype=np.float32)
        self.action_space = spaces.Discrete(len(self.means))
        self._means = asarray(self.means)

    def initial(self, generator: Generator, shape: tuple[int, ...] = ()) -> BanditState:
        """No arm is pulled yet."""
        return zeros(shape), zeros(shape, dtype=bool_)

    def transition(self, state: BanditState, action: Tensor, generator: Generator) -> BanditState:
        """The payout of an arm."""
        noise = generator.normal(action.shape) * self.std
        payout = take(self._means, action, axis=0) + noise
        return payout, full(action.shape, True)

    def observation(self, state: BanditState) -> Tensor:
        """(..., 1) of zeros."""
        return zeros((*state[0].shape, 1))

    def reward(self, state: BanditState, action: Tensor, next_state: BanditState) -> Tensor:
        """The payout."""
        return next_state[0]

    def terminal(self, state: BanditState) -> Tensor:
        """Whether an arm was pulled."""
        return state[1]

    def draw_text(self, state: BanditState) -> str:
        """A bar per arm as long as its mean, and the last payout."""
        low, high = min(*self.means, 0.0), max(*self.means, 1e-9)
        lines = []
        for arm, mean in enumerate(self.means):
            bar = "#" * round(_BAR_COLUMNS * (mean - low) / (high - low))
            lines.append(f"arm {arm:2} {mean:8.3f} {bar}".rstrip())
        payout, pulled = state
        lines.append(f"paid {float(payout):.3f}" if bool(pulled) else "not pulled yet")
        return "\n".join(lines)

    def draw_frame(self, state: BanditState) -> np.ndarray:
        """uint8 (200, 400, 3): a bar per arm as high as its mean."""
        canvas = Canvas(width=400, height=200)
        low, high = min(*self.means, 0.0), max(*self.means, 1e-9)
        width = 400 / len(self.means)
        for arm, mean in enumerate(self.means):
            top = 190 - 180 * (mean - low) / (high - low)
            left = arm * width
            canvas.rectangle((left + 2, top), (left + width - 2, 190), color=(31, 78, 121))
        return canvas.pixels
