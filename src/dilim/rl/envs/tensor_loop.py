"""Steps of environments as functions of tensors, one environment or many; see `TensorEnvironment`.

What goes from step to step is called *running*: the state, and the steps of each episode.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from dilim.rl.envs import states
from dilim.rl.envs.states import State
from dilim.tensors.elementwise import where
from dilim.tensors.random import Generator
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.rl.envs.rules import Rules

Running = tuple[State, Tensor]
Outcome = tuple[Running, Tensor, Tensor, Tensor, Tensor]
"""Running, observation, reward, terminated, truncated."""


def moved(env: Rules, running: Running, action: Tensor, generator: Generator) -> Outcome:
    """One step of each environment, by the rules alone."""
    state, steps = running
    following = env.transition(state, action, generator)
    reward = env.reward(state, action, following)
    terminated = env.terminal(following)
    steps = steps + 1
    cut = env.truncation(following)
    if env.max_steps is not None:
        cut = cut | (steps == env.max_steps)
    return (following, steps), env.observation(following), reward, terminated, cut & ~terminated


def renewed(env: Rules, running: Running, ended: Tensor, generator: Generator) -> Running:
    """New episodes where the old ones have ended; starts are drawn for all environments."""
    state, steps = running
    fresh = env.initial(generator, ended.shape)
    return states.chosen(ended, fresh, state), where(ended, 0, steps)


def moved_or_renewed(
    env: Rules, running: Running, ended: Tensor, action: Tensor, generator: Generator
) -> Outcome:
    """One step of each environment; where an episode has ended before, a new one instead."""
    if ended.any():
        running = renewed(env, running, ended, generator)  # the rules meet no ended episode
    after, observation, reward, terminated, truncated = moved(env, running, action, generator)
    if ended.any():
        state, steps = running
        after = states.chosen(ended, state, after[0]), where(ended, steps, after[1])
        observation = states.chosen(ended, env.observation(state), observation)
        reward = where(ended, 0.0, reward)
        terminated = terminated & ~ended
        truncated = truncated & ~ended
    return after, observation, reward, terminated, truncated
