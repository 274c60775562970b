"""Where things stand in the source: ``file:line`` of functions and of module-level names."""

from __future__ import annotations

import ast
import sys
from functools import cache
from pathlib import Path
from types import CodeType
from typing import Any

import dilim

_PACKAGE = Path(dilim.__file__).parent


def code_place(function: Any) -> str | None:
    """``file:line`` of a Python function's first line; None for anything else (a NumPy ufunc)."""
    code = getattr(function, "__code__", None)
    if not isinstance(code, CodeType):
        return None
    return f"{_shown(Path(code.co_filename))}:{code.co_firstlineno}"


def object_place(wanted: object, package: str) -> str | None:
    """``file:line`` of the module-level assignment that made an object.

    Args:
        wanted: found by identity.
        package: the modules searched: those loaded whose name begins with this.
    """
    for module_name, module in list(sys.modules.items()):
        if not module_name.startswith(package):
            continue
        for name, value in vars(module).items():
            if value is wanted:
                line = _assignments(str(module.__file__)).get(name)
                if line is not None:
                    return f"{_shown(Path(str(module.__file__)))}:{line}"
    return None


@cache
def _assignments(file: str) -> dict[str, int]:
    """The line of each name that a module's own text assigns or defines at its top level."""
    lines: dict[str, int] = {}
    for statement in ast.parse(Path(file).read_text(encoding="utf-8")).body:
        match statement:
            case ast.Assign(targets=targets):
                for node in (n for target in targets for n in ast.walk(target)):
                    if isinstance(node, ast.Name):
                        lines[node.id] = statement.lineno
            case ast.AnnAssign(target=ast.Name(id=name)) | ast.FunctionDef(name=name):
                lines[name] = statement.lineno
    return lines


def _shown(file: Path) -> str:
    """Relative to the working directory where the file is below it, else to the package."""
    here = Path.cwd()
    if file.is_relative_to(here):
        return str(file.relative_to(here))
    return str(file.relative_to(_PACKAGE.parent)) if file.is_relative_to(_PACKAGE) else str(file)
