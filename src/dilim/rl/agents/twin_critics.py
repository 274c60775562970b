"""`TwinCriticAgent`: what SAC and TD3 have in common."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any, ClassVar, Final

from dilim.nn.dense import MLP
from dilim.nn.module import Module
from dilim.optim.adam import Adam
from dilim.rl.actions import Actions, BoxActions
from dilim.rl.agents.base import Agent
from dilim.rl.agents.settings import Rate, check, rate_of, rate_option, replay_warnings
from dilim.rl.replay import Batch, ReplayBuffer
from dilim.tensors.derivatives import grad
from dilim.tensors.elementwise import minimum, where
from dilim.tensors.manipulation import concat
from dilim.tensors.random import Generator
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

_OPTIONS: Final = (
    *("hidden_sizes", "gamma", "buffer_capacity", "batch_size", "target_update_rate"),
    *("learning_starts", "train_frequency", "gradient_steps", "activation", "init"),
)


class TwinCritics(Module):
    """Two networks that estimate Q(s, a), so that the lower estimate can be believed.

    Source: Fujimoto and others, Addressing function approximation error in actor-critic methods,
    ICML 2018, equation (10).
    """

    def __init__(
        self, size: int, actions: int, hidden: list[int], activation: str, init: str, g: Generator
    ) -> None:
        self.first = MLP(size + actions, [*hidden, 1], activation, init=init, generator=g)
        self.second = MLP(size + actions, [*hidden, 1], activation, init=init, generator=g)

    def forward(self, observations: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """(B, F) and (B, A) to (B,) and (B,)."""
        both = concat([observations, actions], axis=1)
        return self.first(both)[:, 0], self.second(both)[:, 0]

    def least(self, observations: Tensor, actions: Tensor) -> Tensor:
        """(B, F) and (B, A) to (B,): the lower of the estimates."""
        first, second = self(observations, actions)
        return minimum(first, second)


class ActorAndCritics(Module):
    """The actor, (B, F) to (B, K), and its `TwinCritics`."""

    def __init__(self, actor: MLP, critics: TwinCritics) -> None:
        self.actor, self.critics = actor, critics


class TwinCriticAgent(Agent):
    """An actor that climbs what two critics say, and critics that learn from remembered steps.

    Actions are numbers from -1 to 1, which is the Box of the environment. The first
    ``learning_starts`` of them are uniform. Then every ``train_frequency`` steps both critics are
    fitted to a target y, over batches from a `ReplayBuffer`::

        loss = mean ( Q_1(s, a) - y )^2 + mean ( Q_2(s, a) - y )^2

    see the subclass for y, and for the actor.

    Args:
        observation_size: F, numbers in an observation.
        hidden_sizes: outputs of the hidden layers, of all networks.
        learning_rate: of all optimizers, which are Adam; a number, or a schedule of the number of
            their updates.
        gamma: discount per step, from 0 to 1.
        buffer_capacity: steps that are remembered. All of them are in each file of the agent, so
            that this is a tenth of what is usual.
        batch_size: B, steps per update.
        target_update_rate: tau; at each update a target network becomes (1 - tau) itself + tau the
            network.
        learning_starts: steps before the first update.
        train_frequency: steps between two times of learning.
        gradient_steps: updates at each of them.
        activation: of the hidden layers, see `dilim.nn.MLP`.
        init: of the weights, see `dilim.nn.Dense`.
        options: ``action_low``, ``action_high``, ``seed``, ``window_size``: see `Agent`.
    """

    takes: ClassVar[tuple[type[Actions], ...]] = (BoxActions,)
    parts: ClassVar[tuple[str, ...]] = (
        *("network", "target", "optimizer", "actor_optimizer", "replay"),
    )
    outputs: ClassVar[int] = 1
    """Numbers that the actor gives for each number of an action: K = outputs A."""

    def __init__(
        self,
        observation_size: int,
        hidden_sizes: Sequence[int],
        learning_rate: Rate,
        gamma: float,
        *,
        buffer_capacity: int,
        batch_size: int,
        target_update_rate: float,
        learning_starts: int,
        train_frequency: int,
        gradient_steps: int,
        activation: str,
        init: str,
        **options: Any,
    ) -> None:
        super().__init__(observation_size, None, **options)
        self.hidden_sizes = [int(size) for size in hidden_sizes]
        self.gamma, self.target_update_rate = float(gamma), float(target_update_rate)
        self.buffer_capacity, self.batch_size = int(buffer_capacity), int(batch_size)
        self.learning_starts = int(learning_starts)
        self.train_frequency, self.gradient_steps = int(train_frequency), int(gradient_steps)
        self.activation, self.init = activation, init
        self._check_options()
        self.network = ActorAndCritics(self._actor(), self._critics())
        self.target = self._critics()
        self.target.load_state_dict(self.network.critics.state_dict())
        self.optimizer = Adam(self.network.critics, rate_of(learning_rate))
        self.actor_optimizer = Adam(self.network.actor, rate_of(learning_rate))
        self.replay = ReplayBuffer(
            self.buffer_capacity, self.observation_size, (self.action_count,)
        )

    def _actor(self) -> MLP:
        sizes = [*self.hidden_sizes, self.outputs * self.action_count]
        return MLP(
            *(self.observation_size, sizes, self.activation),
            init=self.init,
            generator=self.network_generator,
        )

    def _critics(self) -> TwinCritics:
        return TwinCritics(
            *(self.observation_size, self.action_count, self.hidden_sizes),
            *(self.activation, self.init, self.network_generator),
        )

    def explore(self, scores: Tensor) -> Tensor:
        """(N, K) to (N, A): uniform at first, then what `draw` gives."""
        if self.steps < self.learning_starts:
            return self.generator.uniform((scores.shape[0], self.action_count), -1.0, 1.0)
        return self.draw(scores)

    def draw(self, scores: Tensor) -> Tensor:
        """(N, K) to (N, A): what the actor does in training."""
        raise NotImplementedError(f"{type(self).__name__} does not define draw()")

    def remember(
        self,
        observations: Tensor,
        actions: Tensor,
        rewards: Tensor,
        following: Tensor,
        terminated: Tensor,
        truncated: Tensor,
    ) -> None:
        """Keep a step of N environments; learn when it is time."""
        self.replay.add(observations, actions, rewards, following, terminated)
        count = observations.shape[0]
        if self.steps >= self.learning_starts and self.steps % self.train_frequency < count:
            for _ in range(self.gradient_steps):
                self.learn()

    def warnings_for(self, steps: int | None) -> Iterator[str]:
        """See `Agent.warnings_for`."""
        return replay_warnings(self, steps)

    def fit_critics(self, batch: Batch, following: Tensor) -> None:
        """One update of the critics.

        Args:
            batch: B steps.
            following: what their last observations are worth, (B,).
        """
        observations, actions, rewards, _, terminated = batch
        wanted = rewards + self.gamma * where(terminated, 0.0, following)
        first, second = self.network.critics(observations, actions)
        self.descend(((first - wanted) ** 2).mean() + ((second - wanted) ** 2).mean())

    def uphill(self, observations: Tensor, actions: Tensor, value: Any) -> Tensor:
        """(B,): the actions' gain to the first order, sum over numbers (dQ/da) a.

        Its gradient with respect to an actor that gave the actions is that of Q(s, a), while the
        critics get none.

        Args:
            observations: s, (B, F).
            actions: a, (B, A), with their tape.
            value: Q, a function of both.

        Source: Silver and others, Deterministic policy gradient algorithms, ICML 2014, equation
        (9).
        """
        with no_grad():
            slope = grad(lambda a: value(observations, a).sum())(actions.detach())
        return (slope * actions).sum(axis=1)  # type: ignore[no-any-return]

    @property
    def options(self) -> dict[str, Any]:
        """See `Agent.options`."""
        own = {name: getattr(self, name) for name in _OPTIONS}
        return {**super().options, **own, "learning_rate": rate_option(self.optimizer)}

    def _check_options(self) -> None:
        whole = ("buffer_capacity", "batch_size", "train_frequency", "gradient_steps")
        check(
            self,
            ("gamma", 0.0 <= self.gamma <= 1.0, "from 0 to 1"),
            ("target_update_rate", 0.0 < self.target_update_rate <= 1.0, "above 0 and up to 1"),
            ("learning_starts", self.learning_starts >= 1, "at least 1"),
            *((name, getattr(self, name) >= 1, "at least 1") for name in whole),
        )

    def _check_at_least_0(self, *names: str) -> None:
        check(
            self, *((name, 0.0 <= getattr(self, name) < math.inf, "at least 0") for name in names)
        )
