"""Pieces of host code that are being collected, statement by statement."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from dilim.slicing import program, scopes
from dilim.slicing.actions import Action
from dilim.slicing.interpreter import Scope
from dilim.slicing.values import UNBOUND, Host


class Pending:
    """A fragment that is being collected.

    Attributes:
        opaque: whether it may change anything.
        at: its last statement.
        position: where that stands in its block.
        is_pure: whether it only makes texts of numbers, so that it may as well run later.
        is_blind: whether it looks at numbers, texts and arrays only, and changes nothing else.
        raises: whether its last statement is known to raise.
        forgets: code that tells which places of the heap the host has set.
        before: code that runs right before it.
        after: code that runs right after it.
    """

    def __init__(self, scope: Scope, action: Action) -> None:
        self.scope = scope
        self.action = action
        self.statements: list[program.Statement] = []
        self.bound: set[str] = set()
        self.opaque = False
        self.at = scope.at
        self.position = scope.path[-1]
        self.is_pure = True
        self.is_blind = True
        self.raises = False
        self.forgets: list[str] = []
        self.before: tuple[str, ...] = ()
        self.after: tuple[str, ...] = ()
        self.unknown: list[tuple[program.Statement, str]] = []
        self.values: dict[str, Any] = {}
        self.expressions: dict[str, str] = {}
        self._loads: dict[str, str] = {}

    def copied(self) -> Pending:
        """The same, for whoever goes back to this point."""
        made = Pending(self.scope, self.action.copied())
        for name, value in vars(self).items():
            if name not in ("scope", "action"):
                setattr(made, name, copy.copy(value))
        return made

    def add(self, statement: program.Statement, raises: bool) -> None:
        """Append a statement, which may be known to raise."""
        self.statements.append(statement)
        self.at, self.position = self.scope.at, self.scope.path[-1]
        is_raise = isinstance(statement, program.Step) and isinstance(statement.node, ast.Raise)
        self.raises = raises or is_raise

    def changes_what_follows(self, is_caught: bool) -> bool:
        """Whether it may change what the program relies on that goes on after it.

        Args:
            is_caught: whether a context around it may swallow an error.
        """
        return self.opaque and (is_caught or not self.raises)

    @contextmanager
    def standing(self) -> Iterator[None]:
        """A context in which its last statement is at hand, if it may change anything."""
        scope = self.scope
        at, position = scope.at, scope.path[-1]
        if self.opaque:
            scope.at, scope.path[-1] = self.at, self.position
        try:
            yield
        finally:
            scope.at, scope.path[-1] = at, position

    def agrees(self, names: Iterable[str], env: dict[str, Any]) -> bool:
        """Whether names stand for what they did for the statements that are collected so far."""
        for name in names:
            value = env.get(name, UNBOUND)
            if name in self.bound:
                if value.__class__ is not Host:
                    return False
            elif name in self.values and self.values[name] is not value:
                return False
        return True

    def load(self, name: str, expression: str) -> None:
        """Bind a name in the host's frame before the fragment runs."""
        if name not in self.bound:
            self.expressions[name] = expression
            self._loads[name] = f"R.bind(F[{self.scope.number}], {name!r}, {expression})"

    def forget(self, name: str) -> None:
        """Unbind a name before the fragment runs."""
        if name not in self.bound:
            self._loads[name] = f"F[{self.scope.number}].pop({name!r}, None)"

    def ended(self) -> list[str]:
        """The made names that no statement reads after the fragment."""
        live = self.scope.live.after.get(self.statements[-1])
        if live is None:
            return []
        names = {name for x in self.statements for name in (*scopes.reads(x), *scopes.writes(x))}
        return sorted(name for name in names - live if name.startswith("%"))

    def loads(self) -> list[str]:
        """The code that binds names."""
        return list(self._loads.values())
