"""The slicer's own signals. None of them ever reaches the user."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

TOO_LONG: Final = "slicing takes too long"
"""The reason for giving up where there is no end to it."""


class Unsliceable(Exception):
    """A function or statement cannot be sliced, and so runs as plain Python.

    Whoever asked for the slice catches it and keeps the reason for ``explain()``.

    Attributes:
        reason: why, in plain words.
        line: in the user's file; 0 where the catcher knows it.
    """

    def __init__(self, reason: str, line: int = 0) -> None:
        super().__init__(f"{reason} (line {line})" if line else reason)
        self.reason = reason
        self.line = line


class NoSource(Unsliceable):
    """A function was not read from a file: there is nothing to slice."""


class OnHost(Exception):
    """The host has to carry out the statement at hand.

    Attributes:
        reason: why, in plain words.
    """

    def __init__(self, reason: str = "") -> None:
        super().__init__(reason)
        self.reason = reason


def in_words(name: str) -> str:
    """A local name as the user knows it; names that slicing has made up are not his."""
    return "a value" if name.startswith("%") else name


def bound_in_loop(name: str) -> str:
    """The reason why a name cannot be used after a loop that binds it."""
    return f"{in_words(name)} gets a value in a loop, of a kind that loops do not hand on"


class MayBeUnbound(OnHost):
    """A name may have no value; where it has none, the host must raise.

    Attributes:
        name: of a local variable.
    """

    def __init__(self, name: str) -> None:
        super().__init__(f"{in_words(name)} may be unbound")
        self.name = name


class TooLarge(OnHost):
    """An int may be so large that the graph cannot do what Python does with it."""

    def __init__(self, reason: str = "an int that may need more than 64 bits") -> None:
        super().__init__(reason)


class Restart(Exception):
    """Slicing has to begin again, knowing more.

    Attributes:
        decision: what was learned.
    """

    def __init__(self, decision: Any) -> None:
        super().__init__(decision)
        self.decision = decision


@contextmanager
def placed(line: int) -> Iterator[None]:
    """A context in which a refusal is one of a line, where it does not name another."""
    try:
        yield
    except Unsliceable as refusal:
        refusal.line = refusal.line or line
        raise


class LoopSignal(Exception):
    """Ends an attempt to interpret a loop; see `loops`."""


class Again(LoopSignal):
    """The loop has to be interpreted once more, with more to carry."""


class Before(LoopSignal):
    """A name has to be the host's from before the loop on."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


class Peel(LoopSignal):
    """The first turn has to be taken out of the loop."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class Split(LoopSignal):
    """The rest of a block has to be interpreted for each type of a value; see `splits`."""

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.name = name


def attempted(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """What an operation that stands in the user's code gives.

    All that the slicer does for the user goes through here, so that an error in the slicer itself
    is never taken for one of the user's.

    Raises:
        OnHost: it raises, and so it will on the host, where it can be seen.
    """
    try:
        return function(*args, **keywords)
    except (OnHost, Unsliceable, Restart, LoopSignal, RecursionError):
        raise
    except Exception as error:
        raise OnHost(f"{type(error).__name__}: {error}") from None
