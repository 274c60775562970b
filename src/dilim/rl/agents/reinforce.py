"""`REINFORCE`: make actions more likely that were followed by high returns."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, ClassVar, Final

from dilim.dtypes import float32
from dilim.nn.dense import MLP
from dilim.optim.adam import Adam
from dilim.rl.agents.base import Agent
from dilim.rl.agents.settings import Rate, check, rate_of, rate_option
from dilim.rl.episodes import EpisodeMemory
from dilim.tensors.creation import arange
from dilim.tensors.elementwise import exp, where
from dilim.tensors.indexing import take_along_axis
from dilim.tensors.reductions import log_softmax
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

_OPTIONS: Final = (
    *("hidden_sizes", "gamma", "batch_episodes", "baseline", "baseline_rate"),
    *("entropy_bonus", "activation", "init"),
)
BASELINES: Final = ("running_mean", "batch", "none")


class REINFORCE(Agent):
    """Monte-Carlo policy gradient.

    The policy is pi(a|s) = softmax(network(s))[a]. After every ``batch_episodes`` episodes one step
    of Adam lowers, over all their E episodes and steps t::

        loss = -1/E sum_t ( log pi(a_t|s_t) (G_t - b) + entropy_bonus H(pi(.|s_t)) )

    with the discounted return G_t (see `discounted_returns`: a truncated episode ends like a
    terminated one, as there is no value function that could say what the cut took away) and a
    baseline b:

    ============== ==================================================================
    ``baseline``   b
    ============== ==================================================================
    "running_mean" the running mean of G over earlier batches, 0 at first. Nothing is
                   divided, so that episodes of one step can be learned from
    "batch"        the mean of G over the batch, and G - b is divided by the standard
                   deviation. Equal returns then have no gradient: with episodes of one
                   step it needs several of them per batch
    "none"         0
    ============== ==================================================================

    Args:
        observation_size: F, numbers in an observation.
        hidden_sizes: outputs of the hidden layers.
        action_count: A, actions to choose from.
        learning_rate: of Adam; a number or a schedule of the number of updates.
        gamma: discount per step, from 0 to 1.
        batch_episodes: episodes per update.
        baseline: see above.
        baseline_rate: how fast the running mean moves to the mean of a batch, above 0 up to 1.
        entropy_bonus: weight of the policy's entropy, in nats.
        activation: of the hidden layers, see `dilim.nn.MLP`.
        init: of the weights, see `dilim.nn.Dense`.
        options: ``action_start``, ``seed``, ``window_size``: see `Agent`.

    Example:
        >>> import dilim.rl
        >>> env = dilim.rl.CartPole()
        >>> agent = dilim.rl.REINFORCE.for_env(env, seed=0)
        >>> len(agent.train(env, episodes=3))
        3

    Source: Williams, Simple statistical gradient-following algorithms for connectionist
    reinforcement learning, Machine Learning 8, 1992, section 4 and equation (11).
    """

    parts: ClassVar[tuple[str, ...]] = ("network", "optimizer", "memory")
    numbers: ClassVar[tuple[str, ...]] = ("mean_return",)

    def __init__(
        self,
        observation_size: int,
        hidden_sizes: Sequence[int] = (32,),
        action_count: int | None = 2,
        learning_rate: Rate = 1e-3,
        gamma: float = 0.99,
        *,
        batch_episodes: int = 1,
        baseline: str = "running_mean",
        baseline_rate: float = 0.05,
        entropy_bonus: float = 0.0,
        activation: str = "relu",
        init: str = "fan_in",
        **options: Any,
    ) -> None:
        super().__init__(observation_size, action_count, **options)
        self.hidden_sizes = [int(size) for size in hidden_sizes]
        self.gamma = float(gamma)
        self.batch_episodes = int(batch_episodes)
        self.baseline = baseline
        self.baseline_rate = float(baseline_rate)
        self.entropy_bonus = float(entropy_bonus)
        self.activation, self.init = activation, init
        self._check_options()
        sizes = [*self.hidden_sizes, self.action_count]
        self.network = MLP(
            observation_size, sizes, activation, init=init, generator=self.network_generator
        )
        self.optimizer = Adam(self.network, rate_of(learning_rate))
        self.memory = EpisodeMemory(self.observation_size)
        self.mean_return = 0.0

    def scores(self, observations: Tensor) -> Tensor:
        """(..., F) to (..., A): logits."""
        return self.network(observations)  # type: ignore[no-any-return]

    def explore(self, scores: Tensor) -> Tensor:
        """A draw from softmax(scores)."""
        return self.generator.categorical(scores)

    def remember(
        self,
        observations: Tensor,
        actions: Tensor,
        rewards: Tensor,
        following: Tensor,
        terminated: Tensor,
        truncated: Tensor,
    ) -> None:
        """Keep a step of one environment; learn when the last episode of a batch ends."""
        end = terminated | truncated
        self.memory.add(observations[0], actions[0], rewards[0], end[0])
        if self.memory.episodes >= self.batch_episodes:
            self.learn()

    def prepare_for(self, count: int) -> None:
        """See `Agent.prepare_for`."""
        if count != 1:
            raise ValueError(
                f"REINFORCE: num_envs={count}: it learns from whole episodes of one environment; "
                "A2C and PPO learn from many at once"
            )

    def learn(self) -> None:
        """One update from the finished episodes since the last one."""
        memory = self.memory
        if not memory.episodes:
            return
        with no_grad():
            rows = memory.actions.shape[0]
            kept = arange(rows) < memory.finished
            returns = memory.returns(self.gamma)
            mean = returns.sum() / memory.finished
            weights = where(kept, self._advantages(returns, mean, kept), 0.0).astype(float32)
            taken = memory.actions[:, None]
        logp = log_softmax(self.scores(memory.observations), axis=1)  # (C, A)
        gain = take_along_axis(logp, taken, axis=1)[:, 0] * weights
        if self.entropy_bonus:
            entropy = -(exp(logp) * logp).sum(axis=1)
            gain = gain + self.entropy_bonus * where(kept, entropy, 0.0)
        self.descend(-gain.sum() / memory.episodes)
        memory.clear()
        if self.failed:
            return
        # after its use: the baseline must not depend on the actions that it is compared with
        rate = self.baseline_rate if self.updates > 1 else 1.0
        self.mean_return += rate * (float(mean) - self.mean_return)

    def _advantages(self, returns: Tensor, mean: Tensor, kept: Tensor) -> Tensor:
        """(C,) to (C,): G - b."""
        if self.baseline == "running_mean":
            return returns - self.mean_return
        if self.baseline == "batch":
            variance = where(kept, (returns - mean) ** 2, 0.0).sum() / self.memory.finished
            return (returns - mean) / (variance + 1e-8).sqrt()
        return returns

    @property
    def must_pause(self) -> bool:
        """See `Agent.must_pause`."""
        return self.failed or self.memory.is_full

    def make_room(self) -> None:
        """See `Agent.make_room`."""
        if self.memory.is_full:
            self.memory.grow()

    def forget_episode(self) -> None:
        """Drop the steps of the running episode."""
        super().forget_episode()
        self.memory.drop_running()

    @property
    def options(self) -> dict[str, Any]:
        """See `Agent.options`."""
        return {
            **super().options,
            **{name: getattr(self, name) for name in _OPTIONS},
            "learning_rate": rate_option(self.optimizer),
        }

    def _check_options(self) -> None:
        check(
            self,
            ("gamma", 0.0 <= self.gamma <= 1.0, "0 to 1"),
            ("batch_episodes", self.batch_episodes >= 1, "at least 1"),
            ("baseline", self.baseline in BASELINES, " or ".join(map(repr, BASELINES))),
            ("baseline_rate", 0.0 < self.baseline_rate <= 1.0, "above 0 and up to 1"),
            ("entropy_bonus", 0.0 <= self.entropy_bonus < math.inf, "at least 0"),
        )
