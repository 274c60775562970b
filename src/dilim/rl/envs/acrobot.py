"""`Acrobot`: two links that hang from an axle, swung up by a motor between them."""

from __future__ import annotations

import math
from typing import Final

import numpy as np
from gymnasium import spaces

from dilim.dtypes import float32, float64
from dilim.rl.envs.base import TensorEnvironment
from dilim.rl.envs.drawing import Canvas, TextCanvas
from dilim.tensors.elementwise import ceil, clip, cos, floor, maximum, minimum, sin, where
from dilim.tensors.manipulation import stack
from dilim.tensors.random import Generator
from dilim.tensors.tensor import Tensor

GRAVITY: Final = 9.8
STEP_S: Final = 0.2
MAX_SPEED_1: Final = 4 * math.pi
MAX_SPEED_2: Final = 9 * math.pi

Four = tuple[Tensor, Tensor, Tensor, Tensor]


class Acrobot(TensorEnvironment):
    """Swing the free end of two links above a line by a motor in the joint between them.

    The first link hangs from a fixed axle, the second from the first. Both have a length of 1 m, a
    mass of 1 kg in the middle and a moment of inertia of 1 kg m^2.

    **State**: float32, shape (4,): the angle a of the first link from hanging, the angle b of the
    second against the first, both in rad between -pi and pi, and their velocities in rad/s.

    **Observation**: float32, shape (6,).

    ===== =================== ===== ==================
    index what                unit  bounds
    ===== =================== ===== ==================
    0, 1  cosine, sine of a         -1 to 1
    2, 3  cosine, sine of b         -1 to 1
    4     a'                  rad/s -12.567 to 12.567
    5     b'                  rad/s -28.274 to 28.274
    ===== =================== ===== ==================

    **Action**: Discrete(3): a torque of -1, 0 or 1 N m between the links, for 0.2 s.

    **Dynamics**: with torque u and gravity g = 9.8 m/s^2, as in Sutton and Barto's book::

        d1 = 3.5 + cos b              d2 = 1.25 + cos(b) / 2
        p2 = g / 2 sin(a + b)
        p1 = -b'^2 sin(b) / 2 - a' b' sin b + 3 g / 2 sin a + p2
        b'' = (u + d2 / d1 p1 - a'^2 sin(b) / 2 - p2) / (1.25 - d2^2 / d1)
        a'' = -(d2 b'' + p1) / d1

    one step of the classical Runge-Kutta method of 0.2 s; then the angles are folded into -pi to pi
    and the velocities limited to 4 pi and 9 pi. Computed in float64 and rounded to float32 once.

    **Start**: all four numbers uniform in [-0.1, 0.1).

    **Reward**: -1 for every step, 0 for that which ends the episode.

    **End**: terminated when the free end is more than 1 m above the axle: -cos a - cos(a + b) > 1;
    truncated after ``max_steps`` steps.

    **Solved**: a mean return of -100 over 100 episodes.

    Args:
        max_steps: steps after which an episode is cut; None for no limit.
        render_mode: see `TensorEnvironment`.

    Options of ``reset``: ``low`` and ``high``, the range of the start.

    Source: Sutton, Generalization in reinforcement learning: successful examples using sparse
    coarse coding, 1996; constants as in Gymnasium's ``Acrobot-v1``.
    """

    metadata = {**TensorEnvironment.metadata, "render_fps": 15}

    def __init__(self, *, max_steps: int | None = 500, render_mode: str | None = None) -> None:
        super().__init__(max_steps=max_steps, render_mode=render_mode)
        high = np.array([1.0, 1.0, 1.0, 1.0, MAX_SPEED_1, MAX_SPEED_2], dtype=np.float32)
        self.observation_space = spaces.Box(-high, high, dtype=np.float32)
        self.action_space = spaces.Discrete(3)

    def initial(
        self,
        generator: Generator,
        shape: tuple[int, ...] = (),
        *,
        low: float = -0.1,
        high: float = 0.1,
    ) -> Tensor:
        """(..., 4), uniform between ``low`` and ``high``."""
        return generator.uniform((*shape, 4), low, high)

    def transition(self, state: Tensor, action: Tensor, generator: Generator) -> Tensor:
        """One step of the dynamics in the class description."""
        torque = (action - 1).astype(float64)
        start = _split(state)
        k1 = _change(start, torque)
        k2 = _change(_moved(start, k1, STEP_S / 2), torque)
        k3 = _change(_moved(start, k2, STEP_S / 2), torque)
        k4 = _change(_moved(start, k3, STEP_S), torque)
        first, second, speed_1, speed_2 = [
            x + STEP_S / 6 * (c1 + 2.0 * c2 + 2.0 * c3 + c4)
            for x, c1, c2, c3, c4 in zip(start, k1, k2, k3, k4, strict=True)
        ]
        speed_1 = clip(speed_1, -MAX_SPEED_1, MAX_SPEED_1)
        speed_2 = clip(speed_2, -MAX_SPEED_2, MAX_SPEED_2)
        return stack([_folded(first), _folded(second), speed_1, speed_2], axis=-1).astype(float32)

    def observation(self, state: Tensor) -> Tensor:
        """(..., 6)."""
        first, second, speed_1, speed_2 = _split(state)
        shown = [cos(first), sin(first), cos(second), sin(second), speed_1, speed_2]
        return stack(shown, axis=-1).astype(float32)

    def reward(self, state: Tensor, action: Tensor, next_state: Tensor) -> Tensor:
        """-1, or 0 where the next state is terminal."""
        return where(self.terminal(next_state), 0.0, -1.0)

    def terminal(self, state: Tensor) -> Tensor:
        """Whether the free end is above the line."""
        first, second, _, _ = _split(state)
        return -cos(first) - cos(first + second) > 1.0

    def draw_text(self, state: Tensor) -> str:
        """The two links in 45 columns and 19 lines, and the line to be reached."""
        joint, end = _ends(state)
        canvas = TextCanvas(45, 19, (-2.2, -2.2), (2.2, 2.2))
        canvas.line((-2.2, 1.0), (2.2, 1.0), "-")
        canvas.line((0.0, 0.0), joint, "#")
        canvas.line(joint, end, "*")
        canvas.mark((0.0, 0.0), "o")
        return canvas.text()

    def draw_frame(self, state: Tensor) -> np.ndarray:
        """uint8 (440, 440, 3): the two links, 100 pixels per metre, and the line to be reached."""
        canvas = Canvas(width=440, height=440)

        def place(x: float, y: float) -> tuple[float, float]:
            return 220 + 100 * x, 220 - 100 * y

        joint, end = _ends(state)
        canvas.line((0, 120), (440, 120), thickness=2, color=(40, 40, 40))
        canvas.line((220, 220), place(*joint), thickness=16, color=(31, 78, 121))
        canvas.line(place(*joint), place(*end), thickness=16, color=(202, 152, 101))
        for center in ((0.0, 0.0), joint):
            canvas.disc(place(*center), radius=9, color=(129, 132, 203))
        return canvas.pixels


def _split(state: Tensor) -> Four:
    exact = state.astype(float64)
    return exact[..., 0], exact[..., 1], exact[..., 2], exact[..., 3]


def _change(state: Four, torque: Tensor) -> Four:
    """The derivative by time."""
    first, second, speed_1, speed_2 = state
    d1 = 3.5 + cos(second)
    d2 = 1.25 + 0.5 * cos(second)
    turn = 0.5 * sin(second)
    phi2 = 0.5 * GRAVITY * sin(first + second)
    phi1 = phi2 + 1.5 * GRAVITY * sin(first)
    phi1 = phi1 - turn * (speed_2 * speed_2) - 2.0 * turn * speed_2 * speed_1
    push = torque + d2 / d1 * phi1 - turn * (speed_1 * speed_1) - phi2
    change_2 = push / (1.25 - d2 * d2 / d1)
    change_1 = -(d2 * change_2 + phi1) / d1
    return speed_1, speed_2, change_1, change_2


def _moved(state: Four, change: Four, time: float) -> Four:
    a, b, c, d = [x + time * dx for x, dx in zip(state, change, strict=True)]
    return a, b, c, d


def _folded(angle: Tensor) -> Tensor:
    """An angle between -pi and pi; what lies there stays as it is."""
    above = maximum(ceil((angle - math.pi) / (2 * math.pi)), 0.0)
    below = minimum(floor((angle + math.pi) / (2 * math.pi)), 0.0)
    return angle - (above + below) * (2 * math.pi)


def _ends(state: Tensor) -> tuple[tuple[float, float], tuple[float, float]]:
    """Where the joint and the free end are, in metres from the axle."""
    first, second, _, _ = state.tolist()
    joint = math.sin(first), -math.cos(first)
    return joint, (joint[0] + math.sin(first + second), joint[1] - math.cos(first + second))
