"""`SAC`: act as randomly as the returns allow."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from dilim.nn.module import Module
from dilim.optim.adam import Adam
from dilim.rl.agents.settings import Rate, check, rate_of
from dilim.rl.agents.targets import follow
from dilim.rl.agents.twin_critics import TwinCriticAgent
from dilim.rl.distributions import SquashedGaussian, halves
from dilim.tensors.creation import tensor
from dilim.tensors.elementwise import clip, exp
from dilim.tensors.manipulation import concat
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

LOG_STD: Final = (-20.0, 2.0)
"""Within which log s stays, as in the authors' program."""


class Temperature(Module):
    """The weight of the entropy, alpha = exp(log); log is a parameter, ()."""

    def __init__(self, value: float) -> None:
        self.log = tensor(math.log(value), requires_grad=True)

    def forward(self) -> Tensor:
        """Alpha, ()."""
        return exp(self.log)


class SAC(TwinCriticAgent):
    """Soft actor-critic, with a temperature that follows the entropy.

    The policy is a = tanh(m + s n), n normal, with m and log s from the actor (see
    `dilim.rl.distributions.SquashedGaussian`); the best action is tanh(m). With a ~ pi(s) drawn
    anew, the critics are fitted to::

        y = r + gamma (1 - terminated) ( min_i Q_i'(s', a') - alpha log pi(a'|s') )

    where Q' are target networks, which follow after each update. The actor climbs::

        mean ( min_i Q_i(s, a) - alpha log pi(a|s) )

    and alpha moves so that the mean of -log pi comes to ``target_entropy``.

    Args:
        observation_size: see `TwinCriticAgent`, as all that is not named here.
        temperature: alpha, and it stays so; None for one that follows, from 1.
        target_entropy: in nats, of actions between -1 and 1; None for -A.

    Example:
        >>> import dilim.rl
        >>> env = dilim.rl.Pendulum()
        >>> agent = dilim.rl.SAC.for_env(env, seed=0, hidden_sizes=[16])
        >>> len(agent.train(env, steps=200))
        1

    Source: Haarnoja and others, Soft actor-critic algorithms and applications, 2018
    (arXiv 1812.05905), algorithm 1 and equations (5), (6), (9) and (18).
    Differs: as in the authors' program, (18) is taken with log alpha as factor instead of alpha,
    which keeps its sign and all its zeros.
    """

    parts: ClassVar[tuple[str, ...]] = (
        *TwinCriticAgent.parts,
        *("entropy_weight", "entropy_optimizer"),
    )
    outputs: ClassVar[int] = 2

    def __init__(
        self,
        observation_size: int,
        hidden_sizes: Sequence[int] = (256, 256),
        learning_rate: Rate = 3e-4,
        gamma: float = 0.99,
        *,
        buffer_capacity: int = 100_000,
        batch_size: int = 256,
        target_update_rate: float = 0.005,
        learning_starts: int = 100,
        train_frequency: int = 1,
        gradient_steps: int = 1,
        temperature: float | None = None,
        target_entropy: float | None = None,
        activation: str = "relu",
        init: str = "fan_in",
        **options: Any,
    ) -> None:
        self.temperature, self.target_entropy = temperature, target_entropy
        super().__init__(
            *(observation_size, hidden_sizes, learning_rate, gamma),
            buffer_capacity=buffer_capacity,
            batch_size=batch_size,
            target_update_rate=target_update_rate,
            learning_starts=learning_starts,
            train_frequency=train_frequency,
            gradient_steps=gradient_steps,
            activation=activation,
            init=init,
            **options,
        )
        self.distribution = SquashedGaussian()
        self.entropy_weight = Temperature(1.0 if temperature is None else temperature)
        self.entropy_optimizer = Adam(self.entropy_weight, rate_of(learning_rate))

    def scores(self, observations: Tensor) -> Tensor:
        """(B, F) to (B, 2 A): m and log s."""
        mean, log_std = halves(self.network.actor(observations))
        return concat([mean, clip(log_std, *LOG_STD)], axis=1)

    def best(self, scores: Tensor) -> Tensor:
        """(N, 2 A) to (N, A): tanh(m)."""
        return self.distribution.best(scores)

    def draw(self, scores: Tensor) -> Tensor:
        """(N, 2 A) to (N, A): a random action."""
        return self.distribution.draw(scores, self.generator)[0]

    def learn(self) -> None:
        """One update of all networks from a batch of remembered steps."""
        batch = self.replay.sample(self.generator, self.batch_size)
        self.fit_critics(batch, self.worth(batch[3]))
        self.improve(batch[0])
        follow(self.target, self.network.critics, self.target_update_rate)

    def worth(self, following: Tensor) -> Tensor:
        """(B, F) to (B,): min_i Q_i'(s', a') - alpha log pi(a'|s')."""
        with no_grad():
            actions, logp = self.distribution.draw(self.scores(following), self.generator)
            value = self.target.least(following, actions)
            return value - self.entropy_weight() * logp  # type: ignore[no-any-return]

    def improve(self, observations: Tensor) -> None:
        """One update of the actor and of the temperature, from s of (B, F)."""
        actions, logp = self.distribution.draw(self.scores(observations), self.generator)
        gain = self.uphill(observations, actions, self.network.critics.least)
        alpha = self.entropy_weight().detach()
        self.move(self.actor_optimizer, (alpha * logp - gain).mean())
        if self.temperature is None:
            goal = self.target_entropy
            goal = -float(self.action_count) if goal is None else goal
            excess = (logp.detach() + goal).mean()
            self.move(self.entropy_optimizer, -(self.entropy_weight.log * excess))

    @property
    def options(self) -> dict[str, Any]:
        """See `Agent.options`."""
        own = ("temperature", "target_entropy")
        return {**super().options, **{name: getattr(self, name) for name in own}}

    def _check_options(self) -> None:
        super()._check_options()
        fixed, goal = self.temperature, self.target_entropy
        check(
            self,
            ("temperature", fixed is None or 0.0 < fixed < math.inf, "above 0, or None"),
            ("target_entropy", goal is None or math.isfinite(goal), "a number, or None"),
        )
