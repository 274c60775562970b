"""Checks of what the files of a run hold: its settings, and the line of an episode."""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

_Check = tuple[str, Callable[[Any], bool]]


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _is_count(least: int) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, int) and not isinstance(value, bool) and value >= least


_TEXT: Final[_Check] = ("a text", lambda value: isinstance(value, str))
_FROM_ZERO: Final[_Check] = ("an integer >= 0", _is_count(0))
_FROM_ONE: Final[_Check] = ("an integer >= 1", _is_count(1))
_NUMBER: Final[_Check] = ("a finite number", _is_number)
_NUMBER_OR_NULL: Final[_Check] = (
    "a finite number or null",
    lambda value: value is None or _is_number(value),
)

_SETTINGS: Final[Mapping[str, _Check]] = {
    "environment": _TEXT,
    "agent": _TEXT,
    "seed": _FROM_ZERO,
    "episodes": _FROM_ONE,
    "until": _NUMBER_OR_NULL,
    "evaluate_every": _FROM_ONE,
    "evaluation_episodes": _FROM_ONE,
    "options": ("an object", lambda value: isinstance(value, dict)),
    "num_envs": _FROM_ONE,
}
_EPISODE: Final[Mapping[str, _Check]] = {
    "episode": _FROM_ONE,
    "steps": _FROM_ZERO,
    "length": _FROM_ZERO,
    "return": _NUMBER_OR_NULL,
    "average": _NUMBER_OR_NULL,
    "loss": _NUMBER_OR_NULL,
    "evaluation": _NUMBER_OR_NULL,
    "seconds": _NUMBER,
}


def check_settings(settings: Mapping[str, Any]) -> None:
    """Raises ValueError if a setting of a run is of the wrong kind; it is named."""
    _check(settings, _SETTINGS)


def episode_from(line: str) -> dict[str, Any]:
    """The metrics of an episode from their line of JSON.

    Raises:
        ValueError, TypeError: it is none; a value of the wrong kind is named.
    """
    metrics = json.loads(line)
    if missing := [name for name in _EPISODE if name not in metrics]:
        raise ValueError(f"it has no {', '.join(missing)}")
    _check(metrics, _EPISODE)
    return dict(metrics)


def _check(values: Mapping[str, Any], checks: Mapping[str, _Check]) -> None:
    for name, (expected, fits) in checks.items():
        if not fits(values[name]):
            raise ValueError(f"{name}: expected {expected}, got {json.dumps(values[name])}")


def gaps(present: Iterable[int], count: int) -> list[tuple[int, int]]:
    """The missing stretches (first, last) of 1 .. count.

    Example:
        >>> gaps([1, 2, 5], 7)
        [(3, 4), (6, 7)]
    """
    found: list[tuple[int, int]] = []
    following = 1
    for number in [*(n for n in present if n <= count), count + 1]:
        if number > following:
            found.append((following, number - 1))
        following = number + 1
    return found
