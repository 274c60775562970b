"""`Agent`: what all agents have in common."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable
from typing import Any, ClassVar, Self

import numpy as np
import numpy.typing as npt

from dilim.dtypes import float32
from dilim.errors import ShapeError, TrainingWarning
from dilim.optim.optimizer import Optimizer
from dilim.rl import adapters, door, evaluation, training
from dilim.rl.actions import Numbers, actions_from, actions_of, single
from dilim.rl.agents.checkpoint import EnvironmentState
from dilim.rl.agents.learner import Learner
from dilim.rl.agents.saving import Savable
from dilim.rl.loop import EpisodeLog, play
from dilim.rl.tracker import RewardTracker
from dilim.rl.training import Episode, Listener, Plan, derived_seed
from dilim.rl.worlds import HostWorld, TensorWorld
from dilim.slicing.api import compile
from dilim.tensors.creation import asarray
from dilim.tensors.elementwise import isfinite
from dilim.tensors.random import Generator, default_generator
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor


class Agent(Learner, Savable):
    """Learns to act from rewards; base class of all agents.

    In a program of one's own an agent is used step by step::

        action = agent.act(observation)
        ...                                     # the world moves on
        agent.observe(reward, observation, terminated, truncated)

    and `train` does the same with a Gymnasium environment. A subclass writes the methods of
    `Learner`, extends `options`, and names in `parts` and `numbers` what it saves.

    Args:
        observation_size: F, numbers in an observation.
        action_count: A, actions to choose from; None for 2, or for a Box.
        action_start: the number of the first action, as in ``Discrete(A, start=...)``.
        action_low: the least of each number of an action, in the shape of the Box.
        action_high: the greatest.
        seed: of the network, of sampling and of the first environment; by default drawn from
            `dilim.default_generator`, so that `dilim.seed` decides.
        window_size: episodes in the running average.

    Attributes:
        actions: what it can do; see `dilim.rl.actions`.
        action_count: A; in a Box the numbers of an action.
        seed: the number that was given or drawn.
        steps: steps over the agent's life.
        tracker: a `RewardTracker` of the training episodes.
        updates: steps of the optimizer over its life.
        failed: whether the last update was refused because its loss is NaN or infinite.
        loss: of the last update, a tensor.
        log: the episodes that run, and those that ended in the last part of training.
        loop: `dilim.rl.loop.play`, compiled for this agent.
        trial_loop: `dilim.rl.evaluation.play_out`, likewise.
        trial: the episodes of the last evaluation in a tensor environment, or None.
        last_evaluation: the mean return of the last evaluation during training, or None.
        source: the file this agent was loaded from, or None.
    """

    optimizer: Optimizer
    parts: ClassVar[tuple[str, ...]] = ()
    """Attributes with ``state_dict`` and ``load_state_dict`` that belong to the state."""
    numbers: ClassVar[tuple[str, ...]] = ()
    """Attributes that hold a float, an int or None and belong to the state."""

    def __init__(
        self,
        observation_size: int,
        action_count: int | None,
        *,
        action_start: int = 0,
        action_low: Numbers | None = None,
        action_high: Numbers | None = None,
        seed: int | None = None,
        window_size: int = 100,
    ) -> None:
        kind = type(self)
        if observation_size < 1:
            raise ShapeError(
                f"{kind.__name__}: expected observation_size >= 1, received {observation_size}"
            )
        self.observation_size = int(observation_size)
        self.actions = actions_from(action_count, action_start, action_low, action_high)
        adapters.check_kind(kind, self.actions)
        self.action_count = self.actions.count
        self.seed = int(default_generator().integers(0, 2**31)) if seed is None else int(seed)
        self.network_generator, self.generator = Generator(self.seed).split(2)
        self.steps = 0
        self.tracker = RewardTracker(window_size)
        self.loss = asarray(0.0, dtype=float32)
        self.updates = 0
        self.failed = False
        self.log = EpisodeLog()
        self.loop = compile(play)
        self.trial_loop = compile(evaluation.play_out)
        self.trial: evaluation.Trial | None = None
        self.last_evaluation: float | None = None
        self.source: str | None = None
        self._pending: tuple[door.Vector, Tensor] | None = None
        self._world: TensorWorld | HostWorld | None = None
        self._environments = 0
        self._environment_state: EnvironmentState | None = None

    # --- memory, see also `Learner` --------------------------------------------------------

    def warnings_for(self, steps: int | None) -> Iterable[str]:
        """What to say before so many steps (None: nobody knows) that will teach little."""
        return ()

    def prepare_for(self, count: int) -> None:
        """Get ready to be trained in so many environments at once.

        Raises:
            ValueError: the agent cannot.
        """
        if count != self.log.totals.shape[0]:
            self.log = EpisodeLog(count)

    def make_room(self) -> None:
        """Get memory for more steps, if `must_pause` says that there is none."""

    def forget_episode(self) -> None:
        """Drop the steps of the running episodes; what was finished before stays."""
        self.log.forget()
        self._pending = None

    # --- the loop, see `dilim.rl.loop` ------------------------------------------------------

    def choose(self, observations: Tensor) -> Tensor:
        """(N, F) to (N,) or (N, A): the actions of a training step; see `explore`."""
        with no_grad():
            return self.explore(self.scores(observations))

    def take(
        self,
        observations: Tensor,
        actions: Tensor,
        rewards: Tensor,
        following: Tensor,
        terminated: Tensor,
        truncated: Tensor,
    ) -> None:
        """A step of N environments: it is counted, remembered, learned from, and logged."""
        self.steps += observations.shape[0]
        self.remember(observations, actions, rewards, following, terminated, truncated)
        self.log.add(rewards, terminated, truncated, self.loss, self.steps)

    def descend(self, loss: Tensor) -> None:
        """An update: one step of ``optimizer`` down the gradient of the loss."""
        self.loss = loss.detach()
        self.move(self.optimizer, loss)
        if not self.failed:
            self.updates += 1

    def move(self, optimizer: Optimizer, loss: Tensor) -> None:
        """One step of an optimizer down the gradient of a loss, unless one is NaN or infinite."""
        optimizer.zero_grad()
        loss.backward()
        if not isfinite(loss.detach()):
            self.failed = True  # and stays so, that no later update hides it
        if not self.failed:
            optimizer.step()
        optimizer.zero_grad()  # so that the loop of training has no gradients to carry along

    @property
    def must_pause(self) -> bool:
        """Whether the loop has to stop: an update failed, or memory is needed (`make_room`)."""
        return self.failed

    def slices(self) -> str:
        """The loop of training as its two programs; see `dilim.compile`."""
        return str(self.loop.slices())

    @property
    def options(self) -> dict[str, Any]:
        """The arguments from which an equal, untrained agent can be made; plain JSON."""
        return {
            "observation_size": self.observation_size,
            **self.actions.options,
            "seed": self.seed,
            "window_size": self.tracker.window_size,
        }

    # --- acting and observing -------------------------------------------------------------

    @classmethod
    def for_env(cls, env: adapters.Environment, **options: Any) -> Self:
        """An agent with the sizes of an environment, which is checked by `from_gymnasium`.

        Args:
            env: an environment with a Box of observations, and actions that the agent takes.
            options: all other arguments of the agent.

        Raises:
            EnvironmentContractError: see `dilim.rl.from_gymnasium`; or the agent cannot learn such
                actions.
        """
        adapters.check_spaces(env)
        actions = actions_of(env)
        adapters.check_kind(cls, actions, type(env).__name__)
        adapters.from_gymnasium(env)
        return cls(math.prod(env.observation_space.shape), **actions.options, **options)

    def act(self, observation: Any, explore: bool = True) -> int | npt.NDArray[np.float32]:
        """The action for an observation.

        Args:
            observation: F numbers of any shape and dtype.
            explore: whether to explore, and to await the outcome in `observe`. False takes the best
                action, remembers nothing and draws no random number.

        Returns:
            An action of the environment: a number from ``action_start`` on, or a new float32 array
            in its Box.

        Raises:
            ShapeError: the observation has another number of elements.
            NonFiniteError: an element, or an output of the network, is NaN or infinite.
        """
        vector = door.observation_vector(observation, self.observation_size, self.place)
        with no_grad():
            scores = door.finite_scores(self.scores(asarray(vector[None])), self.place)
            action = self.explore(scores) if explore else self.best(scores)
            if explore:
                self._pending = (vector, action)
            return single(self.actions.outward(action))

    def best_actions(self, observations: Tensor) -> Tensor:
        """(N, F) to (N, ...): the best actions as the environment has them."""
        scores = door.finite_scores(self.scores(observations), lambda: "evaluation")
        return self.actions.outward(self.best(scores))

    def observe(
        self, reward: float, observation: Any, terminated: bool, truncated: bool = False
    ) -> Episode | None:
        """Take in what the last action led to, and learn when it is time.

        Args:
            reward: what the step brought.
            observation: what is seen after it, also at an end.
            terminated: whether the rules ended the episode here.
            truncated: whether it was cut here, for example by a time limit.

        Returns:
            At the end of an episode its numbers, otherwise None.

        Raises:
            ShapeError, NonFiniteError: a number cannot be; the running episode is dropped. Or the
                loss is not finite; then the network is as it was.
            RuntimeError: no action awaits its outcome.
        """
        if self._pending is None:
            raise RuntimeError("observe: no action awaits its outcome; call act(observation) first")
        try:
            value = door.finite_reward(reward, self.place)
            following = door.observation_vector(observation, self.observation_size, self.place)
        except ValueError:
            self.forget_episode()
            raise
        seen, action = self._pending
        self._pending = None
        if self.log.totals.shape[0] != 1:  # it was trained in many: their episodes are left
            self.prepare_for(1)
            self._world = self._environment_state = None
        self.log.begin()
        self.take(
            *(asarray(seen[None]), action, asarray([value], dtype=float32)),
            *(asarray(following[None]), asarray([bool(terminated)]), asarray([bool(truncated)])),
        )
        training.check_progress(self)
        self.make_room()
        told = training.finished_episodes(self)
        return told[0] if told else None

    @property
    def last_loss(self) -> float | None:
        """The loss of the last update, or None before the first one."""
        return float(self.loss) if self.updates or self.failed else None

    @property
    def episodes(self) -> int:
        """Finished training episodes over the agent's life."""
        return self.tracker.total_episodes

    def place(self, number: int = 0) -> str:
        """Which step of an environment comes next, for messages."""
        step = f"step {int(self.log.lengths[number]) + 1} ({self.steps + 1} in all)"
        return f"environment {number}, episode {self.episodes + 1}, {step}"

    # --- training and evaluation ----------------------------------------------------------

    def train(
        self,
        env: adapters.Environment,
        *,
        episodes: int | None = None,
        steps: int | None = None,
        on_episode: Listener | None = None,
        until: float | None = None,
        seed: int | None = None,
        evaluate_every: int | None = None,
        evaluation_episodes: int = 20,
        evaluation_env: adapters.Environment | None = None,
        num_envs: int | None = None,
        num_workers: int | None = None,
    ) -> list[float]:
        """Train for so many more episodes or steps, whichever are reached first.

        Calling it again goes on where it stopped, also in the middle of an episode. Ctrl-C raises
        `Interrupted` (a KeyboardInterrupt) between two steps, so that the agent can be saved or
        trained on; a second Ctrl-C stops at once.

        Args:
            env: the environment. The first reset of each new one gets a seed: the agent's for the
                first environment, and numbers made from it for later ones.
            episodes: how many to finish, exactly.
            steps: how many to make, exactly.
            on_episode: called after each episode, after learning and after an evaluation: with an
                `Episode`, or with its number and return if it takes two arguments. Training stops
                when it returns True.
            until: stop at the first evaluation whose mean return is at least this.
            seed: starts the random numbers of sampling and of the environment anew.
            evaluate_every: evaluate after every so many episodes of the agent's life; 25 if
                ``until`` is given, otherwise never.
            evaluation_episodes: episodes per evaluation, each from a fresh start.
            evaluation_env: where to evaluate; by default another environment of the same kind.
            num_envs: how many environments of the kind are stepped at once, each for as long as
                it takes; ``steps`` counts those of all, and has to be a multiple. As many as
                before, or 1, by default.
            num_workers: in how many processes environments are stepped that Python steps; 0 for
                this one, one after the other. As many as before, or 0, by default. It changes no
                bit.

        Returns:
            The returns of the episodes that were finished, in order.

        Raises:
            EnvironmentContractError, ShapeError: the environment does not fit the agent.
            NonFiniteError: it gave NaN or infinity; what was learned before is kept.
        """
        rhythm = 25 if evaluate_every is None and until is not None else evaluate_every
        plan = Plan(episodes, steps, until, rhythm, evaluation_episodes)
        adapters.check_fits(env, self)
        for text in self.warnings_for(plan.steps):
            warnings.warn(f"{type(self).__name__}: {text}", TrainingWarning, stacklevel=2)
        world = training.enter(self, env, seed, num_envs, num_workers)
        if plan.steps is not None and plan.steps % world.count:
            raise ValueError(
                f"train: expected steps to be a multiple of the {world.count} environments, "
                f"received {plan.steps}"
            )
        return training.run(self, world, plan, on_episode, evaluation_env)

    def evaluate(
        self, env: adapters.Environment, episodes: int = 20, seed: int | None = None
    ) -> list[float]:
        """The returns of whole episodes played with the best actions; nothing is learned.

        Args:
            env: where to play. The one that the agent is trained in is not touched: another of its
                kind is used.
            episodes: how many.
            seed: of the starts; by default made from the agent's seed and its episodes.

        Raises:
            EnvironmentContractError, ShapeError: the environment does not fit the agent.
        """
        adapters.check_fits(env, self)
        if seed is None:
            seed = derived_seed(self.seed, 1, self.episodes)
        if self._world is not None and env is self._world.env:
            env = adapters.environment_like(env)
        return evaluation.evaluate(self, env, episodes, seed)

    def __repr__(self) -> str:
        sizes = f"{self.observation_size} -> {self.action_count}"
        origin = f", from {self.source}" if self.source else ""
        return (
            f"<{type(self).__name__}({sizes}), {self.episodes:,} episodes, {self.steps:,} steps, "
            f"seed {self.seed}{origin}>"
        )
