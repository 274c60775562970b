"""`MountainCar`: a car in a valley that has to gather speed to climb out."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Final

import numpy as np
from gymnasium import spaces

from dilim.dtypes import float32, float64
from dilim.rl.envs.base import TensorEnvironment
from dilim.rl.envs.drawing import Canvas, TextCanvas
from dilim.tensors.creation import full, zeros
from dilim.tensors.elementwise import clip, cos, where
from dilim.tensors.manipulation import stack
from dilim.tensors.random import Generator
from dilim.tensors.tensor import Tensor

LEFT_END: Final = -1.2
RIGHT_END: Final = 0.6
GOAL: Final = 0.5
MAX_SPEED: Final = 0.07
FORCE: Final = 0.001
GRAVITY: Final = 0.0025


class MountainCar(TensorEnvironment):
    """Drive a car out of a valley; its engine is too weak to climb the hill without a run-up.

    **Observation** (and state): float32, shape (2,).

    ===== =================== =============
    index what                bounds
    ===== =================== =============
    0     position            -1.2 to 0.6
    1     velocity, per step  -0.07 to 0.07
    ===== =================== =============

    **Action**: Discrete(3).

    ====== ========================
    action what
    ====== ========================
    0      accelerate to the left
    1      do nothing
    2      accelerate to the right
    ====== ========================

    **Dynamics**: with position x and velocity v, per step::

        v = clip(v + 0.001 (action - 1) - 0.0025 cos 3x, -0.07, 0.07)
        x = clip(x + v, -1.2, 0.6)

    and v = 0 where the car runs into the left end. Computed in float64 and rounded to float32 once.

    **Start**: at rest, at a place uniform in [-0.6, -0.4).

    **Reward**: -1 for every step, also for that which reaches the goal.

    **End**: terminated at a position of at least 0.5 with a velocity of at least ``goal_velocity``;
    truncated after ``max_steps`` steps.

    **Solved**: a mean return of -110 over 100 episodes.

    Args:
        max_steps: steps after which an episode is cut; None for no limit.
        goal_velocity: the least velocity at the goal.
        render_mode: see `TensorEnvironment`.

    Options of ``reset``: ``low`` and ``high``, the range of the place of the start.

    Source: Moore, Efficient memory-based learning for robot control, 1990; constants as in
    Gymnasium's ``MountainCar-v0``.
    """

    metadata = {**TensorEnvironment.metadata, "render_fps": 30}

    def __init__(
        self,
        *,
        max_steps: int | None = 200,
        goal_velocity: float = 0.0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps=max_steps, render_mode=render_mode)
        self.goal_velocity = float(goal_velocity)
        low = np.array([LEFT_END, -MAX_SPEED], dtype=np.float32)
        high = np.array([RIGHT_END, MAX_SPEED], dtype=np.float32)
        self.observation_space = spaces.Box(low, high, dtype=np.float32)
        self.action_space = spaces.Discrete(3)

    def initial(
        self,
        generator: Generator,
        shape: tuple[int, ...] = (),
        *,
        low: float = -0.6,
        high: float = -0.4,
    ) -> Tensor:
        """(..., 2): a place between ``low`` and ``high``, at rest."""
        return stack([generator.uniform(shape, low, high), zeros(shape)], axis=-1)

    def transition(self, state: Tensor, action: Tensor, generator: Generator) -> Tensor:
        """One step of the dynamics in the class description."""
        exact = state.astype(float64)
        position, velocity = exact[..., 0], exact[..., 1]
        push = (action - 1).astype(float64) * FORCE
        velocity = velocity + (push + cos(3.0 * position) * -GRAVITY)
        velocity = clip(velocity, -MAX_SPEED, MAX_SPEED)
        position = clip(position + velocity, LEFT_END, RIGHT_END)
        velocity = where((position == LEFT_END) & (velocity < 0.0), 0.0, velocity)
        return stack([position, velocity], axis=-1).astype(float32)

    def observation(self, state: Tensor) -> Tensor:
        """The state itself."""
        return state

    def reward(self, state: Tensor, action: Tensor, next_state: Tensor) -> Tensor:
        """-1."""
        return full(state.shape[:-1], -1.0)

    def terminal(self, state: Tensor) -> Tensor:
        """Whether the car is at the goal, and fast enough."""
        exact = state.astype(float64)
        return (exact[..., 0] >= GOAL) & (exact[..., 1] >= self.goal_velocity)

    def draw_text(self, state: Tensor) -> str:
        """The valley in 61 columns and 14 lines, the car and the flag."""
        position, velocity = state.tolist()
        canvas = TextCanvas(61, 14, (LEFT_END, 0.0), (RIGHT_END, 1.2))
        for column in range(61):
            x = LEFT_END + (RIGHT_END - LEFT_END) * column / 60
            canvas.mark((x, _height(x)), ".")
        canvas.mark((GOAL, _height(GOAL) + 0.1), ">")
        mark = "o" if velocity == 0 else ">" if velocity > 0 else "<"
        canvas.mark((position, _height(position) + 0.1), mark)
        return canvas.text()

    def draw_frame(self, state: Tensor) -> np.ndarray:
        """uint8 (400, 600, 3): the valley, the car and the flag."""
        position, _ = state.tolist()
        canvas = Canvas(width=600, height=400)

        def place(x: float, above: float = 0.0) -> tuple[float, float]:
            across = (x - LEFT_END) / (RIGHT_END - LEFT_END) * 600
            return across, 380 - 300 * (_height(x) + above)

        road = [LEFT_END + (RIGHT_END - LEFT_END) * k / 40 for k in range(41)]
        for start, end in pairwise(road):
            canvas.line(place(start), place(end), thickness=3, color=(40, 40, 40))
        canvas.line(place(GOAL), place(GOAL, 0.15), thickness=2, color=(40, 40, 40))
        canvas.line(place(GOAL, 0.13), place(GOAL + 0.06, 0.13), thickness=12, color=(204, 180, 0))
        canvas.disc(place(position, 0.04), radius=12, color=(31, 78, 121))
        return canvas.pixels


def _height(x: float) -> float:
    """Of the road, above the bottom of the picture."""
    return math.sin(3 * x) * 0.45 + 0.55
