"""`TD3`: an actor without chance, and two critics that keep each other modest."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

from dilim.rl.agents.settings import Rate, check
from dilim.rl.agents.targets import follow
from dilim.rl.agents.twin_critics import TwinCriticAgent
from dilim.tensors.elementwise import clip, tanh
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor


class TD3(TwinCriticAgent):
    """Twin delayed deep deterministic policy gradient.

    The actor does mu(s) = tanh(network(s)), in training with normal noise of ``noise`` on it. The
    critics are fitted to::

        y = r + gamma (1 - terminated) min_i Q_i'(s', a'),
        a' = clip(mu'(s') + clip(e, -c, c), -1, 1),    e normal of target_noise

    where ' marks target networks. After every ``policy_delay`` updates of the critics the actor
    climbs Q_1(s, mu(s)), and the target networks follow.

    Args:
        observation_size: see `TwinCriticAgent`, as all that is not named here.
        policy_delay: updates of the critics per update of the actor.
        noise: standard deviation of what is added to actions in training. All three are in units
            in which the Box reaches from -1 to 1.
        target_noise: standard deviation of e.
        target_noise_clip: c.

    Example:
        >>> import dilim.rl
        >>> env = dilim.rl.Pendulum()
        >>> agent = dilim.rl.TD3.for_env(env, seed=0, hidden_sizes=[16], learning_starts=200)
        >>> len(agent.train(env, steps=400))
        2

    Source: Fujimoto and others, Addressing function approximation error in actor-critic methods,
    ICML 2018, algorithm 1; the defaults are those of the authors' program.
    """

    parts: ClassVar[tuple[str, ...]] = (*TwinCriticAgent.parts, "target_actor")

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
        learning_starts: int = 1000,
        train_frequency: int = 1,
        gradient_steps: int = 1,
        policy_delay: int = 2,
        noise: float = 0.1,
        target_noise: float = 0.2,
        target_noise_clip: float = 0.5,
        activation: str = "relu",
        init: str = "fan_in",
        **options: Any,
    ) -> None:
        self.policy_delay = int(policy_delay)
        self.noise, self.target_noise = float(noise), float(target_noise)
        self.target_noise_clip = float(target_noise_clip)
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
        self.target_actor = self._actor()
        self.target_actor.load_state_dict(self.network.actor.state_dict())

    def scores(self, observations: Tensor) -> Tensor:
        """(..., F) to (..., A): mu(s)."""
        return tanh(self.network.actor(observations))

    def best(self, scores: Tensor) -> Tensor:
        """(N, A): mu(s) as it is."""
        return scores

    def draw(self, scores: Tensor) -> Tensor:
        """(N, A): mu(s) with noise."""
        return clip(scores + self.noise * self.generator.normal(scores.shape), -1.0, 1.0)

    def learn(self) -> None:
        """One update of the critics from a batch of remembered steps; maybe one of the actor."""
        batch = self.replay.sample(self.generator, self.batch_size)
        self.fit_critics(batch, self.worth(batch[3]))
        if self.updates % self.policy_delay == 0:
            self.improve(batch[0])
            follow(self.target, self.network.critics, self.target_update_rate)
            follow(self.target_actor, self.network.actor, self.target_update_rate)

    def worth(self, following: Tensor) -> Tensor:
        """(B, F) to (B,): min_i Q_i'(s', a')."""
        with no_grad():
            actions = tanh(self.target_actor(following))
            noise = self.target_noise * self.generator.normal(actions.shape)
            noise = clip(noise, -self.target_noise_clip, self.target_noise_clip)
            return self.target.least(following, clip(actions + noise, -1.0, 1.0))

    def improve(self, observations: Tensor) -> None:
        """One update of the actor up Q_1(s, mu(s)), s being (B, F)."""
        critics = self.network.critics
        gain = self.uphill(observations, self.scores(observations), lambda s, a: critics(s, a)[0])
        self.move(self.actor_optimizer, -gain.mean())

    @property
    def options(self) -> dict[str, Any]:
        """See `Agent.options`."""
        own = ("policy_delay", "noise", "target_noise", "target_noise_clip")
        return {**super().options, **{name: getattr(self, name) for name in own}}

    def _check_options(self) -> None:
        super()._check_options()
        self._check_at_least_0("noise", "target_noise", "target_noise_clip")
        check(self, ("policy_delay", self.policy_delay >= 1, "at least 1"))
