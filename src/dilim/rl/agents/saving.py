"""`Savable`: the part of all agents that saves, loads and copies them."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, ClassVar, Self

import numpy as np

from dilim.errors import StateError
from dilim.rl.agents import checkpoint
from dilim.rl.agents.kinds import checked
from dilim.runtime.files import Arrays, Header


class Savable:
    """What an agent is saved and made again with; see `Agent`."""

    source: str | None
    kinds: ClassVar[dict[str, type[Savable]]] = {}
    """All agents by class name, so that a file can say which one it holds."""

    def __init_subclass__(cls) -> None:
        """Make the agent known under its name, and have its options checked."""
        super().__init_subclass__()
        Savable.kinds[cls.__name__] = cls
        if "__init__" in vars(cls):
            cls.__init__ = checked(cls.__init__)  # type: ignore[method-assign]

    def state(self) -> tuple[Arrays, Header]:
        """Everything that the next step depends on: arrays by name, and plain JSON."""
        return checkpoint.gather(self)

    def load_state(self, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> None:
        """Take over what `state` of an agent with the same options gave.

        Raises:
            StateError: it belongs to another agent, or a part is missing.
        """
        checkpoint.restore(self, arrays, header)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything into one file, atomically, from which training goes on exactly.

        The file is in the safetensors format with a JSON header; nothing in it is ever executed.
        An environment that has ``get_state`` and ``set_state``, as those of dilim do, is part of
        it. Of another one its ``np_random`` is, and training goes on with a new episode.
        """
        checkpoint.save(self, path)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Self:
        """The agent that `save` wrote; ``agent.train(env, ...)`` goes on in a new environment.

        Raises:
            FileFormatError: the file is damaged, foreign, newer, or holds something else.
            StateError: it holds another kind of agent, or a part is missing.
        """
        agent = cls.from_state(*checkpoint.read(path))
        agent.source = os.fspath(path)
        return agent

    @classmethod
    def from_state(cls, arrays: Mapping[str, np.ndarray], header: Mapping[str, Any]) -> Self:
        """A new agent from what `state` gave.

        Raises:
            StateError: it is another kind of agent, or a part is missing.
        """
        kind = cls.kinds.get(str(header.get("agent")))
        if kind is None or not issubclass(kind, cls):
            raise StateError(
                f"{cls.__name__}: this is the state of an agent of kind {header.get('agent')!r}"
            )
        try:
            agent = kind(**header["options"])
        except (KeyError, TypeError) as error:
            raise StateError(f"{cls.__name__}: the saved options do not fit: {error}") from error
        agent.load_state(arrays, header)
        return agent

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        """An agent that goes on exactly as this one, in an environment of its own."""
        copied = type(self).from_state(*self.state())
        memo[id(self)] = copied
        return copied
