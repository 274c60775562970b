"""The training loop that all agents share, and what it reports."""

from __future__ import annotations

import inspect
import math
import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from numbers import Integral, Real
from statistics import fmean
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dilim.rl import adapters
from dilim.rl.door import Vector
from dilim.rl.evaluation import environment_like

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


class Step(NamedTuple):
    """One step of an agent; what `Agent.remember` gets.

    Attributes:
        observation: what the agent saw, (F,).
        action: what it did, 0 .. A - 1.
        reward: what that brought.
        following: what it saw then, also at an end, (F,).
        terminated: whether the rules ended the episode with this step.
        truncated: whether it was cut after this step.
    """

    observation: Vector
    action: int
    reward: float
    following: Vector
    terminated: bool
    truncated: bool


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
            if value is not None and (not isinstance(value, Integral) or value < least):
                raise ValueError(
                    f"train: expected {name} to be an integer >= {least}, received {value!r}"
                )
        goal = self.until
        if goal is not None and (not isinstance(goal, Real) or math.isnan(goal)):
            raise ValueError(f"train: expected until to be a number, received {goal!r}")


def run(
    agent: Agent,
    env: adapters.Environment,
    plan: Plan,
    on_episode: Listener | None,
    evaluation_env: adapters.Environment | None,
) -> list[float]:
    """See `Agent.train`; ``env`` is known to the agent, and its episode may be running."""
    tell = _listener(on_episode)
    if plan.evaluate_every is not None and evaluation_env is None:
        evaluation_env = environment_like(env)
    returns: list[float] = []
    last_step = None if plan.steps is None else agent.steps + plan.steps
    with deferred_interrupt() as interrupted:
        while len(returns) != plan.episodes and agent.steps != last_step:
            if interrupted():
                raise Interrupted
            finished = agent.play_step(env)
            if finished is None:
                continue
            returns.append(finished.reward)
            if plan.evaluate_every and finished.episode % plan.evaluate_every == 0:
                scores = agent.evaluate(evaluation_env, plan.evaluation_episodes)
                finished = replace(finished, evaluation=fmean(scores))
                agent.last_evaluation = finished.evaluation
            stop = tell(finished) is True
            if stop or _reached(finished.evaluation, plan.until):
                break
    return returns


def _reached(evaluation: float | None, until: float | None) -> bool:
    return evaluation is not None and until is not None and evaluation >= until


def _listener(on_episode: Listener | None) -> Callable[[Episode], Any]:
    """A function of an `Episode`, also from one of (episode number, return)."""
    if on_episode is None:
        return lambda episode: None
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
