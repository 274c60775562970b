"""One step at a time: what the slicer does now, and what it leaves to the host.

`prepare` looks at the operands of a step and gives a function that carries it out; nothing is added to
the graph before that is called. `OnHost` means that the host has to do it.
"""

from __future__ import annotations

import ast
import functools
import operator
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dilim.ir.types import Type
from dilim.slicing import attributes, calls, numbers, program
from dilim.slicing.errors import OnHost, Restart
from dilim.slicing.numbers import Number
from dilim.slicing.values import UNBOUND, Conflict, Host, holds_host
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer

Ready = Callable[[], None]

PLAIN: Final = frozenset(
    {int, float, bool, str, bytes, type(None), tuple, range, slice, complex, type(Ellipsis)}
)
"""Types of constants: operations on them have no effects and give the same every time."""

_BINARY: Final[dict[type, Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
_IN_PLACE: Final[dict[type, Callable[[Any, Any], Any]]] = {
    ast.Add: operator.iadd,
    ast.Sub: operator.isub,
    ast.Mult: operator.imul,
    ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv,
    ast.Mod: operator.imod,
    ast.Pow: operator.ipow,
    ast.MatMult: operator.imatmul,
    ast.BitAnd: operator.iand,
    ast.BitOr: operator.ior,
    ast.BitXor: operator.ixor,
    ast.LShift: operator.ilshift,
    ast.RShift: operator.irshift,
}
_COMPARE: Final[dict[type, Callable[[Any, Any], Any]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
_UNARY: Final[dict[type, Callable[[Any], Any]]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}


def prepare(slicer: Slicer, step: program.Step) -> Ready:
    """How to carry out a step.

    Raises:
        OnHost: the host has to.
    """
    node: Any = step.node
    match node:
        case ast.Assign(targets=[ast.Name() as target]):
            compute = _expression(slicer, step, node.value)
            return lambda: slicer.env.__setitem__(target.id, compute())
        case ast.Assign(targets=[ast.Tuple() | ast.List() as target]):
            return _unpack(slicer, target, slicer.atom(node.value))
        case ast.Assign(targets=[ast.Attribute() as target]):
            return attributes.assign(slicer, target, slicer.atom(node.value))
        case ast.Assign(targets=[ast.Subscript() as target]):
            return _set_item(slicer, step, target, slicer.atom(node.value))
        case ast.AugAssign(target=ast.Name() as target):
            return _augmented(slicer, step, node, target)
        case ast.Delete(targets=[ast.Name() as target]):
            slicer.atom(ast.Name(target.id, ast.Load()))
            return lambda: slicer.env.__delitem__(target.id)
    raise OnHost(type(node).__name__)


def _expression(slicer: Slicer, step: program.Step, node: Any) -> Callable[[], Any]:
    match node:
        case ast.Name() | ast.Constant():
            value = slicer.copied(node)
            if value.__class__ is Host or value.__class__ is Conflict or value is UNBOUND:
                raise OnHost
            return lambda: value
        case ast.BinOp():
            function = _BINARY[type(node.op)]
            return binary(slicer, function, node.left, node.right)
        case ast.UnaryOp():
            return _unary(slicer, _UNARY[type(node.op)], node.operand)
        case ast.Compare():
            return _compare(slicer, node)
        case ast.Call():
            return calls.prepare(slicer, step, node)
        case ast.Attribute():
            return attributes.read(slicer, node)
        case ast.Subscript():
            return _item(slicer, step, node)
        case ast.Tuple() | ast.List():
            return _display(slicer, node)
        case ast.Dict():
            return _dictionary(slicer, node)
        case ast.JoinedStr():
            raise OnHost("text is made on the host")
    raise OnHost(f"{type(node).__name__} is made on the host")


# --- operators ------------------------------------------------------------------------------


def binary(
    slicer: Slicer, function: Callable[[Any, Any], Any], left: Any, right: Any
) -> Callable[[], Any]:
    """How to apply an operator to two atoms."""
    a, b = slicer.atom(left), slicer.atom(right)
    for x, y in ((a, b), (b, a)):
        if x.__class__ is Host:
            _need(x, isinstance(y, Tensor) or isinstance(x.kind, Type))
    if Host not in (a.__class__, b.__class__):
        return lambda: applied(function, a, b)

    def compute() -> Any:
        first = slicer.receive(left.id, a.kind) if a.__class__ is Host else a
        second = slicer.receive(right.id, b.kind) if b.__class__ is Host else b
        return applied(function, first, second)

    return compute


def _need(x: Host, is_tensor_operation: bool) -> None:
    if x.kind is None or not is_tensor_operation:
        raise OnHost("an operand is a value of the host")


def applied(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """The result of an operator on values that are known or symbolic."""
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        if a.__class__ is Number or b.__class__ is Number:
            if function in (operator.pow, operator.ipow):
                raise needs_value(a if a.__class__ is Number else b)
            a, b = _beside(a, b), _beside(b, a)
        return function(a, b)
    if a.__class__ is Number or b.__class__ is Number:
        if numbers.is_number(a) and numbers.is_number(b):
            return numbers.binary(function, a, b)
        raise OnHost("a number of the program and another object")
    if a.__class__ in PLAIN and b.__class__ in PLAIN:
        _check_small(function, a, b)
        return function(a, b)
    raise OnHost(f"{function.__name__} of {type(a).__name__} and {type(b).__name__}")


def _check_small(function: Any, a: Any, b: Any) -> None:
    if function in (operator.pow, operator.lshift, operator.mul) and not (
        isinstance(a, float) or isinstance(b, float)
    ):
        sizes = [len(x) if hasattr(x, "__len__") else 0 for x in (a, b)]
        large = [x for x in (a, b) if x.__class__ is int and abs(x) > 1 << 16]
        if sum(sizes) or large:
            raise OnHost("a constant that may be large")


def _beside(x: Any, other: Any) -> Any:
    """A number of the program as the operand of an operation on a tensor."""
    return numbers.as_tensor(x, other.dtype) if x.__class__ is Number else x


def needs_value(number: Number) -> Exception:
    """What to raise where a number must be known while slicing."""
    if number.origin is not None:
        return Restart(number.origin)
    return OnHost("a number that is known only when the program runs")


def _augmented(slicer: Slicer, step: program.Step, node: Any, target: Any) -> Ready:
    a, b = slicer.atom(ast.Name(target.id, ast.Load())), slicer.atom(node.value)
    function = _IN_PLACE[type(node.op)]
    if a.__class__ is Host or b.__class__ is Host:
        _need(b if b.__class__ is Host else a, isinstance(a, Tensor) or isinstance(b, Tensor))
    if a.__class__ is Host:
        raise OnHost("a value of the host is changed")
    if a.__class__ is list and id(a) in slicer.fresh and not holds_host(b):
        _check_depth(slicer, a)
        return lambda: a.extend(b) if node.op.__class__ is ast.Add else None
    if not isinstance(a, Tensor):
        function = _BINARY[type(node.op)]

    def compute() -> None:
        other = slicer.receive(node.value.id, b.kind) if b.__class__ is Host else b
        slicer.env[target.id] = applied(function, a, other)

    return compute


def _check_depth(slicer: Slicer, container: Any) -> None:
    """Refuse to change a container inside a loop of the graph that it was made outside of."""
    depth = slicer.depth_of.get(id(container))
    now = sum(frame.is_loop for frame in slicer.trace.frames)
    if depth != now:
        raise Restart(("host", slicer.made_by[id(container)]))


def _unary(slicer: Slicer, function: Callable[[Any], Any], operand: Any) -> Callable[[], Any]:
    x = slicer.atom(operand)
    if x.__class__ is Host:
        raise OnHost
    if function is operator.not_:
        return lambda: _negated(slicer.condition(operand))
    if x.__class__ is Number:
        return lambda: numbers.unary(function, x)
    if isinstance(x, Tensor) or x.__class__ in PLAIN:
        return lambda: function(x)
    raise OnHost(f"{function.__name__} of {type(x).__name__}")


def _negated(x: Any) -> Any:
    return not x if x.__class__ is bool else numbers.unary(operator.not_, x)


def _compare(slicer: Slicer, node: ast.Compare) -> Callable[[], Any]:
    function = _COMPARE[type(node.ops[0])]
    left, right = node.left, node.comparators[0]
    a, b = slicer.atom(left), slicer.atom(right)
    if function in (operator.is_, operator.is_not):
        if Host in (a.__class__, b.__class__) or Number in (a.__class__, b.__class__):
            if (a is None or b is None) and Number in (a.__class__, b.__class__):
                return lambda: function is operator.is_not
            raise OnHost
        return lambda: function(a, b)
    if isinstance(node.ops[0], ast.In | ast.NotIn):
        if not _is_constant(a) or not _is_constant(b):
            raise OnHost("a search on the host")
        return lambda: function(a, b)
    if (a is None or b is None) and Host not in (a.__class__, b.__class__):
        return lambda: function(a, b)
    return binary(slicer, function, left, right)


def _is_constant(x: Any) -> bool:
    if x.__class__ is tuple:
        return all(map(_is_constant, x))
    return x.__class__ in PLAIN


# --- items ----------------------------------------------------------------------------------


def index_of(slicer: Slicer, node: Any) -> Any:
    """The value of an index."""
    match node:
        case ast.Slice():
            parts = (node.lower, node.upper, node.step)
            return slice(*(None if x is None else index_of(slicer, x) for x in parts))
        case ast.Tuple():
            return tuple(index_of(slicer, x) for x in node.elts)
    value = slicer.atom(node)
    if value.__class__ is Host:
        raise OnHost("an index is a value of the host")
    return value


def _item(slicer: Slicer, step: program.Step, node: ast.Subscript) -> Callable[[], Any]:
    owner = slicer.atom(node.value)
    if owner.__class__ is Host:
        raise OnHost
    index = index_of(slicer, node.slice)
    if isinstance(owner, Tensor):
        return lambda: _tensor_item(slicer, step, owner, index)
    if index.__class__ is Number:
        raise needs_value(index)
    if owner.__class__ in (tuple, str, bytes, range) or id(owner) in slicer.fresh:
        return lambda: owner[index]
    if owner.__class__ in (list, dict) and index.__class__ in PLAIN:
        if id(owner) in slicer.touched:
            raise OnHost
        value = owner[index]
        return lambda: slicer.outside(value, f"{slicer.entry.path(owner)}[{index!r}]")
    raise OnHost(f"an item of {type(owner).__name__}")


def _tensor_item(slicer: Slicer, step: program.Step, x: Tensor, index: Any) -> Any:
    position, is_dynamic = _position(index)
    if not is_dynamic:
        return x[position]
    result = _if_in_range(slicer, step, x, index, lambda: x[position])
    slicer.frozen[id(result)] = result  # eagerly a view; here a copy, which nobody may write
    return result


def _if_in_range(
    slicer: Slicer, step: program.Step, x: Tensor, index: Any, compute: Callable[[], Any]
) -> Any:
    """What a function gives where all positions are in range; elsewhere the host raises."""
    parts = index if index.__class__ is tuple else (index,)
    if len(parts) > len(x.shape) or any(p is None or p is Ellipsis for p in parts):
        raise OnHost("an index of another form")
    fits: Any = None
    for part, size in zip(parts, x.shape, strict=False):
        if isinstance(part, Tensor) and part.dtype.name == "bool":
            raise OnHost("a mask beside a number of the program")
        if part.__class__ is not Number or (part.is_natural and part.bound < size):
            continue
        inside = (part.tensor >= -size) & (part.tensor < size)
        fits = inside if fits is None else fits & inside
    if fits is None:
        return compute()
    env = slicer.env
    slicer.branch(
        Number(fits, bool),
        lambda: env.__setitem__(_FOUND, compute()),
        lambda: slicer.raise_on_host(step),
    )
    return env.pop(_FOUND)


_FOUND: Final = "%found"


def _position(index: Any) -> tuple[Any, bool]:
    """An index with numbers of the program as tensors."""
    if index.__class__ is Number:
        if index.kind is not int:
            raise OnHost("an index that is no int")
        return index.tensor, True
    if index.__class__ is tuple:
        pairs = [_position(x) for x in index]
        return tuple(x for x, _ in pairs), any(flag for _, flag in pairs)
    if index.__class__ is slice:
        for x in (index.start, index.stop, index.step):
            if x.__class__ is Number:
                raise needs_value(x)
    return index, False


def _set_item(slicer: Slicer, step: program.Step, target: ast.Subscript, value: Any) -> Ready:
    owner = slicer.atom(target.value)
    if owner.__class__ is Host or holds_host(value):
        raise OnHost
    index = index_of(slicer, target.slice)
    if isinstance(owner, Tensor):
        if id(owner) in slicer.frozen:
            raise OnHost("a write into a view at a position that is not known")
        position, is_dynamic = _position(index)
        write = functools.partial(operator.setitem, owner, position)
        if is_dynamic:
            return lambda: _if_in_range(
                slicer, step, owner, index, lambda: write(_beside(value, owner))
            )
        return lambda: write(_beside(value, owner))
    if index.__class__ is Number:
        raise needs_value(index)
    if id(owner) in slicer.fresh:
        _check_depth(slicer, owner)
        return lambda: operator.setitem(owner, index, value)
    raise OnHost


def _display(slicer: Slicer, node: ast.Tuple | ast.List) -> Callable[[], Any]:
    items: list[Any] = []
    for element in node.elts:
        starred = isinstance(element, ast.Starred)
        value = slicer.atom(element.value if starred else element)  # type: ignore[attr-defined]
        if holds_host(value):
            raise OnHost
        if starred and value.__class__ not in (tuple, list):
            raise OnHost
        items.extend(value if starred else [value])
    if isinstance(node, ast.Tuple):
        return lambda: tuple(items)
    return lambda: slicer.make(list(items), node)


def _dictionary(slicer: Slicer, node: ast.Dict) -> Callable[[], Any]:
    made = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            raise OnHost
        known = slicer.atom(key)  # type: ignore[arg-type]
        item = slicer.atom(value)  # type: ignore[arg-type]
        if not _is_constant(known) or holds_host(item):
            raise OnHost
        made[known] = item
    return lambda: slicer.make(made, node)


def _unpack(slicer: Slicer, target: Any, value: Any) -> Ready:
    if isinstance(value, Tensor):
        if not value.shape or value.shape[0] > 64:
            raise OnHost
        items: Any = None
    elif value.__class__ in (tuple, str, range) or id(value) in slicer.fresh:
        items = list(value)
    else:
        raise OnHost
    names = target.elts
    count = value.shape[0] if items is None else len(items)
    if count != len(names) or any(isinstance(x, ast.Starred) for x in names):
        raise OnHost

    def bind() -> None:
        found = [value[k] for k in range(count)] if items is None else items
        for name, item in zip(names, found, strict=True):
            slicer.env[name.id] = item

    return bind


# --- what the host does ---------------------------------------------------------------------


def kind_on_host(slicer: Slicer, statement: program.Statement, name: str) -> Any:
    """The type of what a statement binds to a name on the host, as far as eager runs have shown it."""
    if isinstance(statement, program.Step):
        node: Any = statement.node
        known = slicer.profile.get((statement, name))
        if known is not None:
            return known
        match node:
            case ast.Assign(value=ast.Name(id=source)):
                value = slicer.env.get(source)
                return value.kind if value.__class__ is Host else None
            case ast.Assign(value=ast.JoinedStr()):
                return str
    return None


def is_to_learn(slicer: Slicer, statement: program.Statement, name: str) -> bool:
    """Whether the next run has to show of what type the value is that a statement binds."""
    if not isinstance(statement, program.Step) or (statement, name) in slicer.profile:
        return False
    node: Any = statement.node
    known = ast.Name | ast.Constant | ast.JoinedStr | ast.Tuple | ast.List | ast.Dict | ast.Lambda
    match node:
        case ast.Assign(targets=[ast.Name()]):
            return not isinstance(node.value, known)
        case ast.Assign(targets=[ast.Tuple() | ast.List()]) | ast.AugAssign():
            return True
    return False


HARMLESS: Final = frozenset({print, len, str, repr, float, int, bool, format, isinstance, round, abs,
                             min, max, sum, sorted, range, enumerate, zip})  # fmt: skip
"""Builtins that change nothing that a program knows of."""
_HARMLESS_METHODS: Final = frozenset(
    {"append", "extend", "format", "join", "items", "keys", "values"}
)


def is_harmless(slicer: Slicer, statement: program.Statement) -> bool:
    """Whether a statement on the host cannot change what the program knows of."""
    if not isinstance(statement, program.Step):
        return False
    node: Any = statement.node
    match node:
        case ast.Raise():
            return True
        case ast.Assign(targets=[ast.Name()], value=ast.Call() as call):
            return _is_harmless_call(slicer, call)
        case ast.Assign(targets=[ast.Name() | ast.Tuple() | ast.List()]):
            return isinstance(
                node.value,
                ast.Name | ast.Constant | ast.JoinedStr | ast.Tuple | ast.List | ast.Dict
                | ast.BinOp | ast.Compare | ast.UnaryOp | ast.Lambda | ast.Attribute | ast.Subscript,
            )  # fmt: skip
        case ast.AugAssign() | ast.Delete():
            return True
    return False


def _is_harmless_call(slicer: Slicer, call: ast.Call) -> bool:
    try:
        function = slicer.atom(call.func)  # type: ignore[arg-type]
    except OnHost:
        return False
    if function.__class__ is Host:
        return function.kind == "harmless"
    if isinstance(function, types.BuiltinMethodType) and isinstance(
        function.__self__, list | dict | str
    ):
        return function.__name__ in _HARMLESS_METHODS
    try:
        return function in HARMLESS
    except TypeError:
        return False
