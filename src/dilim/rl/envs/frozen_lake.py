"""`FrozenLake`: over slippery ice to the other shore, past the holes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from gymnasium import spaces

from dilim.dtypes import float32, int64
from dilim.errors import EnvironmentContractError
from dilim.rl.envs.base import TensorEnvironment
from dilim.rl.envs.drawing import Canvas, Color
from dilim.tensors.creation import asarray, full, one_hot
from dilim.tensors.elementwise import remainder
from dilim.tensors.indexing import take
from dilim.tensors.random import Generator
from dilim.tensors.tensor import Tensor

LAKES: Final = {
    "4x4": ("SFFF", "FHFH", "FFFH", "HFFG"),
    "8x8": (
        "SFFFFFFF",
        "FFFFFFFF",
        "FFFHFFFF",
        "FFFFFHFF",
        "FFFHFFFF",
        "FHHFFFHF",
        "FHFFHFHF",
        "FFFHFFFG",
    ),
}
"""By name: S start, F frozen, H hole, G goal."""

_MOVES: Final = ((0, -1), (1, 0), (0, 1), (-1, 0))
_CELL_PIXELS: Final = 48
_COLORS: Final[dict[str, Color]] = {
    "S": (214, 232, 214), "F": (222, 236, 246), "H": (38, 70, 110), "G": (204, 180, 0)
}  # fmt: skip


class FrozenLake(TensorEnvironment):
    """Cross a frozen lake to the goal without falling into a hole; the ice is slippery.

    **State**: the cell, row by row from 0: row * columns + column, int64.

    **Observation**: float32, shape (number of cells,): 1 for the cell that one is in, else 0.

    **Action**: Discrete(4): 0 left, 1 down, 2 right, 3 up. On slippery ice one goes there with
    probability ``success_rate`` only, else to the left or right of it, equally likely. Who walks
    against the shore stays.

    **Start**: the cell S.

    **Reward**: 1 for the step onto the goal, else 0.

    **End**: terminated in a hole or at the goal; truncated after ``max_steps`` steps.

    **Solved**: for "4x4" on slippery ice the goal is reached in at least 0.70 of all episodes (the
    best possible is 0.74 within 100 steps).

    Args:
        lake: "4x4", "8x8" (with which Gymnasium allows 200 steps), or rows of the letters S, F, H
            and G, with one S and at least one G.
        slippery: whether the ice is.
        success_rate: see above.
        max_steps: steps after which an episode is cut; None for no limit.
        render_mode: see `TensorEnvironment`.

    Source: rules, maps and probabilities as in Gymnasium's ``FrozenLake-v1``, whose observation is
    the number of the cell.
    """

    metadata = {**TensorEnvironment.metadata, "render_fps": 4}

    def __init__(
        self,
        lake: str | Sequence[str] = "4x4",
        *,
        slippery: bool = True,
        success_rate: float = 1.0 / 3.0,
        max_steps: int | None = 100,
        render_mode: str | None = None,
    ) -> None:
        super().__init__(max_steps=max_steps, render_mode=render_mode)
        self.lake = _checked_lake(lake)
        if not 0.0 <= success_rate <= 1.0:
            raise EnvironmentContractError(
                f"FrozenLake: expected success_rate between 0 and 1, received {success_rate}"
            )
        self.slippery = slippery
        self.success_rate = float(success_rate)
        letters = "".join(self.lake)
        self.observation_space = spaces.Box(0.0, 1.0, (len(letters),), dtype=np.float32)
        self.action_space = spaces.Discrete(4)
        self._count = len(letters)
        self._start = letters.index("S")
        self._is_end = asarray([letter in "GH" for letter in letters])
        self._pays = asarray([float(letter == "G") for letter in letters])
        self._neighbours = asarray(_neighbours(self.lake), dtype=int64)

    def initial(self, generator: Generator, shape: tuple[int, ...] = ()) -> Tensor:
        """The cell S."""
        return full(shape, self._start, dtype=int64)

    def transition(self, state: Tensor, action: Tensor, generator: Generator) -> Tensor:
        """A step in the wanted direction or beside it."""
        if self.slippery:
            fails = (1.0 - self.success_rate) / 2.0
            chance = generator.uniform(action.shape)
            turn = (chance >= fails).astype(int64) + (chance >= 1.0 - fails).astype(int64) - 1
            action = remainder(action + turn, 4)
        return take(self._neighbours, state * 4 + action, axis=0)

    def observation(self, state: Tensor) -> Tensor:
        """(..., cells): a one at the cell."""
        return one_hot(state, self._count, dtype=float32)

    def reward(self, state: Tensor, action: Tensor, next_state: Tensor) -> Tensor:
        """1 at the goal."""
        return take(self._pays, next_state, axis=0)

    def terminal(self, state: Tensor) -> Tensor:
        """Whether this is a hole or the goal."""
        return take(self._is_end, state, axis=0)

    def draw_text(self, state: Tensor) -> str:
        """The letters of the lake, and ``@`` for where one is."""
        width = len(self.lake[0])
        here = state.item()
        rows = [list(row) for row in self.lake]
        rows[here // width][here % width] = "@"
        return "\n".join(" ".join(row) for row in rows)

    def draw_frame(self, state: Tensor) -> np.ndarray:
        """uint8: 48 pixels per cell."""
        rows, columns = len(self.lake), len(self.lake[0])
        canvas = Canvas(width=columns * _CELL_PIXELS, height=rows * _CELL_PIXELS)
        for row, letters in enumerate(self.lake):
            for column, letter in enumerate(letters):
                canvas.cell(row, column, _CELL_PIXELS, color=_COLORS[letter])
        row, column = divmod(state.item(), columns)
        center = (column + 0.5) * _CELL_PIXELS, (row + 0.5) * _CELL_PIXELS
        canvas.disc(center, radius=0.3 * _CELL_PIXELS, color=(178, 60, 60))
        return canvas.pixels


def _checked_lake(lake: str | Sequence[str]) -> tuple[str, ...]:
    if isinstance(lake, str) and lake not in LAKES:
        raise EnvironmentContractError(
            f"FrozenLake: unknown lake {lake!r}; there are {', '.join(LAKES)}, or give its rows"
        )
    rows = LAKES[lake] if isinstance(lake, str) else tuple(lake)
    letters = "".join(rows)
    is_even = len({len(row) for row in rows}) == 1
    if not is_even or set(letters) - set("SFHG") or letters.count("S") != 1 or "G" not in letters:
        raise EnvironmentContractError(
            "FrozenLake: expected rows of one length of the letters S, F, H and G, with one S and "
            f"at least one G, received {rows}"
        )
    return rows


def _neighbours(lake: Sequence[str]) -> list[int]:
    """For each cell and direction the cell that lies there; who has arrived stays."""
    rows, columns = len(lake), len(lake[0])
    found = []
    for row in range(rows):
        for column in range(columns):
            for down, right in _MOVES:
                if lake[row][column] in "GH":
                    down, right = 0, 0
                y = min(max(row + down, 0), rows - 1)
                x = min(max(column + right, 0), columns - 1)
                found.append(y * columns + x)
    return found
