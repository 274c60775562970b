"""Whether objects of dilim are as they were: modules, optimisers, generators.

Library code reads attributes while a region is sliced. What it may have read is compared, by
identity, each time the region is used: the attributes of an object, and of those it holds, to any
depth. Where machine code can look at them, it says first whether anything was touched at all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from types import CellType
from typing import TYPE_CHECKING, Any, Final

from dilim.slicing.attributes import is_dilims, is_module
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.backends.llvm.calls_objects import Watch

_STATE = attrgetter("_requires_grad", "_storage")
_FOLLOWED = frozenset({"_learning_rate"})
"""Attributes whose number is state of the program, so that another number changes nothing."""


class Fingerprint:
    """What an object holds.

    Args:
        value: an object of dilim, or of a class made from one of dilim's.

    Attributes:
        same: whether certainly nothing was touched.
        tensors: those that it holds.
    """

    def __init__(self, value: Any) -> None:
        self._value = value
        self._watch: Any = None
        self.same: Callable[[], bool] = _never
        self.renew()

    def renew(self) -> None:
        """Take the object as it is now: tracing may have made library code arrange it anew."""
        value = self._value
        self._dicts: list[tuple[dict[Any, Any], list[int]]] = []
        self._lists: list[tuple[list[Any], list[int]]] = []
        self._numbers: list[tuple[dict[Any, Any], str, type]] = []
        self.tensors: list[Tensor] = []
        self._states: list[tuple[bool, Any]] = []
        self._kept: list[Any] = []
        self._seen: set[int] = set()
        self._add(value)

    def holds(self) -> bool:
        """Whether all is as it was."""
        for table, ids in self._dicts:
            if list(map(id, table.values())) != ids:
                return False
        for items, ids in self._lists:
            if list(map(id, items)) != ids:
                return False
        for x, (flag, storage) in zip(self.tensors, self._states, strict=True):
            if x._requires_grad is not flag or x._storage is not storage:
                return False
        if not all(type(table.get(name)) is kind for table, name, kind in self._numbers):
            return False
        if self._watch is not None:
            self._watch.renew()
            if not self._watch.same():  # a list has moved
                self._watch = None
                self.watch()
        return True

    def watch(self) -> None:
        """From here on machine code looks first."""
        if self._watch is None and self.holds():
            self._watch = watching(self)
            self.same = _never if self._watch is None else self._watch.same

    def show(self, watch: Any) -> None:
        """Have a `Watch` look at all that is compared."""
        for table, _ in self._dicts:
            watch.table(table._table if isinstance(table, _Without) else table)
        for items, _ in self._lists:
            watch.items(items)
        for x in self.tensors:
            watch.slot(x, "_requires_grad")
            watch.slot(x, "_storage")

    def _add(self, value: Any) -> None:
        kind = type(value)
        if id(value) in self._seen:
            return
        self._seen.add(id(value))
        self._kept.append(value)
        if isinstance(value, Tensor):
            self.tensors.append(value)
            self._states.append(_STATE(value))
        elif kind is list or kind is tuple:
            if kind is list:
                self._lists.append((value, list(map(id, value))))
            for x in value:
                self._add(x)
        elif kind is dict:
            self._dict(value)
        elif kind.__module__ == "dilim.optim.packing":
            return  # the optimiser's own arrangement of what is looked at already
        elif (is_dilims(kind) or is_module(kind)) and hasattr(value, "__dict__"):
            self._dict(value.__dict__)

    def _dict(self, table: dict[Any, Any]) -> None:
        followed = [name for name in table if name in _FOLLOWED and type(table[name]) is float]
        for name in followed:
            self._numbers.append((table, name, float))
        if not followed:
            self._dicts.append((table, list(map(id, table.values()))))
        else:
            part = _Without(table, frozenset(followed))
            self._dicts.append((part, list(map(id, part.values()))))
        for name, x in table.items():
            if name not in followed:
                self._add(x)


def _never() -> bool:
    return False


def watching(*parts: Fingerprint | CellType) -> Watch | None:
    """A `Watch` that has begun; None where machine code cannot look."""
    # llvmlite takes time to import
    from dilim.backends.llvm.calls_objects import Watch, can_watch
    from dilim.runtime.build import cached_object

    if not can_watch():
        return None
    watch = Watch(cached_object)
    for part in parts:
        if isinstance(part, Fingerprint):
            part.show(watch)
        else:
            watch.cell(part)
    watch.begin()
    return watch


_STANDING: Final = re.compile(r"(k[0-9]+)\.(same\(\) or \1\.holds\(\)|cell_contents is k[0-9]+)")


def is_standing(condition: str) -> bool:
    """Whether a condition is one for `Standing`."""
    return _STANDING.fullmatch(condition) is not None


class Standing:
    """Conditions on what objects and closure cells hold, asked together.

    Args:
        conditions: some for which `is_standing`.
        constants: the objects in them, by name.

    Attributes:
        same: whether certainly nothing was touched since they held.
    """

    def __init__(self, conditions: Sequence[str], constants: Mapping[str, Any]) -> None:
        asked = " and ".join(f"({x})" for x in conditions) or "True"
        self._ask: Callable[[], bool] = eval(f"lambda: {asked}", dict(constants))
        self._parts = [constants[x.partition(".")[0]] for x in conditions]
        self._watch: Any = None
        self.same: Callable[[], bool] = _never

    def hold(self) -> bool:
        """Whether all conditions hold."""
        if not self._ask():
            return False
        if self._watch is not None:
            self._watch.renew()
        if not self.same():
            self._watch = watching(*self._parts)
            self.same = _never if self._watch is None else self._watch.same
        return True


class _Without(dict[Any, Any]):
    """A dict as it is at each look, without some of its names."""

    def __init__(self, table: dict[Any, Any], names: frozenset[str]) -> None:
        super().__init__()
        self._table = table
        self._names = names

    def values(self) -> Any:
        """The values of the other names."""
        return [x for name, x in self._table.items() if name not in self._names]
