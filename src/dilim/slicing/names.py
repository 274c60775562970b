"""Which names a piece of syntax reads, binds, deletes and hands to inner functions."""

from __future__ import annotations

import ast
from collections.abc import Iterable
from typing import Any, TypeAlias

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Uses(ast.NodeVisitor):
    """What the visited nodes do with names, in the scope that they stand in.

    Attributes:
        reads: names that may be read, in source order, those of inner functions included.
        writes: names that may be bound or deleted.
        deletes: names that may be unbound: by ``del``, or at the end of ``except ... as``.
        captured: names of this scope that inner functions and generator expressions may read later.
        rebound: names of this scope that inner functions bind (``nonlocal``).
        globals: names declared ``global``.
        nonlocals: names declared ``nonlocal``.
    """

    def __init__(self, nodes: Iterable[ast.AST] = ()) -> None:
        self.reads: dict[str, None] = {}
        self.writes: dict[str, None] = {}
        self.deletes: set[str] = set()
        self.captured: set[str] = set()
        self.rebound: set[str] = set()
        self.globals: set[str] = set()
        self.nonlocals: set[str] = set()
        for node in nodes:
            self.visit(node)

    @property
    def bound(self) -> set[str]:
        """Names that belong to this scope because it binds them."""
        return set(self.writes) - self.globals - self.nonlocals

    def visit_all(self, nodes: Iterable[ast.AST | None]) -> None:
        for node in nodes:
            if node is not None:
                self.visit(node)

    def visit_Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.reads[node.id] = None
            return
        self.writes[node.id] = None
        if isinstance(node.ctx, ast.Del):
            self.deletes.add(node.id)

    def visit_Assign(self, node: ast.Assign) -> None:
        self.visit_all([node.value, *node.targets])

    def visit_AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.reads[node.target.id] = None
        self.visit_all([node.value, node.target])

    def visit_AnnAssign(self, node: ast.AnnAssign) -> None:
        # In a function, annotations of variables are not evaluated.
        self.visit_all([node.value, node.target])

    def visit_For(self, node: ast.For) -> None:
        self.visit_all([node.iter, node.target, *node.body, *node.orelse])

    def visit_NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit_all([node.value, node.target])

    def visit_Global(self, node: ast.Global) -> None:
        self.globals.update(node.names)

    def visit_Nonlocal(self, node: ast.Nonlocal) -> None:
        self.nonlocals.update(node.names)

    def visit_Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self.writes[alias.asname or alias.name.partition(".")[0]] = None

    def visit_ImportFrom(self, node: ast.ImportFrom) -> None:
        self.visit_Import(node)

    def visit_ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.visit_all([node.type, *node.body])
        if node.name:
            self.writes[node.name] = None
            self.deletes.add(node.name)

    def visit_MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        self.generic_visit(node)
        if node.name:
            self.writes[node.name] = None

    def visit_MatchStar(self, node: ast.MatchStar) -> None:
        self.visit_MatchAs(node)

    def visit_MatchMapping(self, node: ast.MatchMapping) -> None:
        self.generic_visit(node)
        if node.rest:
            self.writes[node.rest] = None

    def visit_Lambda(self, node: ast.Lambda) -> None:
        self._function(node, [node.body])

    def visit_FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.visit_all(node.decorator_list)
        annotations = [argument.annotation for argument in arguments_of(node)]
        self.visit_all([*annotations, node.returns])
        self._function(node, node.body)
        self.writes[node.name] = None

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self.visit_FunctionDef(node)

    def visit_ClassDef(self, node: ast.ClassDef) -> None:
        self.visit_all([*node.decorator_list, *node.bases, *node.keywords])
        inner = Uses(node.body)
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign):
                inner.visit(statement.annotation)
        # A class body sees the names around it until it binds them itself, and its methods always do.
        self._hand_over(set(inner.reads), inner.captured, inner)
        self.writes[node.name] = None

    def visit_ListComp(self, node: Comprehension) -> None:
        self.visit(node.generators[0].iter)
        inner = Uses(inner_parts(node))
        own = comprehension_variables(node)
        leaked = set(inner.writes) - own
        later = inner.captured - own
        free = set(inner.reads) - own
        if isinstance(node, ast.GeneratorExp):
            later |= free | leaked
            inner.rebound |= leaked
        self._hand_over(free, later, inner)
        self.writes.update(dict.fromkeys(name for name in inner.writes if name in leaked))

    def visit_SetComp(self, node: ast.SetComp) -> None:
        self.visit_ListComp(node)

    def visit_DictComp(self, node: ast.DictComp) -> None:
        self.visit_ListComp(node)

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self.visit_ListComp(node)

    def _function(self, node: FunctionNode, body: Iterable[ast.AST]) -> None:
        self.visit_all([*node.args.defaults, *node.args.kw_defaults])
        inner = Uses(body)
        own = inner.bound | {argument.arg for argument in arguments_of(node)} | inner.globals
        free = (set(inner.reads) | inner.nonlocals) - own
        later = free | (inner.captured - own)
        self.rebound |= inner.nonlocals
        self._hand_over(free, later, inner)

    def _hand_over(self, free: set[str], later: set[str], inner: Uses) -> None:
        """Count what an inner scope takes from this one: at once, and whenever it is called."""
        order = [*inner.reads, *sorted(free | later)]
        self.reads.update(dict.fromkeys(name for name in order if name in free or name in later))
        self.captured |= later
        self.rebound |= inner.rebound & (free | later)


def arguments_of(node: FunctionNode) -> list[ast.arg]:
    """The parameters in the order of the code object: positional, keyword-only, ``*``, ``**``."""
    arguments = node.args
    stars = [star for star in (arguments.vararg, arguments.kwarg) if star is not None]
    return [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, *stars]


def inner_parts(node: Comprehension) -> list[ast.AST]:
    """What a comprehension evaluates in its own scope: all but its first iterable, in order."""
    parts: list[ast.AST] = []
    for place, generator in enumerate(node.generators):
        parts += [generator.iter] * (place > 0) + [generator.target, *generator.ifs]
    if isinstance(node, ast.DictComp):
        return [*parts, node.key, node.value]
    return [*parts, node.elt]


def comprehension_variables(node: Comprehension) -> set[str]:
    """The variables that a comprehension binds, which end with it."""
    return {
        name.id
        for generator in node.generators
        for name in ast.walk(generator.target)
        if isinstance(name, ast.Name) and isinstance(name.ctx, ast.Store)
    }


class Renamer(ast.NodeTransformer):
    """Renames free names of an expression, inner scopes included, that do not bind them anew.

    Args:
        names: new name by old name.
    """

    def __init__(self, names: dict[str, str]) -> None:
        self.names = names

    def visit_Name(self, node: ast.Name) -> ast.Name:
        new = self.names.get(node.id)
        return node if new is None else ast.copy_location(ast.Name(new, node.ctx), node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        node.args.defaults = [self.visit(default) for default in node.args.defaults]
        node.args.kw_defaults = [
            None if default is None else self.visit(default) for default in node.args.kw_defaults
        ]
        own = {argument.arg for argument in arguments_of(node)} | Uses([node.body]).bound
        node.body = self._without(own).visit(node.body)
        return node

    def visit_ListComp(self, node: Comprehension) -> Any:
        inner = self._without(comprehension_variables(node))
        for place, generator in enumerate(node.generators):
            generator.iter = (inner if place else self).visit(generator.iter)
            generator.target = inner.visit(generator.target)
            generator.ifs = [inner.visit(test) for test in generator.ifs]
        if isinstance(node, ast.DictComp):
            node.key, node.value = inner.visit(node.key), inner.visit(node.value)
        else:
            node.elt = inner.visit(node.elt)
        return node

    visit_SetComp = visit_ListComp
    visit_DictComp = visit_ListComp
    visit_GeneratorExp = visit_ListComp

    def _without(self, own: set[str]) -> Renamer:
        return Renamer({old: new for old, new in self.names.items() if old not in own})
