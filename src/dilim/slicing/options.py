"""What can be asked of `dilim.compile` for a function, checked where it is asked."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from typing import Any, Final

_CHOICES: Final[dict[str, tuple[Any, ...]]] = {
    "strict": (False, True),
    "check": (False, True),
    "trace": (False, True),
    "numerics": ("strict", "fast"),
    "backend": ("llvm", "reference"),
}
"""Option -> its values."""
_AFTER: Final = "compile_after"


def check_options(options: Mapping[str, Any]) -> None:
    """See that all options are known and have values that mean something.

    Raises:
        TypeError: there is no such option, or it cannot be of that type.
        ValueError: it has no such value.
    """
    known = [*_CHOICES, _AFTER]
    for name, value in options.items():
        if name == _AFTER:
            _check_seconds(value)
        elif name not in _CHOICES:
            close = difflib.get_close_matches(name, known, 1)
            meant = f"; did you mean {close[0]}?" if close else ""
            raise TypeError(
                f"compile: there is no option {name!r}, expected {', '.join(known)}{meant}"
            )
        elif not any(value is choice or value == choice for choice in _CHOICES[name]):
            wanted = " or ".join(map(repr, _CHOICES[name]))
            raise ValueError(f"compile: expected {name}={wanted}, received {value!r}")


def _check_seconds(value: Any) -> None:
    if value is None:
        return
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise TypeError(
            f"compile: expected compile_after=None or a number of seconds, received {value!r}"
        )
    if math.isnan(value) or value < 0:
        raise ValueError(
            f"compile: expected compile_after >= 0 (0 compiles at once), received {value!r}"
        )
