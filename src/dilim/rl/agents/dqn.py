"""`DQN`: learn what each action is worth, from steps that are remembered."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Final, Self

from dilim.dtypes import float64
from dilim.optim.adam import Adam
from dilim.optim.schedules import Constant, LinearDecay, Schedule
from dilim.rl import adapters
from dilim.rl.agents.base import Agent
from dilim.rl.agents.dqn_checks import LOSSES, check_options, kept_dtype, warnings_for
from dilim.rl.agents.dqn_parts import new_network, new_replay
from dilim.rl.agents.settings import Rate, rate_of, rate_option
from dilim.rl.agents.targets import follow
from dilim.rl.replay import Batch
from dilim.tensors.creation import asarray
from dilim.tensors.elementwise import where
from dilim.tensors.indexing import take_along_axis
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

_OPTIONS: Final = (
    *("hidden_sizes", "gamma", "buffer_capacity", "batch_size", "target_update_frequency"),
    *("target_update_rate", "learning_starts", "train_frequency", "gradient_steps", "double"),
    *("dueling", "n_step", "prioritized", "priority_alpha", "memory_saving"),
    *("observation_dtype", "max_gradient_norm", "activation", "init"),
)
EPSILON: Final = LinearDecay(1.0, 0.05, 5000)
"""The default: from always random to 5 % over 5,000 steps."""
BETA: Final = LinearDecay(0.4, 1.0, 50_000)
"""The default of ``priority_beta``: from 0.4 to 1 over 50,000 steps."""


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
        dueling: whether the network has two streams, see `dilim.rl.agents.dueling.Dueling`.
        n_step: n; r becomes r_1 + gamma r_2 + ... of n steps, and s' what was seen after them,
            counting with gamma^n; see `dilim.rl.links.returns_of_steps` for ends and cuts.
        prioritized: whether steps are drawn by their errors, see
            `dilim.rl.priorities.Priorities`; their losses are weighted.
        priority_alpha: how much errors matter, from 0 (not at all) to 1.
        priority_beta: how much the weights make up for it, from 0 to 1; a number or a schedule of
            the number of steps.
        memory_saving: whether observations are kept once, not twice; see `ReplayBuffer`.
        observation_dtype: in which observations are kept; float32, or that of the environment's
            space if it is a small integer and `for_env` is used.
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
    AAAI 2016, equation (4), for ``double``; Hessel and others, Rainbow, AAAI 2018, for all of them
    together.
    """

    parts: ClassVar[tuple[str, ...]] = ("network", "target", "optimizer", "replay")

    def __init__(
        self,
        observation_size: int,
        hidden_sizes: Sequence[int] = (64, 64),
        action_count: int = 2,
        learning_rate: Rate = 1e-3,
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
        dueling: bool = False,
        n_step: int = 1,
        prioritized: bool = False,
        priority_alpha: float = 0.6,
        priority_beta: Rate = BETA,
        memory_saving: bool = False,
        observation_dtype: str = "float32",
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
        self.double, self.dueling, self.n_step = bool(double), bool(dueling), int(n_step)
        self.prioritized, self.priority_alpha = bool(prioritized), float(priority_alpha)
        beta = rate_of(priority_beta)
        self.priority_beta = beta if isinstance(beta, Schedule) else Constant(float(beta))
        self.memory_saving, self.observation_dtype = bool(memory_saving), observation_dtype
        self.loss_name = loss
        self.max_gradient_norm = max_gradient_norm
        self.activation, self.init = activation, init
        self.epsilon_schedule: Any = rate_of(epsilon_schedule)
        check_options(self)
        self.network, self.target = new_network(self), new_network(self)
        self.target.load_state_dict(self.network.state_dict())
        self.optimizer = Adam(self.network, rate_of(learning_rate), clip_norm=max_gradient_norm)
        self.replay = new_replay(self)

    @classmethod
    def for_env(cls, env: adapters.Environment, **options: Any) -> Self:
        """See `Agent.for_env`; small integers are kept as they are."""
        kept = kept_dtype(getattr(env, "observation_space", None))
        return super().for_env(env, **{"observation_dtype": kept, **options})

    def warnings_for(self, steps: int | None) -> Iterator[str]:
        """See `Agent.warnings_for`."""
        return warnings_for(self, steps)

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
        self.replay.add(observations, actions, rewards, following, terminated, truncated)
        count = observations.shape[0]
        if self.steps >= self.learning_starts and self.steps % self.train_frequency < count:
            for _ in range(self.gradient_steps):
                self.learn()
        if self.steps % self.target_update_frequency < count:
            self.move_target()

    def learn(self) -> None:
        """One update from a batch of remembered steps."""
        places = self.replay.draw(self.generator, self.batch_size)
        if self.replay.links is not None:
            batch, discounts = self.replay.returns(places, self.n_step, self.gamma)
            wanted = self.targets(batch, discounts)
        else:
            batch = self.replay.at(places)
            wanted = self.targets(batch)
        observations, actions = batch[0], batch[1]
        values = take_along_axis(self.network(observations), actions[:, None], axis=1)[:, 0]
        loss = LOSSES[self.loss_name]
        priorities = self.replay.priorities
        if priorities is not None:
            beta = self.priority_beta(asarray(self.steps, dtype=float64))
            weights = priorities.weights(places, beta)
            self.descend((weights * loss(values, wanted, reduction="none")).mean())
            if not self.failed:
                priorities.rate(places, (wanted - values).detach())
        else:
            self.descend(loss(values, wanted))

    def targets(self, batch: Batch, discounts: Tensor | None = None) -> Tensor:
        """(B,): r + gamma (1 - terminated) max_a' Q_target(s', a'); or discounts (B,) for gamma."""
        _, _, rewards, following, terminated = batch
        with no_grad():
            values = self.target(following)
            if self.double:
                best = self.network(following).argmax(axis=1)[:, None]
                value = take_along_axis(values, best, axis=1)[:, 0]
            else:
                value = values.max(axis=1)
            factor = self.gamma if discounts is None else discounts
            return rewards + factor * where(terminated, 0.0, value)

    def move_target(self) -> None:
        """The target network becomes (1 - tau) itself + tau the network."""
        follow(self.target, self.network, self.target_update_rate)

    def prepare_for(self, count: int) -> None:
        """See `Agent.prepare_for`."""
        super().prepare_for(count)
        self.replay.prepare_for(count)

    def forget_episode(self) -> None:
        """See `Agent.forget_episode`."""
        super().forget_episode()
        self.replay.forget_episode()

    @property
    def must_pause(self) -> bool:
        """See `Agent.must_pause`."""
        return self.failed or self.replay.must_pause

    def make_room(self) -> None:
        """See `Agent.make_room`."""
        self.replay.make_room()

    @property
    def options(self) -> dict[str, Any]:
        """See `Agent.options`."""
        return {
            **super().options,
            **{name: getattr(self, name) for name in _OPTIONS},
            "loss": self.loss_name,
            "epsilon_schedule": self.epsilon_schedule.to_dict(),
            "priority_beta": self.priority_beta.to_dict(),
            "learning_rate": rate_option(self.optimizer),
        }
