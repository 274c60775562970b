"""How many threads compiled code uses, and the pool they are in.

The pool is made when the first program needs it. It is usable by any number of Python threads at
once: while it works for one, kernels of the others run on their own threads.
"""

from __future__ import annotations

import atexit
import os
import threading
from typing import Final

from dilim.backends.llvm import binding
from dilim.backends.llvm.threads import MAX_WORKERS, Pool, write_threads
from dilim.errors import DeviceError
from dilim.runtime.cache import cache
from dilim.runtime.machine import this_machine

THREADS_VARIABLE: Final = "DILIM_THREADS"
MOST: Final = MAX_WORKERS + 1


def set_num_threads(count: int) -> None:
    """Choose how many threads a kernel of a compiled program may use.

    Results do not depend on it. The default is the environment variable ``DILIM_THREADS``, or else
    the number of cores that this process may use. Small kernels run on one thread in any case.

    Args:
        count: from 1 to 256.

    Raises:
        DeviceError: not such a number.
    """
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= MOST:
        raise DeviceError(
            f"set_num_threads: expected a number from 1 to {MOST}, received {count!r}"
        )
    _threads.set(count)


def get_num_threads() -> int:
    """How many threads a kernel of a compiled program may use; see `set_num_threads`."""
    return _threads.get()


def native_pool() -> int:
    """Address of the pool, made when first asked for. It stays right for the whole process."""
    return _threads.pool().address


def symbols() -> dict[str, int]:
    """Addresses of the pool's functions by name, for `dilim.backends.llvm.binding.link`."""
    return _threads.pool().symbols


def usable_cores() -> int:
    """How many cores this process may use."""
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity is not None else os.cpu_count() or 1


def _default_count() -> int:
    text = os.environ.get(THREADS_VARIABLE, "")
    if not text:
        return min(usable_cores(), MOST)
    if not text.isdecimal() or not 1 <= int(text) <= MOST:
        raise DeviceError(
            f"{THREADS_VARIABLE}: expected a number from 1 to {MOST}, received {text!r}"
        )
    return int(text)


class _Threads:
    """The number of threads, and the pool once there is one."""

    def __init__(self) -> None:
        self._count: int | None = None
        self._pool: Pool | None = None
        self._lock = threading.Lock()

    def get(self) -> int:
        if self._count is None:
            self._count = _default_count()
        return self._count

    def set(self, count: int) -> None:
        with self._lock:
            self._count = count
            if self._pool is not None:
                self._pool.resize(count - 1)

    def pool(self) -> Pool:
        with self._lock:
            if self._pool is None:
                self._pool = Pool(binding.link([_object()]))
                self._pool.resize(self.get() - 1)
                atexit.register(self._pool.stop)
            return self._pool

    def after_fork(self) -> None:
        """In the child there are no workers; it gets its own."""
        self._lock = threading.Lock()  # another thread of the parent may have held it
        if self._pool is not None:
            self._pool.forget_threads()
            self._pool.resize(self.get() - 1)


def _object() -> bytes:
    here = this_machine()
    target = here.target
    text = write_threads(target.architecture)
    key = f"threads|{here.llvm}|{target}|{text}"
    stored = cache().get(key)
    if stored is None:
        stored = binding.emit_object(text, target)
        cache().put(key, stored)
    return stored


_threads: Final = _Threads()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_threads.after_fork)
