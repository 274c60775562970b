"""Threads that share the chunks of a kernel, without Python.

One pool serves a process. Its code is one small object that others call by name:

``i32 @dilim_parallel(ptr pool, ptr kernel, ptr args, i64 chunks, ptr scratch, i64 stride, i64 n)``
    Run all chunks of ``i32 kernel(ptr args, i64 begin, i64 end, ptr scratch)`` on up to ``n``
    threads, each with its own scratch memory, ``stride`` bytes apart. The first result of a kernel
    that is not 0, or 0. If the pool is busy, the caller runs them all.
``void @dilim_wake(ptr pool)``
    Wake the workers, because there will be work soon.

See `dilim.backends.llvm.threads_text` for how.
"""

from __future__ import annotations

import contextlib
import ctypes
import threading
import time
from typing import Any, Final

from dilim.backends.llvm.binding import Library
from dilim.backends.llvm.calls import fast_calls
from dilim.backends.llvm.threads_text import LINE, PLACES, write_threads

__all__ = ["MAX_WORKERS", "PARALLEL", "WAKE", "Pool", "write_threads"]

PARALLEL: Final = "dilim_parallel"
WAKE: Final = "dilim_wake"
MAX_WORKERS: Final = 255
SPIN_SECONDS: Final = 80e-6
"""How long a worker looks out for work before it parks."""
STOP_SECONDS: Final = 1.0
"""How long the end of the process waits for a worker that is in the middle of a kernel."""

_BYTES: Final = PLACES["WORKERS"] + MAX_WORKERS * LINE
_PROBE: Final = 1000


class Pool:
    """Threads that wait for kernels.

    It lives as long as the process, since machine code holds its address. Without CPython's locks
    it has no workers: kernels run on the thread that asks for them.

    Args:
        library: the code of `write_threads`.

    Attributes:
        address: of its memory.
        symbols: addresses of its functions, by the names that other code calls them by.
    """

    def __init__(self, library: Library) -> None:
        self._memory = ctypes.create_string_buffer(_BYTES + LINE)
        self.address = -(-ctypes.addressof(self._memory) // LINE) * LINE
        self.symbols = {name: library.address(name) for name in (PARALLEL, WAKE)}
        self._threads: list[threading.Thread] = []
        self._can_start = fast_calls()
        self._work = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(
            library.address("dilim_worker")
        )
        self._end = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int64)(
            library.address("dilim_stop")
        )
        pause = ctypes.CFUNCTYPE(None, ctypes.c_int64)(library.address("dilim_pause"))
        self._set("SPINS", ctypes.c_int64, _spins(pause))
        if self._can_start:
            self._set("ACQUIRE", ctypes.c_size_t, _address(_python("PyThread_acquire_lock")))
            self._set("RELEASE", ctypes.c_size_t, _address(_python("PyThread_release_lock")))
            self._set("YIELD", ctypes.c_size_t, _yield_address())
            # Even a worker that outlives the interpreter must find its code and its memory.
            for needed in (library, self._memory):
                ctypes.pythonapi.Py_IncRef(ctypes.py_object(needed))

    @property
    def workers(self) -> int:
        """How many threads take part besides the one that asks."""
        return int(ctypes.c_int64.from_address(self.address + PLACES["LIMIT"]).value)

    def resize(self, workers: int) -> None:
        """Let so many workers take part; missing ones are started, others sleep on.

        There are fewer where the system refuses to start a thread.
        """
        while self._can_start and len(self._threads) < workers:
            try:
                self._start()
            except RuntimeError:
                break
        self._set("LIMIT", ctypes.c_int64, min(workers, len(self._threads)))

    def stop(self) -> None:
        """Send the workers home for good, and wait for them."""
        self._set("LIMIT", ctypes.c_int64, 0)
        self._end(self.address, len(self._threads))
        deadline = time.monotonic() + STOP_SECONDS
        for thread in self._threads:
            thread.join(max(deadline - time.monotonic(), 0.0))
        self._threads.clear()
        self._can_start = False

    def forget_threads(self) -> None:
        """After a fork, in the child: nobody works here any more, and no job is open."""
        self._threads.clear()
        for name in ("LIMIT", "STOP", "BUSY", "SLEEPERS"):
            self._set(name, ctypes.c_int64, 0)
        ticket = ctypes.c_uint64.from_address(self.address + PLACES["TICKET"])
        ticket.value = (ticket.value >> 32) << 32

    def _start(self) -> None:
        worker = len(self._threads)
        if worker >= MAX_WORKERS:
            raise RuntimeError("threads: there is no room for more workers")
        allocate, acquire = _python("PyThread_allocate_lock"), _python("PyThread_acquire_lock")
        allocate.restype = ctypes.c_void_p
        acquire.argtypes = [ctypes.c_void_p, ctypes.c_int]
        lock = allocate()
        if not lock:
            raise RuntimeError("threads: no lock can be made")
        acquire(lock, 0)  # to acquire it once more is to sleep
        place = self.address + PLACES["WORKERS"] + worker * LINE
        ctypes.c_size_t.from_address(place).value = 0
        ctypes.c_size_t.from_address(place + 8).value = lock
        name = f"dilim worker {worker + 1}"
        thread = threading.Thread(
            target=self._work, args=(self.address, worker), name=name, daemon=True
        )
        thread.start()
        self._threads.append(thread)

    def _set(self, place: str, kind: Any, value: int) -> None:
        kind.from_address(self.address + PLACES[place]).value = value


def _python(name: str) -> Any:
    """A function of Python's C interface, as an object of its own."""
    return ctypes.pythonapi[name]


def _address(function: Any) -> int:
    return ctypes.cast(function, ctypes.c_void_p).value or 0


def _yield_address() -> int:
    """Of a function that gives the core to another thread; 0 where it is not known."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        return _address(ctypes.CDLL(None).sched_yield)
    return 0


def _spins(pause: Any) -> int:
    """How many pauses last as long as a worker is to look out."""
    fastest = float("inf")
    for _ in range(3):
        started = time.perf_counter()
        pause(_PROBE)
        fastest = min(fastest, time.perf_counter() - started)
    return max(int(SPIN_SECONDS * _PROBE / fastest), 1)
