"""How good an agent is without exploring."""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

import gymnasium
import numpy as np

from dilim.errors import EnvironmentContractError
from dilim.rl import adapters, door
from dilim.rl.envs import states
from dilim.rl.envs.base import TensorEnvironment
from dilim.tensors.creation import asarray
from dilim.tensors.random import Generator
from dilim.tensors.tape import no_grad

if TYPE_CHECKING:
    from dilim.rl.agents.base import Agent


def evaluate(agent: Agent, env: adapters.Environment, episodes: int, seed: int) -> list[float]:
    """The returns of whole episodes in which the agent takes its best actions.

    The agent's random numbers, memory and counters are not touched. A `TensorEnvironment` plays all
    episodes at once on its rules, and its own running episode stays as it is; another environment
    plays them one after the other.

    Args:
        agent: who acts.
        env: where; reset with the seed once, if it is not a `TensorEnvironment`.
        episodes: how many, at least 1.
        seed: of the starts and of what the environment draws.

    Returns:
        One sum of rewards per episode, in order of the starts.
    """
    if episodes < 1:
        raise ValueError(f"evaluate: expected at least one episode, received {episodes}")
    if isinstance(env, TensorEnvironment):
        with no_grad():
            return _all_at_once(agent, env, episodes, seed)
    return [_one(agent, env, number, seed if number == 0 else None) for number in range(episodes)]


def _all_at_once(agent: Agent, env: TensorEnvironment, episodes: int, seed: int) -> list[float]:
    generator = Generator(seed)
    state = env.initial(generator, (episodes,))
    returns = np.zeros(episodes)
    running = np.arange(episodes)
    steps = 0
    while running.size and steps != env.max_steps:
        action = agent.best_actions(env.observation(state).reshape((len(running), -1)))
        following = env.transition(state, action, generator)
        returns[running] += env.reward(state, action, following).numpy()
        ended = env.terminal(following) | env.truncation(following)
        going_on = np.flatnonzero(~ended.numpy())
        state = following
        if going_on.size < running.size:
            state = states.rows(following, asarray(going_on))
        running = running[going_on]
        steps += 1
    return [float(value) for value in returns]


def _one(agent: Agent, env: adapters.Environment, number: int, seed: int | None) -> float:
    observation = adapters.reset(env, seed)
    total, step, ended = 0.0, 0, False
    while not ended:
        step += 1
        action = agent.act(observation, explore=False)
        observation, reward, terminated, truncated, _ = adapters.check_step(env.step(action))
        place = f"evaluation, episode {number + 1}, step {step}"
        total += door.finite_reward(reward, lambda place=place: place)  # type: ignore[misc]
        ended = bool(terminated or truncated)
    return total


def environment_like(env: adapters.Environment) -> adapters.Environment:
    """Another environment of the same kind, to evaluate in while ``env`` is trained in.

    Raises:
        EnvironmentContractError: it can neither be made again nor copied.
    """
    if isinstance(env, TensorEnvironment):
        return env  # only its rules are used
    if getattr(env, "spec", None) is not None:
        return gymnasium.make(env.spec)
    try:
        return copy.deepcopy(env)
    except Exception as error:
        raise EnvironmentContractError(
            f"train: cannot make a second {type(env).__name__} to evaluate in ({error}); pass "
            "evaluation_env="
        ) from error
