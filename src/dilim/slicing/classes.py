"""What classes say of their objects: which questions can be answered without the user's code.

A class may decide itself what is of its kind, what its objects are equal to and whether they are
true, and may begin to do so between two calls. So an answer is taken only where Python's own
classes give it, and where a class of the user's could come to give another, it is guarded.
"""

from __future__ import annotations

import enum
import types
from typing import TYPE_CHECKING, Any, Final

from dilim.slicing.attributes import HEAP_TYPE, in_classes
from dilim.slicing.errors import OnHost
from dilim.slicing.values import class_of

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer

_PLAIN_METACLASSES: Final = (type, enum.EnumMeta)
_AS_OF_TUPLES: Final = (
    "__add__", "__contains__", "__getattribute__", "__getitem__", "__iter__", "__len__", "__mul__",
    "__rmul__",
)  # fmt: skip
_AS_OF_OBJECTS: Final = ("__init__", "__bool__", "__getattr__", "__radd__")
NAMES: Final = ("__new__", "_fields", *_AS_OF_TUPLES, *_AS_OF_OBJECTS)
"""What a class of named tuples has that decides how its objects are made and looked at."""


def is_instance(slicer: Slicer, x: Any, classes: Any) -> bool:
    """``isinstance(x, classes)``.

    Raises:
        OnHost: a class may decide itself what is of its kind.
    """
    return is_subclass(slicer, class_of(x), classes)


def is_subclass(slicer: Slicer, kind: Any, classes: Any) -> bool:
    """``issubclass(kind, classes)``.

    Raises:
        OnHost: a class may decide itself what is of its kind.
    """
    if not isinstance(kind, type) or not are_plain(classes):
        raise OnHost("a class that may decide itself what is of its kind")
    if kind.__flags__ & HEAP_TYPE:
        constant = slicer.entry.constant
        slicer.entry.guard(f"{constant(kind)}.__mro__ is {constant(kind.__mro__)}")
    return issubclass(kind, classes)


def are_plain(classes: Any) -> bool:
    """Whether classes, as ``isinstance`` takes them, leave it to Python what is of their kind."""
    if type(classes) is tuple:
        return all(map(are_plain, classes))
    if type(classes) is types.UnionType:
        return all(map(are_plain, classes.__args__))
    return type(classes) in _PLAIN_METACLASSES


def is_default(slicer: Slicer, x: Any, *names: str) -> bool:
    """Whether an object's class has special methods, if at all, as ``object`` has them."""
    kind = type(x)
    slicer.rely_on_names(kind, *names)
    return all(in_classes(kind, name) is in_classes(object, name) for name in names)


def is_named(kind: Any) -> bool:
    """Whether a class is one of named tuples that hold their items, and do nothing when made."""
    if type(kind) is not type or not issubclass(kind, tuple) or kind.__dictoffset__:
        return False
    new: Any = kind.__new__
    return (
        isinstance(new, types.FunctionType)
        and new.__globals__.get("_tuple_new") is tuple.__new__
        and new.__code__.co_names == ("_tuple_new",)
        and getattr(kind, "_fields", None) == _names(new)
        and all(in_classes(kind, x) is in_classes(tuple, x) for x in _AS_OF_TUPLES)
        and all(in_classes(kind, x) is in_classes(object, x) for x in _AS_OF_OBJECTS)
    )


def _names(new: types.FunctionType) -> tuple[str, ...]:
    return new.__code__.co_varnames[1 : new.__code__.co_argcount]
