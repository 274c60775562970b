"""Statements to the normal form."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterable

from dilim.slicing.captures import refuse_changes
from dilim.slicing.emitter import join, located, place_of_test
from dilim.slicing.errors import Unsliceable
from dilim.slicing.expressions import is_idle, load
from dilim.slicing.matching import Matching
from dilim.slicing.names import Uses
from dilim.slicing.program import ENTER, FRAME, LEAVE, Atom, Block, Exit, For, Step, While, With
from dilim.slicing.templates import written

_REASONS: dict[str, str] = {
    "Try": "try runs on the host",
    "TryStar": "try runs on the host",
    "FunctionDef": "it defines a function",
    "ClassDef": "it defines a class",
    "Import": "it imports",
    "ImportFrom": "it imports",
    "Match": "match runs on the host",
}


class Normaliser(Matching):
    """Emits the statements of one function, and completes its ``Function``."""

    def run(self, body: list[ast.stmt]) -> None:
        """Normalises a body into ``function.body``.

        Raises:
            Unsliceable: an inner function shares a variable that changes.
        """
        self._loops: list[list[set[str] | None]] = []
        self.block = self.function.body
        self.statements(body)
        refuse_changes(self.function, self.captures)
        for name in sorted(Uses(body).rebound):
            if self.is_local(name):
                line = body[0].lineno
                raise Unsliceable(f"an inner function changes its variable {name}", line)
        self.function.captured = frozenset().union(*(names for _, names in self.captures))
        self.function.builtins = frozenset(self.builtins)
        self.function.locals |= frozenset(self.made)

    def statements(self, body: Iterable[ast.stmt]) -> None:
        """Emits statements in order."""
        for statement in body:
            getattr(self, f"_{type(statement).__name__}", self._unit)(statement)

    # Simple statements

    def _Pass(self, node: ast.stmt) -> None:
        pass

    _Global = _Nonlocal = _Pass

    def _Expr(self, node: ast.Expr) -> None:
        if not isinstance(node.value, ast.Constant):
            self.value(node.value)

    def _Assign(self, node: ast.Assign) -> None:
        first = node.targets[0]
        if len(node.targets) == 1 and isinstance(first, ast.Name) and self.is_local(first.id):
            self.value(node.value, first.id)
        elif len(node.targets) == 1 and _same_length(first, node.value):
            self._parallel(first, node.value)
        else:
            value = self.atom(node.value)
            if len(node.targets) > 1 or not isinstance(first, ast.Tuple | ast.List):
                value = self._held_for(value, node.targets)
            for target in node.targets:
                self.store(target, value)

    def _held_for(self, value: Atom, targets: list[ast.expr]) -> Atom:
        """A value that stays the same while it is bound to all of the targets."""
        bound = frozenset(Uses(targets).writes)
        idle = all(isinstance(target, ast.Name) for target in targets)
        if idle and isinstance(value, ast.Name) and value.id not in bound and len(targets) == 1:
            return value
        return self.held(value, targets, bound)

    def _parallel(self, target: ast.expr, value: ast.expr) -> None:
        """``a, b = b, a``: no tuple is made."""
        targets, values = target.elts, value.elts  # type: ignore[attr-defined]
        bound = frozenset(Uses(targets).writes)
        atoms = [self.held(atom, targets, bound) for atom in self.atoms(*values, hold=True)]
        for part, atom in zip(targets, atoms, strict=True):
            self.store(part, atom)

    def store(self, target: ast.expr, value: Atom) -> None:
        """Emits what binds a target to a value; what the target evaluates comes after the value."""
        match target:
            case ast.Name(id=name):
                name = self.renames.get(name, name)
                if self.is_local(name):
                    self.assign(name, value, target)
                else:
                    self.step(ast.Assign([target], value), target)
            case ast.Attribute(value=owner, attr=attribute):
                value, owner_atom = self.atoms(value, owner)
                place = ast.copy_location(ast.Attribute(owner_atom, attribute, ast.Store()), target)
                self.step(ast.Assign([place], value), target)
            case ast.Subscript(value=owner, slice=key):
                parts: list[ast.expr] = [value, owner]
                index = self.index_parts(key, parts)
                value, owner_atom, *rest = self.atoms(*parts)
                item = ast.Subscript(owner_atom, index(iter(rest)), ast.Store())
                self.step(ast.Assign([ast.copy_location(item, target)], value), target)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                self._unpack(target, parts, value)

    def _unpack(self, target: ast.expr, parts: list[ast.expr], value: Atom) -> None:
        """All are taken out before the first is bound."""
        names = [part.value if isinstance(part, ast.Starred) else part for part in parts]
        plain = all(isinstance(part, ast.Name) and self.is_local(part.id) for part in names)
        made: list[str] = []
        stores: list[ast.expr] = []
        for part, name in zip(parts, names, strict=True):
            own = name.id if plain and isinstance(name, ast.Name) else self.new()
            made.append(self.renames.get(own, own))
            store: ast.expr = ast.copy_location(ast.Name(made[-1], ast.Store()), name)
            if isinstance(part, ast.Starred):
                store = ast.copy_location(ast.Starred(store, ast.Store()), part)
            stores.append(store)
        place = ast.copy_location(ast.Tuple(stores, ast.Store()), target)
        self.step(ast.Assign([place], value), target)
        if not plain:
            for name, temporary in zip(names, made, strict=True):
                self.store(name, load(temporary, name))

    def _AugAssign(self, node: ast.AugAssign) -> None:
        target = node.target
        if isinstance(target, ast.Name):
            before = ast.copy_location(ast.Name(target.id, ast.Load()), target)
            if self.is_local(target.id) and self.is_bound(target.id) and is_idle(node.value):
                value = self.atom(node.value)
                self.step(ast.AugAssign(target, node.op, value), node)
                return
            old = self.assign(self.new(), before, target)
            self.store(target, self._updated(old, node))
        elif isinstance(target, ast.Attribute):
            owner = self.atoms(target.value, hold=True)[0]
            read = ast.copy_location(ast.Attribute(owner, target.attr, ast.Load()), target)
            new = self._updated(self.assign(self.new(), read, target), node)
            place: ast.expr = ast.Attribute(owner, target.attr, ast.Store())
            self.step(ast.Assign([ast.copy_location(place, target)], new), node)
        else:
            parts = [target.value]
            index = self.index_parts(target.slice, parts)
            owner, *rest = self.atoms(*parts, hold=True)
            rest = [self.held(atom, [node.value]) for atom in rest]
            owner = self.held(owner, [node.value])
            read_item = ast.Subscript(owner, index(iter(rest)), ast.Load())
            new = self._updated(self.assign(self.new(), read_item, target), node)
            place = ast.Subscript(owner, index(iter(rest)), ast.Store())
            self.step(ast.Assign([ast.copy_location(place, target)], new), node)

    def _updated(self, old: ast.Name, node: ast.AugAssign) -> ast.Name:
        """Emits ``old op= value`` on a made name."""
        value = self.atom(node.value)
        name = ast.copy_location(ast.Name(old.id, ast.Store()), node.target)
        self.step(ast.AugAssign(name, node.op, value), node)
        return load(old.id, node)

    def _AnnAssign(self, node: ast.AnnAssign) -> None:
        if node.value is not None:
            assign = ast.copy_location(ast.Assign([node.target], node.value), node)
            self._Assign(assign)
        elif isinstance(node.target, ast.Attribute):
            self.value(node.target.value)
        elif isinstance(node.target, ast.Subscript):
            self.value(node.target.value)
            self.value(node.target.slice)

    def _Delete(self, node: ast.Delete) -> None:
        for target in node.targets:
            self._delete(target, node)

    def _delete(self, target: ast.expr, node: ast.Delete) -> None:
        match target:
            case ast.Name(id=name) if not self.is_local(name):
                self.unit(
                    located(ast.Delete([target]), target), f"it deletes the global name {name}"
                )
            case ast.Name():
                self.step(ast.Delete([target]), target)
            case ast.Attribute(value=owner, attr=attribute):
                place: ast.expr = ast.Attribute(self.atom(owner), attribute, ast.Del())
                self.step(ast.Delete([ast.copy_location(place, target)]), target)
            case ast.Subscript(value=owner, slice=key):
                parts = [owner]
                index = self.index_parts(key, parts)
                atom, *rest = self.atoms(*parts)
                place = ast.Subscript(atom, index(iter(rest)), ast.Del())
                self.step(ast.Delete([ast.copy_location(place, target)]), target)
            case ast.Tuple(elts=parts) | ast.List(elts=parts):
                for part in parts:
                    self._delete(part, node)

    def _Raise(self, node: ast.Raise) -> None:
        given = [part for part in (node.exc, node.cause) if part is not None]
        atoms = self.atoms(*given)
        self.step(ast.Raise(*atoms), node)
        self.bound = None

    def _Assert(self, node: ast.Assert) -> None:
        if not __debug__:
            return

        def fail() -> None:
            message = None if node.msg is None else self.atom(node.msg)
            never = ast.copy_location(ast.Constant(False), node.test)
            self.step(ast.Assert(never, message), at)
            self.bound = None

        at = place_of_test(node.test, node)
        self.branch(self.condition(node.test), lambda: None, fail, at)

    # Control flow

    def _Return(self, node: ast.Return) -> None:
        value = None if node.value is None else self.atom(node.value)
        self.emit(Exit("return", value, node.lineno, node))
        self.bound = None

    def _Break(self, node: ast.Break) -> None:
        self.emit(Exit("break", None, node.lineno, node))
        self._loops[-1].append(self.bound)
        self.bound = None

    def _Continue(self, node: ast.Continue) -> None:
        self.emit(Exit("continue", None, node.lineno, node))
        self.bound = None

    def _If(self, node: ast.If) -> None:
        test = self.condition(node.test)
        self.branch(
            test,
            lambda: self.statements(node.body),
            lambda: self.statements(node.orelse),
            place_of_test(node.test, node),
        )

    def _While(self, node: ast.While) -> None:
        self._enter_loop([node.test, *node.body])
        with self.into() as before:
            test = self.condition(node.test)
        at_test = _copy(self.bound)
        with self.into() as body:
            self.statements(node.body)
        never_false = isinstance(test, ast.Constant) and bool(test.value)
        otherwise = self._leave_loop(None if never_false else at_test, node.orelse)
        at = place_of_test(node.test, node)
        self._emit_loop(While(before, test, body, otherwise, node.lineno, at))

    def _For(self, node: ast.For) -> None:
        items = self.held(self.atom(node.iter))
        target = node.target
        simple = isinstance(target, ast.Name) and self.is_local(target.id)
        name = target.id if simple and isinstance(target, ast.Name) else self.new("item")
        self._enter_loop([target, *node.body])
        at_head = _copy(self.bound)
        with self.into() as body:
            self._bind([name], set())
            if not simple:
                self.store(target, load(name, target))
            self.statements(node.body)
        otherwise = self._leave_loop(at_head, node.orelse)
        loop = For(name, items, self.new("iter"), body, otherwise, node.lineno, False, node)
        self._emit_loop(loop)

    def _enter_loop(self, parts: list[ast.AST]) -> None:
        """From here on the code may have run before, with what it deletes."""
        self._before_loop = self.bound
        if self.bound is not None:
            self.bound = self.bound - Uses(parts).deletes
        self._loops.append([])

    def _leave_loop(self, at_end: set[str] | None, orelse: list[ast.stmt]) -> Block:
        self.bound = at_end
        breaks = self._loops.pop()
        with self.into() as otherwise:
            self.statements(orelse)
        for at_break in breaks:
            self.bound = join(self.bound, at_break)
        return otherwise

    def _emit_loop(self, loop: While | For) -> None:
        # Whether the point after a loop is reached says nothing of the loop itself.
        after, self.bound = self.bound, set()
        self.emit(loop)
        self.bound = after

    def _With(self, node: ast.With) -> None:
        self._with(node.items, node)

    def _with(self, items: list[ast.withitem], node: ast.With) -> None:
        item = items[0]
        context = self.held(self.atom(item.context_expr))
        target = item.optional_vars
        simple = isinstance(target, ast.Name) and self.is_local(target.id)
        name = None if target is None else self.new("as")
        if simple and isinstance(target, ast.Name):
            name = target.id
        entered = self.bound
        with self.into() as body:
            if name is not None:
                self._bind([name], set())
            if target is not None and name is not None and not simple:
                self.store(target, load(name, target))
            if len(items) > 1:
                self._with(items[1:], node)
            else:
                self.statements(node.body)
        # A context may swallow an error, so that anything in the body may not have happened.
        deleted = Uses([*node.body, *(item.context_expr for item in items)]).deletes
        after = None if entered is None else set(entered) - deleted
        self.bound = entered
        line, manager = item.context_expr.lineno, self.new("with")
        entering, leaving = self._ends(context, name, manager, node)
        self.emit(With(context, name, body, line, manager, entering, leaving, node))
        self.bound = after

    def _ends(
        self, context: Atom, target: str | None, manager: str, node: ast.With
    ) -> tuple[Step, Step]:
        """The steps that enter a context and leave it."""
        at = context if sys.version_info >= (3, 13) else node  # where CPython says that it does
        places = {"_frame": FRAME, "_context": context, "_enter": ENTER, "_leave": LEAVE}
        text = f"_enter(_frame, {manager!r}, _context)"
        if target is not None:
            text, places["_target"] = f"_target = {text}", target
        (entering,) = written(text, at, **places)
        (leaving,) = written(f"_leave(_frame.pop({manager!r}), None)", at, **places)
        reads = self._local(Uses([context]).reads)
        writes = () if target is None else (target,)
        line = context.lineno
        return Step(entering, reads, writes, line), Step(leaving, (), (), line)

    # What stays whole

    def _FunctionDef(self, node: ast.FunctionDef) -> None:
        self._unit(node if node.decorator_list else self.with_defaults(node))

    def _unit(self, node: ast.stmt) -> None:
        kind = type(node).__name__
        self.unit(node, _REASONS.get(kind, f"{kind} runs on the host"), exits=_exits(node))
        if isinstance(node, ast.Try) and self._loops:
            self._loops[-1].append(_copy(self.bound))


def _exits(node: ast.AST, in_loop: bool = False) -> bool:
    """Whether a statement holds a return, or a break or continue of a loop around it."""
    if isinstance(node, ast.Return) or (isinstance(node, ast.Break | ast.Continue) and not in_loop):
        return True
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef | ast.Lambda):
        return False
    if isinstance(node, ast.For | ast.While):
        return any(_exits(part, True) for part in node.body) or any(
            _exits(part, in_loop) for part in node.orelse
        )
    return any(_exits(part, in_loop) for part in ast.iter_child_nodes(node))


def _same_length(target: ast.expr, value: ast.expr) -> bool:
    sequences = isinstance(target, ast.Tuple | ast.List) and isinstance(value, ast.Tuple)
    if not sequences:
        return False
    parts: list[ast.expr] = [*target.elts, *value.elts]  # type: ignore[attr-defined]
    starred = any(isinstance(part, ast.Starred) for part in parts)
    return not starred and len(parts) == 2 * len(value.elts)  # type: ignore[attr-defined]


def _copy(bound: set[str] | None) -> set[str] | None:
    return None if bound is None else set(bound)
