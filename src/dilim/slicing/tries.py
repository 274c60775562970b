"""Tries to slice: what they have shown, so that the next does not find it out again."""

from __future__ import annotations

import functools
import gc
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, ParamSpec, TypeVar

from dilim.slicing.program import Function
from dilim.tensors.tensor import Tensor

MOST_REFUSALS: Final = 2
"""How often slicing may fail for values of the same kinds, with nothing new known."""


@dataclass(slots=True)
class Tried:
    """What is known of one function, or loop, for values of some kinds.

    Attributes:
        profile: the types of values of the host that were known.
        decisions: what slicing has learned; see `Region`.
        refusals: how often it has failed.
        hints: what slicing had learned when fewer types were known. Where some of that shows to
            hold again, all of it is believed.
    """

    profile: dict[Any, Any]
    decisions: set[Any] = field(default_factory=set)
    refusals: int = 0
    hints: set[Any] = field(default_factory=set)

    @property
    def is_hopeless(self) -> bool:
        """Whether it would only fail again."""
        return self.refusals >= MOST_REFUSALS


class Tries:
    """All that was tried for one function of the user."""

    def __init__(self) -> None:
        self._known: dict[Any, Tried] = {}

    def of(self, code: Function, frame: Mapping[str, Any], profile: dict[Any, Any]) -> Tried:
        """What is known for such values; nothing where more types are known than then.

        Args:
            code: of the function, or of a loop.
            frame: the values of its names.
            profile: the types of values of the host that are known.
        """
        key = code, *((name, _kind(value)) for name, value in frame.items())
        known = self._known.get(key)
        if known is None or known.profile != profile:
            hints = set() if known is None else known.decisions | known.hints
            known = self._known[key] = Tried(dict(profile), hints=hints)
        return known


def _kind(value: Any) -> Any:
    """What is alike for values for which slicing takes the same course, as far as one can see."""
    if isinstance(value, Tensor):
        return type(value), value.dtype, value.shape, value.requires_grad
    if value is None or isinstance(value, bool | str):
        return type(value), value
    if isinstance(value, list | tuple | dict):
        return type(value), len(value)
    return type(value)


P = ParamSpec("P")
T = TypeVar("T")


_slicing: Final = threading.RLock()


def one_at_a_time(function: Callable[P, T]) -> Callable[P, T]:
    """A function that slices: one thread does at a time, and no garbage is collected meanwhile.

    Memory is told from memory made before by marks that are the same for all threads. Collecting
    takes tens of milliseconds; what slicing makes is mostly kept, and lets go of its own cycles.
    """

    @functools.wraps(function)
    def call(*args: P.args, **keywords: P.kwargs) -> T:
        with _slicing:
            is_collecting = gc.isenabled()
            gc.disable()
            try:
                return function(*args, **keywords)
            finally:
                if is_collecting:
                    gc.enable()

    return call
