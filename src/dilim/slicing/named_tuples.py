"""Named tuples that the region makes, of classes that leave it to Python how that is done."""

from __future__ import annotations

import functools
import types
from collections import namedtuple
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dilim.slicing import program
from dilim.slicing.attributes import in_classes
from dilim.slicing.classes import NAMES
from dilim.slicing.errors import OnHost
from dilim.slicing.inlining import bound, inline
from dilim.slicing.values import UNBOUND, Host, Named, named

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer

_SAMPLE: Final = namedtuple("_SAMPLE", "item")
_GETTER: Final = type(_SAMPLE.__dict__["item"])
_REPLACE: Final = _SAMPLE._replace.__code__
_AS_DICT: Final = _SAMPLE._asdict.__code__


def make(slicer: Slicer, kind: Any, args: list[Any], keywords: dict[str, Any]) -> Named:
    """What a call of the class gives.

    Raises:
        OnHost: the arguments do not fit, so that Python must raise.
    """
    slicer.rely_on_names(kind, *NAMES)
    env = bound(slicer, kind.__new__, [kind, *args], keywords)
    return named(kind, [env[name] for name in kind._fields])


def attribute(slicer: Slicer, step: program.Step, owner: Named, name: str) -> Callable[[], Any]:
    """How to read an attribute.

    Raises:
        OnHost: the host has to.
    """
    kind: Any = owner.kind
    raw: Any = in_classes(kind, name)
    slicer.rely_on_names(kind, name)
    if type(raw) is _GETTER:
        position = raw.__reduce__()[1][0]
        return lambda: owner[position]
    if name == "_fields":
        return lambda: raw
    if type(raw) is property and isinstance(raw.fget, types.FunctionType):
        getter = types.MethodType(raw.fget, owner)
        return functools.partial(inline, slicer, step, getter, [], {})
    if isinstance(raw, types.FunctionType):
        return lambda: types.MethodType(raw, owner)
    if raw is not UNBOUND and not hasattr(type(raw), "__get__") and not name.startswith("__"):
        return lambda: slicer.outside(raw, f"{slicer.entry.path(kind)}.{name}")
    raise OnHost(f"attribute {name}")


def method(
    slicer: Slicer, function: Any, args: list[Any], keywords: dict[str, Any]
) -> Callable[[], Any] | None:
    """How to call ``_replace`` or ``_asdict``; None for what is none of them.

    Raises:
        OnHost: the arguments do not fit, or are the host's.
    """
    owner: Any = getattr(function, "__self__", None)
    if owner.__class__ is not Named or function.__func__.__code__ not in (_REPLACE, _AS_DICT):
        return None
    kind: Any = owner.kind
    fields: tuple[str, ...] = kind._fields
    if (
        args
        or not keywords.keys() <= set(fields)
        or any(isinstance(x, Host) for x in keywords.values())
    ):
        raise OnHost(f"{function.__name__} of a named tuple")
    items = dict(zip(fields, owner, strict=True)) | keywords
    if function.__func__.__code__ is _AS_DICT:
        if keywords:
            raise OnHost("_asdict of a named tuple")
        return lambda: slicer.make(dict(items))
    return lambda: named(kind, items.values())
