"""Bytes for the cache: a JSON header and any number of blobs."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

_LENGTH = 4


def pack(header: dict[str, Any], blobs: Sequence[bytes] = ()) -> bytes:
    """One string of bytes from a header and blobs."""
    full = json.dumps({"header": header, "sizes": [len(blob) for blob in blobs]}).encode()
    return b"".join([len(full).to_bytes(_LENGTH, "little"), full, *blobs])


def unpack(data: bytes) -> tuple[dict[str, Any], list[bytes]]:
    """What was packed; the bytes were checked when they were read."""
    start = _LENGTH + int.from_bytes(data[:_LENGTH], "little")
    full = json.loads(data[_LENGTH:start])
    blobs: list[bytes] = []
    for size in full["sizes"]:
        blobs.append(data[start : start + size])
        start += size
    return full["header"], blobs
