"""Finds the arguments that a program gives to one of its functions."""

from __future__ import annotations

import ast
import contextlib
import os
import runpy
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType, FunctionType
from typing import Any, Final

from dilim.cli.messages import CommandError, unknown_name
from dilim.slicing.fronts import given
from dilim.slicing.sliced import Sliced

_IMPORTED: Final = "__slices__"
"""The name of a file that is imported; one that no module has."""
_CALLS: Final = (Sliced._call.__code__, Sliced._call_plain.__code__)
"""What runs when a compiled function is called."""


@dataclass(slots=True)
class Call:
    """A call of a function.

    Attributes:
        function: what was called; for one that `dilim.compile` made, the function as it stands.
        arguments: by position.
        keywords: by name.
    """

    function: FunctionType
    arguments: tuple[Any, ...] = ()
    keywords: dict[str, Any] = field(default_factory=dict)


def first_call(path: Path, name: str, arguments: Sequence[str]) -> Call:
    """The first call of a function when its file runs as a script, which goes no further.

    A function that needs no arguments is not waited for: the file is imported.

    Args:
        path: of the file.
        name: of the function; with dots for a method: ``Model.step``.
        arguments: for the script.

    Raises:
        CommandError: there is no such function, it is not called, or the script fails before.
    """
    known = _functions(path)
    if name not in known:
        raise CommandError(unknown_name(f"function in {path}", name, known))
    is_script = known[name]
    watcher = _Watcher(path, name, "__main__" if is_script else _IMPORTED)
    with _as_started(path, arguments), contextlib.redirect_stdout(sys.stderr):
        call = watcher.run()
    if call is not None:
        return call
    if is_script:
        raise CommandError(
            f"{path} ended without a call of {name}, so its arguments are not known; "
            "give them defaults, or give the script what it needs after --"
        )
    return Call(watcher.function())


def _functions(path: Path) -> dict[str, bool]:
    """The functions of a file, and whether each needs arguments."""
    try:
        tree = ast.parse(path.read_bytes(), str(path))
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        place = f"{path}:{line}" if line else str(path)
        raise CommandError(f"{place}: this is not Python: {error.args[0]}") from error
    found = dict(_defined(tree.body, ""))
    if not found:
        raise CommandError(f"{path} defines no function")
    return found


def _defined(body: Sequence[ast.stmt], before: str) -> Iterator[tuple[str, bool]]:
    for statement in body:
        match statement:
            case ast.FunctionDef(name=name, args=parameters):
                plain = len(parameters.posonlyargs + parameters.args) - len(parameters.defaults)
                yield before + name, plain > 0 or None in parameters.kw_defaults
            case ast.ClassDef(name=name, body=inner):
                yield from _defined(inner, f"{before}{name}.")
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call() | ast.Lambda()):
                yield before + name, True
            case ast.If(body=inner, orelse=other) | ast.Try(body=inner, orelse=other):
                yield from _defined([*inner, *other], before)


class _Reached(BaseException):
    """The call has come; nothing catches it on its way out of the script."""

    def __init__(self, call: Call) -> None:
        super().__init__()
        self.call = call


class _Watcher:
    """Runs a file until a function is called."""

    def __init__(self, path: Path, name: str, module: str) -> None:
        self._path = path
        self._name = name
        self._module = module
        self._space: dict[str, Any] = {}

    def run(self) -> Call | None:
        """Run; the call, or None if the file ended without one."""
        former = sys.getprofile()
        sys.setprofile(self._watch)
        try:
            self._space = runpy.run_path(str(self._path), run_name=self._module)
        except _Reached as reached:
            return reached.call
        except SystemExit:
            return None
        except Exception as error:
            raise failure(self._path, error) from error
        finally:
            sys.setprofile(former)
        return None

    def function(self) -> FunctionType:
        """The function, after the file has run."""
        found = _found(self._space, self._name)
        if found is None:
            raise CommandError(f"{self._name} in {self._path} is no function when the file has run")
        return found

    def _watch(self, frame: FrameType, event: str, argument: Any) -> None:
        code = frame.f_code
        compiled = code in _CALLS
        if event != "call" or not (compiled or code.co_filename == str(self._path)):
            return
        module = sys.modules.get(self._module)
        function = None if module is None else _found(vars(module), self._name)
        if function is None:
            return
        if compiled and frame.f_locals["self"]._function is function:
            raise _Reached(Call(function, *given(function.__code__, frame.f_locals["values"])))
        if function.__code__ is code:
            raise _Reached(Call(function, *_arguments(frame)))


def _found(space: dict[str, Any], name: str) -> FunctionType | None:
    """A function by its name; what decorators put around it is taken off."""
    first, *rest = name.split(".")
    value = space.get(first)
    for part in rest:
        value = vars(value).get(part) if isinstance(value, type) else None
    while value is not None and not isinstance(value, FunctionType):
        value = getattr(value, "__func__", None) or getattr(value, "__wrapped__", None)
    return value


def _arguments(frame: FrameType) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """What a function was given, from its frame before it has done anything."""
    code, values = frame.f_code, frame.f_locals
    names = code.co_varnames
    count = code.co_argcount
    only = count + code.co_kwonlyargcount
    arguments = tuple(values[name] for name in names[:count])
    keywords = {name: values[name] for name in names[count:only]}
    if code.co_flags & 4:  # *arguments
        arguments += values[names[only]]
        only += 1
    if code.co_flags & 8:  # **keywords
        keywords |= values[names[only]]
    return arguments, keywords


@contextlib.contextmanager
def _as_started(path: Path, arguments: Sequence[str]) -> Iterator[None]:
    """As Python sets up a script: its folder on the path, its arguments."""
    folder = os.path.dirname(os.path.abspath(path))
    former = sys.argv, list(sys.path)
    sys.argv = [str(path), *arguments]
    sys.path.insert(0, folder)
    try:
        yield
    finally:
        sys.argv, sys.path[:] = former


def failure(path: Path, error: Exception) -> CommandError:
    """The error for an exception of the user's code, with its line in their file."""
    line, entry = 0, error.__traceback__
    while entry is not None:
        if entry.tb_frame.f_code.co_filename == str(path):
            line = entry.tb_lineno
        entry = entry.tb_next
    place = f"{path}:{line}" if line else str(path)
    return CommandError(f"{place} raised {type(error).__name__}: {error}")
