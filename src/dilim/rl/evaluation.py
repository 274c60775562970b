"""How good an agent is without exploring."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import gymnasium

from dilim.dtypes import bool_ as boolean
from dilim.dtypes import float64
from dilim.errors import EnvironmentContractError, NonFiniteError
from dilim.rl import adapters, door
from dilim.rl.envs.base import TensorEnvironment
from dilim.rl.worlds import HostWorld, TensorWorld, World, follows_rules
from dilim.tensors.creation import ones, zeros
from dilim.tensors.elementwise import isfinite, where
from dilim.tensors.tape import no_grad

if TYPE_CHECKING:
    from dilim.rl.agents.base import Agent

_STEPS_AT_ONCE: Final = 1024


class Trial:
    """Episodes that are played to see how good an agent is, one in each environment of a world.

    Args:
        world: in what.

    Attributes:
        totals: sums of rewards of the episodes so far, float64 (N,).
        running: which of them go on, bool (N,).
        is_sound: whether all numbers of the network and of the environment were finite.
    """

    def __init__(self, world: World) -> None:
        self.world = world
        self.forget()

    def begin(self, seed: int | None) -> None:
        """Begin all episodes anew; see `World.begin`."""
        self.forget()
        self.world.begin(seed)

    def forget(self) -> None:
        """Nothing was played yet."""
        self.totals = zeros((self.world.count,), dtype=float64)
        self.running = ones((self.world.count,), dtype=boolean)
        self.is_sound = True


def play_out(agent: Agent, trial: Trial, steps: int) -> None:
    """Best actions, until every episode of a trial has ended, or so many steps are made.

    It is ordinary code over tensors, and compiled over a tensor environment.
    """
    world = trial.world
    with no_grad():
        for _ in range(steps):
            scores = agent.scores(world.observation)
            trial.is_sound = bool(isfinite(scores).all())
            if not trial.is_sound:
                break
            actions = agent.actions.outward(agent.best(scores))
            reward, following, terminated, truncated = world.step(actions)
            trial.is_sound = bool(isfinite(reward).all() & isfinite(following).all())
            trial.totals = trial.totals + where(trial.running, reward, 0.0)
            trial.running = trial.running & ~(terminated | truncated)
            if not trial.is_sound or not trial.running.any():
                break


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

    Raises:
        NonFiniteError: a number of the network or of the environment is not finite.
    """
    if episodes < 1:
        raise ValueError(f"evaluate: expected at least one episode, received {episodes}")
    if follows_rules(env):
        trial = agent.trial
        if trial is None or trial.world.env is not env or trial.world.count != episodes:
            trial = agent.trial = Trial(TensorWorld(env, episodes))
        trial.begin(seed)
        return _played(agent, trial, agent.trial_loop, lambda: "evaluation")
    returns: list[float] = []

    def place() -> str:
        return f"evaluation, episode {len(returns) + 1}"

    trial = Trial(HostWorld(env, place))
    while len(returns) < episodes:
        trial.begin(None if returns else seed)
        returns += _played(agent, trial, play_out, place)
    return returns


def _played(
    agent: Agent, trial: Trial, loop: Callable[..., None], place: Callable[[], str]
) -> list[float]:
    while trial.running.any():
        loop(agent, trial, _STEPS_AT_ONCE)
        if not trial.is_sound:
            door.finite_scores(agent.scores(trial.world.observation), place)
            raise NonFiniteError(
                f"{place()}: the reward or an observation is NaN or infinite; expected finite "
                "numbers; look for the cause in the environment"
            )
    return [float(total) for total in trial.totals]


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
