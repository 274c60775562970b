"""`A2C`: one step of the policy after a few steps of many environments."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dilim.optim.rmsprop import RMSprop
from dilim.rl.agents.actor_critic import ActorCritic
from dilim.rl.agents.settings import Rate, rate_of
from dilim.tensors.tensor import Tensor


class A2C(ActorCritic):
    """Advantage actor-critic, in step.

    After each rollout of T N steps one step of RMSprop lowers, with the advantages A::

        loss = - mean log pi(a|s) A
               + value_weight mean ( V(s) - (A + V_old(s)) )^2
               - entropy_bonus mean H(pi(.|s))

    Args:
        observation_size: see `ActorCritic`, as all else.

    Example:
        >>> import dilim.rl
        >>> env = dilim.rl.CartPole()
        >>> agent = dilim.rl.A2C.for_env(env, seed=0)
        >>> len(agent.train(env, episodes=3))
        3

    Source: Mnih and others, Asynchronous methods for deep reinforcement learning, ICML 2016,
    algorithm S3, without the asynchrony.
    """

    def __init__(
        self,
        observation_size: int,
        hidden_sizes: Sequence[int] = (64, 64),
        action_count: int | None = None,
        learning_rate: Rate = 7e-4,
        gamma: float = 0.99,
        *,
        rollout_length: int = 5,
        gae_lambda: float = 1.0,
        entropy_bonus: float = 0.0,
        value_weight: float = 0.5,
        max_gradient_norm: float | None = 0.5,
        activation: str = "tanh",
        init: str = "orthogonal",
        **options: Any,
    ) -> None:
        super().__init__(
            *(observation_size, hidden_sizes, action_count, gamma),
            rollout_length=rollout_length,
            gae_lambda=gae_lambda,
            entropy_bonus=entropy_bonus,
            value_weight=value_weight,
            max_gradient_norm=max_gradient_norm,
            activation=activation,
            init=init,
            **options,
        )
        self.optimizer = RMSprop(
            self.network, rate_of(learning_rate), epsilon=1e-5, clip_norm=max_gradient_norm
        )

    def learn_from(self, following: Tensor) -> None:
        """See `ActorCritic.learn_from`."""
        gains, values = self.estimates(following)
        targets = (gains + values).reshape((-1,))
        observations, actions = self.rollout.steps()
        logp, entropy = self.policy(observations, actions)
        error = ((self.values(observations) - targets) ** 2).mean()
        gain = (logp * gains.reshape((-1,))).mean()
        self.descend(self.value_weight * error - gain - self.entropy_bonus * entropy)
