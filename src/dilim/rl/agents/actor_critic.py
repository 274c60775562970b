"""`ActorCritic`: what A2C and PPO have in common."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from dilim.nn.dense import MLP
from dilim.nn.module import Module
from dilim.optim.schedules import Schedule, from_dict
from dilim.rl.agents.base import Agent
from dilim.rl.returns import advantages
from dilim.rl.rollout import Rollout
from dilim.tensors.elementwise import exp, where
from dilim.tensors.indexing import take_along_axis
from dilim.tensors.random import Generator
from dilim.tensors.reductions import log_softmax
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

_OPTIONS: Final = (
    *("hidden_sizes", "gamma", "rollout_length", "gae_lambda", "entropy_bonus", "value_weight"),
    *("max_gradient_norm", "activation", "init"),
)


class ActorAndCritic(Module):
    """Two networks: the logits of the policy, and the value of a state.

    Attributes:
        actor: (..., F) to (..., A).
        critic: (..., F) to (..., 1).
    """

    def __init__(
        self, size: int, hidden: list[int], count: int, activation: str, init: str, g: Generator
    ) -> None:
        self.actor = MLP(size, [*hidden, count], activation, init=init, generator=g)
        self.critic = MLP(size, [*hidden, 1], activation, init=init, generator=g)


class ActorCritic(Agent):
    """A policy and a value function that learn from the steps of the present policy.

    pi(a|s) = softmax(actor(s))[a], V(s) = critic(s). After ``rollout_length`` steps of all
    environments there is an update; see the subclass for the loss. Its advantages are those of
    `dilim.rl.returns.advantages`. After a cut, gamma V of what was seen last counts as reward.

    Args:
        observation_size: F, numbers in an observation.
        hidden_sizes: outputs of the hidden layers, of either network.
        action_count: A, actions to choose from.
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
        options: ``action_start``, ``seed``, ``window_size``: see `Agent`.
    """

    parts: ClassVar[tuple[str, ...]] = ("network", "optimizer", "rollout")

    def __init__(
        self,
        observation_size: int,
        hidden_sizes: Sequence[int],
        action_count: int,
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
            *(self.observation_size, self.hidden_sizes, self.action_count, activation, init),
            self.network_generator,
        )
        self.rollout = Rollout(self.rollout_length, 1, self.observation_size)

    def scores(self, observations: Tensor) -> Tensor:
        """(..., F) to (..., A): logits."""
        return self.network.actor(observations)  # type: ignore[no-any-return]

    def explore(self, scores: Tensor) -> Tensor:
        """A draw from softmax(scores)."""
        return self.generator.categorical(scores)

    def values(self, observations: Tensor) -> Tensor:
        """(..., F) to (...): V."""
        return self.network.critic(observations)[..., 0]  # type: ignore[no-any-return]

    def prepare_for(self, count: int) -> None:
        """See `Agent.prepare_for`."""
        super().prepare_for(count)
        if count != self.rollout.count:
            self.rollout = Rollout(self.rollout_length, count, self.observation_size)

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
        """log pi(a|s), (B,), and the mean entropy, () of steps (B, F) and (B,)."""
        logp = log_softmax(self.scores(observations), axis=1)
        chosen = take_along_axis(logp, actions[:, None], axis=1)[:, 0]
        return chosen, -(exp(logp) * logp).sum(axis=1).mean()

    def forget_episode(self) -> None:
        """Drop the steps of the rollout that is being filled."""
        super().forget_episode()
        self.rollout.clear()

    @property
    def options(self) -> dict[str, Any]:
        """See `Agent.options`."""
        rate = self.optimizer.learning_rate
        return {
            **super().options,
            **{name: getattr(self, name) for name in _OPTIONS},
            "learning_rate": rate.to_dict() if isinstance(rate, Schedule) else rate,
        }

    def _check_options(self) -> None:
        self.check(
            ("gamma", 0.0 <= self.gamma <= 1.0, "from 0 to 1"),
            ("gae_lambda", 0.0 <= self.gae_lambda <= 1.0, "from 0 to 1"),
            ("rollout_length", self.rollout_length >= 1, "at least 1"),
            ("entropy_bonus", 0.0 <= self.entropy_bonus < math.inf, "at least 0"),
            ("value_weight", 0.0 <= self.value_weight < math.inf, "at least 0"),
        )

    def check(self, *conditions: tuple[str, bool, str]) -> None:
        """Raises ValueError for the first (name, whether it fits, what is wanted) that does not."""
        for name, fits, wanted in conditions:
            if not fits:
                raise ValueError(
                    f"{type(self).__name__}: expected {name} {wanted}, received "
                    f"{getattr(self, name)!r}"
                )


def rate_of(given: float | Schedule | Mapping[str, Any]) -> float | Schedule:
    """A learning rate as it is, or from what `Schedule.to_dict` gave."""
    return from_dict(given) if isinstance(given, Mapping) else given
