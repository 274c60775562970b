"""What kinds of values the options of an agent take: read from the annotations of ``__init__``."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Final

from dilim.optim.schedules import Schedule


def is_whole(value: Any) -> bool:
    """Whether it is an integer, and not a bool."""
    return isinstance(value, Integral) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool)


def _are_sizes(value: Any) -> bool:
    return isinstance(value, Sequence) and all(is_whole(size) for size in value)


_KINDS: Final[Mapping[str, tuple[Callable[[Any], bool], str]]] = {
    "int": (is_whole, "a whole number"),
    "float": (_is_number, "a number"),
    "bool": (lambda value: isinstance(value, bool), "True or False"),
    "str": (lambda value: isinstance(value, str), "a text"),
    "None": (lambda value: value is None, "None"),
    "Sequence[int]": (_are_sizes, "a list of whole numbers, such as [64, 64]"),
    "Schedule": (lambda value: isinstance(value, Schedule), "a schedule"),
    "Mapping[str, Any]": (lambda value: isinstance(value, Mapping), "what its to_dict() gave"),
}
_NAMES: Final = {"Rate": "float | Schedule | Mapping[str, Any]"}


def checked(init: Callable[..., None]) -> Callable[..., None]:
    """An ``__init__`` of an agent that looks at its arguments before it uses them.

    An argument whose annotation names other kinds than those known here is let through.

    Raises:
        TypeError: an argument is of another kind, or there is no such option; the text says what
            is expected.
    """
    signature = inspect.signature(init)

    @functools.wraps(init)
    def looked_at(self: Any, *arguments: Any, **options: Any) -> None:
        _refuse_unknown(type(self), options)
        for name, value in signature.bind(self, *arguments, **options).arguments.items():
            _check(type(self).__name__, name, value, signature.parameters[name].annotation)
        init(self, *arguments, **options)

    return looked_at


def _check(agent: str, name: str, value: Any, annotation: Any) -> None:
    text = _NAMES.get(annotation, annotation)
    kinds = [_KINDS.get(part) for part in text.split(" | ")] if isinstance(text, str) else [None]
    known = [kind for kind in kinds if kind is not None]
    if len(known) == len(kinds) and not any(fits(value) for fits, _ in known):
        wanted = " or ".join(what for _, what in known)
        raise TypeError(f"{agent}: expected {name} to be {wanted}, received {value!r:.60}")


def _refuse_unknown(kind: type, options: Mapping[str, Any]) -> None:
    parameters = [inspect.signature(base.__init__).parameters for base in kind.__mro__[:-1]]  # type: ignore[misc]
    known = [name for found in parameters for name, p in found.items() if p.kind != p.VAR_KEYWORD]
    for name in options:
        if name not in known:
            near = difflib.get_close_matches(name, known, 1)
            hint = (
                f"; did you mean {near[0]!r}?" if near else f"; see help(dilim.rl.{kind.__name__})"
            )
            raise TypeError(f"{kind.__name__}: there is no option {name!r}{hint}")
