"""`Pendulum`: a pendulum swung up and held upright by a weak motor."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from gymnasium import spaces

from dilim.dtypes import bool_, float32, float64
from dilim.rl.envs.base import TensorEnvironment
from dilim.rl.envs.drawing import Canvas, TextCanvas
from dilim.tensors.creation import zeros
from dilim.tensors.elementwise import clip, cos, remainder, sin
from dilim.tensors.manipulation import stack
from dilim.tensors.random import Generator
from dilim.tensors.tensor import Tensor

MAX_SPEED: Final = 8.0
MAX_TORQUE: Final = 2.0
STEP_S: Final = 0.05


class Pendulum(TensorEnvironment):
    """Swing a pendulum up and hold it upright; the motor is too weak to lift it at once.

    **State**: float32, shape (2,): the angle from upright in rad, which goes on growing when the
    pendulum turns over, and the angular velocity in rad/s.

    **Observation**: float32, shape (3,).

    ===== ==================== ===== ============
    index what                 unit  bounds
    ===== ==================== ===== ============
    0     cosine of the angle        -1 to 1
    1     sine of the angle          -1 to 1
    2     angular velocity     rad/s -8 to 8
    ===== ==================== ===== ============

    **Action**: Box, float32, shape (1,): the torque in N m, from -2 to 2; others count as the
    nearer bound.

    **Dynamics**: with angle a, torque u, gravity g = 10 m/s^2, mass 1 kg and length 1 m, every
    0.05 s::

        a' = clip(a' + (3/2 g sin a + 3 u) 0.05, -8, 8)
        a  = a + 0.05 a'

    computed in float64 and rounded to float32 once.

    **Start**: angle uniform in [-pi, pi), angular velocity in [-1, 1).

    **Reward**: -(a^2 + 0.1 a'^2 + 0.001 u^2) of the state before the step, with a between -pi and
    pi: from -16.2736 to 0.

    **End**: never terminated; truncated after ``max_steps`` steps.

    **Solved**: there is no agreed figure; a good controller has a mean return of about -150.

    Args:
        max_steps: steps after which an episode is cut; None for no limit.
        gravity: in m/s^2.
        render_mode: see `TensorEnvironment`.

    Options of ``reset``: ``angle`` and ``speed``, the largest start in either direction.

    Source: constants and rules as in Gymnasium's ``Pendulum-v1``.
    """

    metadata = {**TensorEnvironment.metadata, "render_fps": 30}

    def __init__(
        self,
        *,
        max_steps: int | None = 200,
        gravity: float = 10.0,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps=max_steps, render_mode=render_mode)
        self.gravity = float(gravity)
        high = np.array([1.0, 1.0, MAX_SPEED], dtype=np.float32)
        self.observation_space = spaces.Box(-high, high, dtype=np.float32)
        self.action_space = spaces.Box(-MAX_TORQUE, MAX_TORQUE, (1,), dtype=np.float32)

    def initial(
        self,
        generator: Generator,
        shape: tuple[int, ...] = (),
        *,
        angle: float = math.pi,
        speed: float = 1.0,
    ) -> Tensor:
        """(..., 2), uniform within the largest start in either direction."""
        angles = generator.uniform(shape, -1.0, 1.0) * angle
        speeds = generator.uniform(shape, -1.0, 1.0) * speed
        return stack([angles, speeds], axis=-1)

    def transition(self, state: Tensor, action: Tensor, generator: Generator) -> Tensor:
        """One step of the dynamics in the class description."""
        angle, speed = _split(state)
        push = 1.5 * self.gravity * sin(angle) + 3.0 * _torque(action)
        speed = clip(speed + push * STEP_S, -MAX_SPEED, MAX_SPEED)
        return stack([angle + speed * STEP_S, speed], axis=-1).astype(float32)

    def observation(self, state: Tensor) -> Tensor:
        """(..., 3)."""
        angle, speed = _split(state)
        return stack([cos(angle), sin(angle), speed], axis=-1).astype(float32)

    def reward(self, state: Tensor, action: Tensor, next_state: Tensor) -> Tensor:
        """Minus the cost in the class description."""
        angle, speed = _split(state)
        torque = _torque(action)
        folded = remainder(angle + math.pi, 2 * math.pi) - math.pi
        cost = folded * folded + 0.1 * (speed * speed) + 0.001 * (torque * torque)
        return (-cost).astype(float32)

    def terminal(self, state: Tensor) -> Tensor:
        """Never."""
        return zeros(state.shape[:-1], dtype=bool_)

    def draw_text(self, state: Tensor) -> str:
        """The rod in 33 columns and 15 lines, and the numbers below it."""
        angle, speed = state.tolist()
        canvas = TextCanvas(33, 15, (-1.1, -1.1), (1.1, 1.1))
        canvas.line((0.0, 0.0), (math.sin(angle), math.cos(angle)), "#")
        canvas.mark((0.0, 0.0), "o")
        return f"{canvas.text()}\nangle {angle:+.3f} rad, {speed:+.3f} rad/s"

    def draw_frame(self, state: Tensor) -> np.ndarray:
        """uint8 (400, 400, 3): the rod and its axle."""
        angle, _ = state.tolist()
        canvas = Canvas(width=400, height=400)
        tip = (200 + 150 * math.sin(angle), 200 - 150 * math.cos(angle))
        canvas.line((200, 200), tip, thickness=28, color=(204, 77, 77))
        canvas.disc((200, 200), radius=14, color=(204, 77, 77))
        canvas.disc(tip, radius=14, color=(204, 77, 77))
        canvas.disc((200, 200), radius=6, color=(20, 20, 20))
        return canvas.pixels


def _split(state: Tensor) -> tuple[Tensor, Tensor]:
    """Angle and speed in float64."""
    exact = state.astype(float64)
    return exact[..., 0], exact[..., 1]


def _torque(action: Tensor) -> Tensor:
    return clip(action[..., 0], -MAX_TORQUE, MAX_TORQUE).astype(float64)
