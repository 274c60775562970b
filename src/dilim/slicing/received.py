"""Tensors that host code has made, in operations of the graph, which gets their numbers.

The graph has a copy then. So nothing may come of it that shares memory with the host's tensor, but
for what the next step takes and nobody else sees: a method, or an item.
"""

from __future__ import annotations

import ast
import operator
import types
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Final

from dilim.ir.types import Type
from dilim.slicing import parts, program, splits
from dilim.slicing.attributes import in_classes, is_traced
from dilim.slicing.errors import OnHost, Restart, attempted
from dilim.slicing.escapes import escapes_of
from dilim.slicing.iterators import Making
from dilim.slicing.values import Host, is_among, known
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer

_KNOWN: Final = frozenset({"shape", "dtype", "ndim", "size"})
"""Attributes of a tensor that go with its type."""
_NOT_COMPUTED: Final = frozenset({"backward", "detach", "numpy", "tolist"})
"""Methods that do not compute a tensor, beside those that change one."""
_ORDER: Final = ast.Lt | ast.LtE | ast.Gt | ast.GtE | ast.Eq | ast.NotEq
_READERS: Final = (float, int, bool)


def is_one(value: Any) -> bool:
    """Whether a value is a tensor of the host of which the graph can get the numbers."""
    return value.__class__ is Host and isinstance(known(value.kind), Type)


def is_number(value: Any) -> bool:
    """Whether a value is a number of the host that the graph can get."""
    return value.__class__ is Host and known(value.kind) in (int, float, bool)


def goes_into(slicer: Slicer, target: str, values: Iterable[Any]) -> bool:
    """Whether numbers of the host are received where they are put into a container.

    Not where it is one for the host, as far as one can see.

    Args:
        slicer: who interprets.
        target: the name of the container.
        values: all that is put into it.
    """
    if target[0] != "%":
        return any(isinstance(x, Tensor) for x in values)
    reader = escapes_of(slicer.scope.code).reader(target)
    match getattr(getattr(reader, "node", None), "value", None):
        case ast.Call(func=ast.Name() as function):
            return is_traced(_value(slicer, function))
    return False


def taken(slicer: Slicer, atom: Any, value: Any) -> Any:
    """What an atom stands for; a value of the host is received."""
    return slicer.receive(atom.id, value.kind) if value.__class__ is Host else value


def attribute(slicer: Slicer, node: ast.Attribute, owner: Host) -> Callable[[], Any]:
    """How to read an attribute of a tensor of the host: what goes with its type, or a method.

    Raises:
        OnHost: the host has to.
    """
    name, place = node.attr, getattr(node.value, "id", "")
    splits.tell_apart(slicer, place, owner)
    if not is_one(owner) or not (_is_method(name) or name in _KNOWN):
        raise OnHost
    slicer.rely_on_names(Tensor, name)
    step = slicer.current

    def read() -> Any:
        x = slicer.receive(place, owner.kind)
        value = getattr(x, name)
        if _is_method(name):
            _lend(slicer, x, step)
            _lend(slicer, value, step)
        return value

    return read


def _is_method(name: str) -> bool:
    """Whether a name is that of a method of tensors that computes one."""
    is_private = name.startswith("_") or name.endswith("_") or name in _NOT_COMPUTED
    return not is_private and isinstance(in_classes(Tensor, name), types.FunctionType)


def _lend(slicer: Slicer, value: Any, step: Any) -> None:
    """Take note of what a step has taken from the copy of a tensor of the host."""
    slicer.makings[id(value)] = Making(value, step, slicer.trace.top)


def refuse_old(slicer: Slicer, x: Any) -> None:
    """See to it that a method of a tensor of the host is called with the numbers that it has now.

    Args:
        slicer: who interprets.
        x: of which a method is called.

    Raises:
        Restart: host code has run since the method was taken, so that the host has to take it.
    """
    making = slicer.makings.get(id(x))
    if making is None or not isinstance(x, Tensor):
        return
    maker: Any = making.maker
    owner = maker.node.value.value  # of the attribute, or the item
    now = slicer.received.get((slicer.scope.number, owner.id))
    if now is None or now._data.cell is not x._data.cell:
        raise Restart(("host", maker))


def cells_of(slicer: Slicer, *values: Any) -> set[Any]:
    """The memory of those of some values that show numbers of tensors of the host."""
    found = [x for x in values if isinstance(x, Tensor) and id(x) in slicer.makings]
    return {x._data.cell for x in found}


def item(slicer: Slicer, step: program.Step, x: Tensor, index: Any) -> Tensor:
    """An item of a tensor of the host, which is seen by the next step only.

    Raises:
        OnHost: the host has to read it.
    """
    position, is_dynamic = parts.position(index)
    if is_dynamic:
        raise OnHost("an item of a tensor of the host at a place that is not known")
    found: Tensor = attempted(operator.getitem, x, position)
    _lend(slicer, found, step)
    return found


def is_seen_once(slicer: Slicer, name: str) -> bool:
    """Whether a made name is read by the next step only, which computes something of it."""
    following = slicer.following
    if name[0] != "%" or not isinstance(following, program.Step) or name not in following.reads:
        return False
    if name in slicer.scope.live.after.get(following, (name,)):
        return False
    node: Any = following.node
    match getattr(node, "value", None):
        case ast.BinOp() | ast.UnaryOp():
            return True
        case ast.Compare(ops=[op]):
            return isinstance(op, _ORDER)
        case ast.Attribute(attr=attribute):
            return isinstance(node, ast.Assign) and _is_method(attribute)
        case ast.Call(func=ast.Name() as function):
            return is_among(_value(slicer, function), _READERS)
    return isinstance(node, ast.AugAssign) and getattr(node.target, "id", name) != name


def _value(slicer: Slicer, atom: ast.expr) -> Any:
    try:
        return slicer.atom(atom)
    except OnHost:
        return None
