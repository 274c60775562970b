"""Comprehensions: lists as loops; the others stay whole but for their first iterable."""

from __future__ import annotations

import ast
import copy

from dilim.slicing.emitter import located
from dilim.slicing.expressions import Expressions, load
from dilim.slicing.names import Comprehension, Uses, comprehension_variables, inner_parts
from dilim.slicing.program import Atom, For


class Comprehensions(Expressions):
    """Emits comprehensions."""

    def _ListComp(self, node: ast.ListComp, target: str | None) -> Atom:
        if not self._is_plain(node):
            return self._SetComp(node, target)
        items = self.held(self.atom(node.generators[0].iter))
        result = self.new("list")
        self.assign(result, ast.List([], ast.Load()), node)
        outer, bound = self.renames, self.bound
        own = sorted(comprehension_variables(node))
        self.renames = {**outer, **{name: self.new(name) for name in own}}
        self._turn(node, 0, items, result)
        self.renames = outer
        self.bound = bound
        return self._moved(result, target, node)

    def _turn(self, node: ast.ListComp, level: int, items: Atom, result: str) -> None:
        """Emits the loop of one ``for`` of a comprehension, with what is in it."""
        generator = node.generators[level]
        target = generator.target
        simple = isinstance(target, ast.Name)
        name = self.renames[target.id] if isinstance(target, ast.Name) else self.new("item")
        tests = iter(generator.ifs)

        def rest() -> None:
            test = next(tests, None)
            if test is not None:
                self.branch(self.condition(test), rest, lambda: None, test)
            elif level + 1 < len(node.generators):
                following = self.held(self.atom(node.generators[level + 1].iter))
                self._turn(node, level + 1, following, result)
            else:
                self._append(result, node.elt)

        at = self.bound
        with self.into() as body:
            self.bound = None if at is None else set(at)
            if not simple:
                self.store(target, load(name, target))
            rest()
        self.bound = at
        iterator = self.new("iter")
        line = generator.iter.lineno
        self.emit(For(name, items, iterator, body, [], line, True, generator.iter))

    def _append(self, result: str, element: ast.expr) -> None:
        value = self.atom(element)
        append = ast.Attribute(load(result, element), "append", ast.Load())
        method = self.assign(self.new(), append, element)
        self.assign(self.new(), ast.Call(method, [value], []), element)

    def store(self, target: ast.expr, value: Atom) -> None:
        """Emits what binds a target."""
        raise NotImplementedError

    def _SetComp(self, node: Comprehension, target: str | None) -> Atom:
        # The first iterable is evaluated here, the rest in the scope of the comprehension.
        first = self.held(self.atom(node.generators[0].iter))
        whole = copy.copy(node)
        head = node.generators[0]
        head = ast.comprehension(head.target, first, head.ifs, head.is_async)
        whole.generators = [head, *node.generators[1:]]
        if node in self.harmless:
            self.harmless.add(whole)
        return self._whole(located(whole, node), target)

    _DictComp = _SetComp
    _GeneratorExp = _SetComp

    def _is_plain(self, node: ast.ListComp) -> bool:
        """Whether a list comprehension does the same as a loop in this function.

        Not if an inner function keeps its variables, if a name in it may be unbound (the message of
        the error differs), or if it uses one of its variables too early.
        """
        uses = Uses(inner_parts(node))
        own = comprehension_variables(node)
        if uses.captured & own or any(generator.is_async for generator in node.generators):
            return False
        if "super" in uses.reads or "__class__" in uses.reads:
            return False
        outer = [name for name in uses.reads if name not in own and name not in uses.writes]
        if not all(self.is_bound(name) for name in outer if self.is_local(name)):
            return False
        for place, generator in enumerate(node.generators):
            unbound = comprehension_variables(
                ast.ListComp(node.elt, node.generators[place:])
            ) - comprehension_variables(ast.ListComp(node.elt, node.generators[:place]))
            if place and unbound & set(Uses([generator.iter]).reads):
                return False
        return True
