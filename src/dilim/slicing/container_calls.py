"""Methods of lists and dicts that are carried out while slicing."""

from __future__ import annotations

import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dilim.slicing import contents, iterators
from dilim.slicing.errors import OnHost, attempted
from dilim.slicing.numbers import Number
from dilim.slicing.operators import check_depth, is_constant
from dilim.slicing.values import Range, View, holds_host, owner_of

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer

Compute = Callable[[], Any]


def is_method_of_fresh(slicer: Slicer, function: Any) -> bool:
    """Whether a function is a method of a list or dict that the region has made."""
    owner = owner_of(function)
    return id(owner) in slicer.fresh and isinstance(function, types.BuiltinMethodType)


def method_of_outer(slicer: Slicer, function: Any, args: list[Any]) -> Compute | None:
    """How to call a method of a dict from outside that changes nothing; None for all others."""
    owner = owner_of(function)
    if type(owner) is not dict or not isinstance(function, types.BuiltinMethodType):
        return None
    name = function.__name__
    if name in ("items", "keys", "values") and not args:
        return lambda: View(owner, name)
    if name == "get" and len(args) in (1, 2) and is_constant(args[0]):
        return lambda: contents.item_or(slicer, owner, *args)
    return None


def is_unknown(values: Any) -> bool:
    """Whether some values are, or hold, what is not known while slicing."""
    return any(x.__class__ in (Number, Range) or holds_host(x) for x in values)


_OF_FRESH: Final = {
    "append": (),
    "extend": (),
    "insert": (0,),
    "pop": (0,),
    "get": (0,),
    "items": (),
    "keys": (),
    "values": (),
    "copy": (),
}
"""Methods of lists and dicts of the region -> which arguments are an index or key."""


def of_fresh(slicer: Slicer, function: Any, args: list[Any], keywords: dict[str, Any]) -> Compute:
    """How to call such a method.

    Raises:
        OnHost: the host has to.
    """
    name, owner = function.__name__, function.__self__
    if name not in _OF_FRESH or keywords:
        raise OnHost(f"{name} of a list or dict")
    if is_unknown(args) and any(x.__class__ is not Number for x in args if is_unknown([x])):
        raise OnHost
    if not all(is_constant(x) for x in (args[k] for k in _OF_FRESH[name] if k < len(args))):
        raise OnHost("an index or key that is no constant")
    if name in ("append", "extend", "pop", "insert"):
        check_depth(slicer, owner)

    def compute() -> Any:
        given = [iterators.items(slicer, x) for x in args] if name == "extend" else args
        result = attempted(function, *given)
        if name in ("items", "keys", "values"):
            return View(owner, name)
        return slicer.make(result) if name == "copy" else result

    return compute
