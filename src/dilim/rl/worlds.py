"""Worlds: environments as `dilim.rl.loop.play` meets them, N at once, in tensors."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Protocol

import numpy as np

from dilim.dtypes import float32, int64
from dilim.rl import adapters, door
from dilim.rl.actions import single
from dilim.rl.envs import states
from dilim.rl.envs.base import TensorEnvironment
from dilim.runtime.files import Arrays
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
        observation: what is seen now, float32 (N, F).
        is_sound: whether the last outcome was made of finite numbers.
        steps_at_once: whether a loop over it may go on without asking for interrupts at each step.
    """

    env: Any
    count: int
    observation: Tensor
    is_sound: bool
    steps_at_once: bool

    def prepare(self) -> None:
        """Begin an episode if none is running."""

    def step(self, actions: Tensor) -> Outcome:
        """One step of all environments, with actions as they have them, (N, ...)."""

    def begin(self, seed: int | None = None) -> None:
        """Begin new episodes, with new random numbers if there is a seed."""


def world_of(
    env: adapters.Environment, count: int, place: Callable[[], str]
) -> TensorWorld | HostWorld:
    """A world for an environment, in which nothing has begun; its rules alone if it is of tensors.

    A `TensorEnvironment` whose class has a ``step`` or ``reset`` of its own is stepped by them.

    Args:
        env: the environment.
        count: N; 1 where it is stepped by Python.
        place: says which step it is, for errors.
    """
    if follows_rules(env):
        return TensorWorld(env, count)
    if count != 1:
        raise ValueError(
            f"train: num_envs={count} needs an environment that is written in tensor operations; "
            f"{type(env).__name__} is stepped by Python, one at a time"
        )
    return HostWorld(env, place)


def follows_rules(env: adapters.Environment) -> bool:
    """Whether an environment does nothing but what its rules say."""
    return (
        isinstance(env, TensorEnvironment)
        and type(env).step is TensorEnvironment.step
        and type(env).reset is TensorEnvironment.reset
    )


class TensorWorld:
    """N episodes of a `TensorEnvironment` by its rules; its own running episode is left alone."""

    steps_at_once = True

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
    """One environment that is stepped by Python."""

    steps_at_once = False
    count = 1

    def __init__(self, env: adapters.Environment, place: Callable[[], str]) -> None:
        self.env = env
        self.is_sound = True
        self.is_running = False
        self.place = place
        self.observation = zeros((1, math.prod(env.observation_space.shape)))

    def begin(self, seed: int | None = None) -> None:
        """See `World`."""
        self._see(adapters.reset(self.env, seed))
        self.is_running = True

    def prepare(self) -> None:
        """See `World`; an environment is not reset before it is needed."""
        if not self.is_running:
            self.begin()

    def step(self, actions: Tensor) -> Outcome:
        """See `World`.

        Raises:
            NonFiniteError, ShapeError: a number cannot be; the episode is dropped.
        """
        self.is_running = False  # an episode whose step fails is over
        result = adapters.check_step(self.env.step(single(actions)))
        observation, reward, terminated, truncated, _ = result
        value = door.finite_reward(reward, self.place)
        self._see(observation)
        self.is_running = not (terminated or truncated)
        return (
            asarray([value], dtype=float32),
            self.observation,
            asarray([bool(terminated)]),
            asarray([bool(truncated)]),
        )

    def go_on(self, observation: np.ndarray) -> None:
        """The environment is in the middle of an episode, in which this is seen."""
        self.observation = asarray(np.array(observation))
        self.is_running = True

    def _see(self, observation: Any) -> None:
        vector = door.observation_vector(observation, self.observation.shape[1], self.place)
        self.observation = asarray(vector[None])
