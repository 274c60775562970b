"""``super().name``: what the classes after that of a method have under a name."""

from __future__ import annotations

import ast
import builtins
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dilim.slicing.errors import OnHost
from dilim.slicing.names import is_super
from dilim.slicing.numbers import Number
from dilim.slicing.values import Host
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer


def read(slicer: Slicer, node: ast.Attribute) -> Callable[[], Any]:
    """How to read ``super().name``, where that is a function in Python.

    Raises:
        OnHost: the host has to.
    """
    code, name = slicer.scope.code, node.attr
    if not is_super(node.value) or not code.parameters or "__class__" not in code.cells:
        raise OnHost
    if slicer.atom(_name("super")) is not builtins.super:
        raise OnHost("super is another function")
    after, owner = slicer.atom(_name("__class__")), slicer.atom(_name(code.parameters[0]))
    kind = type(owner)
    if kind in (Host, Number) or isinstance(owner, Tensor | type | types.ModuleType):
        raise OnHost
    classes = kind.__mro__
    if after not in classes:
        raise OnHost
    constant = slicer.entry.constant
    slicer.entry.guard(f"{constant(kind)}.__mro__ is {constant(classes)}")
    for base in classes[classes.index(after) + 1 :]:
        slicer.rely_on_names(base, name)
        raw = base.__dict__.get(name)
        if isinstance(raw, types.FunctionType):
            return lambda: types.MethodType(raw, owner)
        if name in base.__dict__:
            break
    raise OnHost(f"attribute {name} of super()")


def _name(name: str) -> ast.Name:
    return ast.Name(name, ast.Load())
