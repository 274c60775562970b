"""Worlds: environments as `dilim.rl.loop.play` meets them, N at once, in tensors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from dilim.dtypes import float32, int64
from dilim.errors import DilimError
from dilim.rl import adapters, door
from dilim.rl.envs import states
from dilim.rl.envs.base import TensorEnvironment
from dilim.rl.outside import FIRST, Outside
from dilim.rl.workers import Workers
from dilim.runtime.files import Arrays
from dilim.slicing import apart
from dilim.slicing.apart import Apart
from dilim.tensors.creation import asarray, zeros
from dilim.tensors.random import Generator
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

Outcome = tuple[Tensor, Tensor, Tensor, Tensor]
"""Rewards (N,), what is seen after the step, also at an end (N, F), terminated (N,), truncated."""


class World(Protocol):
    """N environments that go on by themselves: where an episode ends, the next one begins.

    Attributes:
        env: the environment.
        count: N.
        workers: in how many processes besides this one they are.
        observation: what is seen now, float32 (N, F).
        is_sound: whether the last outcome was made of finite numbers.
        must_pause: whether somebody wants the loop to stop after the last step.
    """

    env: Any
    count: int
    workers: int
    observation: Tensor
    is_sound: bool
    must_pause: bool

    def prepare(self) -> None:
        """Begin an episode if none is running."""

    def step(self, actions: Tensor) -> Outcome:
        """One step of all environments, with actions as they have them, (N, ...)."""

    def begin(self, seed: int | None = None) -> None:
        """Begin new episodes, with new random numbers if there is a seed."""


def world_of(
    env: adapters.Environment, count: int, workers: int, place: Callable[[int], str]
) -> TensorWorld | HostWorld:
    """A world for an environment, in which nothing has begun; its rules alone if it is of tensors.

    A `TensorEnvironment` whose class has a ``step`` or ``reset`` of its own is stepped by them.

    Args:
        env: the environment.
        count: N.
        workers: in how many processes environments are stepped that Python steps; 0 for this one.
        place: says which step of an environment it is, for errors.

    Raises:
        ValueError: they cannot be.
        EnvironmentContractError: the environment cannot be copied.
    """
    if not 0 <= workers <= count:
        raise ValueError(
            f"train: expected num_workers from 0 to the {count} of num_envs, received {workers}"
        )
    if follows_rules(env):
        if workers:
            raise ValueError(
                f"train: {type(env).__name__} is written in tensor operations and stepped by one "
                f"native program; num_workers={workers} is for environments that Python steps"
            )
        return TensorWorld(env, count)
    if workers:
        return HostWorld(env, Workers(env, count, workers), workers, place)
    others = [adapters.copied(env) for _ in range(count - 1)]
    return HostWorld(env, Outside([env, *others]), 0, place)


def follows_rules(env: adapters.Environment) -> bool:
    """Whether an environment does nothing but what its rules say."""
    return (
        isinstance(env, TensorEnvironment)
        and type(env).step is TensorEnvironment.step
        and type(env).reset is TensorEnvironment.reset
    )


class TensorWorld:
    """N episodes of a `TensorEnvironment` by its rules; its own running episode is left alone."""

    must_pause = False
    workers = 0

    def __init__(self, env: TensorEnvironment, count: int) -> None:
        self.env = env
        self.count = count
        self.is_sound = True
        self.generator = Generator(0)
        self.begin()

    def begin(self, seed: int | None = None) -> None:
        """See `World`."""
        if seed is not None:
            self.generator.state = Generator(seed).state
        with no_grad():
            self.running, observation = self.env.start(self.generator, (self.count,))
        self.observation = self._seen(observation)
        self.is_sound = True

    def prepare(self) -> None:
        """Nothing to do: `step` begins the next episodes."""

    def step(self, actions: Tensor) -> Outcome:
        """See `World`."""
        running, observation, reward, terminated, truncated, following = self.env.advance(
            self.running, actions, self.generator
        )
        self.running = running
        self.observation = self._seen(observation)
        return reward, self._seen(following), terminated, truncated

    def _seen(self, observation: Tensor) -> Tensor:
        return observation.reshape((self.count, -1)).astype(float32)

    def get_state(self) -> Arrays:
        """All that its future depends on."""
        state, steps = self.running
        arrays = {"generator": self.generator.state.numpy(copy=True)}
        arrays["steps"] = steps.numpy(copy=True)
        arrays["ended"] = np.array(False)
        return arrays | {f"state.{n}": x.numpy(copy=True) for n, x in states.parts(state).items()}

    def set_state(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over what `get_state` gave.

        Raises:
            StateError: it belongs to another environment.
        """
        pattern = self.env.initial(Generator(0), (self.count,))
        state = states.taken(type(self.env).__name__, pattern, arrays)
        generator = states.generator_from(arrays)
        if generator is not None:
            self.generator.state = generator.state
        self.running = (state, asarray(arrays["steps"], dtype=int64))
        self.observation = self._seen(self.env.observation(state))


class HostWorld:
    """N environments that are stepped by Python; an episode begins when its first step is due.

    Args:
        env: the environment.
        outside: it, or N of its kind.
        workers: in how many processes those are; 0 for this one.
        place: says which step of an environment it is, for errors.

    Attributes:
        waiting: how many environments wait for their next episode.
    """

    def __init__(
        self,
        env: adapters.Environment,
        outside: Outside | Workers,
        workers: int,
        place: Callable[[int], str],
    ) -> None:
        self.env, self.outside, self.workers, self.place = env, outside, workers, place
        self.count = outside.count
        self.is_sound = True
        self.must_pause = False
        self.waiting = self.count
        self.observation = zeros((self.count, outside.size))
        sizes = (self.count, outside.size), (self.count, FIRST + outside.size)
        self._go_on = Apart(outside.go_on).giving(sizes[0], float32)
        self._step = Apart(outside.step).giving(sizes[1], float32)

    def begin(self, seed: int | None = None) -> None:
        """See `World`."""
        try:
            self.observation = Tensor(self.outside.begin(_seeds(seed, self.count)))
        except DilimError as error:
            door.tell_place(error, self.place)
            raise
        self.waiting = 0

    def prepare(self) -> None:
        """See `World`; an environment is not reset before it is needed."""
        if self.waiting > 0:
            self.observation = Tensor(self._go_on())
            self.waiting = 0

    def step(self, actions: Tensor) -> Outcome:
        """See `World`.

        Raises:
            NonFiniteError, ShapeError, EnvironmentContractError: see `Outside.step`.
        """
        self.waiting = self.count  # an episode whose step fails is over
        rows = Tensor(self._step(actions))
        terminated, truncated = rows[:, 1] != 0.0, rows[:, 2] != 0.0
        self.observation = rows[:, FIRST:]
        self.waiting = int((terminated | truncated).astype(int64).sum())
        self.must_pause = bool(rows[0, 3] != 0.0)
        return rows[:, 0], self.observation, terminated, truncated

    @property
    def is_running(self) -> bool:
        """Whether all environments are in the middle of an episode."""
        return self.waiting == 0

    def meets(self, agent: Any) -> bool:
        """Whether the environments may come upon the agent, or something that it holds.

        Then a loop that keeps the agent's state to itself must not be used.

        Raises:
            ValueError: there are copies of them, which would have copies of the agent.
        """
        found = apart.meets((self.env, self.outside), [agent], [self, agent._world, agent.trial])
        if found and self.count > 1:
            raise ValueError(
                f"train: {type(self.env).__name__} uses the agent or a part of it, and its copies "
                "would have copies of that; train with num_envs=1"
            )
        return found

    def go_on(self, observation: np.ndarray) -> None:
        """The environments are in the middle of episodes, in which this is seen."""
        self.observation = Tensor(observation)
        if isinstance(self.outside, Outside):
            self.outside.see(observation)
        self.waiting = 0


def _seeds(seed: int | None, count: int) -> list[int] | None:
    """A seed for each of some environments, the same however they are spread."""
    if seed is None or count == 1:
        return None if seed is None else [seed]
    return [int(x) for x in np.random.SeedSequence(seed).generate_state(count)]
