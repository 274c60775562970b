"""The normal form back to Python syntax that works on a frame.

A piece of a function becomes the body of a function of its own: it takes the variables that it
reads from the frame first, and puts those that it binds back wherever it is left. In between they
are ordinary variables.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterable, Sequence
from typing import Any, Final

from dilim.slicing.emitter import join, located
from dilim.slicing.liveness import liveness_of
from dilim.slicing.names import Uses
from dilim.slicing.program import (
    FRAME,
    Atom,
    Block,
    Branch,
    Exit,
    For,
    Function,
    Statement,
    Step,
    Unit,
    While,
    With,
)
from dilim.slicing.scopes import inner_blocks, reads, unpacked, writes
from dilim.slicing.templates import written

KEEP: Final = "%keep"
OBSERVE: Final = "%observe"
UNBOUND: Final = "%NameError"


class Renderer:
    """Renders statements of one function.

    Args:
        function: whose they are.
        statements: what is to be rendered.
        keep: whether variables are put back.
        observe: whether values of calls are shown to the observer.
        bound: names that what is put in front of the statements binds.
        kept: made names that are put back although no later statement reads them.

    Attributes:
        loads: names that have to be taken from the frame first.
        private: made names that nothing reads after the statements, so that they are taken out of
            the frame and not put back.
        writes: names that are put back.
        deleted: those of them that may be deleted.
        observed: the steps whose values are shown to the observer, by number.
    """

    def __init__(
        self,
        function: Function,
        statements: Sequence[Statement],
        *,
        keep: bool = True,
        observe: bool = False,
        bound: Iterable[str] = (),
        kept: Iterable[str] = (),
    ) -> None:
        self._function = function
        self._statements = statements
        self._keep = keep
        self._observe = observe
        self._bound: set[str] | None = set(bound)
        self._loops = 0
        self._after = liveness_of(function).after
        live = self._after.get(statements[-1]) if statements else None
        names = {*bound}.union(*([*reads(x), *writes(x)] for x in statements))
        self.private = frozenset(
            name for name in names if live is not None and _made(name) and name not in live
        ).difference(kept)
        found = dict.fromkeys(bound)
        for statement in statements:
            found |= writes(statement)
        self.writes = tuple(name for name in found if name not in self.private)
        self.deleted = frozenset(name for name in found if _may_delete(statements, name))
        self.loads: dict[str, None] = dict.fromkeys(sorted(self.deleted))
        self.observed: list[Step] = []

    def render(
        self,
        before: Sequence[ast.stmt] = (),
        test: Atom | None = None,
        at: ast.AST | None = None,
    ) -> list[ast.stmt]:
        """The statements as syntax.

        Args:
            before: what is put in front of them.
            test: what decides on True or False, which is returned; without it, None is.
            at: where that is decided.
        """
        body = [*before, *self._block(self._statements)]
        if self._bound is None:
            return body
        if test is not None:
            self.need(test)
            true, false = (written(f"return {value}", test) for value in (True, False))
            stores = self._store(test)
            choice = ast.If(test, [*stores, *true], [*stores, *false])
            return [*body, located(choice, at or test)]
        return [*body, *self._store(body[-1])] if body else body

    def _block(self, statements: Sequence[Statement]) -> list[ast.stmt]:
        body: list[ast.stmt] = []
        for statement in statements:
            if self._bound is None:
                break
            body += self._statement(statement)
            if self._bound is not None and statement is not self._statements[-1]:
                body += self._let_go(statement, body[-1])
        return body

    def _let_go(self, statement: Statement, at: ast.AST) -> list[ast.stmt]:
        """Lets values go when the interpreter's stack would let them go."""
        names = self._done_with(statement)
        return [done for name in names for done in written("_made = None", at, _made=name)]

    def _done_with(self, statement: Statement) -> list[str]:
        """The made names that a statement, without those inside it, mentions last."""
        return [
            name
            for name in {**reads(alone(statement)), **writes(alone(statement))}
            if name in self.private
            and (name in (self._bound or ()) or name in self.loads)
            and name not in self._after.get(statement, (name,))
        ]

    def _statement(self, statement: Statement) -> list[ast.stmt]:
        match statement:
            case Step():
                return self._step(statement)
            case Unit():
                return self._unit(statement)
            case Branch():
                return self._branch(statement)
            case While():
                return self._while(statement)
            case For():
                return self._for(statement)
            case With():
                return self._with(statement)
            case Exit():
                return self._exit(statement)

    def _step(self, step: Step) -> list[ast.stmt]:
        self.need(*step.reads)
        self._note(step.writes, _deleted_by(step))
        node = step.node
        if isinstance(node, ast.Raise | ast.Assert):
            self._bound = None
        value: Any = getattr(node, "value", None)
        body: list[ast.stmt] = [node]
        seen: Any = step.writes[0] if step.writes else None
        if isinstance(node, ast.Assign) and seen in self._done_with(step):
            self._note((), step.writes)
            body, seen = [], value
        if self._observe and step.writes and (isinstance(value, ast.Call) or _is_part(value)):
            return [*body, *self._show(step, seen)]
        if self._observe and unpacked(step):
            names: list[ast.expr] = [ast.Name(name, ast.Load()) for name in unpacked(step)]
            return [*body, *self._show(step, ast.Tuple(names, ast.Load()))]
        return body or [ast.copy_location(ast.Expr(value), node)]

    def _show(self, step: Step, value: str | ast.expr) -> list[ast.stmt]:
        """Shows the value of a step to the observer."""
        self.observed.append(step)
        text = f"_observe({len(self.observed) - 1}, _value)"
        return written(text, step.node, _observe=OBSERVE, _value=value)

    def _unit(self, unit: Unit) -> list[ast.stmt]:
        self.need(*unit.reads)
        node = unit.node
        if unit.exits:
            node = _Leaving(self._loops > 0).visit(copy.deepcopy(node))
            if self._keep:  # Also where it is left from within, after all that it does.
                kept = written("_keep(_frame)", node, _keep=KEEP, _frame=FRAME)
                node = located(ast.Try([node], [], [], kept), node)
        simple = isinstance(node, ast.Import | ast.ImportFrom | ast.FunctionDef | ast.ClassDef)
        self._note(unit.writes if simple else (), _deleted_by(unit))
        return [node]

    def _branch(self, branch: Branch) -> list[ast.stmt]:
        self.need(branch.test)
        start = self._bound or set()
        self._bound = set(start)
        then = self._block(branch.then) or [ast.Pass()]
        after, self._bound = self._bound, set(start)
        otherwise = self._block(branch.otherwise)
        self._bound = join(after, self._bound)
        return [located(ast.If(branch.test, then, otherwise), branch.at or branch.test)]

    def _while(self, loop: While) -> list[ast.stmt]:
        """Where the test takes steps, the loop goes by a flag, which keeps break and else right."""
        at = loop.at or loop.test
        start = self._begin_loop()
        self._loops += 1
        before = self._block(loop.before)
        self.need(loop.test)
        at_test = set(self._bound or ())
        body = self._block(loop.body) or [ast.Pass()]
        self._loops -= 1
        self._bound = at_test
        otherwise = self._block(loop.otherwise)
        self._bound = start
        if not before:
            return [located(ast.While(loop.test, body, otherwise), at)]
        flag = f"%go{id(loop)}"
        go = written("_go = True", at, _go=flag)
        stop = written("_go = False", at, _go=flag)
        turn = [*before, located(ast.If(loop.test, body, stop), at)]
        again = ast.While(ast.Name(flag, ast.Load()), turn, otherwise)
        return [*go, located(again, at)]

    def _for(self, loop: For) -> list[ast.stmt]:
        self.need(loop.items)
        start = self._begin_loop()
        self._note([loop.target], ())
        self._loops += 1
        body = self._block(loop.body) or [ast.Pass()]
        self._loops -= 1
        self._bound = set(start)
        otherwise = self._block(loop.otherwise)
        if otherwise:
            otherwise = [*self._let_go(loop, otherwise[0]), *otherwise]
        self._bound = start
        target = ast.Name(loop.target, ast.Store())
        return [located(ast.For(target, loop.items, body, otherwise), loop.at or loop.items)]

    def _begin_loop(self) -> set[str]:
        """What is bound for sure at the head of each turn, and after the loop."""
        self._bound = (self._bound or set()) - self.deleted
        return set(self._bound)

    def _with(self, statement: With) -> list[ast.stmt]:
        self.need(statement.context)
        start = set(self._bound or ())
        target = None
        if statement.target is not None:
            self._note([statement.target], ())
            target = ast.Name(statement.target, ast.Store())
        body = self._block(statement.body) or [ast.Pass()]
        if self._observe and statement.target is not None:
            body = [*self._show(statement.entering, statement.target), *body]
        self._bound = start - self.deleted  # The context may swallow an error.
        node = ast.With([ast.withitem(statement.context, target)], body)
        return [located(node, statement.at or statement.context)]

    def _exit(self, statement: Exit) -> list[ast.stmt]:
        at = statement.at or statement.value or ast.Pass()
        kind = statement.kind
        if kind != "return" and self._loops:
            leaving: list[ast.stmt] = [ast.Break() if kind == "break" else ast.Continue()]
        else:
            value = statement.value or ast.Constant(None)
            self.need(value)
            leaving = [*self._store(at), _signal(kind, value)]
        self._bound = None
        return [located(node, at) for node in leaving]

    def _store(self, at: ast.AST) -> list[ast.stmt]:
        """Puts variables back into the frame."""
        stores: list[ast.stmt] = []
        for name in self.writes if self._keep else ():
            text = f"_frame[{name!r}] = _value"
            if name not in (self._bound or ()):
                gone = f"_frame.pop({name!r}, None)" if name in self.deleted else "pass"
                text = f"try: {text}\nexcept _NameError: {gone}"
            stores += written(text, at, _frame=FRAME, _value=name, _NameError=UNBOUND)
        return stores

    def need(self, *names: str | ast.expr) -> None:
        """Notes variables that are read at this point."""
        for part in names:
            name = part if isinstance(part, str) else getattr(part, "id", None)
            if name in self._function.locals and name not in (self._bound or ()):
                self.loads[name] = None

    def _note(self, bound: Iterable[str], deleted: Iterable[str]) -> None:
        if self._bound is not None:
            self._bound.update(bound)
            self._bound.difference_update(deleted)


class _Leaving(ast.NodeTransformer):
    """In the user's statement, a return, or what leaves its loop, signals that to the caller."""

    def __init__(self, in_loop: bool) -> None:
        self._in_loop = in_loop

    def visit_Return(self, node: ast.Return) -> ast.stmt:
        return located(_signal("return", node.value or ast.Constant(None)), node)

    def visit_Break(self, node: ast.Break | ast.Continue) -> ast.stmt:
        if self._in_loop:
            return node
        return located(_signal(type(node).__name__.lower(), ast.Constant(None)), node)

    def visit_Continue(self, node: ast.Continue) -> ast.stmt:
        return self.visit_Break(node)

    def visit_For(self, node: ast.For | ast.While) -> ast.AST:
        outer, self._in_loop = self._in_loop, True
        node.body = [self.visit(statement) for statement in node.body]
        self._in_loop = outer
        node.orelse = [self.visit(statement) for statement in node.orelse]
        return node

    def visit_While(self, node: ast.While) -> ast.AST:
        return self.visit_For(node)

    def visit_FunctionDef(self, node: ast.AST) -> ast.AST:
        return node

    visit_AsyncFunctionDef = visit_FunctionDef
    visit_ClassDef = visit_FunctionDef


def alone(statement: Statement) -> Statement:
    """A statement without those inside it."""
    if not inner_blocks(statement):
        return statement
    bare = copy.copy(statement)
    for attribute in {"then", "otherwise", "before", "body"} & set(dir(bare)):
        setattr(bare, attribute, [])
    return bare


def _made(name: str) -> bool:
    return name.startswith("%")


def _deleted_by(statement: Step | Unit) -> set[str]:
    return Uses([statement.node]).deletes


def _may_delete(statements: Block | Sequence[Statement], name: str) -> bool:
    for statement in statements:
        if isinstance(statement, Step | Unit):
            if name in statement.writes and name in _deleted_by(statement):
                return True
        elif any(_may_delete(block, name) for block in inner_blocks(statement)):
            return True
    return False


def _signal(kind: str, value: ast.expr) -> ast.Return:
    return ast.Return(ast.Tuple([ast.Constant(kind), value], ast.Load()))


def _is_part(node: Any) -> bool:
    """Whether a node takes a part of something, such as a batch."""
    return isinstance(node, ast.Subscript) and isinstance(node.slice, ast.Slice)
