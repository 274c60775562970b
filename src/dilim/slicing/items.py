"""Items and displays: reading and writing by index, unpacking, tuples, lists and dicts."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dilim.slicing import program
from dilim.slicing.errors import OnHost
from dilim.slicing.numbers import Number
from dilim.slicing.operators import PLAIN, beside, check_depth, is_constant, needs_value
from dilim.slicing.values import Host, holds_host, is_received
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer


def index_of(slicer: Slicer, node: Any, receive: bool = False) -> Any:
    """The value of an index.

    Args:
        slicer: who interprets.
        node: the index.
        receive: whether values of the host are received; otherwise they stay what they are.

    Raises:
        OnHost: a value of the host cannot be received.
    """
    match node:
        case ast.Slice():
            parts = (node.lower, node.upper, node.step)
            return slice(*(None if x is None else index_of(slicer, x, receive) for x in parts))
        case ast.Tuple():
            return tuple(index_of(slicer, x, receive) for x in node.elts)
    value = slicer.atom(node)
    if value.__class__ is Host:
        if not is_received(value.kind):
            raise OnHost("an index is a value of the host")
        return slicer.receive(node.id, value.kind) if receive else value
    return value


def _need_known(index: Any) -> None:
    """Refuse an index that has values of the host in it."""
    parts = index if index.__class__ is tuple else (index,)
    for part in parts:
        bounds = (part.start, part.stop, part.step) if part.__class__ is slice else (part,)
        if any(x.__class__ is Host for x in bounds):
            raise OnHost("an index is a value of the host")


def read(slicer: Slicer, step: program.Step, node: ast.Subscript) -> Callable[[], Any]:
    """How to read an item.

    Raises:
        OnHost: the host has to.
    """
    owner = slicer.atom(node.value)
    if owner.__class__ is Host:
        raise OnHost
    index = index_of(slicer, node.slice)
    if isinstance(owner, Tensor):
        return lambda: _tensor_item(slicer, step, owner, index_of(slicer, node.slice, True))
    _need_known(index)
    if index.__class__ is Number:
        raise needs_value(index)
    if owner.__class__ in (tuple, str, bytes, range) or id(owner) in slicer.fresh:
        return lambda: owner[index]
    if owner.__class__ in (list, dict) and index.__class__ in PLAIN:
        slicer.look_into(owner)
        value = owner[index]
        return lambda: slicer.outside(value, f"{slicer.entry.path(owner)}[{index!r}]")
    raise OnHost(f"an item of {type(owner).__name__}")


def _tensor_item(slicer: Slicer, step: program.Step, x: Tensor, index: Any) -> Any:
    position, is_dynamic = _position(index)
    if not is_dynamic:
        return x[position]
    result = _if_in_range(slicer, step, x, index, lambda: x[position])
    cell = result._data.cell  # eagerly a view; here a copy, which nobody may write
    slicer.trace.frozen.add(cell)
    slicer.trace.follow(cell, x, lambda: x[position])
    slicer.objects.indexed[cell] = x, index
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
    return checked(slicer, step, fits, compute)


def checked(slicer: Slicer, step: program.Step, holds: Tensor, compute: Callable[[], Any]) -> Any:
    """What a function gives where a bool of the graph holds; elsewhere the host raises."""
    env = slicer.env
    slicer.branch(
        Number(holds, bool),
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


def write(
    slicer: Slicer, step: program.Step, target: ast.Subscript, value: Any
) -> Callable[[], None]:
    """How to write an item.

    Raises:
        OnHost: the host has to.
    """
    owner = slicer.atom(target.value)
    if owner.__class__ is Host or holds_host(value):
        raise OnHost
    index = index_of(slicer, target.slice)
    _need_known(index)
    if isinstance(owner, Tensor):
        position, is_dynamic = _position(index)
        replace = functools.partial(operator.setitem, owner, position)
        if is_dynamic:
            return lambda: _if_in_range(
                slicer, step, owner, index, lambda: replace(beside(value, owner))
            )
        return lambda: replace(beside(value, owner))
    if index.__class__ is Number:
        raise needs_value(index)
    if id(owner) in slicer.fresh:
        check_depth(slicer, owner)
        return lambda: operator.setitem(owner, index, value)
    raise OnHost


def display(slicer: Slicer, node: ast.Tuple | ast.List) -> Callable[[], Any]:
    """How to make a tuple or a list.

    Raises:
        OnHost: the host has to.
    """
    items: list[Any] = []
    for element in node.elts:
        if isinstance(element, ast.Starred):
            value = slicer.atom(element.value)
            if value.__class__ not in (tuple, list) or holds_host(value):
                raise OnHost
            items.extend(value)
        else:
            value = slicer.atom(element)
            if holds_host(value):
                raise OnHost
            items.append(value)
    if isinstance(node, ast.Tuple):
        return lambda: tuple(items)
    return lambda: slicer.make(list(items))


def dictionary(slicer: Slicer, node: ast.Dict) -> Callable[[], Any]:
    """How to make a dict.

    Raises:
        OnHost: the host has to.
    """
    made = {}
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            raise OnHost
        known = slicer.atom(key)
        item = slicer.atom(value)
        if not is_constant(known) or holds_host(item):
            raise OnHost
        made[known] = item
    return lambda: slicer.make(made)


def unpack(slicer: Slicer, target: Any, value: Any) -> Callable[[], None]:
    """How to bind each name of a target to an item.

    Raises:
        OnHost: the host has to.
    """
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
