"""`Process`: an object in another Python, whose methods are called from here.

A process is a fresh Python that is sent what it needs, and speaks through its standard input and
output; so a script needs no ``if __name__ == "__main__"``, and no thread of this process is copied.
What is printed there goes to the standard error.
"""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import signal
import subprocess
import sys
import traceback
import weakref
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from typing import IO, Any, Final

import cloudpickle

from dilim.tensors.creation import asarray
from dilim.tensors.tensor import Tensor

_PATIENCE_S: Final = 5.0  # for a process that should come to its end


class ProcessTraceback(Exception):
    """Where an error was raised in another process, as text; the cause of that error here."""

    def __str__(self) -> str:
        return f'\n"""\n{self.args[0]}"""'


class Process:
    """A Python of its own, which makes an object and does with it what it is asked for.

    Args:
        packed: of a function without arguments that makes the object, see `pack`.
        name: what to call it in messages.
        variables: of its environment, besides those of this process.
    """

    def __init__(self, packed: bytes, name: str, variables: dict[str, str] | None = None) -> None:
        self.name = name
        paths = os.pathsep.join(filter(None, sys.path))
        self._process = subprocess.Popen(
            [sys.executable, "-c", "from dilim.rl.processes import serve; serve()"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": paths, **(variables or {})},
        )
        weakref.finalize(self, _end, [self._process])
        self.tell(packed)

    def tell(self, value: Any) -> None:
        """Send something; a method to be called is ``(its name, its arguments)``."""
        try:
            _send(_open(self._process.stdin), value)
        except BrokenPipeError:
            raise self._lost() from None

    def answer(self) -> tuple[BaseException | None, Any]:
        """What the method raised that was asked for first, or None, and what it gave.

        Raises:
            RuntimeError: the process is no more.
        """
        try:
            is_error, value = pickle.load(_open(self._process.stdout))
        except EOFError:
            raise self._lost() from None
        return (_raised(*value), None) if is_error else (None, value)

    def ask(self, name: str, *arguments: Any) -> Any:
        """Call a method, and wait for what it gives.

        Raises:
            BaseException: what it raised, with its traceback there as the cause.
            RuntimeError: the process is no more.
        """
        self.tell((name, arguments))
        error, value = self.answer()
        if error is not None:
            raise error
        return value

    def kill(self) -> None:
        """End it at once, whatever it does."""
        self._process.kill()

    def _lost(self) -> RuntimeError:
        code = self._process.wait(_PATIENCE_S)
        return RuntimeError(f"the process of {self.name} ended by itself (exit code {code})")


def spread(
    make: Callable[[], Any], method: str, jobs: Iterable[Any], count: int | None = None
) -> Iterator[tuple[Any, Any]]:
    """Have jobs done by some processes, each of which does one after the other.

    Args:
        make: gives the object of a process.
        method: its name; called with a job.
        jobs: these, the first ones first.
        count: how many processes; as many as there are cores by default.

    Returns:
        Of each job, as soon as it is done, it and what the method gave.

    Raises:
        ValueError: the count is below 1.
        BaseException: what a method raised; the processes are ended then, whatever they do.
    """
    if count is not None and count < 1:
        raise ValueError(f"expected processes to be at least 1, or None, received {count!r}")
    left = list(jobs)
    count = min(count or os.cpu_count() or 1, len(left))
    variables = {"DILIM_THREADS": "1"}  # there are as many processes as cores
    packed = pack(make)
    workers = [Process(packed, f"worker {k}", variables) for k in range(count)]
    pool = ThreadPoolExecutor(count)
    running: dict[Future[Any], tuple[Process, Any]] = {}
    try:
        for worker in workers:
            job = left.pop(0)
            running[pool.submit(worker.ask, method, job)] = (worker, job)
        while running:
            for done in wait(running, return_when=FIRST_COMPLETED).done:
                worker, job = running.pop(done)
                result = done.result()
                if left:
                    following = left.pop(0)
                    running[pool.submit(worker.ask, method, following)] = (worker, following)
                yield job, result
    finally:
        for worker in workers:
            worker.kill()
        pool.shutdown()
        end(workers)


class _Packer(cloudpickle.Pickler):  # type: ignore[misc]
    """Takes tensors along, which is fine between two processes of one program."""

    def reducer_override(self, value: Any) -> Any:
        """How a value is made again."""
        if isinstance(value, Tensor):
            return asarray, (value.numpy(copy=True),)
        return super().reducer_override(value)


def pack(value: Any) -> bytes:
    """A value with the code of its class, where that is in no module that can be imported."""
    stream = io.BytesIO()
    _Packer(stream).dump(value)
    return stream.getvalue()


def unpack(packed: bytes) -> Any:
    """What `pack` was given."""
    return pickle.loads(packed)


def end(processes: Iterable[Process]) -> None:
    """Let processes come to their ends, and see that they do."""
    _end([process._process for process in processes])


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


def _raised(error: bytes | None, kind: str, text: str) -> BaseException:
    """An error of another process."""
    try:
        found = RuntimeError(kind) if error is None else pickle.loads(error)
    except Exception:
        found = RuntimeError(kind)
    found.__cause__ = ProcessTraceback(text)
    return found


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
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # that is for the process that asks
    asked, answers = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
    os.dup2(2, 1)
    packed = pickle.load(asked)
    served: Any = None
    while True:
        try:
            name, arguments = pickle.load(asked)
        except EOFError:
            return
        try:
            if served is None:
                served = unpack(packed)()
            answer = False, getattr(served, name)(*arguments)
        except Exception as error:
            answer = True, _told(error)
        try:
            _send(answers, answer)
        except BrokenPipeError:
            return


def _told(error: Exception) -> tuple[bytes | None, str, str]:
    text = "".join(traceback.format_exception(error))
    try:
        packed = pack(error)
    except Exception:
        packed = None
    return packed, f"{type(error).__name__}: {error}", text
