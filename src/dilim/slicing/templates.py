"""Syntax from text, for the code that is put around the user's own."""

from __future__ import annotations

import ast


def written(text: str, at: ast.AST, **parts: str | ast.expr) -> list[ast.stmt]:
    """The statements of a text, all at the place of a node.

    Args:
        text: statements.
        at: where tracebacks and debuggers see them.
        parts: what names in the text stand for: other names, or expressions, which keep their
            places.
    """
    tree = ast.parse(text)
    for node in ast.walk(tree):
        ast.copy_location(node, at)
    return _Filler(parts).visit(tree).body  # type: ignore[no-any-return]


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


class _Filler(ast.NodeTransformer):
    def __init__(self, parts: dict[str, str | ast.expr]) -> None:
        self._parts = parts

    def visit_Name(self, node: ast.Name) -> ast.expr:
        part = self._parts.get(node.id, node)
        return ast.copy_location(ast.Name(part, node.ctx), node) if isinstance(part, str) else part
