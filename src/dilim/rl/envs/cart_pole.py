"""`CartPole`: a pole on a cart, kept upright by pushing the cart."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from gymnasium import spaces

from dilim.dtypes import float32, float64
from dilim.rl.envs.base import TensorEnvironment
from dilim.rl.envs.drawing import Canvas
from dilim.tensors.creation import asarray, full
from dilim.tensors.elementwise import cos, sin, where
from dilim.tensors.manipulation import concat, expand_dims, split
from dilim.tensors.random import Generator
from dilim.tensors.tensor import Tensor

GRAVITY: Final = 9.8
MASS_POLE: Final = 0.1
MASS_TOTAL: Final = 1.1
HALF_LENGTH: Final = 0.5
FORCE: Final = 10.0
STEP_S: Final = 0.02
LIMIT_POSITION: Final = 2.4
LIMIT_ANGLE_RAD: Final = 12 * 2 * math.pi / 360

_TEXT_WIDTH: Final = 61
_TEXT_HEIGHT: Final = 9
_PIXELS_PER_METRE: Final = 100


class CartPole(TensorEnvironment):
    """Balance a pole that stands on a cart by pushing the cart to the left or right.

    The cart moves on a track without friction; the pole turns freely on the cart.

    **Observation** (and state): float32, shape (4,).

    ===== ======================= ===== ================== ====================
    index what                    unit  bounds of the space the episode goes on
    ===== ======================= ===== ================== ====================
    0     position of the cart    m     -4.8 to 4.8        from -2.4 to 2.4
    1     velocity of the cart    m/s   any                any
    2     angle of the pole, to   rad   -0.4189 to 0.4189  from -0.2094 to
          the right of upright          (24 degrees)       0.2094 (12 degrees)
    3     angular velocity        rad/s any                any
    ===== ======================= ===== ================== ====================

    **Action**: Discrete(2).

    ====== =================================
    action force on the cart during 0.02 s
    ====== =================================
    0      10 N to the left
    1      10 N to the right
    ====== =================================

    **Dynamics**: with position x, angle a, force F, gravity g = 9.8 m/s^2, mass of the pole
    m = 0.1 kg, total mass M = 1.1 kg, half the pole's length l = 0.5 m::

        p   = (F + m l a'^2 sin a) / M
        a'' = (g sin a - p cos a) / (l (4/3 - m cos^2 a / M))
        x'' = p - m l a'' cos a / M

    and one step of explicit Euler of 0.02 s for x, x', a and a', computed in float64 and rounded to
    float32 once.

    **Start**: all four numbers uniform in [-0.05, 0.05).

    **Reward**: 1 for every step, also for that which ends the episode.

    **End**: terminated when the position leaves 2.4 m or the angle 12 degrees on either side;
    truncated after ``max_steps`` steps.

    **Solved**: a mean return of 475 over 100 episodes.

    Args:
        max_steps: steps after which an episode is cut; None for no limit.
        reward_on_fail: the reward of the step that terminates: 1.0 as in Gymnasium, 0.0 as in some
            other versions.
        render_mode: see `TensorEnvironment`.

    Options of ``reset``: ``low`` and ``high``, the range of the start.

    Source: Barto, Sutton and Anderson, Neuronlike adaptive elements that can solve difficult
    learning control problems, 1983; constants as in Gymnasium's ``CartPole-v1``.
    """

    def __init__(
        self,
        *,
        max_steps: int | None = 500,
        reward_on_fail: float = 1.0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps=max_steps, render_mode=render_mode)
        self.reward_on_fail = float(reward_on_fail)
        # not infinity, which Gymnasium's check_env warns about
        most = np.finfo(np.float32).max
        high = np.array([2 * LIMIT_POSITION, most, 2 * LIMIT_ANGLE_RAD, most], dtype=np.float32)
        self.observation_space = spaces.Box(-high, high, dtype=np.float32)
        self.action_space = spaces.Discrete(2)
        self._limits = asarray([LIMIT_POSITION, math.inf, LIMIT_ANGLE_RAD, math.inf])

    def initial(
        self,
        generator: Generator,
        shape: tuple[int, ...] = (),
        *,
        low: float = -0.05,
        high: float = 0.05,
    ) -> Tensor:
        """(..., 4), uniform between ``low`` and ``high``."""
        return generator.uniform((*shape, 4), low, high)

    def transition(self, state: Tensor, action: Tensor, generator: Generator) -> Tensor:
        """One step of the dynamics in the class description."""
        exact = state.astype(float64)
        _, velocity, angle, turning = split(exact, 1, axis=-1)  # (..., 1) each
        force = expand_dims(action, -1).astype(float64) * (2.0 * FORCE) - FORCE
        cosine, sine = cos(angle), sin(angle)
        push = (force + (MASS_POLE * HALF_LENGTH) * (turning * turning) * sine) / MASS_TOTAL
        inertia = HALF_LENGTH * (4.0 / 3.0 - MASS_POLE * (cosine * cosine) / MASS_TOTAL)
        turning_change = (GRAVITY * sine - cosine * push) / inertia
        velocity_change = push - (MASS_POLE * HALF_LENGTH) * turning_change * cosine / MASS_TOTAL
        change = concat([velocity, velocity_change, turning, turning_change], axis=-1)
        return (exact + STEP_S * change).astype(float32)

    def observation(self, state: Tensor) -> Tensor:
        """The state itself."""
        return state

    def reward(self, state: Tensor, action: Tensor, next_state: Tensor) -> Tensor:
        """1, or ``reward_on_fail`` where the next state is terminal."""
        ones = full(state.shape[:-1], 1.0)
        if self.reward_on_fail == 1.0:
            return ones
        return where(self.terminal(next_state), self.reward_on_fail, ones)

    def terminal(self, state: Tensor) -> Tensor:
        """Whether the cart or the pole is beyond its limit."""
        return (abs(state) > self._limits).any(axis=-1)

    def draw_text(self, state: Tensor) -> str:
        """The track in 61 columns, the cart, and the pole above it in nine lines."""
        position, _, angle, _ = state.tolist()
        scale = (_TEXT_WIDTH - 1) / (2 * LIMIT_POSITION)
        column = _inside((position + LIMIT_POSITION) * scale, _TEXT_WIDTH)
        rows = [[" "] * _TEXT_WIDTH for _ in range(_TEXT_HEIGHT)]
        mark = "|" if abs(angle) < 0.04 else "/" if angle > 0 else "\\"
        # a character is about twice as high as wide; the pole would lean by half as many columns
        lean = math.tan(max(-1.0, min(1.0, angle))) * 2
        for height in range(_TEXT_HEIGHT):
            row = _TEXT_HEIGHT - 1 - height
            rows[row][_inside(column + lean * (height + 1), _TEXT_WIDTH)] = mark
        cart = list("=" * _TEXT_WIDTH)
        start = _inside(column - 2, _TEXT_WIDTH - 4)
        cart[start : start + 5] = "[o_o]"
        lines = ["".join(row).rstrip() for row in rows]
        return "\n".join([*lines, "".join(cart)])

    def draw_frame(self, state: Tensor) -> np.ndarray:
        """uint8 (400, 600, 3): cart, pole and track, 100 pixels per metre."""
        position, _, angle, _ = state.tolist()
        canvas = Canvas(width=600, height=400)
        x, y = 300 + position * _PIXELS_PER_METRE, 300.0
        canvas.line((0, y), (600, y), thickness=2, color=(40, 40, 40))
        canvas.rectangle((x - 30, y - 18), (x + 30, y + 18), color=(31, 78, 121))
        length = 2 * HALF_LENGTH * _PIXELS_PER_METRE
        tip = (x + length * math.sin(angle), y - 10 - length * math.cos(angle))
        canvas.line((x, y - 10), tip, thickness=10, color=(202, 152, 101))
        canvas.disc((x, y - 10), radius=5, color=(129, 132, 203))
        return canvas.pixels


def _inside(place: float, count: int) -> int:
    """The nearest of 0 .. count - 1."""
    return int(max(0, min(count - 1, round(place))))
