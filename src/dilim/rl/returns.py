"""Sums of future rewards, and advantages."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from dilim.dtypes import float64
from dilim.tensors.creation import zeros
from dilim.tensors.elementwise import where
from dilim.tensors.tensor import Tensor

Floats = npt.NDArray[np.float64]


def discounted_returns(rewards: npt.ArrayLike, gamma: float) -> Floats:
    """What each step of one episode still brought: G[t] = r[t] + gamma G[t + 1].

    G after the last step is 0, whether the episode was terminated or truncated. For a truncated
    one that is an estimate from below: what would have come after the cut is not known, and with
    no value function there is nothing to put in its place.

    Args:
        rewards: (T,), r[t] being the reward of step t.
        gamma: discount per step, from 0 to 1.

    Returns:
        float64, (T,).

    Example:
        >>> discounted_returns([1.0, 1.0, 1.0], 0.5).tolist()
        [1.75, 1.5, 1.0]
    """
    result = np.array(rewards, np.float64)
    for t in range(len(result) - 2, -1, -1):
        result[t] += gamma * result[t + 1]
    return result


def discounted(rewards: Tensor, ends: Tensor, gamma: float, count: int) -> Tensor:
    """Returns of episodes one after the other: G[t] = r[t] + gamma (1 - end[t]) G[t + 1].

    Args:
        rewards: float64 (C,).
        ends: bool (C,), whether an episode was over after the step.
        gamma: discount per step, from 0 to 1.
        count: rows that are filled; the last of them is an end.

    Returns:
        float64 (C,), 0 from row ``count`` on.
    """
    result = zeros(rewards.shape, dtype=float64)
    following = zeros((), dtype=float64)
    for i in range(count):
        t = count - 1 - i
        following = rewards[t] + gamma * where(ends[t], 0.0, following)
        result[t] = following
    return result


def advantages(
    rewards: Tensor, values: Tensor, last: Tensor, ends: Tensor, gamma: float, decay: float
) -> Tensor:
    """How much better than expected each step was (generalised advantage estimation).

    With e[t] = 1 - ends[t] and V[T] = last::

        d[t] = r[t] + gamma e[t] V[t + 1] - V[t]
        A[t] = d[t] + gamma decay e[t] A[t + 1],    A[T] = 0

    Args:
        rewards: r, (T, N). After a cut, gamma V of what was seen last has been added.
        values: V, (T, N).
        last: V of what was seen after the last step, (N,).
        ends: (T, N), 1 where an episode was over after the step, else 0.
        gamma: discount per step.
        decay: lambda; 0 looks one step ahead, 1 to the end.

    Returns:
        A, (T, N).

    Source: Schulman and others, High-dimensional continuous control using generalized advantage
    estimation, ICLR 2016, equations (11) and (16).
    """
    result = zeros(rewards.shape, dtype=rewards.dtype)
    gain = zeros(last.shape, dtype=last.dtype)
    following = last
    length = rewards.shape[0]
    for i in range(length):
        t = length - 1 - i
        goes_on = 1.0 - ends[t]
        delta = rewards[t] + gamma * goes_on * following - values[t]
        gain = delta + (gamma * decay) * goes_on * gain
        result[t] = gain
        following = values[t]
    return result
