"""A folder with compiled code, shared by all processes of a user.

Each entry is one file: a mark, the version of this format, the length of the data, a SHA-256 over
the key and the data, and the data. What does not fit that (cut short, damaged, made by another
version or by another user) is as good as absent, and is replaced by the next `Cache.put`. Files
appear whole or not at all, so that any number of processes may use one folder at once.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import os
import random
import re
import secrets
import stat
import sys
import time
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dilim.errors import DilimError

FOLDER_VARIABLE: Final = "DILIM_CACHE"
SIZE_VARIABLE: Final = "DILIM_CACHE_SIZE"
DEFAULT_SIZE: Final = 512 << 20
"""Bytes that the entries may take."""
FORMAT: Final = 1

_MARK: Final = b"DILIMCAC"
_HEADER_BYTES: Final = len(_MARK) + 4 + 8 + 32
_SUFFIX: Final = ".code"
_TEMPORARY: Final = ".tmp"
_USE_SECONDS: Final = 3600.0
"""The time of use of an entry is kept no more exactly than this; also, how long a file that some
process is writing can be in use."""
_KEPT_SHARE: Final = 0.8
_CHECKS_PER_LIMIT: Final = 64
_UNITS: Final = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30}


@dataclass(frozen=True, slots=True)
class Contents:
    """What a cache holds.

    Attributes:
        entries: how many.
        bytes: that they take together.
    """

    entries: int
    bytes: int


class Cache:
    """Compiled code by key.

    Args:
        folder: where the entries are; made when first needed. None: nothing is kept.
        limit: bytes that they may take. When there are more, those that were not used for the
            longest time go.

    Attributes:
        folder: see above.
        limit: see above.
        hits: how often this process found code here.
        misses: how often it did not.
    """

    def __init__(self, folder: Path | None, limit: int = DEFAULT_SIZE) -> None:
        self.folder = folder
        self.limit = limit
        self.hits = self.misses = 0
        self._writable = True
        # All processes together look at the folder once in so many bytes written.
        self._unchecked_limit = limit / _CHECKS_PER_LIMIT
        # of its own: a user's seeded numbers must not depend on what is compiled
        self._unchecked = random.Random().uniform(0.0, self._unchecked_limit)

    def get(self, key: str) -> bytes | None:
        """The data that was put under a key, or None."""
        data = self._read(key)
        if data is None:
            self.misses += 1
        else:
            self.hits += 1
        return data

    def _read(self, key: str) -> bytes | None:
        path = self._path(key)
        if path is None:
            return None
        try:
            with open(path, "rb") as file:
                status = os.fstat(file.fileno())
                entry = file.read() if _is_own(status.st_uid) else b""
        except OSError:
            return None
        data = _data_of(entry, key)
        if data is not None and time.time() - status.st_mtime > _USE_SECONDS:
            with contextlib.suppress(OSError):
                os.utime(path)
        return data

    def put(self, key: str, data: bytes) -> None:
        """Keep data under a key; instead of what may be there.

        A folder that cannot be written is told by a warning, once, and not tried again.
        """
        path = self._path(key)
        if path is None or not self._writable:
            return
        entry = _entry_of(data, key)
        try:
            _replace(path, entry)
        except OSError as error:
            self._writable = False
            warnings.warn(
                f"cache: compiled code cannot be kept in {self.folder}: "
                f"{error.strerror or error}; set {FOLDER_VARIABLE} to another folder, or to off",
                RuntimeWarning,
                stacklevel=2,
            )
            return
        self._unchecked += len(entry)
        if self._unchecked > self._unchecked_limit:
            self._unchecked = 0.0
            self.shrink()

    def contents(self) -> Contents:
        """How much there is."""
        sizes = [status.st_size for _, status in self._files()]
        return Contents(len(sizes), sum(sizes))

    def clear(self) -> Contents:
        """Remove all entries; how much was removed."""
        sizes = [status.st_size for path, status in self._files() if _remove(path)]
        for path, _ in self._files(_TEMPORARY):
            _remove(path)
        return Contents(len(sizes), sum(sizes))

    def shrink(self) -> None:
        """Remove what was not used for the longest time, if there is more than the limit."""
        for path, status in self._files(_TEMPORARY):  # left by processes that were killed
            if time.time() - status.st_mtime > _USE_SECONDS:
                _remove(path)
        files = sorted(self._files(), key=lambda file: file[1].st_mtime)
        total = sum(status.st_size for _, status in files)
        if total <= self.limit:
            return
        for path, status in files:
            _remove(path)
            total -= status.st_size
            if total <= _KEPT_SHARE * self.limit:
                return

    def _path(self, key: str) -> Path | None:
        if self.folder is None:
            return None
        name = hashlib.sha256(key.encode()).hexdigest()
        return self.folder / name[:2] / f"{name[2:]}{_SUFFIX}"

    def _files(self, suffix: str = _SUFFIX) -> Iterator[tuple[Path, os.stat_result]]:
        """Entries, with size and times; only files that have the name of one."""
        if self.folder is None:
            return
        for path in self.folder.glob(f"[0-9a-f][0-9a-f]/*{suffix}"):
            with contextlib.suppress(OSError):  # another process may have removed it
                status = path.stat()
                if stat.S_ISREG(status.st_mode):
                    yield path, status


def _digest(data: bytes, key: str) -> bytes:
    return hashlib.sha256(hashlib.sha256(key.encode()).digest() + data).digest()


def _entry_of(data: bytes, key: str) -> bytes:
    numbers = FORMAT.to_bytes(4, "little") + len(data).to_bytes(8, "little")
    return _MARK + numbers + _digest(data, key) + data


def _data_of(entry: bytes, key: str) -> bytes | None:
    """The data in an entry, if that is whole and belongs to the key."""
    data = entry[_HEADER_BYTES:]
    return data if len(entry) >= _HEADER_BYTES and entry == _entry_of(data, key) else None


def _is_own(user: int) -> bool:
    """Whether a file is this user's or the administrator's: others' machine code is not run."""
    return sys.platform == "win32" or user in (os.geteuid(), 0)


def _replace(path: Path, entry: bytes) -> None:
    """Write a file, whole or not at all. It need not survive a power cut: it can be made again."""
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    temporary = path.with_name(f"{secrets.token_hex(8)}{_TEMPORARY}")
    try:
        temporary.write_bytes(entry)
        try:
            os.replace(temporary, path)
        except PermissionError:
            # Windows refuses while another process reads the file, which then is as good as new.
            if sys.platform != "win32" or not path.exists():
                raise
            _remove(temporary)
    except BaseException:
        _remove(temporary)
        raise


def _remove(path: Path) -> bool:
    """Remove a file; whether it was there."""
    try:
        path.unlink()
    except OSError:
        return False
    return True


def cache() -> Cache:
    """The cache of this user.

    It is in the user's folder for caches (``~/.cache/dilim`` or below ``XDG_CACHE_HOME``;
    ``~/Library/Caches/dilim`` on macOS; ``dilim/cache`` below ``LOCALAPPDATA`` on Windows). The
    environment variable ``DILIM_CACHE`` names another folder, or is ``off``; ``DILIM_CACHE_SIZE``
    limits the size, such as ``512M`` (the default).

    Raises:
        DilimError: ``DILIM_CACHE_SIZE`` is no size.
    """
    chosen = os.environ.get(FOLDER_VARIABLE, "")
    limit = _size(os.environ.get(SIZE_VARIABLE, ""))
    if chosen.lower() == "off":
        return _cache_at(None, limit)
    return _cache_at(Path(chosen).expanduser() if chosen else _default_folder(), limit)


@functools.cache
def _cache_at(folder: Path | None, limit: int) -> Cache:
    return Cache(folder, limit)


def _default_folder() -> Path | None:
    """None where the user has no folder at all."""
    try:
        home = Path.home()
    except RuntimeError:
        return None
    if sys.platform == "win32":
        local = os.environ.get("LOCALAPPDATA")
        return Path(local or home / "AppData" / "Local") / "dilim" / "cache"
    if sys.platform == "darwin":
        return home / "Library" / "Caches" / "dilim"
    given = Path(os.environ.get("XDG_CACHE_HOME", ""))
    return (given if given.is_absolute() else home / ".cache") / "dilim"


def _size(text: str) -> int:
    if not text:
        return DEFAULT_SIZE
    found = re.fullmatch(r"([0-9]+) *([KMG]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if found is None:
        raise DilimError(f"{SIZE_VARIABLE}: expected a size such as 512M, received {text!r}")
    return int(found[1]) * _UNITS[found[2].upper()]
