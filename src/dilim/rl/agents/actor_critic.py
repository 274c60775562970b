"""`ActorCritic`: what A2C and PPO have in common."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from dilim.nn.dense import MLP
from dilim.nn.module import Module
from dilim.rl.actions import Actions, AnyActions, BoxActions
from dilim.rl.agents.base import Agent
from dilim.rl.agents.settings import check, rate_option
from dilim.rl.distributions import Categorical, Gaussian
from dilim.rl.returns import advantages
from dilim.rl.rollout import Rollout
from dilim.tensors.creation import zeros, zeros_like
from dilim.tensors.elementwise import where
from dilim.tensors.manipulation import concat
from dilim.tensors.random import Generator
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

_OPTIONS: Final = (
    *("hidden_sizes", "gamma", "rollout_length", "gae_lambda", "entropy_bonus", "value_weight"),
    *("max_gradient_norm", "activation", "init"),
)


class GaussianActor(Module):
    """Scores of a `Gaussian`: m from a network, and log s, which is the same in all states.

    Attributes:
        mean: m, (..., F) to (..., A).
        log_std: log s, (A,), 0 at first.
    """

    def __init__(self, mean: MLP, count: int) -> None:
        self.mean = mean
        self.log_std = zeros((count,), requires_grad=True)

    def forward(self, x: Tensor) -> Tensor:
        """(..., F) to (..., 2 A)."""
        mean = self.mean(x)
        return concat([mean, zeros_like(mean) + self.log_std], axis=-1)


class ActorAndCritic(Module):
    """Two networks: the scores of the policy, and the value of a state.

    Attributes:
        actor: (..., F) to (..., A); in a Box to (..., 2 A).
        critic: (..., F) to (..., 1).
    """

    def __init__(
        self,
        size: int,
        hidden: list[int],
        actions: Actions,
        activation: str,
        init: str,
        g: Generator,
    ) -> None:
        actor = MLP(size, [*hidden, actions.count], activation, init=init, generator=g)
        is_box = isinstance(actions, BoxActions)
        self.actor: Module = GaussianActor(actor, actions.count) if is_box else actor
        self.critic = MLP(size, [*hidden, 1], activation, init=init, generator=g)


class ActorCritic(Agent):
    """A policy and a value function that learn from the steps of the present policy.

    Of several actions pi(a|s) = softmax(actor(s))[a]. In a Box, which within the agent reaches
    from -1 to 1, each number of an action is normal with mean actor(s) and a standard deviation
    that is learned too; what lies outside is clipped at the environment's door, and learned from as
    it was drawn. V(s) = critic(s).

    After ``rollout_length`` steps of all environments there is an update; see the subclass for the
    loss. Its advantages are those of `dilim.rl.returns.advantages`. After a cut, gamma V of what
    was seen last counts as reward.

    Args:
        observation_size: F, numbers in an observation.
        hidden_sizes: outputs of the hidden layers, of either network.
        action_count: A, actions to choose from; None for 2, or for a Box.
        learning_rate: a number or a schedule of the number of updates.
        gamma: discount per step, from 0 to 1.
        rollout_length: T, steps of each environment per update. Steps left over at the end of
            `train` are kept for the next one.
        gae_lambda: lambda of the advantages, from 0 to 1.
        entropy_bonus: weight of the policy's entropy, in nats.
        value_weight: weight of the error of V.
        max_gradient_norm: to which gradients are scaled down; None for no limit.
        activation: of the hidden layers, see `dilim.nn.MLP`.
        init: of the weights, see `dilim.nn.Dense`.
        options: ``action_start``, ``action_low``, ``action_high``, ``seed``, ``window_size``: see
            `Agent`.
    """

    takes: ClassVar[tuple[type[Actions], ...]] = AnyActions
    parts: ClassVar[tuple[str, ...]] = ("network", "optimizer", "rollout")

    def __init__(
        self,
        observation_size: int,
        hidden_sizes: Sequence[int],
        action_count: int | None,
        gamma: float,
        *,
        rollout_length: int,
        gae_lambda: float,
        entropy_bonus: float,
        value_weight: float,
        max_gradient_norm: float | None,
        activation: str,
        init: str,
        **options: Any,
    ) -> None:
        super().__init__(observation_size, action_count, **options)
        self.hidden_sizes = [int(size) for size in hidden_sizes]
        self.gamma, self.gae_lambda = float(gamma), float(gae_lambda)
        self.rollout_length = int(rollout_length)
        self.entropy_bonus, self.value_weight = float(entropy_bonus), float(value_weight)
        self.max_gradient_norm = max_gradient_norm
        self.activation, self.init = activation, init
        self._check_options()
        self.network = ActorAndCritic(
            *(self.observation_size, self.hidden_sizes, self.actions, activation, init),
            self.network_generator,
        )
        is_box = isinstance(self.actions, BoxActions)
        self.distribution: Categorical | Gaussian = Gaussian() if is_box else Categorical()
        self.rollout = self._rollout(1)

    def _rollout(self, count: int) -> Rollout:
        return Rollout(self.rollout_length, count, self.observation_size, self.actions.shape)

    def scores(self, observations: Tensor) -> Tensor:
        """(..., F) to (..., A), or in a Box to (..., 2 A); see `dilim.rl.distributions`."""
        return self.network.actor(observations)  # type: ignore[no-any-return]

    def best(self, scores: Tensor) -> Tensor:
        """The most probable actions."""
        return self.distribution.best(scores)

    def explore(self, scores: Tensor) -> Tensor:
        """Draws from the policy."""
        return self.distribution.draw(scores, self.generator)

    def values(self, observations: Tensor) -> Tensor:
        """(..., F) to (...): V."""
        return self.network.critic(observations)[..., 0]  # type: ignore[no-any-return]

    def prepare_for(self, count: int) -> None:
        """See `Agent.prepare_for`."""
        super().prepare_for(count)
        if count != self.rollout.count:
            self.rollout = self._rollout(count)

    def remember(
        self,
        observations: Tensor,
        actions: Tensor,
        rewards: Tensor,
        following: Tensor,
        terminated: Tensor,
        truncated: Tensor,
    ) -> None:
        """Keep a step of N environments; learn when the rollout is full."""
        if truncated.any():
            with no_grad():
                rewards = rewards + where(truncated, self.gamma * self.values(following), 0.0)
        self.rollout.add(observations, actions, rewards, terminated | truncated)
        if self.rollout.is_full:
            self.learn_from(following)
            self.rollout.clear()

    def learn(self) -> None:
        """Nothing: an update needs a full rollout, and then comes by itself."""

    def learn_from(self, following: Tensor) -> None:
        """Update from a full rollout.

        Args:
            following: what was seen after its last step, (N, F).
        """
        raise NotImplementedError(f"{type(self).__name__} does not define learn_from()")

    def estimates(self, following: Tensor) -> tuple[Tensor, Tensor]:
        """Advantages and values of the rollout, (T, N) each."""
        rollout = self.rollout
        with no_grad():
            values = self.values(rollout.observations)
            last = self.values(following)
            gains = advantages(
                rollout.rewards, values, last, rollout.ends, self.gamma, self.gae_lambda
            )
        return gains, values

    def policy(self, observations: Tensor, actions: Tensor) -> tuple[Tensor, Tensor]:
        """log pi(a|s), (B,), and the mean entropy, (), of B states (B, F) and their actions."""
        scores = self.scores(observations)
        logp = self.distribution.log_probability(scores, actions)
        return logp, self.distribution.entropy(scores).mean()

    def forget_episode(self) -> None:
        """Drop the steps of the rollout that is being filled."""
        super().forget_episode()
        self.rollout.clear()

    @property
    def options(self) -> dict[str, Any]:
        """See `Agent.options`."""
        own = {name: getattr(self, name) for name in _OPTIONS}
        return {**super().options, **own, "learning_rate": rate_option(self.optimizer)}

    def _check_options(self) -> None:
        check(
            self,
            ("gamma", 0.0 <= self.gamma <= 1.0, "from 0 to 1"),
            ("gae_lambda", 0.0 <= self.gae_lambda <= 1.0, "from 0 to 1"),
            ("rollout_length", self.rollout_length >= 1, "at least 1"),
            ("entropy_bonus", 0.0 <= self.entropy_bonus < math.inf, "at least 0"),
            ("value_weight", 0.0 <= self.value_weight < math.inf, "at least 0"),
        )
