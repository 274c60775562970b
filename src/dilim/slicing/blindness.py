"""Host code that looks at nothing but numbers, texts and arrays: it sees nothing of the program.

So what the program has changed need not be written back before it, and it can change nothing that
the program relies on. It may fail; see `Hosting.flush`.
"""

from __future__ import annotations

import ast
import types
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import numpy as np

from dilim.slicing import heap, program, what_hosts_do
from dilim.slicing.apart import Apart
from dilim.slicing.attributes import GENERATORS
from dilim.slicing.errors import OnHost
from dilim.slicing.numbers import Number
from dilim.slicing.operators import is_constant
from dilim.slicing.values import APPEND, Host, is_among, owner_of
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.hosting import Hosting

_BUILTINS: Final = frozenset(
    {print, len, str, repr, float, int, bool, format, round, abs, min, max, sum, divmod, pow, range}
)
_MODULES: Final = frozenset({"math", "time", "_random", "numpy"})
_OPERATIONS: Final = (ast.JoinedStr, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Subscript, ast.Name)


class Look(NamedTuple):
    """What is known of a statement of the host.

    Attributes:
        is_blind: whether it looks at plain values only.
        is_pure: whether it does nothing else than give a value, and so may as well be done later.
        gives_plain: whether what it gives is plain.
    """

    is_blind: bool = False
    is_pure: bool = False
    gives_plain: bool = False


def look(slicer: Hosting, statement: program.Statement) -> Look:
    """What is known of a statement of the host."""
    if not isinstance(statement, program.Step) or len(statement.writes) != 1:
        return Look()
    node: Any = statement.node
    match node:
        case ast.Assign(targets=[ast.Name()], value=ast.Call() as call):
            return _look_at_call(slicer, call)
        case ast.Assign(targets=[ast.Name(id=name)], value=ast.Attribute() as value):
            if what_hosts_do.kind_on_host(slicer, statement, name) == APPEND:
                return Look(True, True)
            is_blind = _is_plain(slicer, value.value)
            return Look(is_blind, gives_plain=is_blind)
        case ast.Assign(targets=[ast.Name()], value=value) if isinstance(value, _OPERATIONS):
            is_blind = _are_plain(slicer, value)
            return Look(is_blind, is_blind and isinstance(value, ast.JoinedStr), is_blind)
        case ast.AugAssign(target=ast.Name(id=name), value=value):
            is_blind = _are_plain(slicer, value) and _is_plain(slicer, ast.Name(name))
            return Look(is_blind, gives_plain=is_blind)
    return Look()


def _look_at_call(slicer: Hosting, call: ast.Call) -> Look:
    """The same for a call; a list that it gives is not plain, for it may come to hold anything."""
    try:
        function = slicer.atom(call.func)
    except OnHost:
        return Look()
    if function.__class__ is Host and function.kind == APPEND:
        return Look(is_blind=True)
    rest = [*call.args, *(keyword.value for keyword in call.keywords)]
    if function.__class__ is Apart:
        slicer.trace.work += 1  # so that a function with such calls alone is laid out flat, too
        return Look(all(_is_plain(slicer, x) or _is_new(slicer, x) for x in rest))
    if any(not _is_plain(slicer, x) for x in rest):
        return Look()
    if function.__class__ is Host:
        return Look(function.is_plain)
    if owner_of(function).__class__ in GENERATORS:
        return Look(True, gives_plain=function.__name__ not in ("choices", "sample", "spawn"))
    module = str(getattr(function, "__module__", ""))
    is_c = isinstance(function, types.BuiltinFunctionType | np.ufunc)
    is_blind = is_c and module.partition(".")[0] in _MODULES
    if is_blind or is_among(function, _BUILTINS):
        return Look(True, gives_plain=True)
    return Look()


def _are_plain(slicer: Hosting, node: ast.AST) -> bool:
    atoms = (x for x in ast.walk(node) if isinstance(x, ast.Name | ast.Constant))
    return all(_is_plain(slicer, x) for x in atoms)


def _is_plain(slicer: Hosting, atom: ast.AST) -> bool:
    """Whether an atom stands for a number, a text or an array."""
    if isinstance(atom, ast.Constant):
        return True
    if not isinstance(atom, ast.Name):
        return False
    if heap.is_outer(slicer, atom.id) and heap.has_put(slicer, atom.id):
        return False  # the host reads it where it has to be written first
    try:
        value = slicer.atom(atom)
    except OnHost:
        return False
    if value.__class__ is Host:
        return bool(value.is_plain)
    return value.__class__ is Number or is_constant(value)


def _is_new(slicer: Hosting, atom: ast.AST) -> bool:
    """Whether an atom stands for a tensor whose memory the program has made."""
    try:
        value = slicer.atom(atom) if isinstance(atom, ast.Name) else None
    except OnHost:
        return False
    if not isinstance(value, Tensor) or not slicer.trace.owns(value):
        return False
    return slicer.trace.handle(value).cell.variable is None
