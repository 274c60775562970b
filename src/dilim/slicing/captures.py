"""Inner functions see the variables of the function around them as they are when they run.

A frame of the slicer holds values, not variables that could be shared. That makes no difference
unless a variable changes while an inner function that uses it can still be called.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator
from typing import Any, Final

from dilim.slicing.errors import Unsliceable
from dilim.slicing.liveness import Liveness
from dilim.slicing.program import Block, For, Function, Statement, Step, Unit, While, With
from dilim.slicing.scopes import inner_blocks, reads

_TRANSFORMING: Final = frozenset({"grad", "value_and_grad", "vjp", "jvp", "jacobian", "hessian"})
"""Names of functions that keep a function only in what they give."""


def refuse_changes(function: Function, captures: Iterable[tuple[Statement, set[str]]]) -> None:
    """Raises if a variable changes after it was captured.

    Args:
        function: its normal form.
        captures: statements that make inner functions, and the variables that these may read.

    Raises:
        Unsliceable: at the first such statement.
    """
    places = _Places(function.body)
    known = list(captures)
    live: Liveness | None = None
    for maker, names in known:
        changes = list(places.changes_after(maker, names))
        if not changes:
            continue
        live = live or Liveness(function)
        holders = _holders(function.body, maker, frozenset().union(*(x for _, x in known)))
        for statement, changed in changes:
            if holders is None or holders & live.after[statement]:
                raise Unsliceable(
                    f"{min(changed)} changes after an inner function that uses it was made",
                    maker.line,
                )


class _Places:
    """Where in the order of a body its statements stand, and which loops are around them."""

    def __init__(self, body: Block) -> None:
        self._places: dict[int, tuple[int, frozenset[int]]] = {}
        self._binding: list[tuple[Statement, tuple[str, ...]]] = []
        self._visit(body, frozenset())

    def changes_after(
        self, maker: Statement, names: set[str]
    ) -> Iterator[tuple[Statement, set[str]]]:
        """Statements that may run after another one and bind some of these names; which ones."""
        if id(maker) not in self._places:  # It can never run.
            return
        place, loops = self._places[id(maker)]
        for statement, bound in self._binding:
            other_place, other_loops = self._places[id(statement)]
            changed = names.intersection(bound)
            if changed and (other_place > place or loops & other_loops):
                yield statement, changed

    def _visit(self, block: Block, loops: frozenset[int]) -> None:
        for statement in block:
            inside = loops | {id(statement)} if isinstance(statement, While | For) else loops
            self._places[id(statement)] = (len(self._places), inside)
            match statement:
                case Step() | Unit():
                    self._binding.append((statement, statement.writes))
                case For(target=str(target)) | With(target=str(target)):
                    self._binding.append((statement, (target,)))
            for inner in inner_blocks(statement):
                self._visit(inner, inside)


def _holders(body: Block, maker: Statement, captured: frozenset[str]) -> frozenset[str] | None:
    """The names through which alone a function can be called; None where there may be others.

    Args:
        body: of the function around it.
        maker: what makes it.
        captured: names that inner functions use.
    """
    match getattr(maker, "node", None):
        case ast.FunctionDef(name=name, decorator_list=[]):
            waiting = [name]
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Lambda()):
            waiting = [name]
        case _:
            return None
    found: set[str] = set()
    while waiting:
        holder = waiting.pop()
        if holder in captured:
            return None
        found.add(holder)
        for statement in _readers(body, holder):
            made = _kept_in(body, statement, holder)
            if made is None:
                return None
            waiting += [] if made in found or not made else [made]
    return frozenset(found)


def _readers(block: Block, name: str) -> Iterator[Statement]:
    """The statements that read a name themselves."""
    for statement in block:
        inner = [x for each in inner_blocks(statement) for x in each]
        within = any(name in reads(x) for x in inner)
        if within:
            yield from _readers(inner, name)
        if name in reads(statement) and (not within or _tests(statement, name)):
            yield statement


def _tests(statement: Statement, name: str) -> bool:
    """Whether a compound statement looks at a name itself."""
    atoms = (getattr(statement, part, None) for part in ("test", "items", "context"))
    return any(getattr(atom, "id", None) == name for atom in atoms)


def _kept_in(body: Block, statement: Statement, name: str) -> str | None:
    """The name of what keeps a function where a statement uses it, or "" where nothing does.

    None where it is not known.
    """
    node: Any = statement.node if isinstance(statement, Step) else None
    match node:
        case ast.Assign(targets=[ast.Name(id=target)], value=ast.Call() as call):
            given = [*call.args, *(keyword.value for keyword in call.keywords)]
            is_given = any(isinstance(x, ast.Name) and x.id == name for x in given)
            if not is_given and not any(isinstance(x, ast.Starred) for x in given):
                return ""
            return target if _is_transforming(body, call.func) else None
    return None


def _is_transforming(body: Block, function: ast.expr) -> bool:
    name = getattr(function, "id", "")
    if not name.startswith("%"):
        return name in _TRANSFORMING
    return all(name in _TRANSFORMING for name in _attributes(body, name))


def _attributes(block: Block, made: str) -> Iterator[str]:
    """The attributes that a made name is bound to; "" for anything else."""
    for statement in block:
        if isinstance(statement, Step) and made in statement.writes:
            yield getattr(getattr(statement.node, "value", None), "attr", "")
        for inner in inner_blocks(statement):
            yield from _attributes(inner, made)
