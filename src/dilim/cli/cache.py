"""`dilim cache`: the folder with compiled code."""

from __future__ import annotations

import json
from enum import StrEnum
from typing import Annotated

import typer

from dilim.cli.messages import output
from dilim.runtime.cache import Cache
from dilim.runtime.cache import cache as user_cache


class Action(StrEnum):
    """What to do."""

    info = "info"
    clear = "clear"


def cache(
    action: Annotated[
        Action, typer.Argument(help="Say how much there is, or remove it all.")
    ] = Action.info,
    as_json: Annotated[bool, typer.Option("--json", metavar="", help="Print JSON.")] = False,
) -> None:
    """Look at the compiled code that is kept on disk, or remove it.

    Example:  dilim cache clear
    """
    kept = user_cache()
    found = kept.clear() if action is Action.clear else kept.contents()
    if as_json:
        text = json.dumps(
            {
                "folder": None if kept.folder is None else str(kept.folder),
                "entries": found.entries,
                "bytes": found.bytes,
                "limit": kept.limit,
            }
        )
    elif kept.folder is None:
        text = "The cache is off: compiled code is not kept."
    elif action is Action.clear:
        text = f"Removed {found.entries:,} entries, {_size(found.bytes)}, from {kept.folder}."
    else:
        text = _description(kept, found.entries, found.bytes)
    output().print(text, soft_wrap=True)


def _description(kept: Cache, entries: int, size: int) -> str:
    return (
        f"{kept.folder}\n"
        f"{entries:,} entries, {_size(size)} of at most {_size(kept.limit)}. "
        "Other places: DILIM_CACHE=FOLDER or off; other limit: DILIM_CACHE_SIZE=1G"
    )


def _size(count: int) -> str:
    """In the largest unit that leaves a number of at least 1.

    Example:
        >>> _size(5), _size(1536), _size(512 << 20)
        ('5 bytes', '1.5 KiB', '512.0 MiB')
    """
    value, unit = float(count), "bytes"
    for larger in ("KiB", "MiB", "GiB"):
        if value < 1024.0:
            break
        value, unit = value / 1024.0, larger
    return f"{count} bytes" if unit == "bytes" else f"{value:.1f} {unit}"
