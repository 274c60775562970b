"""Files that are whole or absent: atomic writing, and arrays in checked safetensors files.

A file of dilim is an ordinary safetensors file, readable by every tool for that format. Its
``__metadata__`` has one key, ``dilim``, with a JSON text::

    {"format": 1, "kind": "...", ...what the caller adds..., "crc32": 2774863522}

The checksum covers the JSON text before it, every tensor's name, dtype and shape, and its bytes.
Nothing in a file is ever executed.
"""

import contextlib
import errno
import json
import os
import secrets
import stat
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from dilim.errors import DtypeError, FileFormatError

FORMAT: Final = 1
METADATA_KEY: Final = "dilim"

Arrays = dict[str, npt.NDArray[Any]]
Header = dict[str, Any]

_SAVED_DTYPES: Final = (
    *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
    *("float32", "float64"),
)
_READ_DTYPES: Final = (
    *("BOOL", "I8", "I16", "I32", "I64", "U8", "U16", "U32", "U64"),
    *("F16", "F32", "F64"),
)
_RESERVED: Final = ("format", "crc32")
_LENGTH_BYTES: Final = 8  # a safetensors file begins with the length of its JSON part
_LARGEST_JSON: Final = 100_000_000  # the limit of the format
_CURES: Final = {
    errno.ENOENT: "create the folder first",
    errno.ENOTDIR: "a part of the path is a file",
    errno.ENOSPC: "the disk is full",
    errno.EACCES: "the folder must be writable and the file not open elsewhere",
    errno.EPERM: "the folder must be writable and the file not open elsewhere",
    errno.EROFS: "choose a folder on a writable disk",
}


# ----- atomic writing -----------------------------------------------------------------------------


def write_atomic(path: str | os.PathLike[str], data: bytes) -> None:
    """Writes a file so that at every moment its name has the old content or the new, never a part.

    The bytes go to a new file ``.dilim-*.tmp`` in the same folder, are flushed to the disk, and the
    file is renamed over the old one; then the folder is flushed, where the system can. A symbolic
    link is followed; an existing file's permissions are kept. After an error or an interrupt the
    new file is removed. Only a killed process leaves it behind; it may be deleted.

    Args:
        path: the file to write; its folder must exist.
        data: the whole content.

    Raises:
        OSError: the file cannot be written; the subclass is the system's (`PermissionError`, ...).
            What stood there is unchanged.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_atomic(f"{folder}/note.txt", b"whole")
        ...     open(f"{folder}/note.txt", "rb").read()
        b'whole'
    """
    target = Path(os.path.realpath(path))
    temporary = target.with_name(f".dilim-{secrets.token_hex(8)}.tmp")
    try:
        permissions = _permissions(target)
        try:
            _write_through(temporary, data, permissions)
            os.replace(temporary, target)
        except BaseException:
            with contextlib.suppress(OSError):
                temporary.unlink()
            raise
    except OSError as error:
        reason = f"write: cannot write the file: {error.strerror or error}"
        if error.errno in _CURES:
            reason += f"; {_CURES[error.errno]}"
        raise OSError(error.errno, reason, str(target)) from error
    _flush_folder(target.parent)


def _permissions(target: Path) -> int | None:
    """Those of the existing file, or None. Renaming over anything else would destroy it."""
    try:
        mode = target.stat().st_mode
    except FileNotFoundError:
        return None
    if not stat.S_ISREG(mode):
        raise FileExistsError(errno.EEXIST, "the path is a folder or a device, not a file")
    return stat.S_IMODE(mode)


def _write_through(path: Path, data: bytes, permissions: int | None) -> None:
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0)
    with os.fdopen(os.open(path, flags, 0o666), "wb") as file:
        if permissions is not None:
            os.chmod(path, permissions)
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _flush_folder(folder: Path) -> None:
    # The file is complete under its name by now. Windows and some network disks cannot flush a
    # folder, so that after a power cut the old file may stand there: still a whole one.
    with contextlib.suppress(OSError):
        descriptor = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(descriptor)
        finally:
            os.close(descriptor)


# ----- arrays -------------------------------------------------------------------------------------


def save_arrays(
    path: str | os.PathLike[str],
    arrays: Mapping[str, npt.NDArray[Any]],
    header: Mapping[str, Any],
) -> None:
    """Writes named arrays and a JSON header into one safetensors file, atomically.

    `load_arrays` gives back exactly this: every bit of every array (NaN payloads and -0.0 too),
    and an equal header. The same arguments write the same bytes.

    Args:
        path: the file to write; its folder must exist.
        arrays: bool, int8 to int64, uint8 to uint64, float32 or float64; any shape, strides and
            byte order.
        header: plain JSON: str keys; None, bool, int, finite float, str, list and dict values.
            ``"kind"``, a str that says what the file is, must be there; ``"format"`` and
            ``"crc32"`` are set here and must not.

    Raises:
        DtypeError: an array has another dtype.
        FileFormatError: the header or a name cannot be stored.
        OSError: the file cannot be written (see `write_atomic`).
    """
    _check_header(header)
    stored: Arrays = {name: _as_stored(name, array) for name, array in arrays.items()}
    description = {"format": FORMAT, **header}
    description["crc32"] = _checksum(stored, description)
    try:
        data = safetensors.numpy.save(stored, {METADATA_KEY: json.dumps(description)})
    except (safetensors.SafetensorError, ValueError) as error:
        raise FileFormatError(f"save: safetensors cannot store this: {error}") from error
    write_atomic(path, data)


def load_arrays(
    path: str | os.PathLike[str], kind: str | None = None, *, foreign: bool = False
) -> tuple[Arrays, Header]:
    """Reads a file of `save_arrays`, all of it checked, or nothing.

    Args:
        path: the file to read.
        kind: the header's kind that is expected; None takes any.
        foreign: also read a safetensors file that dilim did not write. It has no checksum; its
            header is its own metadata (str to str), `kind` is not looked at, float16 may occur.

    Returns:
        The arrays, sorted by name, each writable and contiguous; and the header as it was given to
        `save_arrays`.

    Raises:
        FileFormatError: the file is cut short, damaged, not a safetensors file, foreign, written
            by a newer dilim, or of another kind.
        OSError: the file cannot be read.
    """
    data = Path(path).read_bytes()
    layout = _read_layout(path, data)
    metadata = layout.pop("__metadata__", {})
    is_ours = isinstance(metadata, dict) and METADATA_KEY in metadata
    if not is_ours and not foreign:
        raise _failure(
            path,
            "is a safetensors file that dilim did not write; pass foreign=True to read its arrays",
        )
    description = _read_description(path, metadata[METADATA_KEY]) if is_ours else {}
    arrays = _read_arrays(path, data, layout)
    if not is_ours:
        return arrays, dict(metadata)
    _verify(path, arrays, description)
    if kind is not None and description["kind"] != kind:
        raise _failure(path, f"holds {description['kind']!r}, expected {kind!r}")
    return arrays, {key: value for key, value in description.items() if key not in _RESERVED}


def _check_header(header: Mapping[str, Any]) -> None:
    plain = dict(header)
    for key in _RESERVED:
        if key in plain:
            raise FileFormatError(f"save: the header key {key!r} is reserved; rename it")
    if not isinstance(plain.get("kind"), str):
        raise FileFormatError(
            "save: the header must say what the file is, for example "
            f"{{'kind': 'weights'}}; got kind={plain.get('kind')!r}"
        )
    try:
        returned = json.loads(json.dumps(plain, allow_nan=False))
    except (TypeError, ValueError, RecursionError) as error:
        raise FileFormatError(f"save: the header is not plain JSON: {error}") from error
    if returned != plain:
        changed = next(key for key in plain if key not in returned or returned[key] != plain[key])
        raise FileFormatError(
            f"save: header[{changed!r}] = {plain[changed]!r} would not come back as it is; "
            "use str keys, and lists for tuples"
        )


def _as_stored(name: str, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    array = np.asarray(array)
    if array.dtype.name not in _SAVED_DTYPES:
        raise DtypeError(
            f"save: array {name!r} has dtype {array.dtype}; "
            "expected bool, an integer, float32 or float64"
        )
    if not isinstance(name, str) or name == "__metadata__":
        raise FileFormatError(f"save: {name!r} cannot be the name of an array")
    return np.asarray(array, dtype=array.dtype.newbyteorder("<"), order="C")


def _checksum(arrays: Mapping[str, npt.NDArray[Any]], description: Mapping[str, Any]) -> int:
    """CRC-32 of the description (without its checksum) and of all arrays, by name."""
    checksum = zlib.crc32(json.dumps(description).encode())
    for name in sorted(arrays):
        array = arrays[name]
        label = json.dumps([name, array.dtype.name, array.shape])
        checksum = zlib.crc32(label.encode(), checksum)
        checksum = zlib.crc32(array.reshape(-1).view(np.uint8).data, checksum)
    return checksum


def _failure(path: str | os.PathLike[str], problem: str) -> FileFormatError:
    return FileFormatError(f"load: {os.fspath(path)} {problem}")


def _read_layout(path: str | os.PathLike[str], data: bytes) -> dict[str, Any]:
    """The JSON part of a safetensors file whose length fits: name -> dtype, shape and offsets."""
    length = int.from_bytes(data[:_LENGTH_BYTES], "little")
    start = _LENGTH_BYTES + length
    if len(data) > _LENGTH_BYTES and (
        length > _LARGEST_JSON or data[_LENGTH_BYTES : _LENGTH_BYTES + 1] != b"{"
    ):
        raise _failure(path, "is not a safetensors file, or its beginning is damaged")
    if len(data) <= _LENGTH_BYTES or len(data) < start:
        raise _failure(
            path,
            f"is cut short: it ends after {len(data)} bytes, inside its description; "
            "use an earlier file",
        )
    try:
        layout = json.loads(data[_LENGTH_BYTES:start])
        ends = [entry["data_offsets"][1] for key, entry in layout.items() if key != "__metadata__"]
        expected = start + max(ends, default=0)
    except (ValueError, TypeError, KeyError, IndexError, AttributeError, RecursionError) as error:
        raise _failure(path, "is damaged: its description is not readable") from error
    if len(data) < expected:
        raise _failure(
            path,
            f"is cut short: it has {len(data)} of {expected} bytes; use an earlier file",
        )
    result: dict[str, Any] = layout
    return result


def _read_description(path: str | os.PathLike[str], text: Any) -> Header:
    unreadable = _failure(path, "is damaged: its header is not readable")
    try:
        description = json.loads(text)
        version = description["format"]
    except (ValueError, TypeError, KeyError, RecursionError) as error:
        raise unreadable from error
    if type(version) is int and version > FORMAT:
        raise _failure(
            path,
            f"has format {version}, and this dilim reads up to {FORMAT}: "
            "it was written by a newer one; upgrade dilim",
        )
    complete = isinstance(description.get("kind"), str) and type(description.get("crc32")) is int
    if version != FORMAT or not complete:
        raise unreadable
    result: Header = description
    return result


def _read_arrays(path: str | os.PathLike[str], data: bytes, layout: Mapping[str, Any]) -> Arrays:
    for name, entry in layout.items():
        dtype = entry.get("dtype")
        if dtype not in _READ_DTYPES:
            raise _failure(
                path,
                f"is damaged, or from elsewhere: array {name!r} has dtype {dtype!r}; "
                f"dilim reads {', '.join(_READ_DTYPES)}",
            )
    try:
        arrays = safetensors.numpy.load(data)
    except (safetensors.SafetensorError, ValueError) as error:
        raise _failure(path, f"is damaged: {error}") from error
    return {name: np.require(arrays[name], requirements=["C", "W"]) for name in sorted(arrays)}


def _verify(path: str | os.PathLike[str], arrays: Arrays, description: Header) -> None:
    unsigned = {key: value for key, value in description.items() if key != "crc32"}
    if _checksum(arrays, unsigned) != description["crc32"]:
        raise _failure(path, "is damaged: its checksum is wrong; use an earlier file")
