"""The local names that statements read and bind, with the statements inside them."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any

from dilim.slicing.program import Atom, Block, Branch, Exit, For, Statement, Step, Unit, While, With


def inner_blocks(statement: Statement) -> list[Block]:
    """The blocks that a statement holds, in the order in which they stand."""
    match statement:
        case Branch():
            return [statement.then, statement.otherwise]
        case While():
            return [statement.before, statement.body, statement.otherwise]
        case For():
            return [statement.body, statement.otherwise]
        case With():
            return [statement.body]
    return []


def reads(statement: Statement, local: Iterable[str] | None = None) -> dict[str, None]:
    """The names that a statement may read, in order.

    Args:
        statement: looked through.
        local: names of variables of the function. Without it, names of globals that control flow
            reads are given as well.
    """
    match statement:
        case Step() | Unit():
            return dict.fromkeys(statement.reads)
        case Branch(test=atom) | With(context=atom) | For(items=atom) | Exit(value=atom):
            found = _name(atom)
        case While():
            found = {}
    for block in inner_blocks(statement):
        for inner in block:
            found |= reads(inner)
    if isinstance(statement, While):
        found |= _name(statement.test)
    return found if local is None else {name: None for name in found if name in local}


def writes(statement: Statement) -> dict[str, None]:
    """The names that a statement may bind or delete, in order."""
    match statement:
        case Step() | Unit():
            return dict.fromkeys(statement.writes)
        case With(target=str(target)) | For(target=str(target)):
            found: dict[str, None] = {target: None}
        case _:
            found = {}
    for block in inner_blocks(statement):
        for inner in block:
            found |= writes(inner)
    return found


def _name(atom: Atom | None) -> dict[str, None]:
    return {atom.id: None} if isinstance(atom, ast.Name) else {}


def unpacked(step: Step) -> list[str]:
    """The names to which a step unpacks a value, if it does that and nothing else."""
    node: Any = step.node
    match node:
        case ast.Assign(targets=[ast.Tuple(elts=parts)]) if isinstance(node.value, ast.Name):
            names = [getattr(part, "id", "") for part in parts]
            return names if all(names) else []
    return []
