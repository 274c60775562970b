"""Where the normal form is put together: blocks, made names, and which names are bound for sure."""

from __future__ import annotations

import ast
import builtins
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

from dilim.slicing.names import Uses
from dilim.slicing.program import Block, Branch, Function, Statement, Step, Unit

Node = TypeVar("Node", bound=ast.AST)

# Built-in functions that use up an iterable, or are done with a key function, before they return.
_CONSUMERS = frozenset("all any dict frozenset list max min set sorted sum tuple".split())


class Emitter:
    """Emits statements into the current block.

    Attributes:
        function: what is being normalised; its ``locals`` are the user's until the end.
        block: where statements go.
        bound: names that are bound for sure at this point; None where no run can come.
        renames: new names of the variables of comprehensions around this point.
        captures: statements that make inner functions, and the local names that these may read.
    """

    def __init__(self, function: Function, global_names: dict[str, Any]) -> None:
        self.function = function
        self.block: Block = []
        self.bound: set[str] | None = set(function.parameters)
        self.renames: dict[str, str] = {}
        self.captures: list[tuple[Statement, set[str]]] = []
        self.made: list[str] = []
        self.builtins: set[str] = set()
        self.harmless: set[ast.AST] = set()
        self._globals = global_names

    def new(self, stem: str = "") -> str:
        """A new name that no user can have written."""
        self.made.append(f"%{stem}{len(self.made) + 1}")
        return self.made[-1]

    def is_local(self, name: str) -> bool:
        """Whether a name is a variable of the function."""
        return name in self.function.locals or name.startswith("%")

    def is_bound(self, name: str) -> bool:
        """Whether a variable is bound for sure at this point."""
        return name.startswith("%") or self.bound is None or name in self.bound

    @contextmanager
    def into(self) -> Iterator[Block]:
        """Emits into a block of its own."""
        outer, self.block = self.block, []
        try:
            yield self.block
        finally:
            self.block = outer

    def emit(self, statement: Statement) -> None:
        """Adds a statement to the current block."""
        if self.bound is not None:  # else it can never be reached
            self.block.append(statement)

    def step(self, node: ast.stmt, at: ast.AST, *, harmless: bool = False) -> None:
        """Emits a statement of one operation.

        Args:
            node: the statement.
            at: where it stands in the user's file.
            harmless: whether inner functions that it makes are done with before anything else runs.
        """
        located(node, at)
        uses = Uses([node])
        reads, writes = self._local(uses.reads), self._local(uses.writes)
        step = Step(node, reads, writes, node.lineno)
        if not harmless:
            self._note_captures(step, uses)
        self.emit(step)
        self._bind(writes, uses.deletes)

    def assign(
        self, target: str, value: ast.expr, at: ast.AST, *, harmless: bool = False
    ) -> ast.Name:
        """Emits ``target = value``; its operation stands at ``at``."""
        located(value, at)
        self.step(ast.Assign([ast.Name(target, ast.Store())], value), at, harmless=harmless)
        return ast.copy_location(ast.Name(target, ast.Load()), at)

    def unit(self, node: ast.stmt, reason: str, *, exits: bool = False) -> None:
        """Emits a statement that the host runs as it stands."""
        for part in ast.walk(node):
            if isinstance(part, ast.Call):
                self.note_consumer(part)
        uses = Uses([node], self.harmless)
        reads, writes = self._local(uses.reads), self._local(uses.writes)
        unit = Unit(node, reads, writes, exits, reason, node.lineno)
        self._note_captures(unit, uses)
        self.emit(unit)
        simple = isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)
        self._bind(writes if simple else (), uses.deletes)

    def branch(
        self,
        test: ast.Name | ast.Constant,
        then: Callable[[], object],
        otherwise: Callable[[], object],
        at: ast.expr | ast.stmt,
    ) -> None:
        """Emits a branch whose sides are emitted by the two functions."""
        start = self.bound
        self.bound = None if start is None else set(start)
        with self.into() as then_block:
            then()
        after_then, self.bound = self.bound, None if start is None else set(start)
        with self.into() as else_block:
            otherwise()
        after_else, self.bound = self.bound, start
        self.emit(Branch(test, then_block, else_block, at.lineno, at))
        self.bound = join(after_then, after_else)

    def is_builtin(self, name: str) -> bool:
        """Whether a name is seen as the built-in function of that name, now."""
        value = getattr(builtins, name, None)
        outer = name in self.function.cells or self.is_local(name) or name in self.renames
        return not outer and self._globals.get(name, value) is value

    def note_consumer(self, call: ast.Call) -> None:
        """Marks the generators that a call uses up: they never see a later value of a variable."""
        callee = call.func
        if isinstance(callee, ast.Name) and callee.id in _CONSUMERS and self.is_builtin(callee.id):
            self.builtins.add(callee.id)
        elif not (
            isinstance(callee, ast.Attribute)
            and callee.attr == "join"
            and isinstance(callee.value, ast.Constant)
        ):
            return
        key = [keyword.value for keyword in call.keywords if keyword.arg == "key"]
        self.harmless.update(
            part for part in [*call.args, *key] if isinstance(part, ast.GeneratorExp | ast.Lambda)
        )

    def _local(self, names: Iterable[str]) -> tuple[str, ...]:
        return tuple(name for name in names if self.is_local(name))

    def _bind(self, names: Iterable[str], deleted: set[str]) -> None:
        if self.bound is not None:
            self.bound.update(names)
            self.bound -= deleted

    def _note_captures(self, statement: Statement, uses: Uses) -> None:
        captured = {name for name in uses.captured if self.is_local(name)}
        if captured:
            self.captures.append((statement, captured))


def join(first: set[str] | None, second: set[str] | None) -> set[str] | None:
    """What is bound for sure where two paths meet."""
    if first is None:
        return second
    return first if second is None else first & second


def place_of_test(test: ast.expr, statement: ast.stmt) -> ast.expr | ast.stmt:
    """Where CPython says that the truth of a test is asked for.

    Up to version 3.11 that is the comparison that it compiled last, if there is one.
    """
    found: ast.expr | ast.stmt = statement
    if sys.version_info >= (3, 12):
        return found
    waiting = [test]
    while waiting:
        match waiting.pop():
            case ast.BoolOp(values=values):
                waiting += reversed(values)
            case ast.UnaryOp(op=ast.Not(), operand=operand):
                waiting.append(operand)
            case ast.IfExp(test=choice, body=first, orelse=second):
                waiting += [second, first, choice]
            case ast.Compare() as comparison:
                found = comparison
    return found


def located(node: Node, at: ast.AST) -> Node:
    """Gives a node, and the parts of it that have no place yet, the place of another."""
    if not hasattr(node, "lineno"):
        ast.copy_location(node, at)
    here = node if hasattr(node, "lineno") else at
    for name in node._fields:
        value = getattr(node, name, None)
        for child in value if value.__class__ is list else (value,):
            if isinstance(child, ast.AST) and not isinstance(child, _PLACELESS):
                located(child, here)
    return node


_PLACELESS = (ast.expr_context, ast.operator, ast.unaryop, ast.cmpop)
