"""`ReplayBuffer`: steps that are learned from again and again."""

from __future__ import annotations

import os
from typing import Any, Final

from dilim.dtypes import DType, float32, int64
from dilim.dtypes import bool_ as boolean
from dilim.errors import ShapeError
from dilim.rl.links import Links, returns_of_steps
from dilim.rl.priorities import Priorities
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
        linked: whether `returns` will be asked for those of several steps.
        memory_saving: whether to keep what is seen after a step only where the next step does not
            begin with it: half the memory. After an end by the rules it is not kept at all: a
            batch has some other observation there.
        alpha: how much the errors matter by which steps are drawn, see
            `dilim.rl.priorities.Priorities`; None: all are drawn alike.

    Attributes:
        count: steps that were ever added.
        links: which step follows which, see `dilim.rl.links.Links`, or None.
        priorities: how often each step is drawn, or None.
        must_pause: whether `make_room` has to be called before the next step is added.

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
        *,
        linked: bool = False,
        memory_saving: bool = False,
        alpha: float | None = None,
    ) -> None:
        if capacity < 1:
            raise ShapeError(
                f"ReplayBuffer: expected a capacity of at least 1, received {capacity}"
            )
        _check_memory(capacity, observation_size, dtype, 1 if memory_saving else 2)
        self.capacity = int(capacity)
        self.observations = zeros((capacity, observation_size), dtype=dtype)
        kept_apart = (0 if memory_saving else capacity, observation_size)
        self.following = zeros(kept_apart, dtype=dtype)
        kind = float32 if action_shape else int64
        self.actions = zeros((capacity, *action_shape), dtype=kind)
        self.rewards = zeros((capacity,))
        self.terminated = zeros((capacity,), dtype=boolean)
        self.count = 0
        self.memory_saving = memory_saving
        self.links: Links | None = None
        if linked or memory_saving:
            self.links = Links(self.capacity, observation_size, dtype, memory_saving)
        self.priorities = None if alpha is None else Priorities(self.capacity, alpha)
        self._is_exact = True

    def __len__(self) -> int:
        """Steps in it."""
        return min(self.count, self.capacity)

    def prepare_for(self, count: int) -> None:
        """From now on steps of so many environments are added at once; 1 at first."""
        if self.links is not None:
            self.links.prepare_for(count, self.count)

    def forget_episode(self) -> None:
        """The running episodes do not go on; their steps stay."""
        if self.links is not None:
            self.links.cut()

    def add(
        self,
        observations: Tensor,
        actions: Tensor,
        rewards: Tensor,
        following: Tensor,
        terminated: Tensor,
        truncated: Tensor | None = None,
    ) -> None:
        """Keep N steps, N at most the capacity.

        Args:
            observations: see `Batch`, as all but the last.
            actions: what was done.
            rewards: what that brought.
            following: what was seen then.
            terminated: whether the rules ended the episode.
            truncated: whether the episode was cut after the step, bool (N,). It is needed where
                steps are linked.

        Raises:
            ValueError: it is needed.
        """
        size = observations.shape[0]
        places = (arange(size) + self.count) % self.capacity
        before = observations.astype(self.observations.dtype)
        after = following.astype(self.following.dtype)
        if self.observations.dtype is not float32:
            same = (before.astype(float32) == observations.astype(float32)).all()
            same &= (after.astype(float32) == following.astype(float32)).all()
            if not same:
                self._is_exact = False  # and stays so, until somebody is told
        if self.links is not None:
            self.links.settle(places, before, self.count)
        self.observations[places] = before
        self.actions[places] = actions
        self.rewards[places] = rewards
        if not self.memory_saving:
            self.following[places] = after
        self.terminated[places] = terminated
        if self.priorities is not None:
            self.priorities.add(places)
        self.count += size
        if self.links is not None:
            if truncated is None:
                raise ValueError("ReplayBuffer.add: steps are linked, which needs truncated=")
            self.links.add(places, after, terminated, truncated, self.count)

    def draw(self, generator: Generator, size: int) -> Tensor:
        """Places of steps drawn by their priorities, or alike; with replacement.

        There has to be a step.

        Args:
            generator: what is drawn with.
            size: B, how many.

        Returns:
            int64 (B,).
        """
        if self.priorities is not None:
            return self.priorities.draw(generator, size)
        return generator.integers(0, min(self.count, self.capacity), (size,))

    def at(self, places: Tensor) -> Batch:
        """The steps at some places (B,)."""
        return (
            self.observations[places].astype(float32),
            self.actions[places],
            self.rewards[places],
            self._after(places),
            self.terminated[places],
        )

    def returns(self, places: Tensor, steps: int, gamma: float) -> tuple[Batch, Tensor]:
        """As `at`, with the returns of n steps as rewards, and what was seen after the n steps.

        Returns:
            The batch, and gamma^m (B,), m being n, or less where an episode ends or is cut; see
            `dilim.rl.links.returns_of_steps`.
        """
        links: Any = self.links
        rewards, last, discounts = returns_of_steps(self.rewards, links.next, places, steps, gamma)
        observations = self.observations[places].astype(float32)
        after, terminated = self._after(last), self.terminated[last]
        return (observations, self.actions[places], rewards, after, terminated), discounts

    def _after(self, places: Tensor) -> Tensor:
        """What was seen after steps, float32 (B, F)."""
        if self.links is not None and self.memory_saving:
            return self.links.following(self.observations, places).astype(float32)
        return self.following[places].astype(float32)

    def sample(self, generator: Generator, size: int) -> Batch:
        """The steps that `draw` finds."""
        return self.at(self.draw(generator, size))

    @property
    def must_pause(self) -> bool:
        """See the class."""
        return not self._is_exact or (self.links is not None and self.links.is_full)

    def make_room(self) -> None:
        """Do what `must_pause` asks for.

        Raises:
            ValueError: an observation was added that its dtype cannot hold.
        """
        if not self._is_exact:
            self._is_exact = True
            raise ValueError(
                f"ReplayBuffer: an observation is not made of {self.observations.dtype.name}, in "
                "which observations are kept; choose another dtype (float32 holds them as the "
                "network sees them)"
            )
        if self.links is not None and self.links.is_full:
            self.links.make_room(self.count)

    def state_dict(self) -> dict[str, Any]:
        """The steps in it, and how many there were."""
        state: dict[str, Any] = {"count": self.count}
        for name in _ROWS:
            state[name] = getattr(self, name)[: len(self)].clone()
        for name, part in self._parts():
            state |= {f"{name}.{key}": x for key, x in part.state_dict(len(self)).items()}
        return state

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over what `state_dict` of a buffer of the same sizes gave."""
        self.count = int(state["count"])
        for name in _ROWS:
            rows = getattr(self, name)
            if rows.size:
                rows[: len(self)] = asarray(state[name])
        for name, part in self._parts():
            own = {key: x for key, x in state.items() if key.startswith(f"{name}.")}
            part.load_state_dict({key.removeprefix(f"{name}."): x for key, x in own.items()})

    def _parts(self) -> list[tuple[str, Any]]:
        parts = (("links", self.links), ("priorities", self.priorities))
        return [(name, part) for name, part in parts if part is not None]


def _check_memory(capacity: int, observation_size: int, dtype: DType, times: int) -> None:
    row = times * observation_size * dtype.itemsize
    wanted = capacity * row
    free = _free_memory()
    if free is not None and wanted > free:
        twice = f", {_amount(wanted // 2)} for what is seen before and after each step"
        raise MemoryError(
            f"ReplayBuffer: {capacity:,} steps with observations of {observation_size:,} numbers "
            f"({dtype.name}) take {_amount(wanted)}{twice if times == 2 else ''}; {_amount(free)} "
            f"are free. At most {free // row:,} fit"
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
