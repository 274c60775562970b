"""What a program takes from outside: where each thing is found, and what must be as it was.

While a region is sliced, real objects stand for those of later calls. Each has a *path*, a Python
expression that finds it again: ``a0`` an argument, ``G["rate"]`` a global, ``a0.weight``. What the
slicer relied on becomes a guard. All guards and paths of a region are its `Gate`.
"""

from __future__ import annotations

import enum
import sys
import types
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final

import numpy as np

from dilim import dtypes
from dilim.ir.types import Type
from dilim.runtime.devices import CPU, Storage
from dilim.slicing.attributes import in_classes, is_dilims
from dilim.slicing.classes import is_named
from dilim.slicing.errors import OnHost, Restart, Unsliceable
from dilim.slicing.fingerprints import Fingerprint, is_standing
from dilim.slicing.gates import Demands, Gate, tuple_of
from dilim.slicing.host_tensors import place_in_whole, whole_of
from dilim.slicing.numbers import BOUNDS, SMALL, Number, type_of_kind
from dilim.slicing.operators import is_constant
from dilim.slicing.values import UNBOUND, is_old, like, with_items
from dilim.tensors.cells import Cell
from dilim.tensors.layouts import steps_to
from dilim.tensors.random import default_generator
from dilim.tensors.tensor import Tensor
from dilim.tensors.tracer import Trace

EQUAL: Final = frozenset({str, bytes, bool, type(None), type(Ellipsis)})
"""Types whose objects are constants of a program, compared by value."""
_SHOWN: Final = frozenset({range, slice, complex})
"""The same, compared by their text, since some are equal that are told apart otherwise."""
BY_IDENTITY: Final = (
    type,
    types.FunctionType,
    types.BuiltinFunctionType,
    types.MethodType,
    types.MethodDescriptorType,
    types.MethodWrapperType,
    types.ModuleType,
    enum.Enum,
    np.ufunc,
    np.dtype,
    dtypes.DType,
)


class Entry:
    """Paths, guards and memory of a region.

    Args:
        trace: the graph.
        names: the arguments of the gate: local names of the region's frame.
        decisions: what earlier attempts have learned; ``("value", path)`` makes a number constant.

    Attributes:
        inputs: paths of the numbers that are inputs of the graph, in order.
        slots: paths of the objects that host code may need, in order.
        constants: objects that the program refers to, by name. The name of an object stays the
            same when a region is sliced again.
        cells: identity of a cell among the constants -> the name of its variable.
    """

    def __init__(self, trace: Trace, names: tuple[str, ...], decisions: set[Any]) -> None:
        self.trace = trace
        self.decisions = decisions
        self.inputs: list[str] = []
        self.slots: list[str] = []
        self.constants: dict[str, Any] = {}
        self.cells: dict[int, str] = {}
        self._slot_of: dict[int, int] = {}
        self._path_of: dict[int, str] = {}
        self._guards: dict[str, None] = {}
        self._entered: dict[str, Any] = {}
        self._kept: list[Any] = []
        self._arguments = {name: f"a{position}" for position, name in enumerate(names)}
        self._memory: dict[Cell, str] = {}
        self._holders: dict[Cell, _Memory] = {}
        self._distinct: dict[str, None] = {}
        self._tensors: dict[str, Demands] = {}
        self._wholes: set[str] = set()
        self._kept_keys: list[Storage] = []

    # --- paths ----------------------------------------------------------------------------

    def argument(self, name: str) -> str:
        """The path of a local name."""
        return self._arguments[name]

    def constant(self, value: Any) -> str:
        """The path of an object that is part of the program."""
        name = f"k{id(value)}"
        self.constants[name] = value
        return name

    def named(self, kind: type, items: str) -> str:
        """Code for a named tuple, from that for a tuple of its items."""
        return f"{self.constant(with_items)}({self.constant(kind)}, {items})"

    def has_constant(self, value: Any) -> bool:
        """Whether an object is part of the program."""
        return f"k{id(value)}" in self.constants

    def path(self, value: Any) -> str:
        """How an object is found again: its path, or itself as a constant."""
        return self._path_of.get(id(value)) or self.constant(value)

    def slot(self, value: Any) -> int | None:
        """The slot of an object that is found by a path; None for one that is none such."""
        path = self._path_of.get(id(value))
        if path is None:
            return None
        number = self._slot_of.get(id(value))
        if number is None:
            number = self._slot_of[id(value)] = len(self.slots)
            self.slots.append(path)
        return number

    def guard(self, condition: str) -> None:
        """Demand that a condition holds whenever the program begins."""
        self._guards[condition] = None

    def standing(self, path: str) -> Any:
        """What stands for what is found at a path; `UNBOUND` if nobody has looked there."""
        return self._entered.get(path, UNBOUND)

    def has_guard(self, condition: str) -> bool:
        """Whether a condition is demanded already."""
        return condition in self._guards

    def outside(self) -> Iterator[tuple[str, Any, Any]]:
        """Path, object and what stands for it in the program, for all that comes from outside."""
        for (path, standing), value in zip(self._entered.items(), self._kept, strict=True):
            yield path, value, standing

    def guard_code(self, function: types.FunctionType) -> None:
        """Demand that a function has the code that it has now."""
        path, code = self.constant(function), self.constant(function.__code__)
        self.guard(f"{path}.__code__ is {code}")

    # --- entering -------------------------------------------------------------------------

    def enter(self, value: Any, path: str) -> Any:
        """What stands for an object in the program, with the guards that it takes."""
        if path in self._entered:
            return self._entered[path]
        result = self._enter(value, path)
        self._entered[path] = result
        self._kept.append(value)
        return result

    def _enter(self, value: Any, path: str) -> Any:
        kind = type(value)
        says_itself = in_classes(kind, "__class__") is not object.__dict__["__class__"]
        if says_itself or isinstance(in_classes(kind, "__getattribute__"), types.FunctionType):
            raise OnHost("an object that says itself what it is")
        if kind is Tensor:
            return self._tensor(value, path)
        if kind is int or kind is float:
            return self._number(value, path)
        if kind in _SHOWN and is_constant(value):
            self.guard(f"{path}.__class__ is {self.constant(kind)}")
            self.guard(f"repr({path}) == {repr(value)!r}")
            return value
        if kind in EQUAL or (kind is tuple and not value):
            self.guard(f"{path}.__class__ is {self.constant(kind)}")
            self.guard(f"{path} == {self.constant(value)}")
            return value
        if kind is tuple or is_named(kind):
            return self._tuple(value, path)
        if isinstance(value, BY_IDENTITY) or is_dilims(kind):
            if isinstance(value, types.MethodType):
                self.guard(f"{path}.__class__ is {self.constant(types.MethodType)}")
                self.guard(f"{path}.__func__ is {self.constant(value.__func__)}")
                self.guard(f"{path}.__self__ is {self.constant(value.__self__)}")
                return value
            self.guard(f"{path} is {self.constant(value)}")
            return value
        if kind is dict and "__builtins__" in value:  # what a module's global names stand in
            self.guard(f"{path} is {self.constant(value)}")
            return value
        self.guard(f"{path}.__class__ is {self.constant(kind)}")
        known = self._path_of.setdefault(id(value), path)
        if known != path:
            self.guard(f"{path} is {known}")
        else:
            self._distinct[path] = None
        return value

    def _tuple(self, value: tuple[Any, ...], path: str) -> tuple[Any, ...]:
        self.guard(f"type({path}) is {self.constant(type(value))} and len({path}) == {len(value)}")
        result = like(value, (self.enter(x, f"{path}[{k}]") for k, x in enumerate(value)))
        for x in (value, result):
            self._path_of.setdefault(id(x), path)
        return result

    def _number(self, value: Any, path: str) -> Any:
        kind, bound = value.__class__, SMALL
        self.guard(f"{path}.__class__ is {kind.__name__}")
        if ("value", path) in self.decisions or (kind is int and abs(value) == sys.maxsize):
            self.guard(f"repr({path}) == {repr(value)!r}")  # tells 0.0 from -0.0, and knows NaN
            return value
        if kind is int:
            bound = next((x for x in BOUNDS if -x < value < x), 0)
            if not bound:
                self.guard(f"not {-BOUNDS[-1]} < {path} < {BOUNDS[-1]}")
                raise OnHost("an int of more than 60 bits")
            self.guard(f"{-bound} < {path} < {bound}")
        self.inputs.append(path)
        root = self.trace.frames[0]
        tensor = self.trace.symbol(root.builder.input(Type((), type_of_kind(kind))))
        tensor._data.cell.frame = root  # known everywhere, wherever it was first asked for
        return Number(tensor, kind, bound, ("value", path))

    def guard_generator(self, cells: Sequence[Cell]) -> None:
        """Each thread has a default generator: see to it that it is the one that is used."""
        own = default_generator()
        if any(cell.storage is own._state._storage for cell in cells):
            self.guard(f"{self.constant(default_generator)}() is {self.constant(own)}")

    def _tensor(self, x: Tensor, path: str) -> Tensor:
        known = self._path_of.get(id(x))
        if known is not None:
            self.guard(f"{path} is {known}")
            return self._entered.get(known, x)  # type: ignore[no-any-return]
        if x.device is not CPU:
            raise Unsliceable(f"a tensor on {x.device.name}")
        self._path_of[id(x)] = path
        is_row_major = x._data.flags.c_contiguous
        layout = [
            f"{path}.__class__ is {self.constant(Tensor)}",
            f"{path}._shape == {x.shape!r} and {path}._dtype is {self.constant(x.dtype)}",
            f"{path}._device is {self.constant(CPU)}",
            f"{'' if is_row_major else 'not '}{path}._data.flags.c_contiguous",
        ]
        tape = [
            f"{path}._node is None",
            f"{'' if x.requires_grad else 'not '}{path}._requires_grad",
        ]
        if x._node is not None:
            tape[:1] = [
                f"{path}._node is not None",
                f"{path}._node.version == {path}._storage.version",
            ]
        for condition in layout + tape:
            self.guard(condition)
        is_plain = x._node is None and not x.requires_grad
        if is_plain:
            self._guard_age(x, path)
        before = self.trace._cells.get(id(x._storage))
        known = None if before is None else self._memory.get(before)
        if not is_row_major or ("whole", path) in self.decisions or known in self._wholes:
            self._adopt_whole(x, path)
            self.slot(x)  # so that it is seen where the host puts another one
            return x
        self._tensors[path] = Demands(tuple(layout), tuple(tape), is_plain)
        if known is None:
            if before is not None:
                raise Unsliceable("two tensors that are different views of the same memory")
            self._adopt(x, path, x._data, x._storage)
            return x
        if not is_plain:
            raise Restart(("whole", known))
        self.slot(x)
        cell = self._adopt(x, path, x._data, Storage(CPU, x._data))
        made = self.trace.tensor(cell.root)
        made._storage, made._born, made._is_view = x._storage, x._born, x._is_view
        self._path_of[id(made)] = path
        return made

    def _guard_age(self, x: Tensor, path: str) -> None:
        """Tell a view of memory that was written past it, with a gradient, from others."""
        age = f"{path}._storage.recorded {'>' if is_old(x) else '<='} {path}._born"
        self.guard(age if is_old(x) else f"not {path}._is_view or {age}")

    def _adopt(self, x: Tensor, path: str, data: np.ndarray, key: Storage) -> Cell:
        """Make memory of a tensor a variable of the program.

        Args:
            x: the tensor.
            path: of what has the memory.
            data: the memory.
            key: what stands for it.
        """
        root = self.trace.frames[0].builder
        variable = root.variable(Type(data.shape, x.dtype), _word(x.name))
        cell = self.trace._cells[id(key)] = Cell(variable, data, x._storage)
        self._memory[cell] = path
        self._kept_keys.append(key)
        return cell

    def check_shared(self, cells: Sequence[Cell]) -> None:
        """See that nobody writes into memory of which there are two views.

        Raises:
            Restart: somebody does.
        """
        storages = Counter(id(cell.storage) for cell in cells)
        for cell in cells:
            if cell.is_written and storages[id(cell.storage)] > 1:
                first = next(x for x in cells if x.storage is cell.storage)
                raise Restart(("whole", self._memory[first]))

    def _adopt_whole(self, x: Tensor, path: str) -> None:
        """Make all of the memory that a tensor is a view of a variable of the program.

        Raises:
            Restart: a part of it is one already.
            Unsliceable: there is no telling where it is, or it cannot be followed.
        """
        known = self.trace._cells.get(id(x._storage))
        before = None if known is None else self._memory.get(known)
        place = place_in_whole(x)
        whole = whole_of(x)
        if known is None:
            if not whole._data.flags.c_contiguous:
                raise Unsliceable("a tensor over memory that is not in row-major order")
            made = f"{self.constant(whole_of)}({path})"
            self._tensors[made] = Demands((), (), True)
            self._adopt(whole, made, whole._data, x._storage)
        elif before is None:
            raise Unsliceable("two tensors that are different views of the same memory")
        elif before not in self._wholes:
            raise Restart(("whole", before))
        else:
            self.guard(f"{path}._storage is {before}._storage")
        self._wholes.add(self._memory[self.trace._cells[id(x._storage)]])
        self.guard(f"{self.constant(place_in_whole)}({path}) == {place!r}")
        if steps_to(x._data, whole._data) is None:
            raise Unsliceable("a view that a graph cannot follow")

    def memory(self, cell: Cell) -> str:
        """The path of the tensor whose memory a variable is."""
        path = self._memory.get(cell)
        if path is not None:
            return path
        if cell not in self._holders:
            storage = cell.storage or Storage(CPU, cell.array)
            self._holders[cell] = _Memory(cell.array, storage)
        return self.constant(self._holders[cell])

    # --- the gate -------------------------------------------------------------------------

    def finder(self, paths: Sequence[str]) -> Callable[..., Any]:
        """A function from the frame's values to what is found at some paths, a tuple."""
        text = f"lambda {', '.join(self._arguments.values())}: {tuple_of(paths)}"
        made: Callable[..., Any] = eval(text, dict(self.constants))
        return made

    def gate(self, cells: Sequence[Cell]) -> Gate:
        """All that was demanded so far.

        Args:
            cells: the memory of the program.
        """
        memory = tuple(map(self.memory, cells))
        self._tie()
        return Gate(
            arguments=tuple(self._arguments.values()),
            conditions=tuple(sorted(self._guards, key=lambda x: not is_standing(x))),
            distinct=tuple(self._distinct),
            inputs=tuple(self.inputs),
            memory=memory,
            written=tuple(cell.is_written for cell in cells),
            slots=tuple(self.slots),
            constants=dict(self.constants),
            tensors={path: found for path, found in self._tensors.items() if path in memory},
        )

    def _tie(self) -> None:
        """Demand that memory of dilim's objects that was found by a path is found there again."""
        for value in list(self.constants.values()):
            for x in value.tensors if isinstance(value, Fingerprint) else ():
                cell = self.trace._cells.get(id(x._storage))
                path = None if cell is None else self._memory.get(cell)
                if path is not None:
                    self.guard(f"{path}._storage is {self.constant(x._storage)}")


class _Memory:
    """Stands for a tensor over memory that is always the same."""

    __slots__ = ("_data", "_storage")

    def __init__(self, array: np.ndarray, storage: Storage) -> None:
        self._data = array
        self._storage = storage


def _word(name: str | None) -> str:
    return "".join(c if c.isalnum() or c == "_" else "_" for c in name) if name else ""
