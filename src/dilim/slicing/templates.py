"""Syntax from text, for the code that is put around the user's own."""

from __future__ import annotations

import ast
import functools
from typing import Any, Final


def written(text: str, at: ast.AST, **parts: str | ast.expr) -> list[ast.stmt]:
    """The statements of a text, all at the place of a node.

    Args:
        text: statements.
        at: where tracebacks and debuggers see them.
        parts: what names in the text stand for: other names, or expressions, which keep their
            places.
    """
    place = {name: getattr(at, name) for name in _PLACE if hasattr(at, name)}
    return [_filled(statement, place, parts) for statement in _parsed(text)]


def definition(
    name: str, parameters: list[ast.arg], body: list[ast.stmt], at: ast.AST
) -> ast.FunctionDef:
    """A function with positional parameters.

    Args:
        name: which need not be an identifier.
        parameters: its parameters.
        body: its statements.
        at: where it stands.
    """
    (made,) = written("def _(): pass", at)
    if not isinstance(made, ast.FunctionDef):
        raise TypeError(f"definition: expected a function, got {made}")
    made.name, made.args.args, made.body = name, parameters, body
    return made


_PLACE: Final = ("lineno", "col_offset", "end_lineno", "end_col_offset")


@functools.lru_cache(maxsize=1024)
def _parsed(text: str) -> list[ast.stmt]:
    return ast.parse(text).body


def _filled(node: Any, place: dict[str, Any], parts: dict[str, str | ast.expr]) -> Any:
    """A copy of syntax at a place, with names replaced; in one pass, since this is done often."""
    fields = node._fields
    if not fields:
        return node  # such as Load(), of which there is one
    if node.__class__ is ast.Name:
        part = parts.get(node.id, node.id)
        return part if isinstance(part, ast.expr) else ast.Name(part, node.ctx, **place)
    made = {}
    for field in fields:
        value = getattr(node, field)
        if isinstance(value, list):
            value = [_filled(x, place, parts) if isinstance(x, ast.AST) else x for x in value]
        elif isinstance(value, ast.AST):
            value = _filled(value, place, parts)
        made[field] = value
    return node.__class__(**made, **place) if node._attributes else node.__class__(**made)
