"""What is known of statements that the host carries out."""

from __future__ import annotations

import ast
import functools
import types
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Final

from dilim.slicing import heap, program, scopes
from dilim.slicing.errors import OnHost
from dilim.slicing.escapes import escapes_of
from dilim.slicing.harmless import LOOKING, METHODS, WALKING
from dilim.slicing.iterators import ITERATORS
from dilim.slicing.values import (
    APPEND,
    METHOD,
    NEW_LIST,
    Host,
    Kinds,
    View,
    is_among,
    is_tuple,
    owner_of,
)

if TYPE_CHECKING:
    from dilim.slicing.hosting import Hosting


_DEFINITIONS: Final = (ast.FunctionDef, ast.ClassDef, ast.Import, ast.ImportFrom)
_CLASSES: Final = {ast.List: NEW_LIST, ast.Dict: "dict", ast.JoinedStr: "str"}
_KNOWN: Final = LOOKING | WALKING | {isinstance}
"""Builtins that say nothing of their own to the host."""


def kind_on_host(slicer: Hosting, statement: program.Statement, name: str) -> Any:
    """The type of what a statement binds to a name on the host, as far as eager runs show it."""
    known = slicer.profile.get((statement, name))
    if isinstance(known, Kinds) and len(known.kinds) in slicer.scope.told:
        return known.kinds[slicer.scope.told[len(known.kinds)]]
    if known is not None:
        return known
    if isinstance(statement, program.Step):
        node: Any = statement.node
        match node:
            case ast.Assign(targets=[ast.Name()], value=ast.Name(id=source)):
                value = slicer.env.get(source)
                kind = value.kind if value.__class__ is Host else None
                is_moved = source[0] == "%" and escapes_of(slicer.scope.code).once(source)
                return "list" if kind == NEW_LIST and not is_moved else kind
            case ast.Assign(targets=[ast.Name()], value=value) if type(value) in _CLASSES:
                return _CLASSES[type(value)]
            case ast.Assign(value=ast.Attribute(value=ast.Name(id=owner), attr=method)):
                return _kind_of_method(slicer, statement, owner, method)
    return None


def _kind_of_method(slicer: Hosting, statement: program.Step, owner: str, method: str) -> Any:
    value = slicer.env.get(owner)
    kind = value.kind if value.__class__ is Host else None
    if kind == NEW_LIST and method == "append":
        is_known = escapes_of(slicer.scope.code).before(owner, statement)
        return None if is_known else APPEND
    is_changed = method in ("append", "extend")
    known = ("list", NEW_LIST, "dict", "str")
    return METHOD if kind in known and method in METHODS and not is_changed else None


def is_to_learn(slicer: Hosting, statement: program.Statement, name: str) -> bool:
    """Whether the next run has to show of what type the value is that a statement binds."""
    if (statement, name) in slicer.profile:
        return False
    if name not in slicer.scope.live.after.get(statement, ()):
        return False
    if isinstance(statement, program.Unit):
        return not isinstance(statement.node, _DEFINITIONS)
    node: Any = getattr(statement, "node", None)
    known = ast.Name | ast.Constant | ast.JoinedStr | ast.Tuple | ast.List | ast.Dict | ast.Lambda
    match node:
        case ast.Assign(targets=[ast.Name()], value=ast.Name(id=source)):
            return heap.is_outer(slicer, source)
        case ast.Assign(targets=[ast.Name()]):
            return not isinstance(node.value, known)
        case ast.Assign(targets=[ast.Tuple() | ast.List()]) | ast.AugAssign():
            return True
    return False


def asks_host(slicer: Hosting, statement: program.Statement) -> bool:
    """Whether a statement calls something which only the host can do, such as ``print``."""
    if isinstance(statement, program.Unit):
        return any(isinstance(node, ast.Call) for node in ast.walk(statement.node))
    call = getattr(getattr(statement, "node", None), "value", None)
    if not isinstance(call, ast.Call):
        return False
    try:
        function = slicer.atom(call.func)
    except OnHost:
        return True
    return function is print or not _is_of_python(slicer, call)


def _is_of_python(slicer: Hosting, call: ast.Call) -> bool:
    """Whether a call is one of a builtin that does nothing but look at what it is given."""
    try:
        function = slicer.atom(call.func)
    except OnHost:
        return False
    if function.__class__ is Host:
        return function.kind in (METHOD, APPEND)
    if isinstance(function, types.BuiltinMethodType) and isinstance(
        function.__self__, list | dict | str
    ):
        return function.__name__ in METHODS
    return is_among(function, _KNOWN)


_LOOKING: Final = _KNOWN - {sum, max, min, sorted}


def may_change(slicer: Hosting, statement: program.Statement) -> bool:
    """Whether a statement may change the containers among its operands."""
    if not isinstance(statement, program.Step):
        return True
    node: Any = statement.node
    match node:
        case ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
            return heap.set_by(slicer, statement) is None
        case ast.AugAssign():
            return True
        case ast.Delete():
            return True
        case ast.Assign(value=ast.Call() as call):
            try:
                function = slicer.atom(call.func)
                return not is_among(function, _LOOKING)
            except OnHost:
                return True
    return False


def operands(slicer: Hosting, statement: program.Statement, without: Iterable[str]) -> list[Any]:
    """The values of the names that a statement reads, but for some, as far as they are known."""
    found = []
    names = dict.fromkeys(scopes.reads(statement))
    for node in _nodes(statement):
        names |= dict.fromkeys(_names_in(node))
    for name in names:
        if name in without:
            continue
        try:
            found.append(slicer.atom(ast.Name(name, ast.Load())))
        except OnHost:
            continue
    return found


def passed_on(slicer: Hosting, statement: program.Statement) -> list[str]:
    """Names of lists and dicts that are written down for a statement alone: ``max([a, b])``.

    The region does not come to look at them again, whatever the host does to them. What a function
    gives is not meant: the host calls that itself, and nothing has to be handed over.
    """
    scope = slicer.scope
    if not isinstance(statement, program.Step):
        return []
    live = scope.live.after.get(statement, statement.reads)
    found: list[str] = []
    for name in statement.reads:
        value = scope.env.get(name)
        if name[0] != "%" or name in live or id(value) not in slicer.fresh:
            continue
        maker = slicer.made_by.get(id(value))
        made: Any = getattr(maker, "node", None)
        if getattr(maker, "writes", ()) == (name,) and isinstance(
            getattr(made, "value", None), ast.List | ast.Dict
        ):
            found.append(name)
    return found


def containers_in(value: Any, depth: int = 0) -> list[Any]:
    """The containers and iterators that a value is, holds, or is a method of."""
    owner = owner_of(value)
    if owner is not None and owner.__class__ in (list, dict, set):
        return [owner]
    if value.__class__ is View:
        return [value.owner]
    if is_tuple(value) and depth < 4:
        return [each for x in value for each in containers_in(x, depth + 1)]
    if value.__class__ in (list, dict, set) or value.__class__ in ITERATORS:
        return [value]
    return []


def _nodes(statement: program.Statement) -> Iterator[ast.AST]:
    """The syntax of the steps that a statement consists of."""
    if isinstance(statement, program.Step | program.Unit):
        yield statement.node
    for block in scopes.inner_blocks(statement):
        for inner in block:
            yield from _nodes(inner)


def calls_super(statement: program.Statement) -> bool:
    """Whether a statement may call ``super()``, which looks for the first parameter."""
    node = getattr(statement, "node", None)
    return node is not None and "super" in _names_in(node)


@functools.lru_cache(maxsize=4096)
def _names_in(node: ast.AST) -> frozenset[str]:
    """The names in the syntax of a statement, which is asked for in each attempt at a loop."""
    return frozenset(x.id for x in ast.walk(node) if isinstance(x, ast.Name))


def only_looks(slicer: Hosting, statement: program.Statement) -> bool:
    """Whether a statement looks at numbers only, so that no gradient is asked for through it."""
    node: Any = getattr(statement, "node", None)
    match node:
        case ast.Assign(value=ast.JoinedStr()):
            return True
        case ast.Assign(value=ast.Call() as call):
            try:
                return is_among(slicer.atom(call.func), _OF_NUMBERS)
            except OnHost:
                return False
    return False


_OF_NUMBERS: Final = frozenset({print, str, repr, float, int, format, len, bool, range})
"""Builtins that give nothing that a gradient could go through."""


def deletes(statement: program.Statement, name: str) -> bool:
    """Whether a statement unbinds a name."""
    if not isinstance(statement, program.Step) or not isinstance(statement.node, ast.Delete):
        return False
    return any(getattr(target, "id", None) == name for target in statement.node.targets)
