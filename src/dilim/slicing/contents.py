"""What may be looked into while slicing: things that are the same in every run, or are guarded.

While a region is sliced, real objects stand for those of later calls. What is computed from them
then is part of the program, so it may depend on nothing but

- constants, and what has come in through `Entry`, with guards;
- tuples, and the lists and dicts that the region itself makes;
- lists and dicts from outside that the host does not change; their items come in by path.

All else is the host's: sets, deques, NumPy arrays, subclasses of list, objects of the user's
classes, whose code must not run while slicing. Whatever is carried out while slicing gets its
arguments from here.
"""

from __future__ import annotations

import operator
import types
from typing import TYPE_CHECKING, Any, Final

from dilim.slicing import heap, modes
from dilim.slicing.attributes import in_classes, is_dilims, is_module, is_traced
from dilim.slicing.errors import OnHost, Unsliceable, attempted
from dilim.slicing.numbers import Number
from dilim.slicing.operators import is_constant, needs_value
from dilim.slicing.values import UNBOUND, Named, Range, View, holds_host
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer

MOST: Final = 1000
"""Most items of a list or dict from outside that may be looked into."""
_DEEPEST: Final = 6
"""How deep containers may be nested in each other."""


def opened(slicer: Slicer, value: Any) -> Any:
    """What a tuple, list or dict holds: itself, or what its items from outside stand for.

    Raises:
        OnHost: only the host can look into it.
    """
    kind = type(value)
    if kind is View:
        return tuple(getattr(opened(slicer, value.owner), value.method)())
    if kind is Named:
        return tuple(value)
    if kind is tuple or id(value) in slicer.fresh:
        return value
    if kind is not list and kind is not dict:
        raise OnHost(f"an object of {kind.__name__} is looked into")
    if len(value) > MOST:
        raise OnHost(f"a {kind.__name__} of more than {MOST} items is looked into")
    path = counted(slicer, value)
    if kind is list:
        return [item(slicer, value, k) for k in range(len(value))]
    keys = list(value)
    if not all(map(is_constant, keys)):
        raise OnHost("a dict whose keys are no constants")
    slicer.entry.guard(f"list({path}) == {slicer.entry.constant(keys)}")
    kinds = list(map(type, keys))
    slicer.entry.guard(f"list(map(type, {path})) == {slicer.entry.constant(kinds)}")
    if not {str, int, bool}.issuperset(kinds):
        slicer.entry.guard(f"repr(list({path})) == {repr(keys)!r}")  # tells 0.0 from -0.0
    return {key: item(slicer, value, key) for key in keys}


def counted(slicer: Slicer, container: Any) -> str:
    """The path of a list or dict from outside, whose length is guarded.

    Raises:
        OnHost: the host changes it.
    """
    slicer.look_into(container)
    path = slicer.entry.path(container)
    slicer.entry.guard(f"len({path}) == {len(container)}")
    return path


def item(slicer: Slicer, container: Any, key: Any) -> Any:
    """What an item of a list or dict from outside stands for.

    Raises:
        OnHost: the host changes the container, or only the host can look at the item.
    """
    slicer.look_into(container)
    value = attempted(operator.getitem, container, key)
    if key.__class__ is int and key < 0 and container.__class__ is list:
        if any(owner == id(container) for owner, _ in slicer.heap):
            counted(slicer, container)
            key += len(container)
    found = heap.find(slicer, container, key)
    if found is not UNBOUND:
        return found
    try:
        return slicer.outside(value, heap.path(slicer, container, key))
    except Unsliceable as refusal:
        raise OnHost(refusal.reason) from None


def item_or(slicer: Slicer, container: dict[Any, Any], key: Any, default: Any = None) -> Any:
    """What an item of a dict from outside stands for; another value where there is none.

    Raises:
        OnHost: the host changes the dict, or only the host can look at the item.
    """
    slicer.look_into(container)
    return item(slicer, container, key) if heap.has(slicer, container, key) else default


def argument(
    slicer: Slicer, value: Any, *, is_data: bool = False, only_walks: bool = False, depth: int = 0
) -> Any:
    """What stands for an argument of dilim's own code, which looks at all of it.

    Args:
        slicer: who interprets.
        value: the argument.
        is_data: whether numbers in it become those of a tensor. Then a list from outside is the
            host's, so that other numbers need no other program.
        only_walks: whether no code of what a module holds is run.
        depth: how many containers it is in.

    Raises:
        OnHost: only the host can look at it.
        Restart: a number in it has to be a constant.
    """
    kind = type(value)
    if kind is Number:
        raise OnHost("numbers for a tensor") if is_data and depth else needs_value(value)
    if kind is Range or holds_host(value) or depth > _DEEPEST:
        raise OnHost("a value that is not known is given to a tensor operation")
    if isinstance(value, Tensor) or is_constant(value):
        return value
    if kind in (tuple, Named, list, dict):
        if is_data and kind not in (tuple, Named) and id(value) not in slicer.fresh:
            raise OnHost("numbers from outside are given to a tensor")
        return _arguments(slicer, value, is_data=is_data, only_walks=only_walks, depth=depth + 1)
    if is_dilims(kind) or is_module(kind) or kind is type or is_traced(value):
        rely_on(slicer, value, only_walks)
        return value
    if isinstance(value, types.FunctionType | types.MethodType):
        raise OnHost("a function of the user is given to a tensor operation")
    raise OnHost(f"an object of {kind.__name__} is given to a tensor operation")


def _arguments(slicer: Slicer, container: Any, **how: Any) -> Any:
    known = opened(slicer, container)
    if type(known) is dict:
        pairs = {argument(slicer, k, **how): argument(slicer, x, **how) for k, x in known.items()}
        return known if all(pairs[key] is x for key, x in known.items()) else pairs
    found = [argument(slicer, x, **how) for x in known]
    if all(x is y for x, y in zip(found, known, strict=True)):
        return known
    return found if type(known) is list else tuple(found)


def rely_on(slicer: Slicer, value: Any, only_walks: bool = False) -> None:
    """Library code looks at all that an object of dilim holds.

    Raises:
        OnHost: it holds something of the user's, whose code must not run while slicing.
    """
    slicer.know_leaves(value)
    if not only_walks and holds_users(slicer, value):
        raise OnHost("an object of dilim that holds an object of the user's")
    slicer.rely_on(value)
    if not only_walks and id(value) in slicer.relied:
        modes.demand_known(slicer, slicer.relied[id(value)].parts)


def holds_users(slicer: Slicer, value: Any) -> bool:
    """Whether an object of dilim holds, at any depth, code or objects that are not dilim's."""
    slicer.rely_on(value)
    found = slicer.relied.get(id(value))
    if found is None:
        return False
    kinds = {type(part): None for part in found.parts if is_module(type(part))}
    return not all(map(_is_of_library, found.parts)) or any(_is_replaced(slicer, x) for x in kinds)


def _is_replaced(slicer: Slicer, kind: type) -> bool:
    """Whether the user has put another function in place of a ``forward``; it is guarded."""
    forward = in_classes(kind, "forward")
    constant = slicer.entry.constant
    slicer.entry.guard(f"{constant(kind)}.forward is {constant(forward)}")
    return is_dilims(kind) and not is_traced(forward)


def _is_of_library(part: Any) -> bool:
    kind = type(part)
    is_plain = isinstance(part, Tensor) or kind in (list, dict, tuple) or is_constant(part)
    return is_plain or is_dilims(kind) or is_traced(part)


def index(slicer: Slicer, value: Any) -> Any:
    """An index into a tensor.

    Raises:
        OnHost: only the host can look at it.
    """
    kind = type(value)
    if kind is Number or isinstance(value, Tensor) or is_constant(value):
        return value
    if kind is tuple:
        for x in value:
            index(slicer, x)
        return value
    if kind is slice:
        for x in (value.start, value.stop, value.step):
            index(slicer, x)
        return value
    if id(value) in slicer.fresh and kind is list:
        return argument(slicer, value, is_data=True)
    raise OnHost(f"an object of {kind.__name__} as an index")


def operand(value: Any) -> Any:
    """What stands beside a tensor in an operation.

    Raises:
        OnHost: only the host can look at it.
    """
    if isinstance(value, Tensor) or type(value) is Number or is_constant(value):
        return value
    raise OnHost(f"an object of {type(value).__name__} and a tensor")
