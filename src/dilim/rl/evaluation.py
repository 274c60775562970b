"""How good an agent is without exploring."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from dilim.dtypes import bool_ as boolean
from dilim.dtypes import float64
from dilim.errors import DilimError, NonFiniteError
from dilim.rl import adapters, door
from dilim.rl.agents.kinds import is_whole
from dilim.rl.worlds import HostWorld, World, follows_rules, world_of
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

    It is ordinary code over tensors, and compiled.
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
    if not is_whole(episodes) or episodes < 1:
        raise ValueError(f"evaluate: expected at least one episode, received {episodes!r}")
    rounds, count = (1, episodes) if follows_rules(env) else (episodes, 1)
    returns: list[float] = []

    def place(number: int = 0) -> str:
        return f"evaluation, episode {len(returns) + number + 1}"

    trial = agent.trial
    if trial is None or trial.world.env is not env or trial.world.count != count:
        trial = agent.trial = Trial(world_of(env, count, 0, place))
    if isinstance(trial.world, HostWorld):
        trial.world.place = place
    for number in range(rounds):
        trial.begin(None if number else seed)
        _finish(agent, trial, place)
        returns += [float(total) for total in trial.totals]
    return returns


def _finish(agent: Agent, trial: Trial, place: Callable[[int], str]) -> None:
    """Play all episodes of a trial to their ends."""
    world = trial.world
    meets = isinstance(world, HostWorld) and world.meets(agent)
    loop = play_out if meets else agent.trial_loop
    while trial.running.any():
        try:
            loop(agent, trial, _STEPS_AT_ONCE)
        except DilimError as error:
            door.tell_place(error, place)
            raise
        if not trial.is_sound:
            door.finite_scores(agent.scores(world.observation), lambda: "evaluation")
            raise NonFiniteError(
                "evaluation: the reward or an observation is NaN or infinite; expected finite "
                "numbers; look for the cause in the environment"
            )
