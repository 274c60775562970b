"""Puts objects back to what they were, so that a function can run twice on the same ones."""

from __future__ import annotations

import array
import collections
import contextlib
import functools
import inspect
import io
import operator
import random
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

import numpy as np

from dilim.slicing.attributes import HEAP_TYPE
from dilim.slicing.reach import is_opaque, is_users, surroundings_of
from dilim.slicing.values import UNBOUND

MOST: Final = 200_000
"""Objects that are put back at most."""
_PLAIN: Final = (
    *(int, float, complex, str, bytes, bool, type(None), type(Ellipsis), type(NotImplemented)),
    *(range, slice, types.CodeType, np.generic, np.dtype, np.ufunc),
)
"""Types whose objects do not change."""
_SEQUENCES: Final = (list, bytearray, collections.deque, array.array)

_FUNCTIONS: Final = (types.FunctionType, types.MethodType)
_Children = Iterable[Any]


class Snapshot:
    """What objects, and all that can be reached from them, hold at a moment.

    Args:
        roots: where to begin.

    Attributes:
        unknown: names of classes whose objects cannot be put back.
    """

    def __init__(self, roots: Iterable[Any]) -> None:
        self.unknown: dict[str, None] = {}
        self._undo: list[Callable[[], None]] = []
        self._used_up: list[tuple[Any, Any]] = []
        self._seen: dict[int, Any] = {}
        self._save_generators()
        queue = collections.deque(roots)
        while queue:
            value = queue.popleft()
            if id(value) in self._seen or isinstance(value, _PLAIN):
                continue
            if len(self._seen) >= MOST:
                self.unknown[f"all beyond {MOST:,} objects"] = None
                break
            self._seen[id(value)] = value
            queue.extend(self._save(value))

    def restore(self) -> None:
        """Put everything back."""
        for undo in self._undo:
            undo()

    def used_up(self) -> str:
        """The class of an iterator that has moved on, which cannot be undone; or nothing."""
        for iterator, before in self._used_up:
            if _position(iterator) != before:
                return type(iterator).__name__
        return ""

    # --- what there is to save --------------------------------------------------------------

    def _save_generators(self) -> None:
        """The random numbers of Python and NumPy."""
        state, words = random.getstate(), np.random.get_state()  # noqa: NPY002
        self._undo.append(lambda: random.setstate(state))
        self._undo.append(lambda: np.random.set_state(words))  # noqa: NPY002

    def _save(self, value: Any) -> _Children:
        """Save one object; what it refers to."""
        kind = type(value)
        if isinstance(value, types.FunctionType):
            return self._function(value)
        if isinstance(value, types.CellType):
            return self._cell(value)
        if isinstance(value, type):
            return self._class(value) if is_users(value) else ()
        if isinstance(value, types.ModuleType):
            return self._namespace(vars(value)) if is_users(value) else ()
        if isinstance(value, types.MethodType | types.BuiltinMethodType):
            return (value.__self__, getattr(value, "__func__", None))
        if isinstance(value, np.ndarray):
            return self._array(value)
        if isinstance(value, np.random.Generator):
            return (value.bit_generator,)
        if isinstance(value, np.random.BitGenerator):
            return self._bits(value)
        if isinstance(value, random.Random | np.random.RandomState):
            return self._random(value)
        if isinstance(value, io.IOBase):
            return self._file(value)
        if is_opaque(kind):
            return self._opaque(value, kind)
        children = [*self._items(value), *self._slots(value), kind]
        if isinstance(value, functools._lru_cache_wrapper):
            self.unknown["lru_cache"] = None
        table = _dict_of(value)
        if table is not None:
            children += self._table(table, dict)
        elif not any("__slots__" in vars(base) for base in kind.__mro__):
            self._foreign(value, kind)  # no class of Python code: it has neither
        return children

    def _items(self, value: Any) -> _Children:
        """The items of a container."""
        if isinstance(value, tuple | frozenset):
            return tuple(value)
        if isinstance(value, _SEQUENCES):
            base: Any = next(x for x in _SEQUENCES if isinstance(value, x))
            items = list(base.__iter__(value))
            self._undo.append(lambda: _refill(value, base, items))
            return items
        if isinstance(value, set):
            members = set.copy(value)
            self._undo.append(lambda: _replace(value, members))
            return members
        if isinstance(value, dict):
            ordered = collections.OrderedDict
            return self._table(value, ordered if isinstance(value, ordered) else dict)
        return ()

    def _table(self, table: dict[Any, Any], kind: Any) -> _Children:
        items = list(kind.items(table))
        self._undo.append(lambda: _restore_table(table, kind, items))
        return [part for item in items for part in item]

    def _namespace(self, space: dict[str, Any]) -> _Children:
        """The globals of a module of the user, whose names may be bound and unbound."""
        before = dict(space)

        def undo() -> None:
            for name in [name for name in space if name not in before]:
                del space[name]
            for name, value in before.items():
                if space.get(name, UNBOUND) is not value:
                    space[name] = value

        self._undo.append(undo)
        return [value for name, value in before.items() if not name.startswith("__")]

    def _function(self, f: types.FunctionType) -> _Children:
        if not is_users(f):
            return ()
        defaults = f.__defaults__

        def undo() -> None:
            f.__defaults__ = defaults

        self._undo.append(undo)
        if id(f.__globals__) not in self._seen:
            self._seen[id(f.__globals__)] = f.__globals__
            self._namespace(f.__globals__)
        around = (value for _, value in surroundings_of(f))
        parts = (f.__kwdefaults__, f.__dict__, *(f.__closure__ or ()))
        return (*around, *(defaults or ()), *(part for part in parts if part is not None))

    def _cell(self, cell: types.CellType) -> _Children:
        try:
            value = cell.cell_contents
        except ValueError:
            self._undo.append(lambda: _empty(cell))
            return ()

        def undo() -> None:
            cell.cell_contents = value

        self._undo.append(undo)
        return (value,)

    def _class(self, kind: type) -> _Children:
        before = dict(vars(kind))

        def undo() -> None:
            now = dict(vars(kind))
            for name in now.keys() - before.keys():
                delattr(kind, name)
            for name, value in before.items():
                if now.get(name, UNBOUND) is not value:
                    setattr(kind, name, value)

        self._undo.append(undo)
        inner = (getattr(value, "__func__", value) for value in before.values())
        return [*inner, *kind.__mro__[1:]]

    def _array(self, array: np.ndarray) -> _Children:
        if isinstance(array.base, np.ndarray):
            return (array.base,)
        kept = array.copy()

        def undo() -> None:
            if array.flags.writeable:
                array[...] = kept

        self._undo.append(undo)
        return kept.ravel().tolist() if array.dtype == object else ()

    def _bits(self, bits: Any) -> _Children:
        state = bits.state

        def undo() -> None:
            bits.state = state

        self._undo.append(undo)
        return ()

    def _random(self, value: Any) -> _Children:
        get, put = (
            (value.getstate, value.setstate)
            if isinstance(value, random.Random)
            else (value.get_state, value.set_state)
        )
        try:
            state = get()
        except NotImplementedError:  # it comes from outside
            self.unknown[type(value).__name__] = None
            return ()
        self._undo.append(lambda: put(state))
        return ()

    def _file(self, value: Any) -> _Children:
        """Files go back to where they were read or written; what was written stays."""
        if any(value is x for x in (sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__)):
            return ()
        with contextlib.suppress(OSError, ValueError):
            if value.seekable():
                place = value.tell()
                text = value.getvalue() if isinstance(value, io.StringIO | io.BytesIO) else None

                def undo() -> None:
                    if text is not None:
                        value.seek(0)
                        value.truncate()
                        value.write(text)
                    value.seek(place)

                self._undo.append(undo)
        return ()

    def _slots(self, value: Any) -> _Children:
        """Attributes that are no entries of a ``__dict__``."""
        found = []
        for member in _members(type(value)):
            before = _get(member, value)
            self._undo.append(functools.partial(_put, member, value, before))
            found.append(before)
        return [value for value in found if value is not UNBOUND]

    def _opaque(self, value: Any, kind: type) -> _Children:
        """An object that is part of some machinery; of compiled functions what they stand for."""
        if kind.__module__.startswith("dilim.slicing."):
            if isinstance(vars(value).get("__wrapped__"), _FUNCTIONS):
                return (vars(value)["__wrapped__"],)
            self.unknown[kind.__name__] = None
        return ()

    def _foreign(self, value: Any, kind: type) -> None:
        """An object of a class that is not written in Python."""
        if isinstance(value, Iterator) or inspect.isgenerator(value):
            self._used_up.append((value, _position(value)))
        elif not (_is_hashed_by_value(kind) or kind in _KNOWN or hasattr(kind, "__get__")):
            self.unknown[kind.__name__] = None


_AT_REST: Final = (inspect.GEN_CREATED, inspect.GEN_CLOSED)
_KNOWN: Final = frozenset(
    {object, list, dict, set, bytearray, collections.deque, array.array}
    | {
        collections.OrderedDict,
        collections.defaultdict,
        types.MappingProxyType,
        types.SimpleNamespace,
    }
    | {types.GenericAlias, types.UnionType}
)
"""Classes, not written in Python, whose objects are put back or do not change."""


# --- putting back ---------------------------------------------------------------------------


def _is_hashed_by_value(kind: type) -> bool:
    """Whether objects of a class are taken for values, which do not change."""
    hashed: Any = kind.__hash__
    return hashed is not None and hashed is not object.__hash__


def _refill(value: Any, base: Any, items: list[Any]) -> None:
    now = list(base.__iter__(value))
    if len(now) == len(items) and all(map(operator.is_, now, items)):
        return
    base.__delitem__(value, slice(None)) if base is not collections.deque else value.clear()
    base.extend(value, items)


def _replace(value: set[Any], members: set[Any]) -> None:
    if set.__ne__(value, members):
        set.clear(value)
        set.update(value, members)


def _restore_table(table: dict[Any, Any], kind: Any, items: list[tuple[Any, Any]]) -> None:
    now = list(kind.items(table))
    if [id(key) for key, _ in now] == [id(key) for key, _ in items]:
        for (key, before), (_, value) in zip(items, now, strict=True):
            if value is not before:
                kind.__setitem__(table, key, before)
        return
    kind.clear(table)
    for key, before in items:
        kind.__setitem__(table, key, before)


def _empty(cell: types.CellType) -> None:
    with contextlib.suppress(ValueError):
        del cell.cell_contents


def _dict_of(value: Any) -> dict[Any, Any] | None:
    try:
        found = object.__getattribute__(value, "__dict__")
    except AttributeError:
        return None
    return found if type(found) is dict else None


def _members(kind: type) -> Iterator[Any]:
    for base in kind.__mro__:
        if base.__flags__ & HEAP_TYPE:
            for member in vars(base).values():
                if isinstance(member, types.MemberDescriptorType):
                    yield member


def _get(member: Any, value: Any) -> Any:
    try:
        return member.__get__(value)
    except AttributeError:
        return UNBOUND


def _put(member: Any, value: Any, before: Any) -> None:
    if _get(member, value) is before:
        return
    with contextlib.suppress(AttributeError, TypeError):
        if before is UNBOUND:
            member.__delete__(value)
        else:
            member.__set__(value, before)


def _position(iterator: Any) -> Any:
    """What tells whether an iterator has moved on."""
    if inspect.isgenerator(iterator):
        state = inspect.getgeneratorstate(iterator)
        return state if state in _AT_REST else object()
    count = operator.length_hint(iterator, -1)
    if count >= 0:
        return count
    text = repr(iterator)
    return object() if " at 0x" in text else text
