"""Whether anybody can see that objects end.

What a program is given is held until it ends, so objects whose end can be seen must not be among
it.
"""

from __future__ import annotations

import gc
import random
import types
import weakref
from collections import deque
from collections.abc import Iterable
from enum import Enum
from typing import Any, Final

import numpy as np

from dilim.dtypes import DType
from dilim.slicing.attributes import HEAP_TYPE
from dilim.tensors.tensor import Tensor

_MOST: Final = 2000  # objects that are looked at
_PLAIN: Final = (
    *(int, float, complex, str, bytes, type(None), range, slice, type, DType, Enum),
    *(np.generic, np.dtype, np.ufunc, types.ModuleType, types.BuiltinFunctionType),
    *(random.Random, np.random.Generator, np.random.RandomState),
)
_ITERATORS: Final[tuple[type, ...]] = (
    *(enumerate, zip, reversed, type(iter(())), type(iter([])), type(reversed([]))),
    *(type(iter(range(0))), type(iter({})), type(iter({}.items())), type(iter({}.values()))),
)
_CONTAINERS: Final = (list, tuple, set, frozenset, deque)


def may_be_seen(values: Iterable[Any]) -> bool:
    """Whether it can be seen that one of some values, or what it holds, ends."""
    seen: set[int] = set()
    places = list(values)
    while places:
        value = places.pop()
        if isinstance(value, _PLAIN) or id(value) in seen:
            continue
        seen.add(id(value))
        inner = _inside(value)
        if inner is None or len(seen) > _MOST:
            return True
        places += inner
    return False


def _inside(value: Any) -> Iterable[Any] | None:
    """What ends with a value; None where its own end may be seen."""
    kind = type(value)
    if kind in _CONTAINERS:
        return value  # type: ignore[no-any-return]
    if kind is dict:
        return [*value, *value.values()]
    if kind in _ITERATORS:
        return gc.get_referents(value)
    if kind is types.MethodType:
        return (value.__self__, value.__func__)
    if weakref.getweakrefcount(value):
        return None
    if kind is Tensor:
        return ()
    if kind is np.ndarray:
        return None if value.dtype.hasobject else ()
    if kind is types.FunctionType:
        cells = (cell.cell_contents for cell in value.__closure__ or () if cell != types.CellType())
        return [*cells, *(value.__defaults__ or ()), *(value.__kwdefaults__ or {}).values()]
    if not kind.__flags__ & HEAP_TYPE or hasattr(kind, "__del__") or hasattr(kind, "__next__"):
        return None
    if any(base.__flags__ & HEAP_TYPE == 0 for base in kind.__mro__[:-1]):
        return None  # it is a list, or the like, besides
    slots = (x for base in kind.__mro__ for x in vars(base) if _is_slot(base, x))
    found = [getattr(value, name, None) for name in slots]
    return [*found, *getattr(value, "__dict__", {}).values()]


def _is_slot(kind: type, name: str) -> bool:
    return isinstance(vars(kind)[name], types.MemberDescriptorType)
