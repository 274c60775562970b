"""`Rules`: an environment as pure functions of tensors, and loops of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from dilim.dtypes import int64
from dilim.rl.envs import tensor_loop
from dilim.rl.envs.states import State
from dilim.rl.envs.tensor_loop import Running
from dilim.tensors.creation import asarray, zeros
from dilim.tensors.random import Generator
from dilim.tensors.tensor import Tensor


class Rules:
    """What a `TensorEnvironment` is by its rules alone; see there."""

    max_steps: int | None

    def initial(self, generator: Generator, shape: tuple[int, ...] = ()) -> State:
        """A state to start from.

        Args:
            generator: the only source of randomness.
            shape: sizes of the leading axes: () for one environment, (N,) for N of them.

        A subclass may add keyword arguments with defaults: they are what ``reset(options=...)``
        takes.
        """
        raise NotImplementedError(f"{type(self).__name__} does not define initial()")

    def transition(self, state: State, action: Tensor, generator: Generator) -> State:
        """The state after an action: int64, or what a Box of actions holds; one per environment."""
        raise NotImplementedError(f"{type(self).__name__} does not define transition()")

    def observation(self, state: State) -> Tensor:
        """What the agent sees of a state."""
        raise NotImplementedError(f"{type(self).__name__} does not define observation()")

    def reward(self, state: State, action: Tensor, next_state: State) -> Tensor:
        """The reward of a step, float32."""
        raise NotImplementedError(f"{type(self).__name__} does not define reward()")

    def terminal(self, state: State) -> Tensor:
        """Whether the rules end the episode in this state, bool."""
        raise NotImplementedError(f"{type(self).__name__} does not define terminal()")

    def truncation(self, state: State) -> Tensor:
        """Whether the episode is cut short in this state, bool; never, unless a subclass says so.

        Nothing has ended by the rules then: an agent goes on to count what would have followed.
        ``max_steps`` needs no rule of its own.
        """
        return asarray(False)

    def action_mask(self, state: State) -> Tensor | None:
        """Which actions are allowed: bool, (..., number of actions); None for all of them.

        Where a subclass says so, ``info["action_mask"]`` of `reset` and `step` has it, and other
        actions are refused. In a loop of tensors ask with ``running[0]``; nothing is refused
        there.
        """
        return None

    def draw_text(self, state: Any) -> str:
        """A drawing of one state in lines of text."""
        raise NotImplementedError(f"{type(self).__name__} does not define draw_text()")

    def draw_frame(self, state: Any) -> np.ndarray:
        """A picture of one state: uint8, (height, width, 3)."""
        raise NotImplementedError(f"{type(self).__name__} does not define draw_frame()")

    # --- in a loop of tensors -------------------------------------------------------------

    def start(self, generator: Generator, shape: tuple[int, ...] = ()) -> tuple[Running, Tensor]:
        """Begin episodes of as many environments as wanted; for a loop of tensors.

        Args:
            generator: the only source of randomness.
            shape: () for one environment, (N,) for N of them.

        Returns:
            What `advance` goes on from (the state, and the steps of each episode), and the
            observation.

        Example:
            >>> import dilim, dilim.rl
            >>> env = dilim.rl.CartPole()
            >>> generator = dilim.Generator(0)
            >>> running, observation = env.start(generator, (8,))
            >>> for _ in range(100):
            ...     action = (observation[..., 2] > 0).astype("int64")
            ...     running, observation, reward, terminated, truncated, following = env.advance(
            ...         running, action, generator
            ...     )
            >>> observation.shape, reward.shape
            ((8, 4), (8,))
        """
        state = self.initial(generator, shape)
        return (state, zeros(shape, dtype=int64)), self.observation(state)

    def advance(
        self, running: Running, action: Tensor, generator: Generator
    ) -> tuple[Running, Tensor, Tensor, Tensor, Tensor, Tensor]:
        """One step of each environment; where an episode ends, the next one begins at once.

        Args:
            running: as `start` or the last step gave it.
            action: one per environment. They are not checked.
            generator: the only source of randomness. Starts are drawn only in steps in which an
                episode ends, for all environments at once; so a single environment draws what it
                draws under `reset` and `step`.

        Returns:
            What to go on from; the observation, of the next episode where one has ended; reward,
            terminated and truncated as `step` gives them, one per environment; and the observation
            that the step led to, before the next episode: the one to estimate from what a cut
            took away.
        """
        running, seen, reward, terminated, truncated = tensor_loop.moved(
            self, running, action, generator
        )
        observation = seen
        ended = terminated | truncated
        if ended.any():
            running = tensor_loop.renewed(self, running, ended, generator)
            observation = self.observation(running[0])
        return running, observation, reward, terminated, truncated, seen
