"""`GridWorld`: the shortest way from one corner of a grid to the other."""

from __future__ import annotations

from collections.abc import Collection
from typing import Final

import numpy as np
from gymnasium import spaces

from dilim.dtypes import float32, int64
from dilim.errors import EnvironmentContractError
from dilim.rl.envs.base import TensorEnvironment
from dilim.rl.envs.drawing import Canvas
from dilim.tensors.creation import asarray, full, zeros
from dilim.tensors.elementwise import clip, where
from dilim.tensors.indexing import take
from dilim.tensors.manipulation import stack
from dilim.tensors.random import Generator
from dilim.tensors.tensor import Tensor

MOVES: Final = ((-1, 0), (0, 1), (1, 0), (0, -1))
"""Rows and columns by which up, right, down and left lead away."""

_CELL_PIXELS: Final = 40

GridState = tuple[Tensor, Tensor]
"""Row and column, int64 (..., 2), and the steps of the episode, int64."""


class GridWorld(TensorEnvironment):
    """Walk from the upper left corner of a square grid to the lower right one.

    **State**: row and column, and the steps so far.

    **Observation**: float32, shape (2,).

    ===== ============================== ========
    index what                           bounds
    ===== ============================== ========
    0     row / (size - 1), downwards    0 to 1
    1     column / (size - 1)            0 to 1
    ===== ============================== ========

    **Action**: Discrete(4): 0 up, 1 right, 2 down, 3 left. Who walks against the edge or an
    obstacle stays.

    **Start**: row 0, column 0.

    **Reward**: 1 for the step onto the goal; -0.1 for the step at which time is up; -0.01 for any
    other.

    **End**: terminated at the goal; truncated after ``timeout`` steps.

    **Solved**: on the shortest way. Without obstacles its return is 1 - 0.01 (2 size - 3): 0.87 for
    8 x 8, 0.95 for 4 x 4; the worst is -1.37 for 8 x 8.

    Args:
        size: rows and columns, at least 2.
        obstacles: cells (row, column) that cannot be entered.
        timeout: steps after which an episode is cut; None for 2 size^2.
        render_mode: see `TensorEnvironment`.

    Options of ``reset``: ``row`` and ``column`` of the start.

    Source: Sutton and Barto, Reinforcement Learning, 2018, example 3.5; rewards as in SwiftRL's
    ``GridWorld``.
    """

    metadata = {**TensorEnvironment.metadata, "render_fps": 10}

    def __init__(
        self,
        size: int = 8,
        *,
        obstacles: Collection[tuple[int, int]] = (),
        timeout: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(render_mode=render_mode)
        if size < 2 or (timeout is not None and timeout < 1):
            raise EnvironmentContractError(
                f"GridWorld: expected size >= 2 and timeout >= 1, received {size} and {timeout}"
            )
        self.size = size
        self.obstacles = tuple((int(row), int(column)) for row, column in obstacles)
        self.timeout = 2 * size**2 if timeout is None else timeout
        self.observation_space = spaces.Box(0.0, 1.0, (2,), dtype=np.float32)
        self.action_space = spaces.Discrete(4)
        self._moves = asarray(MOVES, dtype=int64)
        self._is_blocked = asarray(_checked_grid(size, self.obstacles))

    def initial(
        self, generator: Generator, shape: tuple[int, ...] = (), *, row: int = 0, column: int = 0
    ) -> GridState:
        """A place, the upper left corner by default, and no steps."""
        corner = full(shape, row, dtype=int64), full(shape, column, dtype=int64)
        return stack(corner, axis=-1), zeros(shape, dtype=int64)

    def transition(self, state: GridState, action: Tensor, generator: Generator) -> GridState:
        """A step in a direction, if nothing is in the way."""
        place, steps = state
        target = clip(place + take(self._moves, action, axis=0), 0, self.size - 1)
        cell = target[..., 0] * self.size + target[..., 1]
        stays = take(self._is_blocked, cell, axis=0)
        return where(stays[..., None], place, target), steps + 1

    def observation(self, state: GridState) -> Tensor:
        """(..., 2): row and column between 0 and 1."""
        return state[0].astype(float32) / (self.size - 1.0)

    def reward(self, state: GridState, action: Tensor, next_state: GridState) -> Tensor:
        """1 at the goal, -0.1 when time is up, else -0.01."""
        otherwise = where(self.truncation(next_state), -0.1, -0.01)
        return where(self.terminal(next_state), 1.0, otherwise)

    def terminal(self, state: GridState) -> Tensor:
        """Whether this is the goal."""
        return (state[0] == self.size - 1).all(axis=-1)

    def truncation(self, state: GridState) -> Tensor:
        """Whether time is up."""
        return state[1] >= self.timeout

    def draw_text(self, state: GridState) -> str:
        """A character per cell: ``@`` is here, ``G`` the goal, ``#`` an obstacle."""
        rows = [["."] * self.size for _ in range(self.size)]
        for row, column in self.obstacles:
            rows[row][column] = "#"
        rows[-1][-1] = "G"
        row, column = state[0].tolist()
        rows[row][column] = "@"
        return "\n".join(" ".join(line) for line in rows)

    def draw_frame(self, state: GridState) -> np.ndarray:
        """uint8: 40 pixels per cell."""
        side = self.size * _CELL_PIXELS
        canvas = Canvas(width=side, height=side)
        for row, column in self.obstacles:
            canvas.cell(row, column, _CELL_PIXELS, color=(70, 70, 70))
        canvas.cell(self.size - 1, self.size - 1, _CELL_PIXELS, color=(204, 180, 0))
        for line in range(1, self.size):
            at = line * _CELL_PIXELS
            canvas.line((at, 0), (at, side), thickness=1, color=(200, 200, 200))
            canvas.line((0, at), (side, at), thickness=1, color=(200, 200, 200))
        row, column = state[0].tolist()
        center = (column + 0.5) * _CELL_PIXELS, (row + 0.5) * _CELL_PIXELS
        canvas.disc(center, radius=0.35 * _CELL_PIXELS, color=(31, 78, 121))
        return canvas.pixels


def _checked_grid(size: int, obstacles: Collection[tuple[int, int]]) -> np.ndarray:
    """Which cells are blocked, row by row.

    Raises:
        EnvironmentContractError: an obstacle is outside, or no way leads to the goal.
    """
    blocked = np.zeros((size, size), bool)
    for row, column in obstacles:
        if not (0 <= row < size and 0 <= column < size):
            raise EnvironmentContractError(
                f"GridWorld: the obstacle ({row}, {column}) is outside the grid of {size} x {size}"
            )
        blocked[row, column] = True
    reached = np.zeros_like(blocked)
    reached[0, 0] = not blocked[0, 0]
    for _ in range(size * size):
        spread = reached.copy()
        spread[1:] |= reached[:-1]
        spread[:-1] |= reached[1:]
        spread[:, 1:] |= reached[:, :-1]
        spread[:, :-1] |= reached[:, 1:]
        reached = spread & ~blocked
    if not reached[-1, -1]:
        raise EnvironmentContractError(
            "GridWorld: no way leads from the upper left corner to the lower right one; take away "
            "some obstacles"
        )
    return blocked.reshape(-1)
