"""Tracebacks as the plain function would give them."""

from __future__ import annotations

import ast
import types
from collections.abc import Mapping, Sequence
from typing import TypeAlias, TypeVar

from dilim.runtime.interrupts import is_ours
from dilim.slicing.templates import written

Caller: TypeAlias = tuple[str, str, int] | tuple[str, str, int, ast.AST]
"""The name of a function's code, its file, the line of a call, and perhaps the call's syntax."""

Error = TypeVar("Error", bound=BaseException)


def users_view(error: Error, callers: Sequence[Caller] = ()) -> Error:
    """Takes the frames of the slicer out of an error's traceback.

    Args:
        error: what was raised; its traceback is replaced.
        callers: calls that were laid out flat and so left no frame, the outermost first. They come
            before the first frame of the user.

    Returns:
        The error.
    """
    entries: list[tuple[types.FrameType, int, int]] = []
    entry = error.__traceback__
    while entry is not None:
        if not is_ours(entry.tb_frame.f_code.co_filename):
            line: int | None = entry.tb_lineno  # None where an interrupt met what is on no line
            entries.append((entry.tb_frame, entry.tb_lasti, -1 if line is None else line))
        entry = entry.tb_next
    traceback: types.TracebackType | None = None
    for frame, instruction, line in reversed(entries):
        traceback = types.TracebackType(traceback, frame, instruction, line)
    return error.with_traceback(called_from(traceback, callers))


def of_operation(
    error: Error,
    callers: Mapping[tuple[str, int], Sequence[Caller]],
    names: Mapping[tuple[str, int], str],
    name: str,
) -> Error:
    """Gives an error of an operation of a graph program the look that it has in eager execution.

    Args:
        error: what was raised.
        callers: file and line -> the calls that were laid out flat around it.
        names: file and line -> the name of the function that stands there.
        name: that of the outermost function.
    """
    site = getattr(error, "site", None)
    if site is None:
        return users_view(error)
    error.__context__ = None
    del error.site, error.__notes__  # type: ignore[attr-defined]
    return users_view(error, [*callers.get(site, ()), (names.get(site, name), *site)])


def called_from(
    traceback: types.TracebackType | None, callers: Sequence[Caller]
) -> types.TracebackType | None:
    """A traceback with frames in front of it, the outermost caller first."""
    for caller in reversed(callers):
        traceback = types.TracebackType(traceback, *_standing_at(caller))
    return traceback


class _Stop(Exception):
    pass


def _standing_at(caller: Caller) -> tuple[types.FrameType, int, int]:
    """A frame that looks like that of a function at a line."""
    name, filename, line = caller[:3]
    place = {"lineno": line, "end_lineno": line, "col_offset": -1, "end_col_offset": -1}
    at = caller[3] if len(caller) == 4 else ast.Pass(**place)
    module = ast.Module(written("raise _stop", at), [])
    code = compile(module, filename, "exec", dont_inherit=True).replace(co_name=name)
    try:
        exec(code, {"_stop": _Stop})
    except _Stop as stop:
        entry = stop.__traceback__
        while entry is not None and entry.tb_frame.f_code is not code:
            entry = entry.tb_next
        if entry is not None:
            return entry.tb_frame, entry.tb_lasti, entry.tb_lineno
    raise RuntimeError(f"no frame for {name}")
