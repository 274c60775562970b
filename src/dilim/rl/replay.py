"""`ReplayBuffer`: steps that are learned from again and again."""

from __future__ import annotations

import os
from typing import Any, Final

from dilim.dtypes import DType, float32, int64
from dilim.dtypes import bool_ as boolean
from dilim.errors import ShapeError
from dilim.tensors.creation import arange, asarray, zeros
from dilim.tensors.random import Generator
from dilim.tensors.tensor import Tensor

_ROWS: Final = ("observations", "actions", "rewards", "following", "terminated")


Batch = tuple[Tensor, Tensor, Tensor, Tensor, Tensor]
"""Steps that were drawn: observations (B, F); actions (B,), or (B, A) numbers; rewards (B,);
what was seen after the step, also at an end, (B, F); whether the rules ended the episode with it,
bool (B,). After a cut there would have been more: it is not marked."""


class ReplayBuffer:
    """The last so many steps; a new one takes the place of the oldest.

    Args:
        capacity: C, steps that fit.
        observation_size: F, numbers in an observation.
        action_shape: () for one of several actions, (A,) for A numbers.
        dtype: of observations, which are kept in it.

    Attributes:
        count: steps that were ever added.

    Raises:
        ShapeError: the capacity is below 1.
        MemoryError: it needs more memory than the machine has free; nothing was taken. The message
            says how much, and what would fit.

    Example:
        >>> import dilim
        >>> buffer = ReplayBuffer(100, observation_size=2)
        >>> one = dilim.ones((1, 2))
        >>> buffer.add(one, dilim.asarray([1]), dilim.ones((1,)), one, dilim.asarray([False]))
        >>> buffer.sample(dilim.Generator(0), 3)[1].tolist()
        [1, 1, 1]

    Source: Lin, Self-improving reactive agents based on reinforcement learning, planning and
    teaching, Machine Learning 8, 1992.
    """

    def __init__(
        self,
        capacity: int,
        observation_size: int,
        action_shape: tuple[int, ...] = (),
        dtype: DType = float32,
    ) -> None:
        if capacity < 1:
            raise ShapeError(
                f"ReplayBuffer: expected a capacity of at least 1, received {capacity}"
            )
        _check_memory(capacity, observation_size, dtype)
        self.capacity = int(capacity)
        self.observations = zeros((capacity, observation_size), dtype=dtype)
        self.following = zeros((capacity, observation_size), dtype=dtype)
        kind = float32 if action_shape else int64
        self.actions = zeros((capacity, *action_shape), dtype=kind)
        self.rewards = zeros((capacity,))
        self.terminated = zeros((capacity,), dtype=boolean)
        self.count = 0

    def __len__(self) -> int:
        """Steps in it."""
        return min(self.count, self.capacity)

    def add(
        self,
        observations: Tensor,
        actions: Tensor,
        rewards: Tensor,
        following: Tensor,
        terminated: Tensor,
    ) -> None:
        """Keep N steps, N at most the capacity; see `Batch`."""
        size = observations.shape[0]
        places = (arange(size) + self.count) % self.capacity
        self.observations[places] = observations.astype(self.observations.dtype)
        self.actions[places] = actions
        self.rewards[places] = rewards
        self.following[places] = following.astype(self.following.dtype)
        self.terminated[places] = terminated
        self.count += size

    def sample(self, generator: Generator, size: int) -> Batch:
        """Steps drawn with equal probability, with replacement; there has to be one.

        Args:
            generator: what is drawn with.
            size: B, how many.
        """
        places = generator.integers(0, min(self.count, self.capacity), (size,))
        return (
            self.observations[places].astype(float32),
            self.actions[places],
            self.rewards[places],
            self.following[places].astype(float32),
            self.terminated[places],
        )

    def state_dict(self) -> dict[str, Any]:
        """The steps in it, and how many there were."""
        rows = {name: getattr(self, name)[: len(self)].clone() for name in _ROWS}
        return {**rows, "count": self.count}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` of a buffer of the same sizes gave."""
        self.count = int(state["count"])
        for name in _ROWS:
            getattr(self, name)[: len(self)] = asarray(state[name])


def _check_memory(capacity: int, observation_size: int, dtype: DType) -> None:
    row = 2 * observation_size * dtype.itemsize
    wanted = capacity * row
    free = _free_memory()
    if free is not None and wanted > free:
        raise MemoryError(
            f"ReplayBuffer: {capacity:,} steps with observations of {observation_size:,} numbers "
            f"({dtype.name}) take {_amount(wanted)}, {_amount(wanted // 2)} for what is seen "
            f"before and after each step; {_amount(free)} are free. At most {free // row:,} fit"
        )


def _amount(size: float) -> str:
    for unit in ("bytes", "KiB", "MiB", "GiB"):
        if size < 1024:
            return f"{size:.3g} {unit}"
        size /= 1024
    return f"{size:.3g} TiB"


def _free_memory() -> int | None:
    """Bytes, or None where the system does not say."""
    try:
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return None
