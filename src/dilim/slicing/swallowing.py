"""Whether a context may swallow an error of its body, as far as its class and code show it."""

from __future__ import annotations

import contextlib
import dis
import functools
import io
import threading
import types
from typing import Any, Final

_NEVER: Final = frozenset(
    {
        contextlib.nullcontext,
        contextlib.redirect_stdout,
        contextlib.redirect_stderr,
        contextlib.chdir,
        contextlib.closing,
        io.TextIOWrapper,
        io.BufferedReader,
        io.BufferedWriter,
        io.BufferedRandom,
        io.FileIO,
        io.StringIO,
        io.BytesIO,
        type(threading.Lock()),
        type(threading.RLock()),
    }
)
"""Classes whose contexts swallow nothing."""


def may_swallow(context: Any) -> bool:
    """Whether leaving a context may swallow an error. True where that is not known."""
    kind = type(context)
    if kind in _NEVER:
        return False
    if kind is contextlib._GeneratorContextManager:
        code = getattr(context.gen, "gi_code", None)
        return code is None or _catches(code)
    leave = getattr(kind, "__exit__", None)
    return not isinstance(leave, types.FunctionType) or not _gives_none(leave.__code__)


@functools.cache
def _catches(code: types.CodeType) -> bool:
    """Whether a generator may go on after an error at a ``yield``.

    Where an error ends in its code, the interpreter takes it off its stack; where it goes on, it is
    taken off only to be raised again at once.
    """
    if "POP_EXCEPT" not in dis.opmap or "RERAISE" not in dis.opmap:
        return True
    names = [instruction.opname for instruction in dis.get_instructions(code)]
    return any(
        name == "POP_EXCEPT" and names[place + 1 : place + 2] != ["RERAISE"]
        for place, name in enumerate(names)
    )


@functools.cache
def _gives_none(code: types.CodeType) -> bool:
    """Whether a function returns nothing but None."""
    if code.co_flags & _GENERATORS:
        return False
    found = list(dis.get_instructions(code))
    for place, instruction in enumerate(found):
        if instruction.opname == "RETURN_CONST":
            if instruction.argval is not None:
                return False
        elif instruction.opname.startswith("RETURN_VALUE"):
            before = found[place - 1]
            known = before.opname == "LOAD_CONST" and not instruction.is_jump_target
            if not known or before.argval is not None:
                return False
    return True


_GENERATORS: Final = 0x20 | 0x80 | 0x200
"""Flags of the code of generators and coroutines."""
