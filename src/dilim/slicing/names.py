"""Which names a piece of syntax reads, binds, deletes and hands to inner functions."""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Iterable
from typing import Any, TypeAlias

FunctionNode: TypeAlias = ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda
Comprehension: TypeAlias = ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp


class Uses:
    """What the visited nodes do with names, in the scope that they stand in.

    Args:
        nodes: what is visited.
        harmless: inner functions and generators that are done with before anything else runs.

    Attributes:
        reads: names that may be read, in source order, those of inner functions included.
        writes: names that may be bound or deleted.
        deletes: names that may be unbound: by ``del``, or at the end of ``except ... as``.
        captured: names of this scope that inner functions and generator expressions may read later.
        rebound: names of this scope that inner functions bind (``nonlocal``).
        globals: names declared ``global``.
        nonlocals: names declared ``nonlocal``.
    """

    def __init__(
        self, nodes: Iterable[ast.AST] = (), harmless: Collection[ast.AST] = frozenset()
    ) -> None:
        self._harmless = harmless
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

    def visit(self, node: ast.AST) -> None:
        """Counts what a node does, and all in it."""
        handler = getattr(self, f"_{type(node).__name__}", None)
        if handler is None:
            self.visit_all(ast.iter_child_nodes(node))
        else:
            handler(node)

    def visit_all(self, nodes: Iterable[ast.AST | None]) -> None:
        """Counts what several nodes do; None stands for one that is absent."""
        for node in nodes:
            if node is not None:
                self.visit(node)

    def _Name(self, node: ast.Name) -> None:
        if isinstance(node.ctx, ast.Load):
            self.reads[node.id] = None
            return
        self.writes[node.id] = None
        if isinstance(node.ctx, ast.Del):
            self.deletes.add(node.id)

    def _Assign(self, node: ast.Assign) -> None:
        self.visit_all([node.value, *node.targets])

    def _AugAssign(self, node: ast.AugAssign) -> None:
        if isinstance(node.target, ast.Name):
            self.reads[node.target.id] = None
        self.visit_all([node.value, node.target])

    def _AnnAssign(self, node: ast.AnnAssign) -> None:
        # In a function, annotations of variables are not evaluated.
        self.visit_all([node.value, node.target])

    def _For(self, node: ast.For) -> None:
        self.visit_all([node.iter, node.target, *node.body, *node.orelse])

    def _NamedExpr(self, node: ast.NamedExpr) -> None:
        self.visit_all([node.value, node.target])

    def _Global(self, node: ast.Global) -> None:
        self.globals.update(node.names)

    def _Nonlocal(self, node: ast.Nonlocal) -> None:
        self.nonlocals.update(node.names)

    def _Import(self, node: ast.Import | ast.ImportFrom) -> None:
        for alias in node.names:
            self.writes[alias.asname or alias.name.partition(".")[0]] = None

    def _ImportFrom(self, node: ast.ImportFrom) -> None:
        self._Import(node)

    def _ExceptHandler(self, node: ast.ExceptHandler) -> None:
        self.visit_all([node.type, *node.body])
        if node.name:
            self.writes[node.name] = None
            self.deletes.add(node.name)

    def _MatchAs(self, node: ast.MatchAs | ast.MatchStar) -> None:
        self.visit_all(ast.iter_child_nodes(node))
        if node.name:
            self.writes[node.name] = None

    def _MatchStar(self, node: ast.MatchStar) -> None:
        self._MatchAs(node)

    def _MatchMapping(self, node: ast.MatchMapping) -> None:
        self.visit_all(ast.iter_child_nodes(node))
        if node.rest:
            self.writes[node.rest] = None

    def _Lambda(self, node: ast.Lambda) -> None:
        self._function(node, [node.body])

    def _FunctionDef(self, node: ast.FunctionDef | ast.AsyncFunctionDef) -> None:
        self.visit_all(node.decorator_list)
        annotations = [argument.annotation for argument in arguments_of(node)]
        self.visit_all([*annotations, node.returns])
        self._function(node, node.body)
        self.writes[node.name] = None

    def _AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> None:
        self._FunctionDef(node)

    def _ClassDef(self, node: ast.ClassDef) -> None:
        self.visit_all([*node.decorator_list, *node.bases, *node.keywords])
        inner = Uses(node.body, self._harmless)
        for statement in node.body:
            if isinstance(statement, ast.AnnAssign):
                inner.visit(statement.annotation)
        # A class body sees the names around it until it binds them itself; its methods always do.
        self._hand_over(set(inner.reads), inner.captured, inner)
        self.writes[node.name] = None

    def _ListComp(self, node: Comprehension) -> None:
        self.visit(node.generators[0].iter)
        inner = Uses(inner_parts(node), self._harmless)
        own = comprehension_variables(node)
        leaked = set(inner.writes) - own
        later = inner.captured - own
        free = set(inner.reads) - own
        if isinstance(node, ast.GeneratorExp) and node not in self._harmless:
            later |= free | leaked
            inner.rebound |= leaked
        self._hand_over(free, later, inner)
        self.writes.update(dict.fromkeys(name for name in inner.writes if name in leaked))

    def _SetComp(self, node: ast.SetComp) -> None:
        self._ListComp(node)

    def _DictComp(self, node: ast.DictComp) -> None:
        self._ListComp(node)

    def _GeneratorExp(self, node: ast.GeneratorExp) -> None:
        self._ListComp(node)

    def _function(self, node: FunctionNode, body: Iterable[ast.AST]) -> None:
        self.visit_all([*node.args.defaults, *node.args.kw_defaults])
        inner = Uses(body, self._harmless)
        own = inner.bound | {argument.arg for argument in arguments_of(node)} | inner.globals
        free = (set(inner.reads) | inner.nonlocals) - own
        later = (inner.captured - own) | (set() if node in self._harmless else free)
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


def renamed(node: ast.expr, names: dict[str, str]) -> ast.expr:
    """A copy of an expression with other free names, in inner scopes as well.

    Args:
        node: the expression.
        names: new names by old names.
    """
    result: ast.expr = _Renamer(names).visit(copy.deepcopy(node))
    return result


class _Renamer(ast.NodeTransformer):
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

    def _without(self, own: set[str]) -> _Renamer:
        return _Renamer({old: new for old, new in self.names.items() if old not in own})


def is_super(node: ast.expr) -> bool:
    """Whether an expression is ``super()``, which is no step of its own."""
    return (
        isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id == "super"
        and not node.args
        and not node.keywords
    )
