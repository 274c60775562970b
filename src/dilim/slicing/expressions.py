"""Expressions to steps on names and constants, in the order in which Python evaluates them.

Three things take care. A name whose value could change, or that could fail to be bound, is copied
before anything after it in the same expression runs. Truth is asked of a value as often as the
compiled code of CPython asks. What is looked into when it is evaluated, not when it is used (a
starred operand, a formatted value), is looked into at that time.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypeVar

from dilim.slicing.emitter import Emitter, located
from dilim.slicing.names import is_super, renamed
from dilim.slicing.program import Atom

Operand: TypeAlias = ast.expr | ast.keyword
"""An expression, a Starred, or a keyword (whose name is None for ``**``)."""

F = TypeVar("F", ast.Lambda, ast.FunctionDef)

_SIGNS: dict[type[ast.unaryop], Callable[[Any], Any]] = {
    ast.USub: lambda value: -value,
    ast.UAdd: lambda value: +value,
    ast.Invert: lambda value: ~value,
}


class Expressions(Emitter):
    """Emits the steps of expressions."""

    def atom(self, node: ast.expr) -> Atom:
        """Emits what computes an expression, and says where its value is."""
        constant = folded(node)
        if constant is not None:
            return constant
        if isinstance(node, ast.Name):
            return ast.copy_location(ast.Name(self.renames.get(node.id, node.id), ast.Load()), node)
        return self.value(node)

    def value(self, node: ast.expr, target: str | None = None) -> Atom:
        """Emits what computes an expression into a name, a new one unless it is given."""
        constant = folded(node)
        if constant is not None or isinstance(node, ast.Name):
            return self.assign(target or self.new(), constant or self.atom(node), node)
        handler = getattr(self, f"_{type(node).__name__}", self._whole)
        result: Atom = handler(node, target)
        return result

    def operands(self, parts: Sequence[Operand], *, hold: bool = False) -> list[Operand]:
        """Emits what computes operands, from left to right, and gives them on atoms.

        Args:
            parts: what is evaluated.
            hold: whether the atoms must keep their values while other code runs afterwards.
        """
        done: list[Operand] = []
        for place, part in enumerate(parts):
            later = parts[place + 1 :]
            busy = hold or not all(map(is_idle, later))
            inner = part.value if isinstance(part, ast.Starred | ast.keyword) else part
            atom = self.atom(inner)
            if isinstance(part, ast.Starred):
                if busy:  # It is iterated before what follows is evaluated.
                    atom = self.assign(
                        self.new(), ast.List([ast.Starred(atom, ast.Load())], ast.Load()), part
                    )
                done.append(located(ast.Starred(atom, ast.Load()), part))
            elif isinstance(part, ast.keyword) and part.arg is None and busy:
                atom = self.assign(self.new(), ast.Dict([None], [atom]), part)
                done.append(located(ast.keyword(None, atom), part))
            else:
                atom = self.held(atom, later) if busy else atom
                done.append(
                    located(ast.keyword(part.arg, atom), part)
                    if isinstance(part, ast.keyword)
                    else atom
                )
        return done

    def atoms(self, *parts: ast.expr, hold: bool = False) -> list[Atom]:
        """The same for plain expressions."""
        return [part for part in self.operands(parts, hold=hold) if isinstance(part, Atom)]

    def held(
        self, atom: Atom, later: Sequence[ast.AST] = (), changing: frozenset[str] = frozenset()
    ) -> Atom:
        """An atom that keeps its value while ``later`` is evaluated and ``changing`` are bound."""
        if isinstance(atom, ast.Constant):
            return atom
        name = atom.id
        rebound = changing.union(
            inner.target.id
            for part in later
            for inner in ast.walk(part)
            if isinstance(inner, ast.NamedExpr)
        )
        if self.is_local(name) and self.is_bound(name) and name not in rebound:
            return atom
        return self.assign(self.new(), atom, atom)

    # Truth

    def condition(self, node: ast.expr) -> Atom:
        """Emits a test; the atom's truth is the test's, and has not been asked yet."""
        return self._tested(node, None, None)

    def _tested(self, node: ast.expr, needed: bool | None, into: str | None) -> Atom:
        """Emits a test. Where it comes out as ``needed``, ``into`` holds the expression's value."""
        if isinstance(node, ast.BoolOp):
            truth = self.new()
            self._chain(node, needed, into, truth)
            return load(truth, node)
        if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not):
            inner = self._tested(node.operand, None, None)
            return self.assign(into or self.new(), ast.UnaryOp(ast.Not(), inner), node)
        if isinstance(node, ast.IfExp):
            truth = self.new()
            self.branch(
                self.condition(node.test),
                lambda: self.assign(truth, self._tested(node.body, needed, into), node),
                lambda: self.assign(truth, self._tested(node.orelse, needed, into), node),
                node,
            )
            return load(truth, node)
        if isinstance(node, ast.Compare) and len(node.ops) > 1:
            truth = self.new()
            self._links(node, into or self.new(), truth)
            return load(truth, node)
        return self.atom(node) if into is None else self.value(node, into)

    def _chain(
        self, node: ast.BoolOp, needed: bool | None, into: str | None, truth: str | None
    ) -> None:
        """Emits ``and`` or ``or``: its truth into ``truth``, its value into ``into`` where needed.

        Without ``truth``, its value is what is asked for.
        """
        stop = isinstance(node.op, ast.Or)

        def from_operand(place: int) -> None:
            operand = node.values[place]
            if place == len(node.values) - 1:
                if truth is None:
                    self.value(operand, into)
                else:
                    self.assign(truth, self._tested(operand, needed, into), operand)
                return
            test = self._tested(operand, stop, into if needed in (None, stop) and into else None)

            def going_on() -> None:
                from_operand(place + 1)

            def stopping() -> None:
                if truth is not None:
                    self.assign(truth, ast.Constant(stop), operand)

            if stop:
                self.branch(test, stopping, going_on, node)
            else:
                self.branch(test, going_on, stopping, node)

        from_operand(0)

    def _BoolOp(self, node: ast.BoolOp, target: str | None) -> Atom:
        into = self.new()
        self._chain(node, None, into, None)
        return self._moved(into, target, node)

    def _IfExp(self, node: ast.IfExp, target: str | None) -> Atom:
        target = target or self.new()
        self.branch(
            self.condition(node.test),
            lambda: self.value(node.body, target),
            lambda: self.value(node.orelse, target),
            node,
        )
        return load(target, node)

    def _Compare(self, node: ast.Compare, target: str | None) -> Atom:
        if len(node.ops) == 1:
            left, right = self.atoms(node.left, node.comparators[0])
            return self.assign(target or self.new(), ast.Compare(left, node.ops, [right]), node)
        into = self.new()
        self._links(node, into, None)
        return self._moved(into, target, node)

    def _links(self, node: ast.Compare, into: str, truth: str | None) -> None:
        """Emits a chained comparison: its value into ``into``, and its truth into ``truth``."""

        def compare(left: Atom, place: int) -> None:
            last = place == len(node.ops) - 1
            right = self.atom(node.comparators[place])
            if not last:
                right = self.held(right, node.comparators[place + 1 :])
            value = self.assign(into, ast.Compare(left, [node.ops[place]], [right]), node)
            if last:
                if truth is not None:
                    self.assign(truth, value, node)
                return
            self.branch(
                value,
                lambda: compare(right, place + 1),
                lambda: truth and self.assign(truth, ast.Constant(False), node),
                node,
            )

        compare(self.held(self.atom(node.left), node.comparators), 0)

    def _NamedExpr(self, node: ast.NamedExpr, target: str | None) -> Atom:
        name = node.target.id
        if self.is_local(name):
            result = self.value(node.value, name)
        else:
            result = self.held(self.atom(node.value))
            self.step(ast.Assign([node.target], result), node)
        return result if target is None else self.assign(target, result, node)

    # One operation on atoms

    def _UnaryOp(self, node: ast.UnaryOp, target: str | None) -> Atom:
        operation = ast.UnaryOp(node.op, self.atom(node.operand))
        return self.assign(target or self.new(), operation, node)

    def _BinOp(self, node: ast.BinOp, target: str | None) -> Atom:
        left, right = self.atoms(node.left, node.right)
        return self.assign(target or self.new(), ast.BinOp(left, node.op, right), node)

    def _Attribute(self, node: ast.Attribute, target: str | None) -> Atom:
        owner = node.value if is_super(node.value) else self.atom(node.value)
        operation = located(ast.Attribute(owner, node.attr, ast.Load()), node)
        return self.assign(target or self.new(), operation, node)

    def _Subscript(self, node: ast.Subscript, target: str | None) -> Atom:
        parts = [node.value]
        index = self.index_parts(node.slice, parts)
        value, *rest = self.atoms(*parts)
        operation = ast.Subscript(value, index(iter(rest)), ast.Load())
        return self.assign(target or self.new(), operation, node)

    def index_parts(self, node: ast.expr, parts: list[ast.expr]) -> Callable[..., ast.expr]:
        """Adds what an index evaluates to ``parts``; gives what rebuilds it from their atoms."""
        if isinstance(node, ast.Slice):
            bounds = (node.lower, node.upper, node.step)
            parts += [bound for bound in bounds if bound is not None]
            return lambda atoms: ast.copy_location(
                ast.Slice(*[None if bound is None else next(atoms) for bound in bounds]), node
            )
        if isinstance(node, ast.Tuple) and any(isinstance(part, ast.Slice) for part in node.elts):
            inner = [self.index_parts(part, parts) for part in node.elts]
            return lambda atoms: ast.copy_location(
                ast.Tuple([part(atoms) for part in inner], ast.Load()), node
            )
        parts.append(node)
        return lambda atoms: next(atoms)

    def _Tuple(self, node: ast.Tuple | ast.List | ast.Set, target: str | None) -> Atom:
        parts = [part for part in self.operands(node.elts) if isinstance(part, ast.expr)]
        operation = ast.Set(parts) if isinstance(node, ast.Set) else type(node)(parts, ast.Load())
        return self.assign(target or self.new(), operation, node)

    _List = _Tuple
    _Set = _Tuple

    def _Dict(self, node: ast.Dict, target: str | None) -> Atom:
        flat: list[Operand] = []
        for key, value in zip(node.keys, node.values, strict=True):
            flat += [located(ast.keyword(None, value), value)] if key is None else [key, value]
        done = iter(self.operands(flat))
        pairs = [(None if key is None else next(done), next(done)) for key in node.keys]
        values = [value.value if isinstance(value, ast.keyword) else value for _, value in pairs]
        keys = [key if isinstance(key, ast.expr) else None for key, _ in pairs]
        return self.assign(target or self.new(), ast.Dict(keys, values), node)

    def _Call(self, node: ast.Call, target: str | None) -> Atom:
        self.note_consumer(node)
        callee: Any
        callee, *rest = self.operands([node.func, *node.args, *node.keywords])
        arguments = [part for part in rest if isinstance(part, ast.expr)]
        keywords = [part for part in rest if isinstance(part, ast.keyword)]
        call = ast.copy_location(ast.Call(callee, arguments, keywords), node)
        starred = any(isinstance(part, ast.Starred) for part in arguments)
        if (
            isinstance(node.func, ast.Attribute)
            and not starred
            and all(word.arg for word in keywords)
        ):
            _place_at_method(call, node.func)
        return self.assign(target or self.new(), call, node)

    # Strings with values in them

    def _JoinedStr(self, node: ast.JoinedStr, target: str | None) -> Atom:
        return self.assign(target or self.new(), self._formatted(node), node)

    def _formatted(self, node: ast.JoinedStr) -> ast.JoinedStr:
        """Emits what a formatted string evaluates; gives it with atoms for values.

        Each value is formatted before the next one is evaluated.
        """
        pieces: list[ast.expr] = []
        for piece in node.values:
            if not isinstance(piece, ast.FormattedValue):
                pieces.append(piece)
                continue
            spec = piece.format_spec
            idle_spec = spec is None or all(
                isinstance(part, ast.Constant)
                or (isinstance(part, ast.FormattedValue) and is_idle(part.value))
                for part in getattr(spec, "values", [])
            )
            if pieces and not (is_idle(piece.value) and idle_spec):
                text = self.assign(self.new(), ast.JoinedStr(pieces), node)
                pieces = [located(ast.FormattedValue(text, -1, None), node)]
            value = self.atom(piece.value)
            if isinstance(spec, ast.JoinedStr):
                value = value if idle_spec else self.held(value, [spec])
                spec = self._formatted(spec)
            pieces.append(
                ast.copy_location(ast.FormattedValue(value, piece.conversion, spec), piece)
            )
        return ast.copy_location(ast.JoinedStr(pieces), node)

    # What stays whole, but for the defaults of parameters

    def _Lambda(self, node: ast.Lambda, target: str | None) -> Atom:
        whole = renamed(self.with_defaults(node), self.renames)
        return self.assign(target or self.new(), whole, node, harmless=node in self.harmless)

    def with_defaults(self, node: F) -> F:
        """Emits the defaults of a function's parameters; the function with atoms for them."""
        made = copy.copy(node)
        made.args = args = copy.copy(node.args)
        named = [x for x in args.kw_defaults if x is not None]
        found = iter(self.atoms(*args.defaults, *named))
        args.defaults = [next(found) for _ in args.defaults]
        args.kw_defaults = [x and next(found) for x in args.kw_defaults]
        return made

    def _whole(self, node: ast.expr, target: str | None) -> Atom:
        whole = renamed(node, self.renames)
        return self.assign(target or self.new(), whole, node, harmless=node in self.harmless)

    def _moved(self, name: str, target: str | None, at: ast.AST) -> Atom:
        return load(name, at) if target is None else self.assign(target, load(name, at), at)


def load(name: str, at: ast.AST) -> ast.Name:
    """A read of a name."""
    return ast.copy_location(ast.Name(name, ast.Load()), at)


def folded(node: ast.expr) -> ast.Constant | None:
    """A constant, signed number or tuple of these as one constant, as the compiler folds it."""
    if isinstance(node, ast.Constant):
        return node
    if isinstance(node, ast.UnaryOp) and type(node.op) in _SIGNS:
        operand = folded(node.operand)
        if operand is not None and type(operand.value) in (int, float, complex):
            try:
                return ast.copy_location(ast.Constant(_SIGNS[type(node.op)](operand.value)), node)
            except TypeError:
                return None
    if isinstance(node, ast.Tuple) and isinstance(node.ctx, ast.Load):
        parts = [folded(part) for part in node.elts]
        values: Any = tuple(part.value for part in parts if part is not None)
        return ast.copy_location(ast.Constant(values), node) if len(values) == len(parts) else None
    return None


def is_idle(node: Operand) -> bool:
    """Whether evaluating an expression runs no code that anything else could notice."""
    if isinstance(node, ast.Starred | ast.keyword):
        return is_idle(node.value)
    if isinstance(node, ast.Lambda):
        return not node.args.defaults and not any(node.args.kw_defaults)
    return isinstance(node, ast.Name) or folded(node) is not None


def _place_at_method(call: ast.Call, method: ast.Attribute) -> None:
    """Lets errors of a method call point at the line of the method's name, as CPython does."""
    line, column = method.end_lineno, method.end_col_offset
    if line is None or column is None or line == call.lineno:
        return
    call.lineno = line
    call.col_offset = column - len(method.attr)
