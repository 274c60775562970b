"""``match`` as branches, where its patterns ask only what a value is equal to."""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from dilim.slicing.comprehensions import Comprehensions
from dilim.slicing.emitter import place_of_test
from dilim.slicing.program import Atom


class _Case(NamedTuple):
    """A case of plain patterns.

    Attributes:
        test: what has to be true; None for nothing.
        names: that are bound to the value then.
        node: the case.
    """

    test: ast.expr | None
    names: tuple[str, ...]
    node: ast.match_case


class Matching(Comprehensions):
    """The part of the normaliser that emits ``match``."""

    statements: Callable[[Iterable[ast.stmt]], None]
    _unit: Callable[[ast.stmt], None]

    def _Match(self, node: ast.Match) -> None:
        subject: Any = ast.copy_location(ast.Name("%subject", ast.Load()), node.subject)
        if not all(_case(each, subject) for each in node.cases):
            self._unit(node)
            return
        guards = [each.guard for each in node.cases if each.guard is not None]
        value = self.held(self.atom(node.subject), guards)
        cases = [_case(each, value) for each in node.cases]
        self._cases([each for each in cases if each is not None], value)

    def _cases(self, cases: Sequence[_Case], value: Atom) -> None:
        if not cases:
            return
        case, *others = cases

        def then() -> None:
            for name in case.names:
                target = ast.copy_location(ast.Name(name, ast.Store()), case.node.pattern)
                self.store(target, value)
            guard = case.node.guard
            if guard is None:
                self.statements(case.node.body)
                return
            self.branch(
                self.condition(guard),
                lambda: self.statements(case.node.body),
                lambda: self._cases(others, value) if case.test is None else None,
                _place(guard),
            )

        if case.test is None:
            then()
            return
        self.branch(
            self.condition(case.test),
            then,
            lambda: self._cases(others, value),
            _place(case.test),
        )


def _case(case: ast.match_case, value: Atom) -> _Case | None:
    """A case as a test of a value; None where a pattern looks into it."""
    found = _pattern(case.pattern, value)
    if found is None:
        return None
    test, names = found
    if case.guard is not None and test is not None:
        if names:
            return None
        both = ast.BoolOp(ast.And(), [test, case.guard])
        plain = ast.match_case(case.pattern, None, case.body)
        return _Case(ast.copy_location(both, case.pattern), (), plain)
    return _Case(test, names, case)


def _pattern(pattern: ast.pattern, value: Atom) -> tuple[ast.expr | None, tuple[str, ...]] | None:
    match pattern:
        case ast.MatchValue(value=expected):
            return _compared(pattern, value, ast.Eq(), expected), ()
        case ast.MatchSingleton(value=constant):
            expected = ast.copy_location(ast.Constant(constant), pattern)
            return _compared(pattern, value, ast.Is(), expected), ()
        case ast.MatchAs(pattern=None, name=name):
            return None, () if name is None else (name,)
        case ast.MatchAs(pattern=ast.pattern() as inner, name=str(name)):
            found = _pattern(inner, value)
            return None if found is None else (found[0], (*found[1], name))
        case ast.MatchOr(patterns=patterns):
            parts = [_pattern(each, value) for each in patterns]
            tests = [part[0] for part in parts if part is not None and not part[1]]
            if len(tests) < len(parts) or any(test is None for test in tests):
                return None
            either = ast.BoolOp(ast.Or(), [test for test in tests if test is not None])
            return ast.copy_location(either, pattern), ()
    return None


def _compared(pattern: ast.pattern, value: Atom, op: ast.cmpop, expected: ast.expr) -> ast.expr:
    atom: ast.expr = (
        ast.Constant(value.value)
        if isinstance(value, ast.Constant)
        else ast.Name(value.id, ast.Load())
    )
    left = ast.copy_location(atom, pattern)
    return ast.copy_location(ast.Compare(left, [op], [expected]), pattern)


def _place(test: ast.expr) -> ast.expr | ast.stmt:
    """Where CPython says that the truth of a pattern or guard is asked for."""
    return place_of_test(test, ast.copy_location(ast.Expr(test), test))
