"""What a function can reach: the roots for `Snapshot` and `Picture`, and whose an object is."""

from __future__ import annotations

import sys
import types
from collections.abc import Iterator
from typing import Any, Final

from dilim.slicing.attributes import USERS
from dilim.slicing.inlining import INSTALLED
from dilim.tensors.random import default_generator

_PARTS_OF_DILIM: Final = ("tensors", "nn", "optim", "rl", "scalar")
"""The packages of dilim whose objects a user has."""
_LEFT_ALONE: Final = frozenset(
    {"logging", "threading", "_thread", "weakref", "_weakref", "importlib", "_frozen_importlib"}
    | {"_frozen_importlib_external", "concurrent", "asyncio", "multiprocessing", "contextvars"}
)
"""Modules whose objects have no contents that a function is about."""


def roots_of(f: types.FunctionType, values: tuple[Any, ...]) -> Iterator[tuple[str, Any]]:
    """(what the user knows it as, object) for all that a call of a function begins with."""
    yield from zip(_parameters(f), values, strict=True)
    yield from surroundings_of(f)
    yield "dilim.default_generator()", default_generator()


def surroundings_of(f: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """Likewise for the variables around a function, and the globals that its code names."""
    for name, cell in zip(f.__code__.co_freevars, f.__closure__ or (), strict=True):
        try:
            yield name, cell.cell_contents
        except ValueError:
            continue
    for name in names_in(f.__code__):
        if name in f.__globals__:
            yield name, f.__globals__[name]


def names_in(code: types.CodeType) -> dict[str, None]:
    """The names of globals and attributes in a piece of code, and in what is in it."""
    names = dict.fromkeys(code.co_names)
    for part in code.co_consts:
        if isinstance(part, types.CodeType):
            names |= names_in(part)
    return names


def _parameters(f: types.FunctionType) -> tuple[str, ...]:
    code = f.__code__
    stars = bool(code.co_flags & 4) + bool(code.co_flags & 8)
    return code.co_varnames[: code.co_argcount + code.co_kwonlyargcount + stars]


def is_users(value: types.FunctionType | types.ModuleType | type) -> bool:
    """Whether a function, module or class is the user's own, not of an installed package."""
    if isinstance(value, types.FunctionType):
        return not _is_library(value.__module__, value.__code__.co_filename)
    name = value.__name__ if isinstance(value, types.ModuleType) else value.__module__
    module = value if isinstance(value, types.ModuleType) else sys.modules.get(name)
    return not _is_library(name, getattr(module, "__file__", None) or "")


def _is_library(module: str | None, file: str) -> bool:
    name = module or ""
    if name.startswith(USERS):
        return False
    top = name.partition(".")[0]
    if top in ("dilim", "builtins") or top in sys.builtin_module_names:
        return True
    return file.startswith(INSTALLED)


def is_opaque(kind: type) -> bool:
    """Whether objects of a class are left as they are: machinery, of dilim or of Python."""
    top, _, rest = kind.__module__.partition(".")
    if top == "dilim":
        return (
            not kind.__name__.endswith("Storage") and rest.partition(".")[0] not in _PARTS_OF_DILIM
        )
    return top in _LEFT_ALONE
