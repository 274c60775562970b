"""What values of the host are expected to be, before a run has shown it.

An attribute that host code changes most likely stays a tensor of the same type; ``random.random()``
gives a float. Where the graph needs such a value, it is seen whether it is so: if not, the rest of
that run is plain Python, and what it was is learned.
"""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dilim.ir.types import Type
from dilim.slicing import heap, learning, numbers, program
from dilim.slicing.apart import Apart
from dilim.slicing.attributes import GENERATORS
from dilim.slicing.errors import OnHost, Restart
from dilim.slicing.numbers import Number
from dilim.slicing.operators import BINARY, COMPARE, UNARY
from dilim.slicing.values import Array, Expected, Host, is_among, is_received, known, owner_of
from dilim.tensors.creation import asarray, from_numpy
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.actions import Action
    from dilim.slicing.hosting import Hosting

_CONVERSIONS: Final[dict[Any, type]] = {float: float, int: int, bool: bool, len: int}
_CALCULATIONS: Final = (abs, round, min, max, pow)
_DRAWS: Final[dict[type, frozenset[str]]] = {
    float: frozenset({"random", "uniform", "gauss", "normalvariate", "rand", "randn", "normal"}),
    int: frozenset({"randint", "randrange", "getrandbits", "integers"}),
}
"""Type of a number -> the methods of generators that give one, if they are given no size."""
_WITH_SIZES: Final = {"rand": 0, "randn": 0, "random": 0, "randint": 2, "integers": 2, "uniform": 2}
"""Methods of NumPy's generators -> how many arguments come before the size."""
_LARGEST: Final = 8  # of a constant: powers and shifts are tried
_SAMPLES: Final[dict[Any, Any]] = {int: 1, float: 1.0, bool: True}


def expected(slicer: Hosting, statement: program.Statement, name: str) -> Expected | None:
    """What kind of value a statement of the host binds to a name, most likely."""
    try:
        kind = slicer.hints.get(statement) or _kind(slicer, statement)
    except (OnHost, Restart):
        return None
    kind = known(kind)
    is_useful = is_received(kind) or isinstance(kind, Array)
    return Expected(kind, (statement, name)) if is_useful else None


def take(slicer: Hosting, action: Action, name: str, kind: Any) -> Type:
    """Let an action of the host take a value for the graph; its type there.

    Args:
        slicer: who interprets.
        action: gives first whether the value is of the kind.
        name: of the value.
        kind: of which it should be.
    """
    place = f"F[{slicer.scope.number}].get({name!r})"
    source = getattr(slicer.env.get(name), "source", None)
    note = "differs"
    if kind.__class__ is Expected:
        kind, source, note = kind.kind, kind.source, "learn"
    elif source not in slicer.profile or any(scope.loops for scope in slicer.scopes):
        note = ""
    if isinstance(kind, Type | Array):
        type_ = kind if isinstance(kind, Type) else kind.type
        word = "tensor" if isinstance(kind, Type) else "array"
        how = f"{word}({place}, v[1], {slicer.entry.constant(kind)})"
    else:
        type_, how = Type((), numbers.type_of_kind(kind)), f"{kind.__name__}({place}, v[1])"
    action.lines.append(f"v[0][()] = R.received_{how}")
    if note:
        action.lines.append(f"if not v[0]: R.{note}({slicer.entry.constant(source)}, {place})")
    return type_


def _kind(slicer: Hosting, statement: program.Statement) -> Any:
    node: Any = getattr(statement, "node", None)
    if not isinstance(node, ast.Assign) or not isinstance(node.targets[0], ast.Name):
        return None
    match node.value:
        case ast.Attribute(value=owner, attr=attr):
            return _at_entry(slicer.atom(owner), attr)
        case ast.Subscript(value=owner, slice=ast.Name() | ast.Constant() as key):
            return _item_at_entry(slicer.atom(owner), slicer.atom(key))
        case ast.Name(id=name) if heap.is_outer(slicer, name):
            return _item_at_entry(*heap.place_of(slicer, name))
        case ast.BinOp(left=left, op=op, right=right):
            return _of_samples(slicer, BINARY[type(op)], left, right)
        case ast.Compare(left=left, ops=[op], comparators=[right]):
            return _of_samples(slicer, COMPARE[type(op)], left, right)
        case ast.UnaryOp(op=op, operand=operand):
            return _of_samples(slicer, UNARY[type(op)], operand)
        case ast.Call() as call:
            return _of_call(slicer, call)
    return None


def _at_entry(owner: Any, attribute: str) -> Any:
    """The kind of an attribute as it is while slicing."""
    if owner.__class__ is Host or not type(owner).__dictoffset__:
        return None
    return learning.kind_of(object.__getattribute__(owner, "__dict__").get(attribute))


def _item_at_entry(owner: Any, key: Any) -> Any:
    """The kind of an item as it is while slicing."""
    if owner.__class__ is dict and key.__class__ in (str, int):
        return learning.kind_of(owner.get(key))
    if owner.__class__ is list and key.__class__ is int and -len(owner) <= key < len(owner):
        return learning.kind_of(owner[key])
    return None


def _of_samples(slicer: Hosting, function: Callable[..., Any], *atoms: ast.expr) -> Any:
    """The kind of what an operation without effects gives for numbers."""
    samples = [_sample(slicer.atom(x)) for x in atoms]
    if any(x is None for x in samples):
        return None
    if is_among(function, (min, max)) and len(set(map(type, samples))) > 1:
        return None  # which of them depends on the numbers
    try:
        return learning.kind_of(function(*samples))
    except (ArithmeticError, TypeError, ValueError):
        return None


def _sample(value: Any) -> Any:
    """A number of the type of a value; None if that is no number."""
    if value.__class__ in _SAMPLES:
        return value if abs(value) <= _LARGEST else _SAMPLES[value.__class__]
    kind = value.kind if value.__class__ in (Host, Number) else None
    return _SAMPLES.get(known(kind))


def _of_call(slicer: Hosting, call: ast.Call) -> Any:
    function = slicer.atom(call.func)
    if function.__class__ is Host:
        return _of_method(slicer, function, call)
    if function.__class__ is Apart:
        return function.kind
    for conversion, kind in _CONVERSIONS.items():
        if function is conversion:
            return kind
    if call.keywords or any(isinstance(x, ast.Starred) for x in call.args):
        return None
    if owner_of(function).__class__ in GENERATORS:
        return _drawn(function.__name__, len(call.args))
    is_of_math = getattr(function, "__module__", "") == "math"
    if is_among(function, _CALCULATIONS) or (
        is_of_math and isinstance(function, types.BuiltinFunctionType)
    ):
        return _of_samples(slicer, function, *call.args)
    kinds = [_kind_of(slicer.atom(x)) for x in call.args]
    if isinstance(function, np.ufunc) and all(isinstance(x, Array) for x in kinds):
        return _of_ufunc(function, [x.type for x in kinds])
    if function in (asarray, from_numpy) and len(kinds) == 1 and isinstance(kinds[0], Array):
        return kinds[0].type
    return None


def _drawn(name: str, count: int) -> Any:
    """The kind of what a method of a generator draws."""
    is_one = count <= _WITH_SIZES.get(name, count)
    return next((kind for kind, names in _DRAWS.items() if is_one and name in names), None)


def _kind_of(value: Any) -> Any:
    if isinstance(value, Tensor):
        return Type(value.shape, value.dtype)
    return known(value.kind) if value.__class__ is Host else None


def _of_method(slicer: Hosting, function: Host, call: ast.Call) -> Any:
    """The kind of what a method of a tensor gives that the host calls."""
    node: Any = getattr(function.source and function.source[0], "node", None)
    match getattr(node, "value", None):
        case ast.Attribute(value=ast.Name() as owner, attr="numpy"):
            kind = _kind_of(slicer.atom(owner))
            return Array(kind) if isinstance(kind, Type) else None
    return None


def _of_ufunc(function: np.ufunc, given: list[Type]) -> Any:
    """The kind of what a function of NumPy gives for arrays."""
    if function.nin != len(given) or function.nout != 1:
        return None
    with np.errstate(all="ignore"):
        found = function(*(np.ones((1,) * len(x.shape), x.dtype.numpy) for x in given))
    kind = learning.kind_of(found)
    if not isinstance(kind, Array):
        return None
    return Array(Type(np.broadcast_shapes(*(x.shape for x in given)), kind.type.dtype))
