"""Where the user's code is: the innermost line outside this package."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from types import CodeType, FrameType
from typing import Final

from dilim.ir.graph import Site

_PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_inside: Final[dict[CodeType, bool]] = {}


class _Said(threading.local):
    site: Site | None = None


_said: Final = _Said()


def user_site() -> Site:
    """The innermost line of a file outside this package, or what `standing_at` says."""
    if _said.site is not None:
        return _said.site
    frame: FrameType = sys._getframe(1)
    while _is_inside(frame.f_code) and frame.f_back is not None:
        frame = frame.f_back
    return Site(frame.f_code.co_filename, frame.f_lineno)


@contextmanager
def standing_at(site: Site | None) -> Iterator[None]:
    """A context in which the user's code is said to be at a line that is not on the stack."""
    before, _said.site = _said.site, site
    try:
        yield
    finally:
        _said.site = before


def _is_inside(code: CodeType) -> bool:
    found = _inside.get(code)
    if found is None:
        if len(_inside) > 10_000:
            _inside.clear()  # code objects made at run time must not pile up
        found = _inside[code] = code.co_filename.startswith(_PACKAGE)
    return found
