"""Where a list that the host has made for a local name may come to be known under another.

A list to which only one name leads can be appended to without anybody noticing. It may be known
otherwise once it was assigned, stored, put into something or given to a function; that is found in
the normal form alone, since what stands later may come first in the next turn of a loop.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from dilim.slicing import scopes
from dilim.slicing.program import Block, Exit, For, Function, Statement, Step, While

_LOOKING: Final = frozenset({"print", "len", "str", "repr", "sum", "min", "max", "sorted"})
"""Builtins that keep nothing of what they are given."""


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a statement stands.

    Attributes:
        number: in the order of the text.
        loops: those around it.
    """

    number: int
    loops: frozenset[int]


class Escapes:
    """Where the values of local names of a function may come to be known otherwise.

    Args:
        code: the function.
    """

    def __init__(self, code: Function) -> None:
        self._places: dict[Statement, _Place] = {}
        self._of: dict[str, list[_Place]] = {}
        self._readers: dict[str, list[Statement]] = {}
        self._captured = code.captured
        self._local = code.locals
        self._block(code.body, frozenset())

    def before(self, name: str, statement: Statement) -> bool:
        """Whether what a name has may be known otherwise when a statement begins."""
        place = self._places.get(statement)
        return (
            place is None
            or name in self._captured
            or any(x.number < place.number or x.loops & place.loops for x in self._of.get(name, ()))
        )

    def once(self, name: str) -> bool:
        """Whether there is one place at most where what a name has may come to be known so."""
        return len(self._of.get(name, ())) <= 1 and name not in self._captured

    def reader(self, name: str) -> Statement | None:
        """The one statement that reads a name."""
        found = self._readers.get(name, ())
        return found[0] if len(found) == 1 else None

    def _block(self, block: Block, loops: frozenset[int]) -> None:
        for statement in block:
            place = self._places[statement] = _Place(len(self._places), loops)
            inner = scopes.inner_blocks(statement)
            for name in scopes.reads(statement) if not inner else ():
                self._readers.setdefault(name, []).append(statement)
            if isinstance(statement, Step) and statement.summary is not None:
                self._block(statement.summary.block, loops)
            for name in self._kept(statement) if not inner else ():
                self._of.setdefault(name, []).append(place)
            is_loop = isinstance(statement, For | While)
            for each in inner:
                self._block(each, loops | {place.number} if is_loop else loops)

    def _kept(self, statement: Statement) -> Iterator[str]:
        """The names whose values a statement may let be known otherwise."""
        if isinstance(statement, Exit):
            return
        if not isinstance(statement, Step):
            yield from scopes.reads(statement)
            return
        node = statement.node
        harmless: set[str] = set()
        match getattr(node, "value", None):
            case ast.Attribute(value=ast.Name(id=name)) if isinstance(node, ast.Assign):
                harmless = {name}
            case ast.Subscript(value=ast.Name(id=name)) if isinstance(node, ast.Assign):
                harmless = {name}
            case ast.Call(func=ast.Name(id=function)) if (
                function in _LOOKING and function not in self._local
            ):
                harmless = set(statement.reads)
            case ast.Compare(ops=[ast.Is() | ast.IsNot() | ast.In() | ast.NotIn()]):
                harmless = set(statement.reads)
            case ast.UnaryOp() | ast.JoinedStr():
                harmless = set(statement.reads)
        target = node.targets[0] if isinstance(node, ast.Assign) else None
        if not isinstance(target, ast.Name):
            harmless = set()
        yield from (name for name in statement.reads if name not in harmless)


def escapes_of(code: Function) -> Escapes:
    """Where values of a function's names escape, found once."""
    found: Escapes | None = code.codes.get("escapes")
    if found is None:
        found = code.codes["escapes"] = Escapes(code)
    return found
