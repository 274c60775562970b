"""`PPO`: improve the policy in steps that are kept small."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from dilim.optim.adam import Adam
from dilim.rl.agents.actor_critic import ActorCritic
from dilim.rl.agents.settings import Rate, check, rate_of
from dilim.tensors.elementwise import clip, exp, minimum
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor


class PPO(ActorCritic):
    """Proximal policy optimisation with a clipped objective.

    From each rollout of T N steps there are ``epochs`` passes in random order, in ``minibatches``
    parts of B steps. Adam lowers, with rho = pi(a|s) / pi_old(a|s) and the advantages A, which have
    mean 0 and variance 1 in each part::

        loss = - mean min( rho A, clip(rho, 1 - clip, 1 + clip) A )
               + value_weight / 2 mean ( V(s) - (A_raw + V_old(s)) )^2
               - entropy_bonus mean H(pi(.|s))

    Args:
        observation_size: see `ActorCritic`, as all that is not named here.
        epochs: passes over a rollout.
        minibatches: parts of a pass; they have to divide T N.
        clip_range: how far rho may go, above 0.

    Example:
        >>> import dilim.rl
        >>> env = dilim.rl.CartPole()
        >>> agent = dilim.rl.PPO.for_env(env, seed=0)
        >>> len(agent.train(env, episodes=3))
        3

    Source: Schulman and others, Proximal policy optimization algorithms, 2017, equations (7), (9)
    and (11).
    """

    def __init__(
        self,
        observation_size: int,
        hidden_sizes: Sequence[int] = (64, 64),
        action_count: int | None = None,
        learning_rate: Rate = 3e-4,
        gamma: float = 0.99,
        *,
        rollout_length: int = 128,
        epochs: int = 4,
        minibatches: int = 4,
        clip_range: float = 0.2,
        gae_lambda: float = 0.95,
        entropy_bonus: float = 0.0,
        value_weight: float = 0.5,
        max_gradient_norm: float | None = 0.5,
        activation: str = "tanh",
        init: str = "orthogonal",
        **options: Any,
    ) -> None:
        self.epochs, self.minibatches = int(epochs), int(minibatches)
        self.clip_range = float(clip_range)
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
        self.optimizer = Adam(
            self.network, rate_of(learning_rate), epsilon=1e-5, clip_norm=max_gradient_norm
        )

    def learn_from(self, following: Tensor) -> None:
        """See `ActorCritic.learn_from`."""
        gains, values = self.estimates(following)
        targets = (gains + values).reshape((-1,))
        gains = gains.reshape((-1,))
        observations, actions = self.rollout.steps()
        with no_grad():
            old, _ = self.policy(observations, actions)
        for _ in range(self.epochs):
            order = self.generator.permutation(actions.shape[0]).reshape((self.minibatches, -1))
            for part in range(self.minibatches):
                rows = order[part]
                self.update(
                    observations[rows], actions[rows], old[rows], gains[rows], targets[rows]
                )

    def update(
        self, observations: Tensor, actions: Tensor, old: Tensor, gains: Tensor, targets: Tensor
    ) -> None:
        """One step of Adam.

        Args:
            observations: (B, F).
            actions: (B,).
            old: log pi_old(a|s), (B,).
            gains: A_raw, (B,).
            targets: A_raw + V_old(s), (B,).
        """
        with no_grad():
            gains = (gains - gains.mean()) / (gains.std() + 1e-8)
        new, entropy = self.policy(observations, actions)
        ratio = exp(new - old)
        near = clip(ratio, 1.0 - self.clip_range, 1.0 + self.clip_range)
        gain = minimum(ratio * gains, near * gains).mean()
        error = ((self.values(observations) - targets) ** 2).mean()
        loss = 0.5 * self.value_weight * error - gain - self.entropy_bonus * entropy
        self.descend(loss)

    def prepare_for(self, count: int) -> None:
        """See `Agent.prepare_for`."""
        if self.rollout_length * count % self.minibatches:
            raise ValueError(
                f"PPO: {self.minibatches} minibatches do not divide the {self.rollout_length} x "
                f"{count} steps of a rollout; change minibatches or rollout_length"
            )
        super().prepare_for(count)

    @property
    def options(self) -> dict[str, Any]:
        """See `Agent.options`."""
        own = ("epochs", "minibatches", "clip_range")
        return {**super().options, **{name: getattr(self, name) for name in own}}

    def _check_options(self) -> None:
        super()._check_options()
        check(
            self,
            ("epochs", self.epochs >= 1, "at least 1"),
            ("minibatches", self.minibatches >= 1, "at least 1"),
            ("clip_range", 0.0 < self.clip_range < math.inf, "above 0"),
        )
