"""What names stand for, and where on the host they are read."""

from __future__ import annotations

import ast
import builtins
from collections.abc import Callable
from typing import Any, Final

from dilim.slicing import attributes, heap, program
from dilim.slicing.attributes import in_classes
from dilim.slicing.errors import MayBeUnbound, OnHost, Restart, in_words
from dilim.slicing.hosting import Hosting
from dilim.slicing.numbers import Number
from dilim.slicing.values import UNBOUND, Choice, Conflict, Host, MadeFunction, may_be_unbound
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

_READ: Final = "%read"


class Naming(Hosting):
    """The part of the slicer that looks names up."""

    branch: Callable[..., None]

    def atom(self, atom: ast.expr) -> Any:
        """What a name or constant stands for.

        Raises:
            OnHost: the name is unbound, so that the host must raise.
        """
        if isinstance(atom, ast.Constant):
            return atom.value
        if not isinstance(atom, ast.Name):
            raise OnHost(f"{type(atom).__name__} is no operand")
        name = atom.id
        code = self.scope.code
        if name in code.locals:
            value = self.env.get(name, UNBOUND)
            if value is UNBOUND:
                raise OnHost(f"{in_words(name)} is unbound")
            if may_be_unbound(value):
                raise MayBeUnbound(name)
            if isinstance(value, MadeFunction):
                raise Restart(("host", value.maker))
            if value.__class__ is Choice:
                raise OnHost(f"{in_words(name)} is not of one type on all paths")
            if value.__class__ is Conflict:
                raise OnHost(value.reason)
            return value
        if name in code.cells:
            return self._cell(name)
        return self._global(name)

    def operand(self, atom: ast.expr) -> Any:
        """What an atom stands for where a call may look at it: also a function of the region."""
        value = self.env.get(atom.id) if isinstance(atom, ast.Name) else None
        return value if isinstance(value, MadeFunction) else self.atom(atom)

    def copied(self, atom: ast.expr) -> Any:
        """What an assignment of a name or constant hands on."""
        name = getattr(atom, "id", None)
        if name in self.scope.code.locals:
            return self.env.get(name, UNBOUND)
        return self.atom(atom)

    def handle(self, atom: Any) -> Any:
        """What an atom stands for, where nothing looks inside: also a `Choice`.

        Raises:
            OnHost: only the host knows it.
        """
        value = self.copied(atom)
        if value.__class__ is Conflict or may_be_unbound(value):
            return self.atom(atom)
        return value

    def value_or_host(self, atom: Any) -> tuple[Any, Any]:
        """What an atom stands for, and the atom; where only the host can read it, another one."""
        line = getattr(self.scope.at, "line", 0)
        try:
            value = self.copied(atom)
            if value.__class__ is Host and not value.is_sure:
                raise OnHost
            if may_be_unbound(value):
                self.demand(atom.id, _reading(atom, line))
                value = self.env.get(atom.id, UNBOUND)
        except OnHost:
            self.on_host(_reading(atom, line), "")
            self.flush()
            name = f"%read{line}"
            value = self.env[name] = self.env[_READ]
            self.move(self.scope, _READ, self.scope, name)
            return value, ast.copy_location(ast.Name(name, ast.Load()), atom)
        return value, atom

    def raise_on_host(self, statement: program.Step) -> None:
        """Let the host carry out a statement that is known to raise."""
        self.on_host(statement, "it raises", raises=True)
        self.flush()
        self.end_here()

    def demand(self, name: str, step: program.Step) -> None:
        """See to it that a name has a value: where it has none, the host takes a step and raises.

        Args:
            name: of a local variable.
            step: what reads it.
        """
        truth, value = _bound(self.env.get(name, UNBOUND))
        if truth is False:
            self.raise_on_host(step)
            return

        def fail() -> None:
            del self.env[name]
            self.raise_on_host(step)

        self.branch(truth, lambda: self.env.__setitem__(name, value), fail, again=True)

    def _cell(self, name: str) -> Any:
        cell, key = heap.place_of(self, name)
        found = heap.find(self, cell, key)
        if found is not UNBOUND:
            return found
        try:
            value = cell.cell_contents
        except ValueError:
            raise OnHost(f"{in_words(name)} is unbound") from None
        return self.outside(value, heap.path(self, cell, key))

    def _global(self, name: str) -> Any:
        space = self.scope.function.__globals__
        found = heap.find(self, space, name)
        if found is not UNBOUND:
            return found
        if name in space:
            return self.outside(space[name], heap.path(self, space, name))
        value = getattr(builtins, name, UNBOUND)
        if value is UNBOUND:
            raise OnHost(f"the name {name} is not defined")
        self.entry.guard(f"{name!r} not in {self.entry.constant(space)}")
        self.rely_on_names(vars(builtins), name)
        return value

    def outside(self, value: Any, path: str) -> Any:
        """What stands for an object from outside, found at a path."""
        if ("host path", path) in self.decisions:
            raise OnHost("something that host code changes")
        result = self.entry.enter(value, path)
        self.know_leaves(result)
        if ("touched", path) in self.decisions:
            self.touched[id(value)] = value
        return result

    def know_leaves(self, value: Any) -> None:
        """Keep track of the gradients of tensors that an object has."""
        if isinstance(value, Tensor):
            if self.trace.is_made_leaf(value) or (
                value.requires_grad and value._node is None and not self.trace.owns(value)
            ):
                self.leaves.setdefault(id(value), value)
            return
        kind = type(value)
        if not (attributes.is_dilims(kind) or attributes.is_module(kind)):
            return
        if not str(getattr(in_classes(kind, "parameters"), "__module__", "dilim.")).startswith(
            "dilim."
        ):
            return  # code of the user's, which must not run now
        found = getattr(value, "parameters", None)
        for x in (found() if callable(found) else found) or ():
            if isinstance(x, Tensor):
                self.leaves.setdefault(id(x), x)


def _reading(atom: Any, line: int) -> program.Step:
    """A step that does nothing but read a name."""
    target = ast.copy_location(ast.Name(_READ, ast.Store()), atom)
    node = ast.copy_location(ast.Assign([target], atom), atom)
    return program.Step(node, (atom.id,), (_READ,), line)


def _bound(value: Any) -> tuple[Any, Any]:
    """Whether a value is there, a bool or a `Number`; and the value where it is."""
    if value.__class__ is not Choice:
        return value is not UNBOUND, value
    there, yes = _bound(value.yes)
    there_else, no = _bound(value.no)
    with no_grad():
        flag = value.flag.tensor
        truth = (flag & _tensor(there)) | (~flag & _tensor(there_else))
    left = [x for x in (yes, no) if x is not UNBOUND]
    return Number(truth, bool), Choice(value.flag, yes, no) if len(left) == 2 else left[0]


def _tensor(truth: Any) -> Any:
    return truth if truth.__class__ is bool else truth.tensor
