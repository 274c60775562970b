"""Functions of the host that have nothing to do with the program that calls them."""

from __future__ import annotations

import collections
import gc
import types
import weakref
from collections.abc import Iterable, Iterator
from functools import partial
from typing import Any, Final

import numpy as np

from dilim.dtypes import DType
from dilim.ir.types import Type
from dilim.slicing.reach import is_opaque, is_users, surroundings_of
from dilim.slicing.values import Array

_MOST: Final = 50_000
"""Objects that are looked at; what has more may reach anything."""
_PLAIN: Final = (
    *(int, float, complex, str, bytes, bool, type(None), type(Ellipsis), type(NotImplemented)),
    *(range, slice, types.CodeType, np.generic, np.dtype, np.ufunc),
)
"""Types whose objects hold nothing that changes."""
_SHARED: Final = (*_PLAIN, type, types.ModuleType, types.FunctionType, DType)


class Apart(partial[Any]):
    """A function that neither sees nor changes anything that the calling program knows of.

    It is given numbers, texts and tensors whose memory is new, looks at them only, and keeps to
    itself what else it needs: so a program need not bring anything up to date before a call, nor
    look for changes after it. Whoever makes one sees to that; `meets` helps.

    Attributes:
        kind: of the array that it gives, if that is known.
    """

    kind: Array | None = None

    def giving(self, shape: tuple[int, ...], dtype: DType) -> Apart:
        """The same, said to give a NumPy array of this kind."""
        self.kind = Array(Type(shape, dtype))
        return self


def meets(function: Any, values: Iterable[Any], without: Iterable[Any] = ()) -> bool:
    """Whether a function, or an object of which methods are called, may come upon some values.

    Followed are attributes, items, variables around functions and globals that code of the user's
    names; also of classes. Code of installed packages is taken to know nothing but what it is
    given.

    Args:
        function: which.
        values: these, and all that they hold.
        without: but for these, and what only they hold.
    """
    known = {id(x): x for x in _walked(values, without, with_code=False) if _is_of_one(x)}
    count = 0
    for value in _walked([function], (), with_code=True):
        count += 1
        if id(value) in known or count > _MOST:
            return True
    return False


def _is_of_one(value: Any) -> bool:
    """Whether a value tells who has it, as the empty tuple, a class or a device does not."""
    if type(value) in (tuple, frozenset):
        return len(value) > 0
    return not isinstance(value, _SHARED) and not is_opaque(type(value))


def _walked(roots: Iterable[Any], without: Iterable[Any], with_code: bool) -> Iterator[Any]:
    """All that some values hold, themselves included."""
    queue = collections.deque(roots)
    seen = {id(value): value for value in without}
    while queue:
        value = queue.popleft()
        if id(value) in seen or isinstance(value, _PLAIN):
            continue
        seen[id(value)] = value
        yield value
        queue.extend(_held(value, with_code))


def _held(value: Any, with_code: bool) -> Iterator[Any]:
    if isinstance(value, types.FunctionType | types.ModuleType | type):
        if with_code and is_users(value):
            yield from _of_code(value)
    elif isinstance(value, np.ndarray):
        yield value.base
        if value.dtype == object:
            yield from value.ravel().tolist()
    elif isinstance(value, weakref.ref):
        yield value()
    elif not is_opaque(type(value)):
        yield from gc.get_referents(value)


def _of_code(value: Any) -> Iterator[Any]:
    """What code of the user's may use."""
    if isinstance(value, types.FunctionType):
        yield from (x for _, x in surroundings_of(value))
        yield from (value.__defaults__, value.__kwdefaults__, value.__dict__)
        return
    for inner in list(vars(value).values()):
        yield getattr(inner, "__func__", inner)
        if isinstance(inner, property):
            yield from (inner.fget, inner.fset)
    if isinstance(value, type):
        yield from value.__mro__[1:]
