"""Attributes: of tensors, of dilim's objects, and of the user's own.

What the region writes into attributes of the user's plain objects stays in the program
(`Slicer.heap`) and is written back where the host can see it.
"""

from __future__ import annotations

import ast
import random
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dilim.slicing import heap
from dilim.slicing.errors import OnHost, Unsliceable, attempted
from dilim.slicing.numbers import Number
from dilim.slicing.values import UNBOUND, Host, class_of, holds_host, owner_of
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer

_OF_TENSORS_ON_HOST: Final = frozenset({"uid", "name", "_data", "_storage", "numpy", "tolist"})
_OF_TAPES: Final = frozenset({"requires_grad", "is_leaf"})
HEAP_TYPE: Final = 1 << 9
"""In the flags of classes that Python code made."""
GENERATORS: Final = (random.Random, np.random.RandomState, np.random.Generator)
"""What draws numbers, in code that looks at nothing of the program."""
_C_METHODS: Final = (types.MethodDescriptorType, type(np.random.Generator.random))
_PLAIN_TYPES: Final = frozenset({str, bytes, list, dict, tuple, int, float, bool, range})


def read(slicer: Slicer, node: ast.Attribute) -> Callable[[], Any]:
    """How to read an attribute.

    Raises:
        OnHost: the host has to.
    """
    owner = slicer.atom(node.value)
    name = node.attr
    kind = owner.__class__
    if kind is Host or kind is Number:
        raise OnHost
    if isinstance(owner, Tensor):
        return _of_tensor(slicer, owner, name)
    if kind in _PLAIN_TYPES:
        return lambda: attempted(getattr, owner, name)
    found = heap.find(slicer, owner.__dict__ if kind is types.ModuleType else owner, name)
    if found is not UNBOUND:
        return lambda: found
    if kind is types.ModuleType:
        return _of_module(slicer, owner, name)
    if isinstance(owner, type):
        return _of_class(slicer, owner, name)
    if is_dilims(kind) and _is_traced_module(kind.__module__):
        return _of_library(slicer, owner, name)
    if kind in GENERATORS and isinstance(in_classes(kind, name), _C_METHODS):
        return lambda: getattr(owner, name)
    return of_instance(slicer, owner, name)


def getter(slicer: Slicer, node: ast.Attribute) -> types.MethodType | None:
    """The function that gives an attribute, if the class has a plain property for it."""
    owner = slicer.atom(node.value)
    kind = type(owner)
    if kind in (Host, Number) or isinstance(owner, Tensor | type):
        return None
    found = in_classes(kind, node.attr)
    if type(found) is not property or not isinstance(found.fget, types.FunctionType):
        return None
    if not _is_default(kind, "__getattribute__") or in_classes(kind, "__getattr__") is not UNBOUND:
        return None
    slicer.rely_on_names(kind, "__getattribute__", "__getattr__", node.attr)
    return types.MethodType(found.fget, owner)


def has(slicer: Slicer, owner: Any, name: str) -> bool:
    """Whether an object has an attribute.

    Raises:
        OnHost: the host has to look.
    """
    kind = type(owner)
    raw = in_classes(kind, name)
    if isinstance(owner, Tensor) and not name.startswith("_"):
        slicer.rely_on_names(kind, name, "__getattr__")
        return raw is not UNBOUND
    if kind in (Host, Number) or isinstance(owner, type | types.ModuleType) or is_dilims(kind):
        raise OnHost("hasattr is called")
    if not _is_default(kind, "__getattribute__") or not kind.__dictoffset__:
        raise OnHost("an object with attributes of its own making")
    if heap.find(slicer, owner, name) is not UNBOUND:
        return True
    slicer.rely_on_names(kind, "__getattribute__", "__getattr__", name)
    is_set = name in owner.__dict__
    is_plain = raw is UNBOUND or not hasattr(type(raw), "__get__")
    is_plain |= isinstance(raw, types.FunctionType)
    if not is_plain or (raw is UNBOUND and in_classes(kind, "__getattr__") is not UNBOUND):
        raise OnHost("hasattr is called")
    if raw is UNBOUND:
        place = f"{name!r} in {slicer.entry.path(owner)}.__dict__"
        slicer.entry.guard(place if is_set else f"not ({place})")
    return is_set or raw is not UNBOUND


def is_dilims(kind: type) -> bool:
    """Whether a class is part of dilim below `dilim.rl`, which is sliced as users' code is."""
    return _is_dilims_module(kind.__module__)


def _is_dilims_module(name: str) -> bool:
    return (name == "dilim" or name.startswith("dilim.")) and not name.startswith(USERS)


USERS: Final = "dilim.rl."
"""Modules of dilim that are written as users' code is, and sliced so."""
_TRACED: Final = ("dilim.tensors.", "dilim.nn.", "dilim.optim.")
_OF_HOST: Final = frozenset(
    {"dilim.nn.saving", "dilim.nn.summary", "dilim.tensors.compiled", "dilim.tensors.derivatives",
     "dilim.tensors.graphs", "dilim.tensors.transfer"}
)  # fmt: skip
"""Modules whose functions do more than tensor operations, or call functions of the user."""


def is_traced(function: Any) -> bool:
    """Whether a function, method or callable object is dilim's own and written to be traced."""
    owner = owner_of(function)
    if isinstance(owner, Tensor):
        return not isinstance(function, types.MethodType) or _is_dilims_module(function.__module__)
    if owner is not None and not isinstance(owner, types.ModuleType):
        return _is_traced_module((owner if isinstance(owner, type) else class_of(owner)).__module__)
    if isinstance(function, type):
        return function is Tensor or function.__module__ == "dilim.tensors.tape"
    if isinstance(function, types.FunctionType | types.BuiltinFunctionType):
        return _is_traced_module(function.__module__ or "")
    return _is_traced_module(type(function).__module__)


def is_hosts(function: Any) -> bool:
    """Whether a function or method is dilim's own and does more than tensor operations."""
    owner = owner_of(function)
    is_method = owner is not None and is_dilims(
        owner if isinstance(owner, type) else class_of(owner)
    )
    return function.__module__ in _OF_HOST or (
        is_method and not _is_traced_module(function.__module__)
    )


def _is_traced_module(name: str) -> bool:
    return name.startswith(_TRACED) and name not in _OF_HOST


def _of_tensor(slicer: Slicer, x: Tensor, name: str) -> Callable[[], Any]:
    if name in _OF_TENSORS_ON_HOST or name.startswith("__"):
        raise OnHost(f"{name} of a tensor")
    slicer.rely_on_names(type(x), name)
    if name in _OF_TAPES and x in slicer.one_of:
        return lambda: slicer.one_of.told(x, lambda each: getattr(each, name))
    if name == "grad":
        slicer.know_leaves(x)
        slicer.use_grad(x)
    return lambda: attempted(getattr, x, name)


def _of_module(slicer: Slicer, module: types.ModuleType, name: str) -> Callable[[], Any]:
    value = getattr(module, name, UNBOUND)
    if value is UNBOUND:
        raise OnHost
    if module.__name__ == "dilim" or module.__name__.startswith("dilim."):
        slicer.rely_on_names(module.__dict__, name)
        return lambda: value
    path = f"{slicer.entry.path(module)}.{name}"
    if name in module.__dict__:
        path = heap.path(slicer, module.__dict__, name)
    return lambda: slicer.outside(value, path)


def _of_class(slicer: Slicer, kind: type, name: str) -> Callable[[], Any]:
    if type(kind) is not type or name.startswith("__"):
        raise OnHost("an attribute of a class with a metaclass")
    raw = in_classes(kind, name)
    if raw is UNBOUND or hasattr(type(raw), "__get__"):
        if isinstance(raw, staticmethod | classmethod | types.FunctionType):
            value = getattr(kind, name)
            return lambda: slicer.outside(value, f"{slicer.entry.path(kind)}.{name}")
        raise OnHost
    return lambda: slicer.outside(raw, f"{slicer.entry.path(kind)}.{name}")


def _of_library(slicer: Slicer, owner: Any, name: str) -> Callable[[], Any]:
    slicer.rely_on(owner)
    slicer.rely_on_names(type(owner), name)
    value = attempted(getattr, owner, name)
    if owner_of(value) is not None or _holds(slicer, owner, value):
        slicer.know_leaves(value)
        return lambda: value
    return lambda: slicer.outside(value, f"{slicer.entry.path(owner)}.{name}")


def _holds(slicer: Slicer, owner: Any, value: Any) -> bool:
    """Whether an object of dilim has a tensor or something to be called, and is guarded so."""
    found = slicer.relied.get(id(owner))
    if found is None or not (callable(value) or isinstance(value, Tensor)):
        return False
    return any(part is value for part in found.parts)


def in_classes(kind: type, name: str) -> Any:
    """What a class and its bases have under a name, as it stands there; else `UNBOUND`."""
    for base in kind.__mro__:
        if name in base.__dict__:
            return base.__dict__[name]
    return UNBOUND


def _is_default(kind: type, name: str) -> bool:
    """Whether a special method of a class is that of ``object``."""
    return getattr(kind, name) is getattr(object, name)


def of_instance(slicer: Slicer, owner: Any, name: str) -> Callable[[], Any]:
    """How to read an attribute of an object of a user's class, as it was at entry."""
    kind = type(owner)
    if not _is_default(kind, "__getattribute__") or not kind.__dictoffset__:
        raise OnHost("an object with attributes of its own making")
    slicer.rely_on_names(kind, "__getattribute__", name)
    raw = in_classes(kind, name)
    path = slicer.entry.path(owner)
    if name in owner.__dict__ and not hasattr(type(raw), "__set__"):
        value = owner.__dict__[name]
        slicer.entry.guard(f"{name!r} in {path}.__dict__")
        return lambda: slicer.outside(value, f"{path}.__dict__[{name!r}]")
    if isinstance(raw, types.FunctionType):
        class_path = slicer.entry.constant(kind)
        slicer.entry.guard(f"{class_path}.{name} is {slicer.entry.constant(raw)}")
        slicer.entry.guard(f"{name!r} not in {path}.__dict__")
        return lambda: types.MethodType(raw, owner)
    if raw is not UNBOUND and not hasattr(type(raw), "__get__"):
        slicer.entry.guard(f"{name!r} not in {path}.__dict__")
        return lambda: slicer.outside(raw, f"{path}.{name}")
    raise OnHost(f"attribute {name}")


def refuse_mark(slicer: Slicer, x: Tensor, flag: Any) -> None:
    """Refuse to set whether a tensor requires a gradient, where others see it who are not told.

    Raises:
        OnHost: the host has to.
        Unsliceable: it is the region's, and also another object on another path, or the host's; or
            something was computed from it, whose tape is made when the host sees it.
    """
    if id(x) in slicer.trace.noted:
        raise Unsliceable("whether a tensor requires a gradient is set after it was used")
    if not slicer.trace.owns(x) or slicer.entry.slot(x) is not None:
        raise OnHost("whether a tensor from outside requires a gradient is set")
    is_elsewhere = x in slicer.one_of or slicer.objects.may_be_given(x)
    is_older = len(slicer.trace.frames) > 1 and not slicer.trace.made_inside(x)
    if is_elsewhere or is_older or flag.__class__ is not bool:
        raise Unsliceable("whether a tensor requires a gradient is set where others have it")


def is_module(kind: type) -> bool:
    """Whether a class is a `dilim.nn.Module`, known without importing it."""
    return any(base.__module__ == "dilim.nn.module" for base in kind.__mro__)


def assign(slicer: Slicer, target: ast.Attribute, value: Any) -> Callable[[], None]:
    """How to set an attribute.

    Raises:
        OnHost: the host has to.
    """
    owner = slicer.atom(target.value)
    name = target.attr
    if owner.__class__ is Host:
        raise OnHost
    if isinstance(owner, Tensor):
        if name == "requires_grad":
            refuse_mark(slicer, owner, value)
            return lambda: attempted(setattr, owner, name, value)
        if name != "grad" or holds_host(value) or not (value is None or isinstance(value, Tensor)):
            raise OnHost(f"{name} of a tensor is set")
        slicer.know_leaves(owner)
        slicer.clear_grad(owner)
        return lambda: attempted(setattr, owner, "grad", value)
    kind = type(owner)
    plain = (
        _is_default(kind, "__setattr__")
        and not hasattr(type(in_classes(kind, name)), "__set__")
        and kind.__dictoffset__ != 0
        and not isinstance(owner, type | types.ModuleType)
        and not is_dilims(kind)
    )
    if not plain:
        raise OnHost("an object that sets attributes in a way of its own")
    slicer.rely_on_names(kind, "__setattr__", name)
    bind = heap.put(slicer, owner, name, value)
    if slicer.entry.slot(owner) is None and not slicer.entry.has_constant(owner):
        raise Unsliceable(f"attribute {name} of an object that the program made")
    return bind
