"""`Workers`: environments that are stepped in processes of their own, all at the same time."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec

from dilim.errors import EnvironmentContractError
from dilim.rl import adapters
from dilim.rl.actions import several
from dilim.rl.outside import FIRST, Outside, Rows
from dilim.rl.processes import Process, end, pack, unpack
from dilim.tensors.tensor import Tensor


class Workers:
    """N environments of one kind, in processes; otherwise as `Outside`.

    Args:
        env: the environment, of which copies are made.
        count: N.
        processes: how many; each has as many environments as the others, give or take one.

    Attributes:
        count: N.
        size: F, numbers in an observation.
        is_interrupted: whether to pause after a step.
    """

    def __init__(self, env: adapters.Environment, count: int, processes: int) -> None:
        self.count, self.size = count, int(np.prod(env.observation_space.shape))
        self.is_interrupted: Callable[[], bool] = bool
        self._packed = packed(env)
        self._bounds = [count * k // processes for k in range(processes + 1)]
        self._rows = np.zeros((count, FIRST + self.size), np.float32)
        self._is_whole = False
        self._processes: list[Process] = []

    def begin(self, seeds: list[int] | None = None) -> Rows:
        """See `Outside.begin`."""
        self._is_whole = False
        given = [(None if seeds is None else seeds[a:b],) for a, b in self._parts]
        return self._seen(self._ask("begin", given))

    def go_on(self) -> Rows:
        """See `Outside.go_on`."""
        if not self._is_whole:  # a step of some has failed: the episodes of all are over
            return self.begin()
        self._is_whole = False
        return self._seen(self._ask("go_on", [()] * len(self._parts)))

    def step(self, actions: Tensor) -> Rows:
        """See `Outside.step`."""
        self._is_whole = False
        each = several(actions)
        parts = self._ask("move", [(each[a:b],) for a, b in self._parts])
        for (a, b), rows in zip(self._parts, parts, strict=True):
            self._rows[a:b] = rows
        self._rows[0, 3] = self.is_interrupted()
        self._is_whole = True
        return self._rows

    def close(self) -> None:
        """End the processes; they are started anew when there is something to do."""
        processes, self._processes = self._processes, []
        end(processes)

    # --- between the processes --------------------------------------------------------------

    @property
    def _parts(self) -> list[tuple[int, int]]:
        return list(zip(self._bounds, self._bounds[1:], strict=False))

    def _seen(self, parts: list[Any]) -> Rows:
        self._is_whole = True
        seen: Rows = np.concatenate(parts)
        return seen

    def _ask(self, name: str, given: list[tuple[Any, ...]]) -> list[Any]:
        """Call a method of `Outside` in all processes; what each gives."""
        try:
            if not self._processes:
                self._processes = [self._process(a, b) for a, b in self._parts]
            for process, arguments in zip(self._processes, given, strict=True):
                process.tell((name, arguments))
            answers = [process.answer() for process in self._processes]
        except BaseException:
            self.close()  # what has been asked and not been heard would come later
            raise
        for error, _ in answers:
            if error is not None:
                raise error
        return [value for _, value in answers]

    def _process(self, first: int, stop: int) -> Process:
        make = partial(_outside, self._packed, first, stop - first)
        return Process(pack(make), f"environments {first} to {stop - 1}")


def _outside(packed: bytes, first: int, count: int) -> Outside:
    return Outside([unpacked(packed) for _ in range(count)], first)


def packed(env: adapters.Environment) -> bytes:
    """An environment, or what Gymnasium makes another one from, to be sent.

    Raises:
        EnvironmentContractError: it can be neither.
    """
    try:
        return pack(env)
    except Exception as error:
        if getattr(env, "spec", None) is None:
            raise EnvironmentContractError(
                f"train: cannot send {type(env).__name__} to another process ({error}); train "
                "without num_workers="
            ) from error
        return pack(env.spec)


def unpacked(packed: bytes) -> adapters.Environment:
    """The environment that `packed` was given, or one of its kind."""
    found = unpack(packed)
    return gymnasium.make(found) if isinstance(found, EnvSpec) else found
