"""Wrappers of environments that Gymnasium does not have, or has without their state.

Gymnasium's own do for the rest: ``RecordEpisodeStatistics``, ``FrameStackObservation``,
``FlattenObservation``, ``ClipAction``, ``RescaleAction``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any, Final

import gymnasium
import numpy as np
import numpy.typing as npt
from gymnasium import spaces
from gymnasium.wrappers import TimeLimit

from dilim.errors import EnvironmentContractError, StateError
from dilim.rl.envs.base import TensorEnvironment

Array = npt.NDArray[np.float64]

_OWN: Final = "wrapper."


def time_limit(env: gymnasium.Env[Any, Any], steps: int) -> gymnasium.Env[Any, Any]:
    """Cut episodes after so many steps; a limit that is there already is replaced.

    Args:
        env: an environment, also a wrapped one; it is changed.
        steps: at least 1.

    Returns:
        The environment: ``env`` itself where it has a limit or is written in tensors, else within
        Gymnasium's ``TimeLimit``.

    Raises:
        EnvironmentContractError: fewer than one step.
    """
    if steps < 1:
        raise EnvironmentContractError(f"time_limit: expected steps >= 1, received {steps}")
    layer: Any = env
    while isinstance(layer, gymnasium.Wrapper):
        if isinstance(layer, TimeLimit):
            layer._max_episode_steps = steps
            return env
        layer = layer.env
    if isinstance(layer, TensorEnvironment):
        layer.max_steps = steps
        return env
    return TimeLimit(env, steps)


class RunningStatistics:
    """Mean and variance of all that was seen, number by number, in float64.

    Args:
        shape: of what is seen.

    Attributes:
        count: how many were seen.
        mean: zeros before the first.
        variance: of the seen as they are (divided by their number); ones before the first.

    Source: Chan, Golub and LeVeque, Algorithms for computing the sample variance, 1983.
    """

    def __init__(self, shape: tuple[int, ...] = ()) -> None:
        self.count = 0
        self.mean: Array = np.zeros(shape)
        self.variance: Array = np.ones(shape)

    def update(self, batch: npt.ArrayLike) -> None:
        """Take in a batch.

        Args:
            batch: (N, ...) numbers.
        """
        seen = np.asarray(batch, np.float64)
        count = len(seen)
        if count == 0:
            return
        total = self.count + count
        apart = seen.mean(axis=0) - self.mean
        spread = seen.var(axis=0) * count + apart**2 * (self.count * count / total)
        self.variance = (self.variance * self.count + spread) / total
        self.mean = self.mean + apart * (count / total)
        self.count = total

    def normalized(self, values: npt.ArrayLike, epsilon: float = 1e-8) -> Array:
        """``(values - mean) / sqrt(variance + epsilon)``."""
        apart: Array = np.asarray(values, np.float64) - self.mean
        return apart / np.sqrt(self.variance + epsilon)

    def state_dict(self) -> dict[str, Any]:
        """Arrays by name, copies."""
        return {
            "count": np.array(self.count),
            "mean": self.mean.copy(),
            "variance": self.variance.copy(),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave.

        Raises:
            StateError: something is missing, or of another shape.
        """
        if set(state) != {"count", "mean", "variance"}:
            raise StateError(
                "RunningStatistics: expected count, mean and variance, received "
                f"{', '.join(sorted(state)) or 'nothing'}"
            )
        for name in ("mean", "variance"):
            if np.shape(state[name]) != self.mean.shape:
                raise StateError(
                    f"RunningStatistics: expected {name} of shape {self.mean.shape}, received "
                    f"{np.shape(state[name])}"
                )
        self.count = int(state["count"])
        self.mean = np.array(state["mean"], np.float64)
        self.variance = np.array(state["variance"], np.float64)

    def __repr__(self) -> str:
        return f"RunningStatistics(of {self.count:,} seen)"


class _WithStatistics(gymnasium.Wrapper[Any, Any, Any, Any]):
    """A wrapper whose statistics can be saved, taken over and frozen.

    Attributes:
        statistics: a `RunningStatistics`.
        frozen: while True, the statistics stay as they are: for evaluation.
    """

    def __init__(self, env: gymnasium.Env[Any, Any], statistics: RunningStatistics) -> None:
        super().__init__(env)
        self.statistics = statistics
        self.frozen = False

    def state_dict(self) -> dict[str, Any]:
        """The statistics: arrays by name."""
        return self.statistics.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave.

        Raises:
            StateError: it does not fit.
        """
        self.statistics.load_state_dict(state)

    def get_state(self) -> dict[str, np.ndarray]:
        """The statistics, and the state of the environment inside, if that gives one.

        Raises:
            StateError: it does not.
        """
        inside = getattr(self.env, "get_state", None)
        if inside is None:
            raise StateError(
                f"{type(self).__name__}.get_state: {type(self.env).__name__} does not give its "
                "state; state_dict() is that of the wrapper alone"
            )
        own = {f"{_OWN}{type(self).__name__}.{k}": v for k, v in self.state_dict().items()}
        return {**inside(), **own}

    def set_state(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Take over what `get_state` gave.

        Raises:
            StateError: it does not fit.
        """
        prefix = f"{_OWN}{type(self).__name__}."
        self.load_state_dict(
            {k.removeprefix(prefix): v for k, v in arrays.items() if k.startswith(prefix)}
        )
        rest = {k: v for k, v in arrays.items() if not k.startswith(prefix)}
        self.env.set_state(rest)  # type: ignore[attr-defined]


class NormalizeObservation(_WithStatistics):
    """Observations with mean 0 and variance 1 over all that was seen, as far as ``limit``.

    Args:
        env: with a Box of observations.
        limit: larger numbers are cut to it, in both directions.
        epsilon: added to the variance.

    Each observation updates the statistics before it is normalised, unless they are frozen.
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], *, limit: float = 10.0, epsilon: float = 1e-8
    ) -> None:
        space = env.observation_space
        if not isinstance(space, spaces.Box):
            raise EnvironmentContractError(
                f"NormalizeObservation: expected a Box of observations, received {space}"
            )
        super().__init__(env, RunningStatistics(space.shape))
        self.limit = float(limit)
        self.epsilon = float(epsilon)
        self.observation_space = spaces.Box(-limit, limit, space.shape, dtype=np.float32)

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode; the observation is normalised."""
        observation, info = self.env.reset(seed=seed, options=options)
        return self._seen(observation), info

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Act; the observation is normalised."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        return self._seen(observation), reward, terminated, truncated, info

    def _seen(self, observation: Any) -> npt.NDArray[np.float32]:
        if not self.frozen:
            self.statistics.update(np.asarray(observation)[None])
        normal = self.statistics.normalized(observation, self.epsilon)
        return np.clip(normal, -self.limit, self.limit).astype(np.float32)


class NormalizeReward(_WithStatistics):
    """Rewards divided by the standard deviation of the discounted return so far.

    The return is r + gamma R, begun anew with each episode; the mean is not taken away, so that the
    sign of a reward stays. The sum of the true rewards is in ``info["episode_return"]`` at the end.

    Args:
        env: any.
        gamma: discount per step.
        limit: larger rewards are cut to it, in both directions.
        epsilon: added to the variance.

    Source: Engstrom et al., Implementation matters in deep policy gradients, 2020.
    """

    def __init__(
        self,
        env: gymnasium.Env[Any, Any],
        *,
        gamma: float = 0.99,
        limit: float = 10.0,
        epsilon: float = 1e-8,
    ) -> None:
        super().__init__(env, RunningStatistics())
        self.gamma = float(gamma)
        self.limit = float(limit)
        self.epsilon = float(epsilon)
        self._discounted = 0.0
        self._return = 0.0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        self._discounted = self._return = 0.0
        return self.env.reset(seed=seed, options=options)

    def step(self, action: Any) -> tuple[Any, float, bool, bool, dict[str, Any]]:
        """Act; the reward is normalised."""
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._return += float(reward)
        self._discounted = float(reward) + self.gamma * self._discounted
        if not self.frozen:
            self.statistics.update([self._discounted])
        if terminated or truncated:
            info = {**info, "episode_return": self._return}
        scaled = float(reward) / math.sqrt(float(self.statistics.variance) + self.epsilon)
        scaled = max(-self.limit, min(self.limit, scaled))
        return observation, scaled, terminated, truncated, info

    def state_dict(self) -> dict[str, Any]:
        """The statistics, and the returns of the running episode."""
        running = np.array([self._discounted, self._return])
        return {**super().state_dict(), "running": running}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Take over what `state_dict` gave.

        Raises:
            StateError: it does not fit.
        """
        if "running" not in state:
            raise StateError("NormalizeReward: expected running, the returns of the episode")
        super().load_state_dict({k: v for k, v in state.items() if k != "running"})
        self._discounted, self._return = (float(x) for x in state["running"])


class ActionMask(gymnasium.Wrapper[Any, Any, Any, Any]):
    """Puts into ``info["action_mask"]`` which actions are allowed, and refuses the others.

    Args:
        env: with a Discrete set of actions.
        allowed: from the environment inside to one bool per action.

    Example:
        >>> import dilim.rl, numpy as np
        >>> env = dilim.rl.ActionMask(dilim.rl.CartPole(), lambda env: np.array([True, False]))
        >>> observation, info = env.reset(seed=0)
        >>> info["action_mask"].tolist()
        [True, False]
    """

    def __init__(
        self, env: gymnasium.Env[Any, Any], allowed: Callable[[Any], npt.ArrayLike]
    ) -> None:
        if not isinstance(env.action_space, spaces.Discrete):
            raise EnvironmentContractError(
                f"ActionMask: expected a Discrete set of actions, received {env.action_space}"
            )
        super().__init__(env)
        self._allowed = allowed
        self._mask: npt.NDArray[np.bool_] | None = None
        self._steps = 0

    def reset(
        self, *, seed: int | None = None, options: dict[str, Any] | None = None
    ) -> tuple[Any, dict[str, Any]]:
        """Begin an episode."""
        observation, info = self.env.reset(seed=seed, options=options)
        self._steps = 0
        return observation, {**info, "action_mask": self._new_mask(ended=False)}

    def step(self, action: Any) -> tuple[Any, Any, bool, bool, dict[str, Any]]:
        """Act.

        Raises:
            EnvironmentContractError: the action is not allowed, or no action is any more, although
                the episode goes on.
        """
        start = int(self.env.action_space.start)  # type: ignore[attr-defined]
        if self._mask is not None and not self._mask[int(action) - start]:
            raise EnvironmentContractError(
                f"ActionMask: step {self._steps + 1}: the action {action} is not allowed; "
                f'info["action_mask"] is {self._mask.tolist()}'
            )
        observation, reward, terminated, truncated, info = self.env.step(action)
        self._steps += 1
        mask = self._new_mask(ended=bool(terminated or truncated))
        return observation, reward, terminated, truncated, {**info, "action_mask": mask}

    def _new_mask(self, ended: bool) -> npt.NDArray[np.bool_]:
        mask = np.array(self._allowed(self.env), dtype=np.bool_)
        count = int(self.env.action_space.n)  # type: ignore[attr-defined]
        if mask.shape != (count,):
            raise EnvironmentContractError(
                f"ActionMask: expected {count} bools, received an array of shape {mask.shape}"
            )
        if not mask.any() and not ended:
            raise EnvironmentContractError(
                f"ActionMask: no action is allowed after step {self._steps}, and the episode goes "
                "on; end it, or allow an action"
            )
        self._mask = mask
        return mask.copy()
