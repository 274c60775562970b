"""`DQN`: learn what each action is worth, from steps that are remembered."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar, Final

from dilim.dtypes import float64
from dilim.nn import losses
from dilim.nn.dense import MLP
from dilim.optim.adam import Adam
from dilim.optim.schedules import LinearDecay, Schedule, from_dict
from dilim.rl.agents.base import Agent
from dilim.rl.agents.targets import follow
from dilim.rl.replay import Batch, ReplayBuffer
from dilim.tensors.creation import asarray
from dilim.tensors.elementwise import where
from dilim.tensors.indexing import take_along_axis
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

_OPTIONS: Final = (
    *("hidden_sizes", "gamma", "buffer_capacity", "batch_size", "target_update_frequency"),
    *("target_update_rate", "learning_starts", "train_frequency", "gradient_steps", "double"),
    *("loss", "max_gradient_norm", "activation", "init"),
)
EPSILON: Final = LinearDecay(1.0, 0.05, 5000)
"""The default: from always random to 5 % over 5,000 steps."""
LOSSES: Final = {"huber": losses.huber, "mse": losses.mse}


class DQN(Agent):
    """Deep Q-learning.

    Q(s, a) = network(s)[a]. With probability epsilon an action is random, else it is argmax_a Q(s,
    a). Every ``train_frequency`` steps Adam lowers, over batches from a `ReplayBuffer`::

        loss = mean l( Q(s, a), r + gamma (1 - terminated) max_a' Q_target(s', a') )

    where nothing follows after an end by the rules only: after a cut the value of what was seen
    last is counted. With ``double`` the action a' is the best one by Q, not by Q_target.

    Args:
        observation_size: F, numbers in an observation.
        hidden_sizes: outputs of the hidden layers.
        action_count: A, actions to choose from.
        learning_rate: of Adam; a number or a schedule of the number of updates.
        gamma: discount per step, from 0 to 1.
        buffer_capacity: steps that are remembered.
        batch_size: B, steps per update.
        target_update_frequency: steps between two updates of the target network.
        epsilon_schedule: of the number of steps.
        target_update_rate: tau; the target network becomes (1 - tau) itself + tau the network.
        learning_starts: steps before the first update; ``batch_size`` by default.
        train_frequency: steps between two times of learning.
        gradient_steps: updates at each of them.
        double: see above.
        loss: l, "huber" or "mse".
        max_gradient_norm: to which gradients are scaled down; None for no limit.
        activation: of the hidden layers, see `dilim.nn.MLP`.
        init: of the weights, see `dilim.nn.Dense`.
        options: ``action_start``, ``seed``, ``window_size``: see `Agent`.

    Example:
        >>> import dilim.rl
        >>> env = dilim.rl.GridWorld(4)
        >>> agent = dilim.rl.DQN.for_env(env, seed=0)
        >>> len(agent.train(env, episodes=3))
        3

    Source: Mnih and others, Human-level control through deep reinforcement learning, Nature 518,
    2015, algorithm 1; van Hasselt and others, Deep reinforcement learning with double Q-learning,
    AAAI 2016, equation (4), for ``double``.
    """

    parts: ClassVar[tuple[str, ...]] = ("network", "target", "optimizer", "replay")

    def __init__(
        self,
        observation_size: int,
        hidden_sizes: Sequence[int] = (64, 64),
        action_count: int = 2,
        learning_rate: float | Schedule | Mapping[str, Any] = 1e-3,
        gamma: float = 0.99,
        buffer_capacity: int = 10_000,
        batch_size: int = 32,
        target_update_frequency: int = 100,
        epsilon_schedule: Schedule | Mapping[str, Any] = EPSILON,
        *,
        target_update_rate: float = 1.0,
        learning_starts: int | None = None,
        train_frequency: int = 1,
        gradient_steps: int = 1,
        double: bool = False,
        loss: str = "huber",
        max_gradient_norm: float | None = None,
        activation: str = "relu",
        init: str = "fan_in",
        **options: Any,
    ) -> None:
        super().__init__(observation_size, action_count, **options)
        self.hidden_sizes = [int(size) for size in hidden_sizes]
        self.gamma = float(gamma)
        self.buffer_capacity, self.batch_size = int(buffer_capacity), int(batch_size)
        self.target_update_frequency = int(target_update_frequency)
        self.target_update_rate = float(target_update_rate)
        self.learning_starts = int(batch_size if learning_starts is None else learning_starts)
        self.train_frequency, self.gradient_steps = int(train_frequency), int(gradient_steps)
        self.double = bool(double)
        self.loss_name = loss
        self.max_gradient_norm = max_gradient_norm
        self.activation, self.init = activation, init
        self.epsilon_schedule = _schedule(epsilon_schedule)
        self._check_options()
        sizes, generator = [*self.hidden_sizes, self.action_count], self.network_generator
        self.network = MLP(observation_size, sizes, activation, init=init, generator=generator)
        self.target = MLP(observation_size, sizes, activation, init=init, generator=generator)
        self.target.load_state_dict(self.network.state_dict())
        rate = from_dict(learning_rate) if isinstance(learning_rate, Mapping) else learning_rate
        self.optimizer = Adam(self.network, rate, clip_norm=max_gradient_norm)
        self.replay = ReplayBuffer(self.buffer_capacity, self.observation_size)

    @property
    def epsilon(self) -> float:
        """The probability of a random action at the next step."""
        return float(self.epsilon_schedule(asarray(self.steps, dtype=float64)))

    def scores(self, observations: Tensor) -> Tensor:
        """(..., F) to (..., A): Q."""
        return self.network(observations)  # type: ignore[no-any-return]

    def explore(self, scores: Tensor) -> Tensor:
        """The best action, or with probability epsilon any."""
        count = scores.shape[0]
        epsilon = self.epsilon_schedule(asarray(self.steps, dtype=float64))
        is_random = self.generator.uniform((count,), dtype=float64) < epsilon
        other = self.generator.integers(0, self.action_count, (count,))
        return where(is_random, other, scores.argmax(axis=1))

    def remember(
        self,
        observations: Tensor,
        actions: Tensor,
        rewards: Tensor,
        following: Tensor,
        terminated: Tensor,
        truncated: Tensor,
    ) -> None:
        """Keep a step of N environments; learn and move the target when it is time."""
        self.replay.add(observations, actions, rewards, following, terminated)
        count = observations.shape[0]
        if self.steps >= self.learning_starts and self.steps % self.train_frequency < count:
            for _ in range(self.gradient_steps):
                self.learn()
        if self.steps % self.target_update_frequency < count:
            self.move_target()

    def learn(self) -> None:
        """One update from a batch of remembered steps."""
        batch = self.replay.sample(self.generator, self.batch_size)
        wanted = self.targets(batch)
        observations, actions = batch[0], batch[1]
        values = take_along_axis(self.network(observations), actions[:, None], axis=1)
        self.descend(LOSSES[self.loss_name](values[:, 0], wanted))

    def targets(self, batch: Batch) -> Tensor:
        """(B,): r + gamma (1 - terminated) max_a' Q_target(s', a')."""
        _, _, rewards, following, terminated = batch
        with no_grad():
            values = self.target(following)
            if self.double:
                best = self.network(following).argmax(axis=1)[:, None]
                value = take_along_axis(values, best, axis=1)[:, 0]
            else:
                value = values.max(axis=1)
            return rewards + self.gamma * where(terminated, 0.0, value)

    def move_target(self) -> None:
        """The target network becomes (1 - tau) itself + tau the network."""
        follow(self.target, self.network, self.target_update_rate)

    @property
    def options(self) -> dict[str, Any]:
        """See `Agent.options`."""
        rate = self.optimizer.learning_rate
        own = {name: getattr(self, name) for name in _OPTIONS if name != "loss"}
        return {
            **super().options,
            **own,
            "loss": self.loss_name,
            "epsilon_schedule": self.epsilon_schedule.to_dict(),
            "learning_rate": rate.to_dict() if isinstance(rate, Schedule) else rate,
        }

    def _check_options(self) -> None:
        whole = (
            *("buffer_capacity", "batch_size", "target_update_frequency"),
            *("train_frequency", "gradient_steps"),
        )
        for name, fits, wanted in (
            ("gamma", 0.0 <= self.gamma <= 1.0, "from 0 to 1"),
            ("target_update_rate", 0.0 < self.target_update_rate <= 1.0, "above 0 and up to 1"),
            ("loss_name", self.loss_name in LOSSES, " or ".join(map(repr, LOSSES))),
            ("learning_starts", self.learning_starts >= 0, "at least 0"),
            *((name, getattr(self, name) >= 1, "at least 1") for name in whole),
            (
                "max_gradient_norm",
                self.max_gradient_norm is None or 0.0 < self.max_gradient_norm < math.inf,
                "above 0, or None",
            ),
        ):
            if not fits:
                raise ValueError(
                    f"DQN: expected {name.removesuffix('_name')} {wanted}, received "
                    f"{getattr(self, name)!r}"
                )


def _schedule(given: Schedule | Mapping[str, Any]) -> Schedule:
    return from_dict(given) if isinstance(given, Mapping) else given
