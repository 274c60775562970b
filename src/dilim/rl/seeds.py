"""`train_seeds`: how far learning depends on chance, by agents that differ in their seed only."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from numbers import Integral
from statistics import fmean
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dilim.rl import adapters
from dilim.rl.processes import spread
from dilim.rl.workers import packed, unpacked

if TYPE_CHECKING:
    from dilim.rl.agents.base import Agent

_QUARTILES: Final = (25, 50, 75)


@dataclass(frozen=True, slots=True)
class SeedRun:
    """What one agent has learned.

    Attributes:
        seed: its seed.
        agent: it itself, trained; it goes on as it would have if it had been trained alone.
        returns: of its training episodes, in order.
        evaluation: the returns of the episodes it then played without exploring.
    """

    seed: int
    agent: Agent
    returns: list[float]
    evaluation: list[float]

    @property
    def score(self) -> float:
        """The mean return of the evaluation."""
        return fmean(self.evaluation)


class SeedRuns(Sequence[SeedRun]):
    """The runs of `train_seeds`, in the order of the seeds."""

    def __init__(self, runs: Sequence[SeedRun]) -> None:
        self._runs = list(runs)

    def __len__(self) -> int:
        return len(self._runs)

    def __getitem__(self, index: Any) -> Any:
        """A run, or those of a slice."""
        return SeedRuns(self._runs[index]) if isinstance(index, slice) else self._runs[index]

    @property
    def scores(self) -> list[float]:
        """The mean return of the evaluation, of each."""
        return [run.score for run in self._runs]

    @property
    def quartiles(self) -> tuple[float, float, float]:
        """The scores that a quarter, half and three quarters of the runs do not exceed."""
        low, middle, high = np.percentile(self.scores, _QUARTILES).tolist()
        return low, middle, high

    @property
    def median(self) -> float:
        """The middle one of the scores."""
        return self.quartiles[1]

    @property
    def best(self) -> SeedRun:
        """The run with the highest score; of equal ones the first."""
        return max(self._runs, key=lambda run: run.score)

    def __repr__(self) -> str:
        low, middle, high = self.quartiles
        return (
            f"<SeedRuns of {len(self)}: median {middle:g}, half of them {low:g} to {high:g}, all "
            f"{min(self.scores):g} to {max(self.scores):g}>"
        )


def train_seeds(
    kind: type[Agent],
    env: adapters.Environment,
    seeds: int | Sequence[int] = 10,
    *,
    options: Mapping[str, Any] | None = None,
    processes: int | None = None,
    evaluation_episodes: int = 20,
    on_run: Callable[[SeedRun], Any] | None = None,
    **training: Any,
) -> SeedRuns:
    """Train agents that know nothing of each other, over all cores, and evaluate each.

    They run in processes. The bits of a seed are those of ``kind.for_env(env, seed=seed,
    **options).train(env, **training)``, whatever the others are.

    Args:
        kind: of the agents.
        env: in what; each agent has one of its own.
        seeds: which, or N for 0 to N - 1.
        options: of the agents, but ``seed``.
        processes: how many at once; as many as there are cores by default.
        evaluation_episodes: episodes of the evaluation after training; also of those during it.
        on_run: called with each `SeedRun` when it is finished, in any order.
        training: see `Agent.train`: ``episodes``, ``steps``, ``until``, ...; no callbacks.

    Returns:
        The runs. Their `SeedRuns.median` and `SeedRuns.quartiles` sum them up.

    Raises:
        ValueError: there are no seeds, or one is there twice; or a callback is among ``training``.
        EnvironmentContractError: the environment does not fit, or cannot be sent to a process.

    Example:
        >>> import dilim.rl
        >>> runs = dilim.rl.train_seeds(dilim.rl.REINFORCE, dilim.rl.Bandit(), 2, episodes=50)
        >>> [run.seed for run in runs], len(runs[0].returns)
        ([0, 1], 50)
    """
    if not isinstance(kind, type):
        raise TypeError(
            f"train_seeds: expected a class of agents, such as DQN, received {kind!r:.60}; its "
            "options are given as options="
        )
    if "seed" in training:
        raise TypeError("train_seeds: seed= is that of each agent; expected seeds=[...]")
    numbers = _numbers(seeds)
    if "on_episode" in training:
        raise ValueError(
            "train_seeds: agents are trained in other processes, where on_episode= cannot be "
            "called; on_run= is called after each agent"
        )
    whole = packed(env)
    kind.for_env(env, seed=numbers[0], **(options or {}))  # so that mistakes are told here
    settings = dict(training, evaluation_episodes=evaluation_episodes)
    make = partial(_Trainer, kind, whole, dict(options or {}), settings)
    found: dict[int, SeedRun] = {}
    for seed, (state, returns, evaluation) in spread(make, "train", numbers, processes):
        run = SeedRun(seed, kind.from_state(*state), returns, evaluation)
        found[seed] = run
        if on_run is not None:
            on_run(run)
    return SeedRuns([found[seed] for seed in numbers])


def _numbers(seeds: int | Sequence[int]) -> list[int]:
    numbers = list(range(seeds)) if isinstance(seeds, Integral) else [int(x) for x in seeds]  # type: ignore[union-attr]
    if not numbers or len(set(numbers)) < len(numbers):
        raise ValueError(
            f"train_seeds: expected a number of seeds from 1 on, or different seeds, received "
            f"{seeds!r}"
        )
    return numbers


class _Trainer:
    """Trains with one seed after the other in a process."""

    def __init__(
        self, kind: type[Agent], env: bytes, options: dict[str, Any], training: dict[str, Any]
    ) -> None:
        self.kind, self.env, self.options, self.training = kind, env, options, training

    def train(self, seed: int) -> tuple[Any, list[float], list[float]]:
        """The agent's state, the returns of training, and those of an evaluation after it."""
        env = unpacked(self.env)
        agent = self.kind.for_env(env, seed=seed, **self.options)
        returns = agent.train(env, **self.training)
        evaluation = agent.evaluate(env, self.training["evaluation_episodes"])
        return agent.state(), returns, evaluation
