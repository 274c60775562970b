"""Whether objects of dilim are as they were: modules, optimisers, generators.

Library code reads attributes while a region is sliced. What it may have read is compared, by
identity, each time the region is used: the attributes of an object, and of those it holds, to any
depth. Where machine code can look at them, it says first whether anything was touched at all.
"""

from __future__ import annotations

import gc
import math
import re
from collections.abc import Callable, Mapping, Sequence
from operator import attrgetter
from typing import TYPE_CHECKING, Any, Final

from dilim.slicing.attributes import HEAP_TYPE, is_dilims, is_module
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.backends.llvm.calls_objects import Watch

_STATE = attrgetter("_requires_grad", "_storage")
_FOLLOWED = frozenset({"_learning_rate"})
"""Attributes whose number is state of the program, so that another number changes nothing."""


_PATIENCE, _LITTLE_PATIENCE = 8, 2


class Watched:
    """A question that is asked at length only where something was touched since.

    Args:
        patience: how often it is asked at length before machine code begins to look.

    Attributes:
        same: whether certainly nothing was touched since the answer was yes.
    """

    def __init__(self, patience: float) -> None:
        self._left = patience
        self._watch: Watch | None = None
        self.same: Callable[[], bool] = _never

    def be_native(self) -> None:
        """Machine code may look from here on."""
        self._left = _PATIENCE

    def holds(self) -> bool:
        """Whether all is as it was."""
        watch, self.same = self._watch, _never  # first, since another thread may ask meanwhile
        if watch is not None:
            watch.renew()  # what is touched from here on will be seen
        if not self._ask():
            return False
        if watch is not None and not watch.same():  # a list has moved
            watch = None
        self._left -= 1
        if watch is None and self._left < 0:
            watch = self._begun()
            if not self._ask():
                return False
        if watch is not None:
            self._watch, self.same = watch, watch.same
        return True

    def agrees(self) -> bool:
        """Whether all is as it was, but for what the program itself sets."""
        return self.holds()

    def _ask(self) -> bool:
        raise NotImplementedError

    def show(self, watch: Watch) -> None:
        """Have machine code look at all that is asked about."""
        raise NotImplementedError

    def _begun(self) -> Watch | None:
        # llvmlite takes time to import
        from dilim.backends.llvm.calls_objects import Watch, can_watch
        from dilim.runtime.build import load_function

        if not can_watch():
            return None
        watch = Watch(load_function)
        self.show(watch)
        watch.begin()
        return watch


def _never() -> bool:
    return False


class Fingerprint(Watched):
    """What an object holds.

    Args:
        value: an object of dilim, or of a class made from one of dilim's.

    Attributes:
        tensors: those that it holds.
    """

    def __init__(self, value: Any) -> None:
        super().__init__(math.inf)
        self._value = value
        self.renew()

    def renew(self) -> None:
        """Take the object as it is now: tracing may have made library code arrange it anew."""
        value = self._value
        self._dicts: list[tuple[dict[Any, Any], list[int]]] = []
        self._lists: list[tuple[list[Any], list[int]]] = []
        self._numbers: list[tuple[dict[Any, Any], str, type]] = []
        self._modes: list[tuple[Any, bool]] = []
        self.tensors: list[Tensor] = []
        self._states: list[tuple[bool, Any]] = []
        self._kept: list[Any] = []
        self._seen: set[int] = set()
        self._add(value)

    @property
    def parts(self) -> Sequence[Any]:
        """The object and all that it was found to hold, to any depth."""
        return self._kept

    def _ask(self) -> bool:
        return self.agrees() and all(x.training is mode for x, mode in self._modes)

    def agrees(self) -> bool:
        """Whether all is as it was, but for the modes of modules, which the program may set."""
        for table, ids in self._dicts:
            if list(map(id, table.values())) != ids:
                return False
        for items, ids in self._lists:
            if list(map(id, items)) != ids:
                return False
        for x, (flag, storage) in zip(self.tensors, self._states, strict=True):
            if x._requires_grad is not flag or x._storage is not storage:
                return False
        return all(type(table.get(name)) is kind for table, name, kind in self._numbers)

    def show(self, watch: Watch) -> None:
        """See `Watched`."""
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
        else:
            table = _table_of(value)
            if table is None:
                return
            has_mode = is_module(kind) and type(value.training) is bool
            if has_mode:
                self._modes.append((value, value.training))
            self._dict(table, {"training"} if has_mode else set())

    def _dict(self, table: dict[Any, Any], apart: set[str]) -> None:
        followed = [name for name in table if name in _FOLLOWED and type(table[name]) is float]
        for name in followed:
            self._numbers.append((table, name, float))
        apart = apart.intersection(table).union(followed)
        part = _Without(table, frozenset(apart)) if apart else table
        self._dicts.append((part, list(map(id, part.values()))))
        for name, x in table.items():
            if name not in followed:
                self._add(x)


class Names(Watched):
    """What names stand for where hardly anybody binds them anew: in Python, dilim, and classes."""

    def __init__(self) -> None:
        super().__init__(math.inf)
        self._known: dict[tuple[int, str], tuple[dict[str, Any], str, Any]] = {}

    def add(self, space: dict[str, Any] | type, name: str) -> None:
        """Take a name as it is now: one of a namespace, or of a class, which may be a base's."""
        if isinstance(space, dict):
            self._known[id(space), name] = space, name, space.get(name)
            return
        for base in space.__mro__:
            if base.__flags__ & HEAP_TYPE:
                self.add(gc.get_referents(vars(base))[0], name)  # what is shown there
            if name in vars(base):
                return

    def _ask(self) -> bool:
        return all(space.get(name) is value for space, name, value in self._known.values())

    def show(self, watch: Watch) -> None:
        """See `Watched`."""
        for space in {id(space): space for space, _, _ in self._known.values()}.values():
            watch.table(space)


class Kept:
    """What the attributes of modules, and the dicts and lists there, hold at a moment.

    Args:
        found: says what there is.
    """

    def __init__(self, found: Fingerprint) -> None:
        tables = map(_table_of, found.parts)
        self._tables = [(table, dict(table)) for table in tables if table is not None]
        self._lists = [(part, list(part)) for part in found.parts if type(part) is list]

    def put_back(self) -> bool:
        """Undo changes; whether there were any."""
        changed = False
        for table, before in self._tables:
            now = list(table.items())
            if len(now) != len(before) or any(before.get(k, self) is not x for k, x in now):
                changed = True
                table.clear()
                table.update(before)
        for items, held in self._lists:
            if list(map(id, items)) != list(map(id, held)):
                changed = True
                items[:] = held
        return changed


def _table_of(value: Any) -> dict[Any, Any] | None:
    """The dict that a value is, or that its attributes are in, where library code may look."""
    kind = type(value)
    if kind is dict:
        return value  # type: ignore[no-any-return]
    if kind.__module__ == "dilim.optim.packing":
        return None  # the optimiser's own arrangement of what is looked at already
    known = (is_dilims(kind) or is_module(kind)) and not isinstance(value, Tensor | type)
    return getattr(value, "__dict__", None) if known else None


_STANDING: Final = re.compile(r"(k[0-9]+)\.(same\(\) or \1\.holds\(\)|cell_contents is k[0-9]+)")


def is_standing(condition: str) -> bool:
    """Whether a condition is one for `Standing`."""
    return _STANDING.fullmatch(condition) is not None


def but_for_modes(condition: str) -> str:
    """A condition of an object of dilim as it is where the program sets modes of modules."""
    return re.sub(r"(k[0-9]+)\.same\(\) or \1\.holds\(\)", r"\1.agrees()", condition)


class Standing(Watched):
    """Conditions on what objects and closure cells hold, asked together.

    Args:
        conditions: some for which `is_standing`.
        constants: the objects in them, by name.
    """

    def __init__(self, conditions: Sequence[str], constants: Mapping[str, Any]) -> None:
        super().__init__(_LITTLE_PATIENCE)
        asked = " and ".join(f"({x})" for x in conditions) or "True"
        self._all_hold: Callable[[], bool] = eval(f"lambda: {asked}", dict(constants))
        self._parts = [constants[x.partition(".")[0]] for x in conditions]

    def _ask(self) -> bool:
        return self._all_hold()

    def show(self, watch: Watch) -> None:
        """See `Watched`."""
        for part in self._parts:
            if isinstance(part, Watched):
                part.show(watch)
            else:
                watch.cell(part)


class _Without(dict[Any, Any]):
    """A dict as it is at each look, without some of its names."""

    def __init__(self, table: dict[Any, Any], names: frozenset[str]) -> None:
        super().__init__()
        self._table = table
        self._names = names

    def values(self) -> Any:
        """The values of the other names."""
        return [x for name, x in self._table.items() if name not in self._names]
