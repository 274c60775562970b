"""Where the user's code is: the innermost line outside this package."""

from __future__ import annotations

import os
import sys
from types import CodeType, FrameType
from typing import Final

from dilim.ir.graph import Site

_PACKAGE: Final = os.path.dirname(os.path.dirname(os.path.abspath(__file__))) + os.sep
_inside: Final[dict[CodeType, bool]] = {}


def user_site() -> Site:
    """The innermost line of a file outside this package."""
    frame: FrameType = sys._getframe(1)
    while _is_inside(frame.f_code) and frame.f_back is not None:
        frame = frame.f_back
    return Site(frame.f_code.co_filename, frame.f_lineno)


def _is_inside(code: CodeType) -> bool:
    found = _inside.get(code)
    if found is None:
        if len(_inside) > 10_000:
            _inside.clear()  # code objects made at run time must not pile up
        found = _inside[code] = code.co_filename.startswith(_PACKAGE)
    return found
