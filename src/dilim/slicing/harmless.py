"""Statements of the host that cannot change what the program knows of.

They run no code of the user's, such as ``__str__`` or a property: what they look at are numbers,
texts, tensors and arrays, and lists, tuples and dicts of such; and what they change, the program
has never seen.
"""

from __future__ import annotations

import ast
import types
from typing import TYPE_CHECKING, Any, Final

from dilim.dtypes import DType
from dilim.ir.types import Type
from dilim.slicing import classes, heap, program
from dilim.slicing.errors import OnHost
from dilim.slicing.numbers import Number
from dilim.slicing.operators import is_constant
from dilim.slicing.values import (
    APPEND,
    METHOD,
    NEW_LIST,
    PLAIN_KINDS,
    Array,
    Choice,
    Host,
    Range,
    View,
    is_among,
    items_of,
    owner_of,
)
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.hosting import Hosting

LOOKING: Final = frozenset(
    {print, str, repr, float, int, format, round, abs, min, max, sum, sorted}
)
"""Builtins that look at what they are given, to any depth."""
WALKING: Final = frozenset({len, bool, range, enumerate, zip, list, tuple})
"""Builtins that do not look at the items of containers."""
METHODS: Final = frozenset({"append", "extend", "format", "join", "items", "keys", "values"})
"""Methods of lists, dicts and texts."""
_CONTAINERS: Final = frozenset({"list", NEW_LIST, "dict", "tuple", "str"})
_MOST_DEPTH: Final = 6


def is_harmless(slicer: Hosting, statement: program.Statement) -> bool:
    """Whether a statement on the host cannot change what the program knows of."""
    if not isinstance(statement, program.Step):
        return False
    node: Any = statement.node
    match node:
        case ast.Raise():
            return True
        case ast.Delete(targets=[ast.Name() as name]):  # of others, a finalizer may run
            value = _value(slicer, name)
            return _is_plain(slicer, value) or _is_container(value)
        case ast.Assign(targets=[ast.Name(id=name)]) if heap.is_outer(slicer, name):
            is_seen = heap.set_by(slicer, statement) is not None
            return is_seen and _runs_nothing(slicer, node.value)
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            return heap.set_by(slicer, statement) is not None
        case ast.Assign(targets=[ast.Name()]):
            return _runs_nothing(slicer, node.value)
        case ast.Assign(targets=[ast.Tuple() | ast.List()]):
            return _is_container(_value(slicer, node.value))
        case ast.AugAssign(target=ast.Name(id=name)):
            value = slicer.env.get(name)  # what is no number may be changed, not replaced
            is_number = value.__class__ is Host and value.kind in (int, float, bool, "str")
            return is_number and _is_plain(slicer, _value(slicer, node.value))
    return False


def _runs_nothing(slicer: Hosting, node: Any) -> bool:
    """Whether an operation runs no code of the user's."""
    match node:
        case ast.Name() | ast.Constant() | ast.Lambda():
            return True
        case ast.Tuple() | ast.List():
            stars = (x.value for x in node.elts if isinstance(x, ast.Starred))
            return all(_is_container(_value(slicer, x)) for x in stars)
        case ast.Dict():
            return all(x is not None and _is_plain(slicer, _value(slicer, x)) for x in node.keys)
        case ast.Compare(ops=[ast.Is() | ast.IsNot()]):
            return True
        case ast.UnaryOp(op=ast.Not()):
            value = _value(slicer, node.operand)
            return _is_plain(slicer, value) or _is_container(value)
        case ast.JoinedStr() | ast.BinOp() | ast.UnaryOp() | ast.Compare():
            return _are_plain(slicer, node)
        case ast.Attribute():
            value = _value(slicer, node.value)
            return _is_plain(slicer, value) or _is_container(value)
        case ast.Subscript():
            value = _value(slicer, node.value)
            return (_is_plain(slicer, value) or _is_container(value)) and _are_plain(
                slicer, node.slice
            )
        case ast.Call():
            return _is_harmless_call(slicer, node)
    return False


def _is_harmless_call(slicer: Hosting, call: ast.Call) -> bool:
    function = _value(slicer, call.func)
    if any(isinstance(x, ast.Starred) for x in call.args):
        return False
    args = [_value(slicer, x) for x in call.args]
    if not all(_is_plain(slicer, _value(slicer, x.value)) for x in call.keywords):
        return False
    are_plain = all(_is_plain(slicer, x) for x in args)
    are_known = all(_is_plain(slicer, x) or _is_container(x) for x in args)
    if function.__class__ is Host:
        if function.kind == METHOD:
            return are_known
        return function.kind == APPEND or (function.is_plain and are_plain)
    owner = owner_of(function)
    if isinstance(function, types.BuiltinMethodType) and type(owner) in (list, dict, str):
        name = function.__name__
        is_shallow = name == "extend" or name == "join"
        return name in METHODS and (name == "append" or are_plain or (is_shallow and are_known))
    if function is isinstance:
        return len(args) == 2 and classes.are_plain(args[1])
    return (are_plain and is_among(function, LOOKING)) or (
        are_known and is_among(function, WALKING)
    )


def _value(slicer: Hosting, atom: Any) -> Any:
    """What an atom stands for; a value of the host of which nothing is known, if that is so."""
    name = getattr(atom, "id", None)
    if name is not None and name in slicer.scope.code.locals:
        return slicer.env.get(name, _UNKNOWN)
    try:
        return slicer.atom(atom)
    except OnHost:
        return _UNKNOWN


_UNKNOWN: Final = Host()


def _are_plain(slicer: Hosting, node: ast.AST) -> bool:
    atoms = (x for x in ast.walk(node) if isinstance(x, ast.Name | ast.Constant))
    return all(_is_plain(slicer, _value(slicer, x)) for x in atoms)


def _is_plain(slicer: Hosting, value: Any, depth: int = 0) -> bool:
    """Whether looking at a value, to any depth, runs no code of the user's."""
    kind = type(value)
    if kind is Host:
        known = value.kind
        return value.is_plain or known in PLAIN_KINDS or isinstance(known, Type | Array)
    if kind is Choice:
        return all(_is_plain(slicer, x, depth) for x in (value.yes, value.no))
    if kind is View:
        return _is_plain(slicer, value.owner, depth)
    if kind is tuple or id(value) in slicer.fresh:
        inner = (x for pair in items_of(value) for x in pair) if kind is dict else value
        return depth < _MOST_DEPTH and all(_is_plain(slicer, x, depth + 1) for x in inner)
    return (
        isinstance(value, Tensor)
        or kind in (Number, Range, DType, type)
        or isinstance(value, types.FunctionType | types.BuiltinFunctionType | types.ModuleType)
        or is_constant(value)
    )


def _is_container(value: Any) -> bool:
    """Whether going over a value runs no code of the user's."""
    if type(value) is Host:
        return value.kind in _CONTAINERS or value.kind in PLAIN_KINDS
    return type(value) in (list, tuple, dict, View, str, range, Range) or isinstance(value, Tensor)
