"""Comprehensions: lists as loops; the others stay whole but for their first iterable.

A call such as ``sum(x for x in items)`` stays whole too; beside it is noted a loop that does the
same.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from dilim.slicing.emitter import located
from dilim.slicing.expressions import Expressions, folded, load
from dilim.slicing.names import (
    Comprehension,
    Uses,
    comprehension_variables,
    inner_parts,
    renamed,
)
from dilim.slicing.program import Atom, Block, Exit, For, Step, Summary


@dataclass(slots=True, frozen=True)
class _Parts:
    """A call that goes over a generator.

    Attributes:
        name: of the built-in function.
        generator: what it goes over.
        items: the first iterable of the generator.
        target: the name for the result.
        callee: the function.
        rest: its other arguments.
    """

    name: str
    generator: ast.GeneratorExp
    items: Atom
    target: str
    callee: Atom
    rest: list[Atom]


class Comprehensions(Expressions):
    """Emits comprehensions."""

    def _ListComp(self, node: ast.ListComp, target: str | None) -> Atom:
        if not self._is_plain(node):
            return self._SetComp(node, target)
        items = self.held(self.atom(node.generators[0].iter))
        return self._moved(self._listed(node, items), target, node)

    def _listed(self, node: ast.ListComp | ast.GeneratorExp, items: Atom) -> str:
        """Emits what makes a list of all that a comprehension gives."""
        result = self.new("list")
        self.assign(result, ast.List([], ast.Load()), node)
        self._turns(node, items, lambda: self._append(result, node.elt))
        return result

    def _turns(
        self,
        node: ast.ListComp | ast.DictComp | ast.GeneratorExp,
        items: Atom,
        each: Callable[[], object],
    ) -> None:
        """Emits the loops of a comprehension."""
        outer, bound = self.renames, self.bound
        own = sorted(comprehension_variables(node))
        self.renames = {**outer, **{name: self.new(name) for name in own}}
        self._turn(node, 0, items, each)
        self.renames = outer
        self.bound = bound

    def _turn(
        self,
        node: ast.ListComp | ast.DictComp | ast.GeneratorExp,
        level: int,
        items: Atom,
        each: Callable[[], object],
    ) -> None:
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
                self._turn(node, level + 1, following, each)
            else:
                each()

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

    # Calls that use up a generator

    def _Call(self, node: ast.Call, target: str | None) -> Atom:
        name = getattr(node.func, "id", "")
        makers = {"sum": self._sum, "any": self._truth, "all": self._truth, "list": self._list,
                  "tuple": self._list, "min": self._extreme, "max": self._extreme}  # fmt: skip
        if name not in makers or not self.is_builtin(name) or not self._is_summary(node):
            return super()._Call(node, target)
        self.note_consumer(node)
        generator: Any = node.args[0]
        head = generator.generators[0]
        callee, items, *rest = self.atoms(node.func, head.iter, *node.args[1:])
        items = self.held(items)
        target = target or self.new()
        before = self.bound
        with self.into() as block:
            makers[name](_Parts(name, generator, items, target, callee, rest))
        self.bound = before
        whole = copy.copy(generator)
        head = ast.comprehension(head.target, items, head.ifs, 0)
        whole.generators = [head, *generator.generators[1:]]
        whole = renamed(located(whole, generator), self.renames)
        call = ast.copy_location(ast.Call(callee, [whole, *rest], []), node)
        result = self.assign(target, call, node, harmless=True)
        step = self.block[-1] if self.block else None
        if isinstance(step, Step) and getattr(step.node, "value", None) is call:
            step.summary = Summary(name, block)
        return result

    def _is_summary(self, node: ast.Call) -> bool:
        """Whether a call does nothing but go over a generator that is written in it."""
        name, *_ = names = [getattr(node.func, "id", ""), *map(folded, node.args[1:])]
        generator = node.args[0] if node.args and not node.keywords else None
        if not isinstance(generator, ast.GeneratorExp) or None in names:
            return False
        if len(names) > 1 + (name == "sum") or Uses(inner_parts(generator)).captured:
            return False
        if name in ("any", "all") and len(generator.generators) > 1:  # one break would not do
            return False
        return self._is_plain(generator)

    def _sum(self, parts: _Parts) -> None:
        total = self.new()
        element = parts.generator.elt
        self.assign(total, parts.rest[0] if parts.rest else ast.Constant(0), element)

        def add() -> None:
            value = self.atom(element)
            self.assign(total, ast.BinOp(load(total, element), ast.Add(), value), element)

        self._turns(parts.generator, parts.items, add)
        self.assign(parts.target, load(total, element), element)

    def _truth(self, parts: _Parts) -> None:
        """``any`` or ``all``: the first element that decides ends it."""
        element, truth = parts.generator.elt, self.new()
        found = parts.name == "any"
        self.assign(truth, ast.Constant(not found), element)

        def decide() -> None:
            self.assign(truth, ast.Constant(found), element)
            self.emit(Exit("break", None, element.lineno, element))

        def look() -> None:
            test = self.condition(element)
            sides = (decide, lambda: None) if found else (lambda: None, decide)
            self.branch(test, *sides, element)

        self._turns(parts.generator, parts.items, look)
        self.assign(parts.target, load(truth, element), element)

    def _extreme(self, parts: _Parts) -> None:
        """``min`` or ``max``: of elements that are equal, the first."""
        element = parts.generator.elt
        best, found = self.new(), self.new()
        self.assign(found, ast.Constant(False), element)
        self.assign(best, ast.Constant(None), element)
        order = ast.Lt() if parts.name == "min" else ast.Gt()

        def compare() -> None:
            value = self.held(self.atom(element))
            test = self.new()

            def against() -> None:
                self.assign(test, ast.Compare(value, [order], [load(best, element)]), element)

            def first() -> None:
                self.assign(test, ast.Constant(True), element)
                self.assign(found, ast.Constant(True), element)

            self.branch(load(found, element), against, first, element)
            self.branch(
                load(test, element),
                lambda: self.assign(best, value, element),
                lambda: None,
                element,
            )

        def none() -> None:
            empty = ast.Tuple([], ast.Load())
            self.assign(best, ast.Call(parts.callee, [empty], []), element)

        self._turns(parts.generator, parts.items, compare)
        self.branch(load(found, element), lambda: None, none, element)
        self.assign(parts.target, load(best, element), element)

    def _list(self, parts: _Parts) -> None:
        made = load(self._listed(parts.generator, parts.items), parts.generator)
        if parts.name == "tuple":
            self.assign(parts.target, ast.Call(parts.callee, [made], []), parts.generator)
        else:
            self.assign(parts.target, made, parts.generator)

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

    _GeneratorExp = _SetComp

    def _DictComp(self, node: ast.DictComp, target: str | None) -> Atom:
        if not self._is_plain(node):
            return self._SetComp(node, target)
        items = self.held(self.atom(node.generators[0].iter))
        target = target or self.new()
        before = self.bound
        with self.into() as block:
            made = self.new("dict")
            self.assign(made, ast.Dict([], []), node)

            def put() -> None:
                key, value = self.atoms(node.key, node.value)
                place = ast.Subscript(load(made, node), key, ast.Store())
                item = ast.copy_location(place, node.key)
                self.step(ast.Assign([item], value), node.value)

            self._turns(node, items, put)
            self.assign(target, load(made, node), node)
        self.bound = before
        whole = copy.copy(node)
        head = node.generators[0]
        whole.generators = [
            ast.comprehension(head.target, items, head.ifs, 0),
            *node.generators[1:],
        ]
        result = self._whole(located(whole, node), target)
        self._summarised(block, "")
        return result

    def _summarised(self, block: Block, builtin: str) -> None:
        """Note another way to do what the last step does."""
        if self.block and isinstance(self.block[-1], Step):
            self.block[-1].summary = Summary(builtin, block)

    def _is_plain(self, node: ast.ListComp | ast.DictComp | ast.GeneratorExp) -> bool:
        """Whether a comprehension does the same as a loop in this function.

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
        nothing = ast.Constant(None)
        for place, generator in enumerate(node.generators):
            unbound = comprehension_variables(
                ast.ListComp(nothing, node.generators[place:])
            ) - comprehension_variables(ast.ListComp(nothing, node.generators[:place]))
            if place and unbound & set(Uses([generator.iter]).reads):
                return False
        return True
