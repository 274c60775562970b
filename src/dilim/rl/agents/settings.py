"""Settings of agents: their checks, and learning rates as they are saved."""

from __future__ import annotations

from collections.abc import Mapping
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


def rate_of(given: Rate) -> float | Schedule:
    """A learning rate for an optimizer."""
    return from_dict(given) if isinstance(given, Mapping) else given


def rate_option(optimizer: Optimizer) -> Any:
    """The learning rate of an optimizer as plain JSON."""
    rate = optimizer.learning_rate
    return rate.to_dict() if isinstance(rate, Schedule) else rate
