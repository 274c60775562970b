"""Schedules: numbers that change with the count of steps made, such as a learning rate.

A schedule is plain data: it is called with a step (from 0 on) and saved by its name and numbers.
The same formula serves Python numbers and, inside compiled loops, tensors.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, overload

from dilim.errors import StateError
from dilim.tensors import elementwise as e
from dilim.tensors.tensor import Tensor


class _Functions(NamedTuple):
    """What formulae are written with, besides the operators."""

    minimum: Callable[[Any, Any], Any]
    maximum: Callable[[Any, Any], Any]
    cos: Callable[[Any], Any]
    floor: Callable[[Any], Any]


_ON_NUMBERS: Final = _Functions(min, max, math.cos, math.floor)
_ON_TENSORS: Final = _Functions(e.minimum, e.maximum, e.cos, e.floor)


@dataclass(frozen=True)
class Schedule:
    """Base of all schedules; a new one is a frozen dataclass that overrides `formula`."""

    @overload
    def __call__(self, step: float) -> float: ...
    @overload
    def __call__(self, step: Tensor) -> Tensor: ...
    def __call__(self, step: float | Tensor) -> float | Tensor:
        """The value after ``step`` steps: a float, or for a float64 tensor a tensor."""
        if isinstance(step, Tensor):
            result: Tensor = self.formula(step, _ON_TENSORS)
            return result
        return float(self.formula(step, _ON_NUMBERS))

    def formula(self, step: Any, m: Any) -> Any:
        """The value, with ``m.minimum``, ``m.maximum``, ``m.cos`` and ``m.floor``."""
        raise NotImplementedError(f"{type(self).__name__} does not define formula()")

    def to_dict(self) -> dict[str, Any]:
        """The schedule as plain data, for `from_dict`."""
        values = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        plain = {k: v.to_dict() if isinstance(v, Schedule) else v for k, v in values.items()}
        return {"schedule": type(self).__name__, **plain}


@dataclass(frozen=True)
class Constant(Schedule):
    """value, always.

    Args:
        value: the number.
    """

    value: float

    def formula(self, step: Any, m: Any) -> Any:
        """See the class."""
        return step * 0.0 + self.value


@dataclass(frozen=True)
class LinearDecay(Schedule):
    """start (1 - s) + end s with s = min(step / steps, 1): a straight line, then constant.

    Args:
        start: at step 0.
        end: from step ``steps`` on.
        steps: length of the line, at least 1.
    """

    start: float = 1.0
    end: float = 0.01
    steps: int = 1000

    def __post_init__(self) -> None:
        _check_steps(self, self.steps)

    def formula(self, step: Any, m: Any) -> Any:
        """See the class."""
        share = m.minimum(step / float(self.steps), 1.0)
        return self.start * (1.0 - share) + self.end * share


@dataclass(frozen=True)
class ExponentialDecay(Schedule):
    """max(start factor^step, end).

    Args:
        start: at step 0.
        factor: from one step to the next, above 0.
        end: lower limit.
    """

    start: float = 1.0
    factor: float = 0.995
    end: float = 0.01

    def __post_init__(self) -> None:
        if not self.factor > 0.0:
            raise ValueError(f"ExponentialDecay: expected factor above 0, received {self.factor!r}")

    def formula(self, step: Any, m: Any) -> Any:
        """See the class."""
        return m.maximum(self.start * self.factor**step, self.end)


@dataclass(frozen=True)
class CosineDecay(Schedule):
    """end + (start - end) (1 + cos(pi min(step / steps, 1))) / 2: half a wave, then constant.

    Args:
        start: at step 0.
        end: from step ``steps`` on.
        steps: length of the half wave, at least 1.

    Source: Loshchilov and Hutter, SGDR, 2017, equation 5, without restarts.
    """

    start: float
    end: float = 0.0
    steps: int = 1000

    def __post_init__(self) -> None:
        _check_steps(self, self.steps)

    def formula(self, step: Any, m: Any) -> Any:
        """See the class."""
        share = m.minimum(step / float(self.steps), 1.0)
        return self.end + (self.start - self.end) * (m.cos(share * math.pi) + 1.0) * 0.5


@dataclass(frozen=True)
class StepDecay(Schedule):
    """start factor^floor(step / steps): one factor more every ``steps`` steps.

    Args:
        start: for the first ``steps`` steps.
        factor: at each stair.
        steps: length of a stair, at least 1.
    """

    start: float
    factor: float = 0.1
    steps: int = 1000

    def __post_init__(self) -> None:
        _check_steps(self, self.steps)

    def formula(self, step: Any, m: Any) -> Any:
        """See the class."""
        return self.start * self.factor ** m.floor(step / float(self.steps))


@dataclass(frozen=True)
class Warmup(Schedule):
    """min((step + 1) / steps, 1) then(max(step - steps, 0)): a rise, then another schedule.

    Args:
        steps: length of the rise, at least 1.
        then: the schedule (or number) that it leads to, counted from the end of the rise.
    """

    steps: int
    then: Schedule | float

    def __post_init__(self) -> None:
        _check_steps(self, self.steps)
        object.__setattr__(self, "then", as_schedule(self.then))

    def formula(self, step: Any, m: Any) -> Any:
        """See the class."""
        share = m.minimum((step + 1.0) / float(self.steps), 1.0)
        return share * as_schedule(self.then).formula(m.maximum(step - float(self.steps), 0.0), m)


SCHEDULES: Final[dict[str, type[Schedule]]] = {
    kind.__name__: kind
    for kind in (Constant, CosineDecay, ExponentialDecay, LinearDecay, StepDecay, Warmup)
}
"""All schedules by name; tests walk over them."""


def as_schedule(value: Schedule | float) -> Schedule:
    """``value`` if it is a schedule, else a `Constant` of it."""
    return value if isinstance(value, Schedule) else Constant(float(value))


def from_dict(data: Mapping[str, Any]) -> Schedule:
    """The schedule of which `Schedule.to_dict` made ``data``.

    Raises:
        StateError: no schedule has that name, or its numbers do not fit.
    """
    values = dict(data)
    kind = values.pop("schedule", None)
    if kind not in SCHEDULES:
        raise StateError(f"schedule: expected one of {', '.join(SCHEDULES)}, received {kind!r}")
    inner = {k: from_dict(v) if isinstance(v, Mapping) else v for k, v in values.items()}
    try:
        return SCHEDULES[kind](**inner)
    except (TypeError, ValueError) as error:
        raise StateError(f"schedule: {kind} does not take {inner}: {error}") from error


def _check_steps(schedule: Schedule, steps: Any) -> None:
    if isinstance(steps, bool) or not steps >= 1:
        raise ValueError(f"{type(schedule).__name__}: expected steps >= 1, received {steps!r}")
