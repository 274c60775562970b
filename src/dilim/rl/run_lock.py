"""A lock on a run folder: one process at a time trains there.

The operating system holds the lock and lets go of it when the process ends in any way, so nothing
stale is left behind by a kill. The file stays; that it exists means nothing.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final

from dilim.errors import StateError

LOCK: Final = "run.lock"
"""Name of the file; it holds the number of the process that locked it last."""

_LOCKED_BYTE: Final = 1 << 30  # beyond the text, which Windows would not let others read

if sys.platform == "win32":
    import msvcrt

    def _take(descriptor: int) -> None:
        os.lseek(descriptor, _LOCKED_BYTE, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)

else:
    import fcntl

    def _take(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)


class RunLock:
    """Context manager that holds the lock of a folder; it may be entered again while it holds."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._descriptor = -1
        self._depth = 0

    def __enter__(self) -> None:
        """Take the lock.

        Raises:
            StateError: another process has it; its number is given.
            OSError: the file cannot be opened.
        """
        if self._depth == 0:
            self._descriptor = self._open()
        self._depth += 1

    def __exit__(self, *exception: object) -> None:
        """Let go of it."""
        self._depth -= 1
        if self._depth == 0:
            os.close(self._descriptor)

    def _open(self) -> int:
        path = self._folder / LOCK
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        try:
            _take(descriptor)
        except (BlockingIOError, PermissionError) as error:
            holder = os.read(descriptor, 40).decode(errors="replace").strip() or "unknown"
            os.close(descriptor)
            raise StateError(
                f"run {self._folder} is in use by process {holder}; wait for it, or stop it"
            ) from error
        except OSError:
            return descriptor  # a file system without locks must not keep anybody from training
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        return descriptor
