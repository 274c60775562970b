"""`Snake`: a snake that grows with all that it eats."""

from __future__ import annotations

from typing import Final

import numpy as np
from gymnasium import spaces

from dilim.dtypes import bool_, float32, int32, int64
from dilim.errors import EnvironmentContractError
from dilim.rl.envs.base import TensorEnvironment
from dilim.rl.envs.drawing import Canvas
from dilim.rl.envs.grid_world import MOVES
from dilim.tensors.creation import arange, asarray, full, one_hot, zeros
from dilim.tensors.elementwise import clip, maximum, minimum, remainder, where
from dilim.tensors.indexing import take, take_along_axis
from dilim.tensors.manipulation import concat, stack
from dilim.tensors.random import Generator
from dilim.tensors.reductions import argmax
from dilim.tensors.statistics import cumulative_sum
from dilim.tensors.tensor import Tensor

START_LENGTH: Final = 3
SIGHTS: Final = ("features", "image")
_RIGHT: Final = 1
_CELL_PIXELS: Final = 24

SnakeState = tuple[Tensor, Tensor, Tensor, Tensor, Tensor, Tensor, Tensor]
"""See the class."""


class Snake(TensorEnvironment):
    """Steer a snake to its food; it grows with each piece, and must not run into wall or body.

    **State**: a tuple of seven.

    ===== ========================== =========================================================
    index what                       as
    ===== ========================== =========================================================
    0     body                       int32 (..., size^2): for each cell, row by row, in how many
                                     steps the snake will have left it; 0 where it is not
    1     row and column of the head int64 (..., 2)
    2     heading                    int64: 0 up, 1 right, 2 down, 3 left
    3     food                       int64: row * size + column; -1 where no cell is free
    4     length                     int64
    5     steps since the last food  int64
    6     whether the snake is dead  bool
    ===== ========================== =========================================================

    **Observation** with ``sight="features"``: float32, shape (11,), each 0 or 1.

    ====== ===================================================================
    index  what
    ====== ===================================================================
    0 - 2  danger of dying with the next step: ahead, to the right, to the left
    3 - 6  heading: up, right, down, left
    7 - 10 the food is further up, right, down, left than the head
    ====== ===================================================================

    **Observation** with ``sight="image"``: float32, shape (3, size, size), between 0 and 1: the
    body (1 at the head, falling evenly towards the tail), the head, the food.

    **Action**: Discrete(3): 0 straight on, 1 turn right, 2 turn left.

    **Start**: three cells in the middle, heading right; the food in any free cell.

    **Reward**: 10 for food, -10 for dying, -5 for the step at which the snake has been hungry too
    long, -0.01 for any other.

    **End**: terminated when the snake runs into the wall or its body (the cell that its tail
    leaves in the same step is free), or fills the board; truncated after size^2 steps without
    food, or after ``max_steps`` steps.

    **Solved**: there is no agreed figure; 19 pieces of food per episode are good for the features,
    which do not show where the body is.

    Args:
        size: rows and columns, at least 4.
        sight: what is observed, see above.
        max_steps: steps after which an episode is cut; None for no limit but hunger.
        render_mode: see `TensorEnvironment`.

    Source: rules and rewards as in SwiftRL's ``Snake``, but for the tail, the full board and
    hunger, which is a cut and not an end.
    """

    metadata = {**TensorEnvironment.metadata, "render_fps": 10}

    def __init__(
        self,
        size: int = 10,
        *,
        sight: str = "features",
        max_steps: int | None = None,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps=max_steps, render_mode=render_mode)
        if size < 4 or sight not in SIGHTS:
            raise EnvironmentContractError(
                f"Snake: expected size >= 4 and sight 'features' or 'image', received {size} and "
                f"{sight!r}"
            )
        self.size = size
        self.sight = sight
        seen = (11,) if sight == "features" else (3, size, size)
        self.observation_space = spaces.Box(0.0, 1.0, seen, dtype=np.float32)
        self.action_space = spaces.Discrete(3)
        self._moves = asarray(MOVES, dtype=int64)
        self._turns = asarray([0, 1, 3], dtype=int64)
        self._area = size * size
        self._plane = (size, size)
        self._middle = asarray([size // 2, size // 2], dtype=int64)
        self._cells = arange(self._area, dtype=int64)
        body = np.zeros(self._area, np.int32)
        head = size // 2 * size + size // 2
        body[head - START_LENGTH + 1 : head + 1] = range(1, START_LENGTH + 1)
        self._start = asarray(body)

    def initial(self, generator: Generator, shape: tuple[int, ...] = ()) -> SnakeState:
        """Three cells in the middle, and food."""
        body = zeros((*shape, *self._start.shape), dtype=int32) + self._start
        return (
            body,
            zeros((*shape, 2), dtype=int64) + self._middle,
            full(shape, _RIGHT, dtype=int64),
            self._food(body, generator),
            full(shape, START_LENGTH, dtype=int64),
            zeros(shape, dtype=int64),
            zeros(shape, dtype=bool_),
        )

    def transition(self, state: SnakeState, action: Tensor, generator: Generator) -> SnakeState:
        """Turn, go one cell on, and eat what is there; a dead snake stays as it was."""
        body, head, heading, food, length, hunger, _ = state
        heading = remainder(heading + take(self._turns, action, axis=0), 4)
        target = head + take(self._moves, heading, axis=0)
        cell, is_inside = self._cell(target)
        eats = is_inside & (cell == food)
        left = where(eats[..., None], body, maximum(body - 1, 0))  # the tail moves unless it grows
        is_dead = ~is_inside | (take_along_axis(left, cell[..., None], axis=-1)[..., 0] > 0)
        length = length + eats.astype(int64)
        moved = where(self._cells == cell[..., None], length[..., None].astype(int32), left)
        body = where(is_dead[..., None], body, moved)
        return (
            body,
            where(is_dead[..., None], head, target),
            heading,
            where(eats, self._food(body, generator), food),
            length,
            where(eats, 0, hunger + 1),
            is_dead,
        )

    def observation(self, state: SnakeState) -> Tensor:
        """(..., 11), or (..., 3, size, size)."""
        return self._features(state) if self.sight == "features" else self._image(state)

    def reward(self, state: SnakeState, action: Tensor, next_state: SnakeState) -> Tensor:
        """What the step has brought; see the class description."""
        otherwise = where(self.truncation(next_state), -5.0, -0.01)
        otherwise = where(next_state[4] > state[4], 10.0, otherwise)
        return where(next_state[6], -10.0, otherwise)

    def terminal(self, state: SnakeState) -> Tensor:
        """Whether the snake is dead, or as long as the board is large."""
        return state[6] | (state[4] == self._area)

    def truncation(self, state: SnakeState) -> Tensor:
        """Whether the snake has found nothing for size^2 steps."""
        return state[5] >= self._area

    def _cell(self, place: Tensor) -> tuple[Tensor, Tensor]:
        """The number of the nearest cell, and whether the place is on the board."""
        near = clip(place, 0, self.size - 1)
        return near[..., 0] * self.size + near[..., 1], (near == place).all(axis=-1)

    def _food(self, body: Tensor, generator: Generator) -> Tensor:
        """Any free cell, each as likely as any other; -1 if there is none."""
        free = cumulative_sum((body == 0).astype(int64), axis=-1)
        count = free[..., -1]
        drawn = (generator.uniform(count.shape) * count.astype(float32)).astype(int64)
        number = minimum(drawn, count - 1)
        # the first cell at which so many free ones have been passed
        found = argmax((free == (number + 1)[..., None]).astype(int32), axis=-1)
        return where(count > 0, found, -1)

    def _features(self, state: SnakeState) -> Tensor:
        body, head, heading, food, _, _, _ = state
        around = remainder(heading[..., None] + self._turns, 4)  # ahead, right, left
        cells, is_inside = self._cell(head[..., None, :] + take(self._moves, around, axis=0))
        # the tail, with one step left, will be gone
        danger = ~is_inside | (take_along_axis(body, cells, axis=-1) > 1)
        row, column = head[..., 0], head[..., 1]
        food_row, food_column = food // self.size, remainder(food, self.size)
        seen = stack(
            [food_row < row, food_column > column, food_row > row, food_column < column], axis=-1
        )
        seen = seen & (food >= 0)[..., None]
        return concat(
            [danger.astype(float32), one_hot(heading, 4, dtype=float32), seen.astype(float32)],
            axis=-1,
        )

    def _image(self, state: SnakeState) -> Tensor:
        body, head, _, food, length, _, _ = state
        shown = body.astype(float32) / length[..., None].astype(float32)
        cell, _ = self._cell(head)
        planes = [shown, self._mark(cell), self._mark(food)]
        return stack(planes, axis=-2).reshape((*cell.shape, 3, *self._plane))

    def _mark(self, cell: Tensor) -> Tensor:
        return (self._cells == cell[..., None]).astype(float32)

    def draw_text(self, state: SnakeState) -> str:
        """The board in walls of ``#``: ``@`` the head, ``o`` the body, ``*`` the food."""
        marks = self._marks(state)
        edge = "#" * (self.size + 2)
        rows = [marks[k * self.size : (k + 1) * self.size] for k in range(self.size)]
        return "\n".join([edge, *(f"#{''.join(row)}#" for row in rows), edge])

    def draw_frame(self, state: SnakeState) -> np.ndarray:
        """uint8: 24 pixels per cell."""
        side = self.size * _CELL_PIXELS
        canvas = Canvas(width=side, height=side)
        colors = {"@": (20, 90, 40), "o": (90, 170, 90), "*": (200, 60, 50)}
        for cell, mark in enumerate(self._marks(state)):
            if mark != " ":
                canvas.cell(*divmod(cell, self.size), _CELL_PIXELS, color=colors[mark])
        return canvas.pixels

    def _marks(self, state: SnakeState) -> list[str]:
        body, head, _, food, _, _, _ = state
        marks = ["o" if left else " " for left in body.tolist()]
        if food.item() >= 0:
            marks[food.item()] = "*"
        row, column = head.tolist()
        marks[row * self.size + column] = "@"
        return marks
