"""Sums of future rewards."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

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
