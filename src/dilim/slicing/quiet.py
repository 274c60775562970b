"""``with`` statements over contexts of dilim that never swallow an error, such as ``no_grad()``.

What such a statement binds is bound after it for sure, so that what its names stood for before is
of no use any more.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from types import FunctionType, ModuleType
from typing import Any

from dilim.slicing import scopes
from dilim.slicing.program import Block, Function, Statement, Step, With
from dilim.slicing.values import UNBOUND


def quiet_in(code: Function, function: FunctionType) -> frozenset[With]:
    """The ``with`` statements of a function over contexts of dilim, by the globals it has now."""
    known: tuple[list[With], dict[str, ast.expr]] | None = code.codes.get("contexts")
    if known is None:
        every = list(_statements(code.body))
        makers = {x.writes[0]: x.node.value for x in every if _is_made(x)}  # type: ignore[union-attr]
        known = code.codes["contexts"] = [x for x in every if isinstance(x, With)], makers
    statements, makers = known
    names = code.locals.union(code.cells)

    def found(node: Any) -> Any:
        match node:
            case ast.Name(id=name) if name[0] == "%":
                return found(makers.get(name))
            case ast.Name(id=name) if name not in names:
                return function.__globals__.get(name, UNBOUND)
            case ast.Attribute(value=owner, attr=name):
                module = found(owner)
                is_dilim = isinstance(module, ModuleType) and module.__name__ == "dilim"
                return getattr(module, name, UNBOUND) if is_dilim else UNBOUND
        return UNBOUND

    return frozenset(x for x in statements if _is_quiet(x, makers, found))


def _is_quiet(statement: With, makers: dict[str, ast.expr], found: Any) -> bool:
    call = makers.get(getattr(statement.context, "id", ""))
    maker = found(call.func) if isinstance(call, ast.Call) else UNBOUND
    return isinstance(maker, FunctionType | type) and maker.__module__ == "dilim.tensors.tape"


def _statements(block: Block) -> Iterator[Statement]:
    for statement in block:
        yield statement
        for inner in scopes.inner_blocks(statement):
            yield from _statements(inner)


def _is_made(statement: Statement) -> bool:
    """Whether a statement binds a name that the normal form has made."""
    is_step = isinstance(statement, Step) and isinstance(statement.node, ast.Assign)
    return is_step and len(statement.writes) == 1 and statement.writes[0][0] == "%"  # type: ignore[union-attr]
