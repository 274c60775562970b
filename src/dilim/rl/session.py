"""An agent that trains in a run folder, and goes on there after any interruption."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import gymnasium
import numpy as np

from dilim.errors import EnvironmentContractError, NonFiniteError, StateError
from dilim.nn.module import Module
from dilim.rl.adapters import Environment
from dilim.rl.agents.base import Agent
from dilim.rl.agents.table import AGENTS
from dilim.rl.envs.table import make_environment
from dilim.rl.runs import Metrics, Run, RunConfig, Summary
from dilim.rl.training import Episode, Interrupted

_CHECKPOINT_S = 30.0  # a checkpoint at least so often, at the end of an episode


def make(name: str, **options: Any) -> Environment:
    """A built-in environment, or one that Gymnasium knows by this name.

    Raises:
        EnvironmentContractError: there is neither; the nearest built-in name is suggested. Or it
            needs a package that is not installed.
    """
    if name in gymnasium.registry:
        try:
            return gymnasium.make(name, **options)
        except (gymnasium.error.Error, ImportError) as error:
            raise EnvironmentContractError(
                f"the environment {name!r} cannot be made: {' '.join(str(error).split())}"
            ) from error
    return make_environment(name, **options)


def new_agent(config: RunConfig, env: Environment, teacher: Agent | None = None) -> Agent:
    """The agent that a run begins with.

    Args:
        config: its settings.
        env: where it will be trained.
        teacher: an agent of the same kind and sizes whose networks it takes over; all else begins
            anew.

    Raises:
        DilimError, ValueError, TypeError: the settings do not fit the agent or the environment.
    """
    agent = AGENTS[config.agent].for_env(env, seed=config.seed, **config.options)
    agent.prepare_for(config.num_envs)
    if teacher is not None:
        if type(teacher) is not type(agent):
            raise StateError(
                f"expected to begin with a {type(agent).__name__}, received {teacher!r}"
            )
        for name in agent.parts:
            part = getattr(agent, name)
            if isinstance(part, Module):
                part.load_state_dict(getattr(teacher, name).state_dict())
    return agent


def check_agent(run: Run, agent: Agent) -> None:
    """Raises StateError if a checkpoint holds another agent than the configuration names."""
    kind = AGENTS.get(run.config.agent)
    if type(agent) is not kind:
        raise StateError(
            f"run {run.name}: config.json names the agent {run.config.agent!r}, the checkpoint "
            f"holds a {type(agent).__name__}; put config.json right"
        )


def _check_untrained(run: Run) -> None:
    """Without a checkpoint only a run that was killed before its first one can begin again."""
    if run.config.agent not in AGENTS:
        raise StateError(
            f"run {run.name}: config.json names the unknown agent {run.config.agent!r}"
        )
    summary = run.summary()
    if summary.episodes and (summary.best is not None or not run.has_checkpoint_folder):
        raise StateError(
            f"run {run.name} has metrics of {summary.episodes:,} episodes but no checkpoint; it "
            f"cannot be resumed; start anew with: dilim train {run.config.environment} --seed "
            f"{run.config.seed}, or restore {run.folder / 'checkpoints'}"
        )


def _diverged(agent: Agent) -> bool:
    parts = (getattr(agent, name) for name in agent.parts)
    networks = (part for part in parts if isinstance(part, Module))
    return not all(
        np.isfinite(np.asarray(value)).all()
        for network in networks
        for value in network.state_dict().values()
    )


class Session:
    """Trains the agent of a run, writes metrics, and saves it.

    Attributes:
        run: where.
        agent: who.
        env: in what.
        passed_over: what was wrong with checkpoints newer than the one that was read.
        notes: what else is missing in the folder, though training can go on without it.
    """

    def __init__(self, run: Run, *, teacher: Agent | None = None) -> None:
        """Goes on where the run stands: at its latest checkpoint, or at the beginning.

        Args:
            run: metrics of episodes after the checkpoint are dropped: they will come again.
            teacher: whose networks a new run begins with.

        Raises:
            DilimError: the run cannot be read, or its settings do not fit the environment.
        """
        self.run = run
        self.env = make(run.config.environment)
        with run.lock:
            agent, self.passed_over = run.latest()
            if agent is None:
                _check_untrained(run)
                agent = new_agent(run.config, self.env, teacher)
            check_agent(run, agent)
            self.agent = agent
            missing = run.missing_metrics(agent.episodes)
            run.keep_metrics(agent.episodes)
            self._earlier_s = run.summary().seconds
            # by the checkpoint itself, for the metrics may be cut
            self._best = run.best_evaluation()
            self._saved_steps = -1 if agent.source is None else agent.steps
            self._saved_at = self._started_at = time.monotonic()
            if teacher is not None:
                self._save()  # so that a run killed early does not forget where it came from
        stretches = ", ".join(f"{first}..{last}" for first, last in missing)
        self.notes = (
            [f"the metrics have no episodes {stretches}; the curve will not show them"]
            if missing
            else []
        )

    def train(self, on_episode: Callable[[Metrics], Any] | None = None) -> Summary:
        """Trains to the goal or to the limit of the run.

        Args:
            on_episode: called after every finished episode.

        Returns:
            How far the run has come.

        Raises:
            Interrupted: Ctrl-C; the running step was finished and everything is saved.
            KeyboardInterrupt: a second Ctrl-C, at once; the last checkpoint stays as it is.
            NonFiniteError: the environment gave NaN or infinity, or the network diverged; the last
                checkpoint stays.
            StateError: another process trains in this folder.
        """
        self._started_at = time.monotonic()
        with self.run.lock:
            try:
                self._train(on_episode)
            except Interrupted:
                self._save()
                raise
            except NonFiniteError as error:
                if not _diverged(self.agent):
                    raise
                rate = self.run.config.options.get("learning_rate")
                than = f" than {rate:g}" if isinstance(rate, int | float) else ""
                raise NonFiniteError(
                    f"training diverged in episode {self.agent.episodes + 1}: the network holds "
                    f"NaN or infinity; train anew with a smaller learning rate{than}"
                ) from error
            self._save()
        return self.run.summary()

    def _train(self, on_episode: Callable[[Metrics], Any] | None) -> None:
        config = self.run.config

        def after(episode: Episode) -> None:
            metrics = self._metrics(episode)
            self._take_in(metrics)
            if on_episode is not None:
                on_episode(metrics)

        self.agent.train(
            self.env,
            episodes=max(config.episodes - self.agent.episodes, 0),
            on_episode=after,
            until=config.until,
            evaluate_every=config.evaluate_every,
            evaluation_episodes=config.evaluation_episodes,
            num_envs=config.num_envs,
        )

    def _metrics(self, episode: Episode) -> Metrics:
        seconds = self._earlier_s + time.monotonic() - self._started_at
        return {
            "episode": episode.episode,
            "steps": episode.steps,
            "length": episode.length,
            "return": episode.reward,
            "average": episode.average,
            "loss": episode.loss,
            "evaluation": episode.evaluation,
            "seconds": round(seconds, 3),
        }

    def _take_in(self, metrics: Metrics) -> None:
        self.run.append(metrics)
        evaluation = metrics["evaluation"]
        best = evaluation is not None and (self._best is None or evaluation >= self._best)
        if best:
            self._best = evaluation
        if evaluation is not None or time.monotonic() - self._saved_at > _CHECKPOINT_S:
            self._save(best=best)

    def _save(self, *, best: bool = False) -> None:
        """Writes a checkpoint, if there is a step that the last one has not."""
        if self.agent.steps != self._saved_steps:
            self.run.save_checkpoint(self.agent, best=best)
            self._saved_steps = self.agent.steps
            self._saved_at = time.monotonic()
