"""`Workers`: environments that are stepped in processes of their own, all at the same time.

A process is a fresh Python that is sent the environments, and speaks through its standard input and
output; so a script needs no ``if __name__ == "__main__"``, and no thread of this process is copied.
What environments print there goes to the standard error.
"""

from __future__ import annotations

import contextlib
import os
import pickle
import signal
import subprocess
import sys
import traceback
import weakref
from collections.abc import Callable
from typing import IO, Any, Final

import gymnasium
import numpy as np
from gymnasium.envs.registration import EnvSpec
from gymnasium.vector.utils import CloudpickleWrapper

from dilim.errors import EnvironmentContractError
from dilim.rl import adapters
from dilim.rl.actions import several
from dilim.rl.outside import FIRST, Outside, Rows
from dilim.tensors.tensor import Tensor

_PATIENCE_S: Final = 5.0  # for a process that should come to its end


class WorkerTraceback(Exception):
    """Where an error was raised in another process, as text; the cause of that error here."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


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
        self._packed = _packed(env)
        self._bounds = [count * k // processes for k in range(processes + 1)]
        self._rows = np.zeros((count, FIRST + self.size), np.float32)
        self._is_whole = False
        self._processes: list[subprocess.Popen[bytes]] = []

    def begin(self, seeds: list[int] | None = None) -> Rows:
        """See `Outside.begin`."""
        self._is_whole = False
        given = [None if seeds is None else seeds[a:b] for a, b in self._parts]
        return self._seen(self._ask("begin", given))

    def go_on(self) -> Rows:
        """See `Outside.go_on`."""
        if not self._is_whole:  # a step of some has failed: the episodes of all are over
            return self.begin()
        self._is_whole = False
        return self._seen(self._ask("go_on", [None] * len(self._parts)))

    def step(self, actions: Tensor) -> Rows:
        """See `Outside.step`."""
        self._is_whole = False
        each = several(actions)
        parts = self._ask("move", [each[a:b] for a, b in self._parts])
        for (a, b), rows in zip(self._parts, parts, strict=True):
            self._rows[a:b] = rows
        self._rows[:, 3] = self.is_interrupted()
        self._is_whole = True
        return self._rows

    def close(self) -> None:
        """End the processes; they are started anew when there is something to do."""
        processes, self._processes = self._processes, []
        _end(processes)

    # --- between the processes --------------------------------------------------------------

    @property
    def _parts(self) -> list[tuple[int, int]]:
        return list(zip(self._bounds, self._bounds[1:], strict=False))

    def _seen(self, parts: list[Any]) -> Rows:
        self._is_whole = True
        seen: Rows = np.concatenate(parts)
        return seen

    def _ask(self, name: str, given: list[Any]) -> list[Any]:
        """Call a method of `Outside` in all processes; what each gives."""
        try:
            if not self._processes:
                self._start()
            for k, argument in enumerate(given):
                self._tell(k, (name, argument))
            answers = [self._answer(k) for k in range(len(given))]
        except BaseException:
            self.close()  # what has been asked and not been heard would come later
            raise
        for is_error, value in answers:
            if is_error:
                raise _raised(*value)
        return [value for _, value in answers]

    def _start(self) -> None:
        weakref.finalize(self, _end, self._processes)
        for k, (a, b) in enumerate(self._parts):
            process = subprocess.Popen(
                [sys.executable, "-c", "from dilim.rl.workers import serve; serve()"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))},
            )
            self._processes.append(process)
            self._tell(k, (self._packed, a, b - a))

    def _tell(self, k: int, value: Any) -> None:
        try:
            _send(_open(self._processes[k].stdin), value)
        except BrokenPipeError:
            raise self._lost(k) from None

    def _answer(self, k: int) -> tuple[bool, Any]:
        try:
            answer: tuple[bool, Any] = pickle.load(_open(self._processes[k].stdout))
        except EOFError:
            raise self._lost(k) from None
        return answer

    def _lost(self, k: int) -> RuntimeError:
        code = self._processes[k].wait(_PATIENCE_S)
        a, b = self._parts[k]
        return RuntimeError(
            f"the process of environments {a} to {b - 1} ended by itself (exit code {code})"
        )


def _packed(env: adapters.Environment) -> bytes:
    """An environment, or what Gymnasium makes another one from, to be sent.

    Raises:
        EnvironmentContractError: it can be neither.
    """
    try:
        return _bytes(env)
    except Exception as error:
        if getattr(env, "spec", None) is None:
            raise EnvironmentContractError(
                f"train: cannot send {type(env).__name__} to another process ({error}); train "
                "without num_workers="
            ) from error
        return _bytes(env.spec)


def _bytes(value: Any) -> bytes:
    """A value with the code of its class, where that is in no module that can be imported."""
    return pickle.dumps(CloudpickleWrapper(value))


def _raised(error: bytes | None, kind: str, text: str) -> BaseException:
    """An error of another process."""
    try:
        found = RuntimeError(kind) if error is None else pickle.loads(error).fn
    except Exception:
        found = RuntimeError(kind)
    found.__cause__ = WorkerTraceback(text)
    return found


def _end(processes: list[subprocess.Popen[bytes]]) -> None:
    for process in processes:
        with contextlib.suppress(OSError):
            _open(process.stdin).close()
    for process in processes:
        try:
            process.wait(_PATIENCE_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        _open(process.stdout).close()
    processes.clear()


def _send(stream: IO[bytes], value: Any) -> None:
    stream.write(pickle.dumps(value, protocol=pickle.HIGHEST_PROTOCOL))
    stream.flush()


def _open(stream: IO[bytes] | None) -> IO[bytes]:
    if stream is None:
        raise RuntimeError("a process without pipes")
    return stream


# --- in the other process -------------------------------------------------------------------


def serve() -> None:
    """Do what is asked for, until nothing more can be."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # that is for the process that trains
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    outside: Outside | None = None
    packed, first, count = pickle.load(asked)
    while True:
        try:
            name, argument = pickle.load(asked)
        except EOFError:
            return
        try:
            if outside is None:
                outside = Outside([_unpacked(packed) for _ in range(count)], first)
            answer = False, getattr(outside, name)(*([] if argument is None else [argument]))
        except Exception as error:
            answer = True, _told(error)
        try:
            _send(answers, answer)
        except BrokenPipeError:
            return


def _unpacked(packed: bytes) -> adapters.Environment:
    found = pickle.loads(packed).fn
    return gymnasium.make(found) if isinstance(found, EnvSpec) else found


def _told(error: Exception) -> tuple[bytes | None, str, str]:
    text = "".join(traceback.format_exception(error))
    try:
        packed = _bytes(error)
    except Exception:
        packed = None
    return packed, f"{type(error).__name__}: {error}", text
