"""Items and displays: reading and writing by index, unpacking, tuples, lists and dicts."""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, Final

from dilim.ops.table import OPERATIONS
from dilim.slicing import (
    contents,
    heap,
    parts,
    picking,
    program,
    received,
    splits,
    windows,
)
from dilim.slicing.errors import OnHost, attempted
from dilim.slicing.numbers import Number
from dilim.slicing.operators import beside, check_depth, is_constant, needs_value
from dilim.slicing.parts import Part
from dilim.slicing.values import Host, Named, Result, View, holds_hidden, is_received, is_tuple
from dilim.tensors.dispatch import apply
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
        splits.tell_apart(slicer, node.id, value)
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
    index = index_of(slicer, node.slice)
    if owner.__class__ is Host:
        return _item_of_host(slicer, step, node, owner)
    if isinstance(owner, Tensor):

        def item() -> Any:
            position = contents.index(slicer, index_of(slicer, node.slice, True))
            return _tensor_item(slicer, step, owner, position)

        return item
    _need_known(index)
    if index.__class__ is Number:
        if is_tuple(owner) or (owner.__class__ is list and id(owner) in slicer.fresh):
            return picking.read(slicer, step, owner, index)
        raise needs_value(index)
    if not is_constant(index):
        raise OnHost("an index that is no constant")
    if owner.__class__ is list and index.__class__ is slice:
        return lambda: slicer.make(
            attempted(operator.getitem, contents.opened(slicer, owner), index)
        )
    if owner.__class__ is Named:
        return lambda: attempted(operator.getitem, tuple(owner), index)
    if owner.__class__ in (tuple, str, bytes, range) or id(owner) in slicer.fresh:
        return lambda: attempted(operator.getitem, owner, index)
    if owner.__class__ in (list, dict):
        return functools.partial(contents.item, slicer, owner, index)
    raise OnHost(f"an item of {type(owner).__name__}")


def _item_of_host(
    slicer: Slicer, step: program.Step, node: ast.Subscript, owner: Host
) -> Callable[[], Any]:
    """How to read an item of a tensor of the host, where that goes no further."""
    splits.tell_apart(slicer, getattr(node.value, "id", ""), owner)
    if not received.is_one(owner) or not received.is_seen_once(slicer, step.writes[0]):
        raise OnHost

    def item() -> Any:
        index = contents.index(slicer, index_of(slicer, node.slice, True))
        x = slicer.receive(getattr(node.value, "id", ""), owner.kind)
        return received.item(slicer, step, x, parts.located(x, index))

    return item


def _tensor_item(slicer: Slicer, step: program.Step, x: Tensor, index: Any) -> Any:
    seen = parts.seen(slicer.trace, index)
    index = parts.located(x, windows.located(slicer, step, x, index))
    position, is_dynamic = parts.position(index)
    if not is_dynamic:
        return attempted(operator.getitem, x, position)
    places = parts.of_index(index)
    is_view = not any(isinstance(each, Tensor | list) for each in places)
    result = _if_in_range(slicer, step, x, index, lambda: _picked(x, position, is_view))
    if is_view:
        parts.follow(slicer.trace, result, Part(x, places, step, seen))
    return result


def _picked(x: Tensor, position: Any, is_view: bool) -> Tensor:
    """The tensor at a position; with a gradient, made by what makes views."""
    found: Tensor = attempted(operator.getitem, x, position)
    if not is_view or not found.requires_grad:
        return found
    if found.shape != parts.sliced(x, parts.of_index(position)):
        return apply(OPERATIONS["reshape"], found, shape=found.shape)
    whole = tuple((0, size, 1) for size in found.shape)
    return apply(OPERATIONS["slice"], found, index=whole)


def _if_in_range(
    slicer: Slicer, step: program.Step, x: Tensor, index: Any, compute: Callable[[], Any]
) -> Any:
    """What a function gives where all positions are in range; elsewhere the host raises."""
    places = parts.of_index(index)
    axes = parts.axes_of(places, len(x.shape))
    if axes is None:
        raise OnHost("an index of another form")
    fits: Any = None
    for place, axis in zip(places, axes, strict=True):
        if isinstance(place, Tensor) and place.dtype.name == "bool":
            raise OnHost("a mask beside a number of the program")
        is_number = place.__class__ is Number
        inside = parts.lies_inside(place, x.shape[axis]) if is_number else None
        if inside is not None:
            fits = inside if fits is None else fits & inside
    is_sure = not any(isinstance(place, Tensor | list) for place in places)

    def inside_it() -> Any:
        with slicer.trace.without_failure() if is_sure else nullcontext():
            return compute()

    return inside_it() if fits is None else checked(slicer, step, fits, inside_it)


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


def write(
    slicer: Slicer, step: program.Step, target: ast.Subscript, value: Any
) -> Callable[[], None]:
    """How to write an item.

    Raises:
        OnHost: the host has to.
    """
    owner = slicer.atom(target.value)
    is_taken = isinstance(owner, Tensor) and (received.is_number(value) or received.is_one(value))
    if owner.__class__ is Host or (holds_hidden(value) and not is_taken):
        raise OnHost
    index = index_of(slicer, target.slice)
    _need_known(index)
    if is_taken:
        source: Any = step.node
        take = functools.partial(received.taken, slicer, source.value, value)
        return lambda: _write_tensor(slicer, step, owner, index, take())
    if isinstance(owner, Tensor):
        contents.operand(value)
        if isinstance(value, Tensor) and parts.is_at(slicer.trace, value, owner, index):
            return lambda: None  # what ``x[i] += y`` ends with
        return lambda: _write_tensor(slicer, step, owner, index, value)
    if index.__class__ is Number:
        if owner.__class__ is list and id(owner) in slicer.fresh:
            return picking.write(slicer, step, owner, index, value)
        raise needs_value(index)
    if id(owner) in slicer.fresh and is_constant(index):
        if not _has(owner, index):
            check_depth(slicer, owner)
        given = contents.opened(slicer, value) if index.__class__ is slice else value
        return lambda: attempted(operator.setitem, owner, index, given)
    if owner.__class__ in (list, dict) and is_constant(index) and index.__class__ is not slice:
        return _put(slicer, owner, index, value)
    raise OnHost


def _write_tensor(slicer: Slicer, step: program.Step, x: Tensor, index: Any, value: Any) -> None:
    index = parts.located(x, contents.index(slicer, index), is_written=True)
    position, is_dynamic = parts.position(index)

    def replace() -> None:
        attempted(operator.setitem, x, position, beside(value, x))

    if is_dynamic:
        _if_in_range(slicer, step, x, index, replace)
    else:
        replace()


def _put(slicer: Slicer, owner: Any, key: Any, value: Any) -> Callable[[], None]:
    """How to replace an item of a list or dict from outside.

    Raises:
        OnHost: the host has to.
    """
    if id(owner) in slicer.touched:
        raise OnHost("a container that is changed by the host")
    if owner.__class__ is list:
        if not _has(owner, key):
            raise OnHost("a place that a list does not have")
        contents.counted(slicer, owner)
        return heap.put(slicer, owner, key % len(owner), value)
    if not heap.has(slicer, owner, key):
        raise OnHost("a dict gets another item")
    slicer.look_into(owner)
    return heap.put(slicer, owner, key, value)


def _has(container: Any, key: Any) -> bool:
    """Whether a list or dict has an item at a place already, so that a loop can carry it."""
    if container.__class__ is dict:
        return key in container
    return key.__class__ is int and -len(container) <= key < len(container)


def display(slicer: Slicer, node: ast.Tuple | ast.List, target: str) -> Callable[[], Any]:
    """How to make a tuple or a list.

    Args:
        slicer: who interprets.
        node: the display.
        target: the name that it is bound to.

    Raises:
        OnHost: the host has to.
    """
    items: list[Any] = []
    atoms: dict[int, ast.expr] = {}
    has_star = any(isinstance(element, ast.Starred) for element in node.elts)
    if isinstance(node, ast.Tuple) and not has_star and slicer.ends_with(target):
        values = [slicer.handle(element) for element in node.elts]
        if Host in map(type, values) and all(getattr(x, "is_sure", True) for x in values):
            names = [getattr(element, "id", "") for element in node.elts]
            return lambda: Result(tuple(zip(values, names, strict=True)))
    for element in node.elts:
        if isinstance(element, ast.Starred):
            value = slicer.atom(element.value)
            if value.__class__ not in (tuple, Named, list, View) or holds_hidden(value):
                raise OnHost
            items.extend(contents.opened(slicer, value))
        else:
            items.append(slicer.handle(element))
            atoms[len(items) - 1] = element

    _check(slicer, target, items)

    def made() -> Any:
        found = [received.taken(slicer, atoms.get(k), x) for k, x in enumerate(items)]
        return tuple(found) if isinstance(node, ast.Tuple) else slicer.make(found)

    return made


def _check(slicer: Slicer, target: str, values: Sequence[Any]) -> None:
    """See to it that the graph can have all that is put into a container.

    Raises:
        OnHost: the host has something.
    """
    hidden = [x for x in values if holds_hidden(x)]
    if not all(map(received.is_number, hidden)):
        raise OnHost
    if hidden and not received.goes_into(slicer, target, values):
        raise OnHost


def dictionary(slicer: Slicer, node: ast.Dict, target: str) -> Callable[[], Any]:
    """How to make a dict; see `display`.

    Raises:
        OnHost: the host has to.
    """
    pairs = []
    for key, value in zip(node.keys, node.values, strict=True):
        if key is None:
            raise OnHost
        known = slicer.atom(key)
        if not is_constant(known):
            raise OnHost
        pairs.append((known, value, slicer.handle(value)))
    _check(slicer, target, [x for *_, x in pairs])
    return lambda: slicer.make({k: received.taken(slicer, x, item) for k, x, item in pairs})


def dict_of(
    slicer: Slicer, call: ast.Call, target: str, keywords: dict[str, Any]
) -> Callable[[], Any]:
    """How to make a dict of keyword arguments; see `display`."""
    if any(x.arg is None for x in call.keywords):
        raise OnHost("keyword arguments of the host")
    _check(slicer, target, list(keywords.values()))
    pairs = [(str(x.arg), x.value) for x in call.keywords]
    return lambda: slicer.make({k: received.taken(slicer, x, keywords[k]) for k, x in pairs})


def unpack(slicer: Slicer, target: Any, value: Any) -> Callable[[], None]:
    """How to bind each name of a target to an item.

    Raises:
        OnHost: the host has to.
    """
    if isinstance(value, Tensor):
        if not value.shape or value.shape[0] > 64:
            raise OnHost
        items: Any = None
    elif value.__class__ in (str, range):
        items = list(value)
    else:
        items = list(contents.opened(slicer, value))
    names = target.elts
    count = value.shape[0] if items is None else len(items)
    star = next((k for k, x in enumerate(names) if isinstance(x, ast.Starred)), None)
    if count != len(names) if star is None else count < len(names) - 1:
        raise OnHost("a sequence of another length is unpacked")

    def bind() -> None:
        found = [value[k] for k in range(count)] if items is None else items
        if star is not None:
            end = star + 1 + count - len(names)
            found = [*found[:star], slicer.make(found[star:end]), *found[end:]]
        for name, item in zip(names, found, strict=True):
            plain: Any = name.value if isinstance(name, ast.Starred) else name
            slicer.env[plain.id] = item

    return bind
