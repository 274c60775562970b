"""Settings of agents: their checks, what is said of them, and learning rates as they are saved."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from dilim.optim.optimizer import Optimizer
from dilim.optim.schedules import Schedule, from_dict

Rate = float | Schedule | Mapping[str, Any]
"""A learning rate, as agents take it; a mapping is what `Schedule.to_dict` gave."""


def check(agent: Any, *conditions: tuple[str, bool, str]) -> None:
    """Refuse settings out of range.

    Args:
        agent: whose.
        conditions: the name of each, whether it fits, and what is wanted.

    Raises:
        ValueError: one does not fit.
    """
    for name, fits, wanted in conditions:
        if not fits:
            raise ValueError(
                f"{type(agent).__name__}: expected {name} {wanted}, received "
                f"{getattr(agent, name)!r}"
            )


def replay_warnings(agent: Any, steps: int | None) -> Iterator[str]:
    """What to say of an agent that learns from a `ReplayBuffer`; see `Agent.warnings_for`."""
    if agent.buffer_capacity < agent.batch_size:
        yield (
            f"buffer_capacity={agent.buffer_capacity:,} is less than "
            f"batch_size={agent.batch_size:,}, so that every batch holds the same steps several "
            "times; choose a larger buffer_capacity"
        )
    is_late = agent.steps < agent.learning_starts > agent.batch_size
    if is_late and steps is not None and agent.learning_starts > agent.steps + steps:
        yield (
            f"learning_starts={agent.learning_starts:,}, and there will be "
            f"{agent.steps + steps:,} steps: nothing will be learned; choose a lower "
            "learning_starts or more steps"
        )
    elif is_late and agent.learning_starts > agent.buffer_capacity:
        yield (
            f"learning_starts={agent.learning_starts:,} is more than "
            f"buffer_capacity={agent.buffer_capacity:,}: the first steps will be forgotten before "
            "anything is learned from them; choose a larger buffer_capacity"
        )


def rate_of(given: Rate) -> float | Schedule:
    """A learning rate for an optimizer."""
    return from_dict(given) if isinstance(given, Mapping) else given


def rate_option(optimizer: Optimizer) -> Any:
    """The learning rate of an optimizer as plain JSON."""
    rate = optimizer.learning_rate
    return rate.to_dict() if isinstance(rate, Schedule) else rate
