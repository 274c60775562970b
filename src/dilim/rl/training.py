"""The training loop that all agents share, and what it reports."""

from __future__ import annotations

import inspect
import math
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Real
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dilim.errors import NonFiniteError
from dilim.rl import adapters, door
from dilim.rl.agents.kinds import is_whole
from dilim.rl.loop import CAPACITY, play
from dilim.rl.worlds import HostWorld, World, world_of
from dilim.tensors.random import Generator

if TYPE_CHECKING:
    from dilim.rl.agents.base import Agent


@dataclass(frozen=True, slots=True)
class Episode:
    """A finished training episode; what `on_episode` gets.

    Attributes:
        episode: its number over the agent's life, from 1.
        reward: its return, the sum of its rewards.
        length: its steps.
        average: the mean return of the last episodes (see `RewardTracker.running_average`).
        steps: all steps of the agent's life.
        terminated: whether the rules ended it.
        truncated: whether it was cut, for example by a time limit.
        loss: of the last update, or None.
        evaluation: the mean return of the evaluation after it, or None if there was none.
    """

    episode: int
    reward: float
    length: int
    average: float
    steps: int
    terminated: bool
    truncated: bool
    loss: float | None
    evaluation: float | None


class Interrupted(KeyboardInterrupt):
    """Ctrl-C, taken between two steps: the agent is whole and can be saved or trained on."""


Listener = Callable[..., Any]


_LEAST = {"episodes": 0, "steps": 0, "evaluate_every": 1, "evaluation_episodes": 1}


@dataclass(frozen=True, slots=True)
class Plan:
    """How far to train; see `Agent.train`."""

    episodes: int | None
    steps: int | None
    until: float | None
    evaluate_every: int | None
    evaluation_episodes: int

    def __post_init__(self) -> None:
        if self.episodes is None and self.steps is None:
            raise ValueError(
                "train: expected episodes= or steps=, for example agent.train(env, episodes=1000)"
            )
        for name, least in _LEAST.items():
            value = getattr(self, name)
            if value is not None and (not is_whole(value) or value < least):
                raise ValueError(
                    f"train: expected {name} to be an integer >= {least}, received {value!r}"
                )
        goal = self.until
        if goal is not None and (not isinstance(goal, Real) or math.isnan(goal)):
            raise ValueError(f"train: expected until to be a number, received {goal!r}")


def run(
    agent: Agent,
    world: World,
    plan: Plan,
    on_episode: Listener | None,
    evaluation_env: adapters.Environment | None,
) -> list[float]:
    """See `Agent.train`; the agent is in this world, and its episode may be running.

    In an environment of tensors the loop runs in parts of about a tenth of a second, so that Ctrl-C
    is seen between them; one in Python stops it. Where somebody listens, or an evaluation is due, a
    part ends with the episode.
    """
    tell = None if on_episode is None else _listener(on_episode)
    if plan.evaluate_every is not None and evaluation_env is None:
        evaluation_env = adapters.environment_like(world.env)
    returns: list[float] = []
    last_step = None if plan.steps is None else agent.steps + plan.steps
    part = _Part(agent, world)
    with deferred_interrupt() as interrupted:
        if isinstance(world, HostWorld):
            world.outside.is_interrupted = interrupted
        while (plan.episodes is None or len(returns) < plan.episodes) and agent.steps != last_step:
            if interrupted():
                raise Interrupted
            left = math.inf if last_step is None else (last_step - agent.steps) // world.count
            steps = int(min(part.steps, left))
            episodes = _until_told(agent, plan, len(returns), tell is not None)
            part.play(agent, world, steps, episodes)
            stop = False  # all that ended in one step are told
            for finished in finished_episodes(agent):
                returns.append(finished.reward)
                if plan.evaluate_every and finished.episode % plan.evaluate_every == 0:
                    scores = agent.evaluate(evaluation_env, plan.evaluation_episodes)
                    finished = replace(finished, evaluation=fmean(scores))
                    agent.last_evaluation = finished.evaluation
                stop |= tell is not None and tell(finished) is True
                stop |= _reached(finished.evaluation, plan.until)
            if stop:
                break
    return returns


def enter(
    agent: Agent,
    env: adapters.Environment,
    seed: int | None,
    num_envs: int | None = None,
    num_workers: int | None = None,
) -> World:
    """Let an agent begin in an environment, or go on in it; see `Agent.train`."""
    saved, world = agent._environment_state, agent._world
    for name, value, least in (("num_envs", num_envs, 1), ("num_workers", num_workers, 0)):
        if value is not None and (not is_whole(value) or value < least):
            raise ValueError(
                f"train: expected {name} to be an integer >= {least}, received {value!r}"
            )
    count = agent.log.totals.shape[0] if num_envs is None else num_envs
    workers = num_workers or 0
    if num_workers is None and world is not None and env is world.env and world.count == count:
        workers = world.workers
    wanted = (count, workers)
    is_same = world is not None and env is world.env and (world.count, world.workers) == wanted
    if is_same and seed is None and saved is None:
        return world  # type: ignore[return-value]
    if count != agent.log.totals.shape[0]:
        agent.prepare_for(count)
    if world is None or not is_same:
        world = world_of(env, count, workers, agent.place)
    if seed is not None:
        agent.generator.state = Generator(seed).split(2)[1].state
    elif saved is not None:
        if saved.restore(world):
            agent._world, agent._environment_state = world, None
            return world
        seed = derived_seed(agent.seed, 2, agent.steps)
    else:
        number, agent._environments = agent._environments, agent._environments + 1
        seed = agent.seed if number == 0 else derived_seed(agent.seed, 0, number)
    agent.forget_episode()
    world.begin(seed)
    agent._world, agent._environment_state = world, None
    return world


_MOST: Final = 1 << 20  # steps of a part


class _Part:
    """How many steps take about a tenth of a second."""

    def __init__(self, agent: Agent, world: World) -> None:
        self.steps = 64
        self._loop: Callable[..., None] = agent.loop
        if isinstance(world, HostWorld):
            self.steps = _MOST
            if world.meets(agent):
                self._loop = play

    def play(self, agent: Agent, world: World, steps: int, episodes: int) -> None:
        """Run the loop once, and see to what it stopped for."""
        before, began = agent.steps, time.perf_counter()
        try:
            self._loop(agent, world, steps, episodes)
        except BaseException as error:
            finished_episodes(agent)  # so that they are counted
            door.tell_place(error, agent.place)
            agent.forget_episode()
            raise
        seconds = time.perf_counter() - began
        if not world.is_sound:
            finished_episodes(agent)
            place = agent.place()
            agent.forget_episode()
            world.begin()
            raise NonFiniteError(
                f"{place}: the reward or an observation is NaN or infinite; expected finite "
                "numbers. Nothing was learned from this step; look for the cause in the environment"
            )
        check_progress(agent)
        agent.make_room()
        if isinstance(world, HostWorld):
            return
        if seconds < 0.05 and agent.steps - before == steps * world.count:
            self.steps = min(2 * self.steps, _MOST)
        elif seconds > 0.1:
            self.steps = max(self.steps // 2, 64)


def check_progress(agent: Agent) -> None:
    """Refuse to go on after an update that could not be made.

    Raises:
        NonFiniteError: the loss is NaN or infinite; the network was not changed by it.
    """
    if agent.failed:
        agent.failed = False
        raise NonFiniteError(
            f"{type(agent).__name__}: the loss of update {agent.updates + 1} is "
            f"{float(agent.loss)}; the network was not changed. Try a lower learning_rate or "
            "smaller rewards"
        )


def _until_told(agent: Agent, plan: Plan, done: int, listening: bool) -> int:
    """After how many episodes the loop has to stop."""
    if listening:
        return 1
    episodes = CAPACITY if plan.episodes is None else min(plan.episodes - done, CAPACITY)
    if plan.evaluate_every:
        episodes = min(episodes, plan.evaluate_every - agent.episodes % plan.evaluate_every)
    return episodes


def finished_episodes(agent: Agent) -> list[Episode]:
    """The episodes that ended in the last part, which the tracker takes in."""
    log, count = agent.log, agent.log.finished
    if not count:
        return []
    columns = (log.returns, log.ended_lengths, log.terminations, log.losses, log.steps)
    rows = zip(*(column[:count].tolist() for column in columns), strict=True)
    found = []
    for reward, length, terminated, loss, steps in rows:
        agent.tracker.add(reward)
        average = agent.tracker.running_average or 0.0
        loss = loss if agent.updates else None
        found.append(
            Episode(
                *(agent.episodes, reward, length, average, steps),
                *(terminated, not terminated, loss, None),
            )
        )
    log.begin()
    return found


def _reached(evaluation: float | None, until: float | None) -> bool:
    return evaluation is not None and until is not None and evaluation >= until


def _listener(on_episode: Listener) -> Callable[[Episode], Any]:
    """A function of an `Episode`, also from one of (episode number, return)."""
    if not callable(on_episode):
        raise TypeError(f"train: expected on_episode to be a function, received {on_episode!r:.60}")
    if _takes_two(on_episode):
        return lambda episode: on_episode(episode.episode, episode.reward)
    return on_episode


def _takes_two(function: Listener) -> bool:
    """Whether it has to be called with two arguments."""
    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return False  # some built-in functions do not say
    required = [
        p
        for p in parameters
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) and p.default is p.empty
    ]
    return len(required) == 2


def derived_seed(seed: int, purpose: int, number: int) -> int:
    """A seed for the environment: independent of ``seed`` and of those of other purposes."""
    return int(np.random.SeedSequence([seed, purpose, number]).generate_state(1)[0])


@contextmanager
def deferred_interrupt() -> Iterator[Callable[[], bool]]:
    """Ctrl-C is noted, and takes effect where the loop asks for it; a second one at once.

    So an interrupt never falls between an action and its outcome. Where the program handles
    SIGINT itself, and outside the main thread, nothing is changed.
    """
    requested = False

    def note(number: int, frame: Any) -> None:
        nonlocal requested
        if requested:
            raise KeyboardInterrupt
        requested = True

    ours = (
        threading.current_thread() is threading.main_thread()
        and signal.getsignal(signal.SIGINT) is signal.default_int_handler
    )
    if ours:
        signal.signal(signal.SIGINT, note)
    try:
        yield lambda: requested
    finally:
        if ours:
            signal.signal(signal.SIGINT, signal.default_int_handler)
    # an interrupt in the last step, or in the last callback, must not be lost
    if requested:
        raise Interrupted
