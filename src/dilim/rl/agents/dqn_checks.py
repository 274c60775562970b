"""What options of a `DQN` have to be, and what is said about a plan that teaches it nothing."""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dilim import dtypes
from dilim.errors import DtypeError
from dilim.nn import losses
from dilim.rl.agents.settings import check, replay_warnings

if TYPE_CHECKING:
    from dilim.rl.agents.dqn import DQN

LOSSES: Final = {"huber": losses.huber, "mse": losses.mse}
_COUNTS: Final = (
    *("buffer_capacity", "batch_size", "target_update_frequency"),
    *("train_frequency", "gradient_steps", "n_step"),
)
_STILL: Final = 1e-3
"""By how much of its whole way a schedule may still move where it counts as finished."""


def check_options(agent: DQN) -> None:
    """See that all numbers are in their ranges.

    Raises:
        ValueError: one is not.
        DtypeError: there is no dtype of the name ``observation_dtype``.
    """
    if agent.loss_name not in LOSSES:
        names = " or ".join(map(repr, LOSSES))
        raise ValueError(f"DQN: expected loss {names}, received {agent.loss_name!r}")
    norm = agent.max_gradient_norm
    check(
        agent,
        ("gamma", 0.0 <= agent.gamma <= 1.0, "from 0 to 1"),
        ("target_update_rate", 0.0 < agent.target_update_rate <= 1.0, "above 0 and up to 1"),
        ("learning_starts", agent.learning_starts >= 0, "at least 0"),
        *((name, getattr(agent, name) >= 1, "at least 1") for name in _COUNTS),
        ("priority_alpha", 0.0 <= agent.priority_alpha <= 1.0, "from 0 to 1"),
        ("max_gradient_norm", norm is None or 0.0 < norm < math.inf, "above 0, or None"),
    )
    kind = dtypes.as_dtype(agent.observation_dtype)
    if not (kind is dtypes.float32 or kind.is_integer):
        raise DtypeError(
            f"DQN: expected observation_dtype float32 or an integer dtype, received {kind.name}"
        )


def kept_dtype(space: Any) -> str:
    """The dtype in which observations of a space are kept: small integers as they are."""
    kind = np.dtype(getattr(space, "dtype", None) or np.float32)
    return kind.name if kind.kind in "iu" and kind.itemsize <= 2 else "float32"


def warnings_for(agent: DQN, steps: int | None) -> Iterator[str]:
    """See `Agent.warnings_for`."""
    yield from replay_warnings(agent, steps)
    start, now, end = (_epsilon(agent, x) for x in (0, agent.learning_starts, 10**12))
    if agent.steps < agent.learning_starts and abs(now - end) < _STILL * abs(start - end):
        yield (
            f"epsilon_schedule has come to its end, {end:g}, when learning begins at step "
            f"{agent.learning_starts:,}: what is learned first will not be tried out; choose a "
            "longer schedule or a lower learning_starts"
        )


def _epsilon(agent: DQN, step: int) -> float:
    return float(agent.epsilon_schedule(step))
