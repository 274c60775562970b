"""Regions whose host program has nothing to do until the end: they are called directly.

Such a region is an ordinary graph program: what is sent at its end are its results. Machine code
looks at the tensors among the arguments, makes those among the results, and runs the program on
memory that is always the same (parameters, state of optimisers) without being told where it is.
What remains is one Python function per region, written here: it asks the other conditions, calls
that code, and does what the host does at the end.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from dilim.ir.types import Type
from dilim.runtime.devices import CPU, Storage
from dilim.slicing.endings import Ending
from dilim.slicing.gates import Gate, all_different, checked, tuple_of
from dilim.slicing.runs import Run, memory_of, part_of, view_of, with_gradient
from dilim.tensors.tensor import Tensor

MISS: Final = object()
"""What a direct call gives where a condition does not hold: nothing was done."""
DIRECT_FILE: Final = "<dilim direct call>"
"""The file name of the code of direct calls."""
_STATELESS: Final = {x.__name__: x for x in (with_gradient, memory_of, view_of, part_of)}


class Missed(Exception):
    """An argument is not of the type that the program takes."""


class _Call:
    """Writes a direct call.

    Args:
        ending: of the region.
        gate: what it demands.
    """

    def __init__(self, ending: Ending, gate: Gate) -> None:
        self.ending = ending
        self.gate = gate
        self.given = [path for path in gate.memory if path not in gate.constants]
        self.is_plain = all(gate.tensors[path].is_plain for path in self.given)
        written = dict(zip(gate.memory, gate.written, strict=True))
        self.written = [path for path in gate.memory if written[path]]
        taken = (*gate.inputs, *self.given)
        self._taken = {path: f"x{number}" for number, path in enumerate(taken)}

    def fixed(self, paths: Sequence[str]) -> tuple[Storage, ...]:
        """The storages among these that are always the same."""
        constants = self.gate.constants
        return tuple(constants[path]._storage for path in paths if path in constants)

    def text(self) -> str:
        """The function ``call``."""
        ending, gate = self.ending, self.gate
        code = "\n".join(ending.lines)
        then = [f"{name} = {path}" for path, name in self._taken.items()]
        slots = set(re.findall(r"\bs[0-9]+\b", code))
        then += [f"s{k} = {path}" for k, path in enumerate(gate.slots) if f"s{k}" in slots]
        results = ", ".join(f"r{k}" for k in range(len(ending.graph.outputs)))
        called = f"function({', '.join(self._taken.values())})"
        touched = "".join(f"{self._taken[x]}._storage, " for x in self.written if x in self._taken)
        lines = [
            f"def call({', '.join(gate.arguments)}):",
            *checked(self._conditions(), then or ["pass"], "return MISS"),
            "  try:",
            f"    {results}{' = ' if results else ''}{called}",
            "  except Missed:",
            "    return MISS",
            "  except BaseException as error:",
            *self._early(),
            f"    failed(error, ({touched}))",
            "    raise",
            *(["  for storage in counted:", "    storage.version += 1"] if ending.counted else []),
            *(
                f"  {self._taken[x]}._storage.version += 1"
                for x in ending.counted
                if x in self._taken
            ),
            *(["  R = Run(0)"] if re.search(r"\bR\.", code) else []),
            *(["  M = {}"] if re.search(r"\bM\.", code) else []),
            *(f"  {line}" for line in ending.lines),
            f"  return {ending.result}",
        ]
        return "\n".join(lines)

    def _early(self) -> list[str]:
        """What is done where an operation failed, before anything else."""
        lines = ["    place = getattr(error, 'site', None)"] if self.ending.early else []
        for number, (_, writes) in enumerate(self.ending.early):
            lines += [
                f"    if place in places[{number}]:",
                *(f"      {x}" for x in writes or ["pass"]),
            ]
        return lines

    def _conditions(self) -> list[str]:
        """What the machine code does not look at."""
        demands = [self.gate.tensors[path] for path in self.given]
        settled = {x for each in demands for x in each.layout}
        if self.is_plain:
            settled |= {x for each in demands for x in each.tape}
        conditions = [x for x in self.gate.conditions if x not in settled]
        return [*conditions, *all_different(self.gate.distinct), *self._apart()] or ["True"]

    def _apart(self) -> list[str]:
        """What is written is no other memory of the program."""
        if not self.given or not self.written:
            return []
        storages = [f"{path}._storage" for path in self.given]
        ids = tuple_of([f"id({path})" for path in storages])
        apart = [f"known.isdisjoint({ids})"] if self.known() else []
        return apart + (all_different(storages) if self._writes_given() else [])

    def _writes_given(self) -> bool:
        return any(path in self._taken for path in self.written)

    def known(self) -> frozenset[int]:
        """The memory that is always the same, and must not be given: by identity."""
        paths = self.gate.memory if self._writes_given() else self.written
        return frozenset(map(id, self.fixed(paths)))


def direct_call(
    ending: Ending,
    gate: Gate,
    native: Any,
    constants: Mapping[str, Any],
    tell: Callable[[Exception], object],
) -> Callable[..., Any]:
    """A function from the values of a region's frame to what the region gives, or to `MISS`.

    Args:
        ending: of the region.
        gate: what it demands.
        native: the program of ``ending.graph`` as machine code.
        constants: of the region.
        tell: is shown an exception of the program.
    """
    call = _Call(ending, gate)
    written = call.fixed(call.written)

    def failed(error: BaseException, given: tuple[Storage, ...]) -> None:
        for storage in (*written, *given):
            storage.version += 1
        if isinstance(error, Exception):
            tell(error)

    space: dict[str, Any] = dict(constants)
    space |= {"MISS": MISS, "Missed": Missed, "Run": Run, "failed": failed, **_STATELESS}
    space |= {"counted": call.fixed(ending.counted), "known": call.known()}
    space["places"] = [places for places, _ in ending.early]
    space["function"] = _function(call, native)
    exec(compile(call.text(), DIRECT_FILE, "exec"), space)
    made: Callable[..., Any] = space["call"]
    return made


def _function(call: _Call, native: Any) -> Callable[..., Any]:
    """Machine code that runs the program on numbers and tensors."""
    from dilim.backends.llvm.calls import Holder  # llvmlite takes time to import
    from dilim.runtime.bound import Bound, Face
    from dilim.tensors.fast_calls import tensor_maker

    graph, gate, tensors = call.ending.graph, call.gate, call.ending.tensors
    fixed = [gate.constants[path]._data if path in gate.constants else None for path in gate.memory]
    wanted = [
        variable for variable, array in zip(graph.variables, fixed, strict=True) if array is None
    ]
    required: dict[str, object] = {"_device": CPU}
    if call.is_plain:
        required |= {"_node": None, "_requires_grad": False}

    def convert(*given: Any) -> list[np.ndarray]:
        count = len(graph.inputs)
        numbers = [
            np.array(x, value.dtype.numpy) for value, x in zip(graph.inputs, given, strict=False)
        ]
        return numbers + [
            _array_of(x, variable.type, required)
            for variable, x in zip(wanted, given[count:], strict=True)
        ]

    def wrap(results: list[Any]) -> Any:
        made = [
            Tensor._from_array(x) if k in tensors and isinstance(x, np.ndarray) else x
            for k, x in enumerate(results)
        ]
        return made[0] if len(made) == 1 else tuple(made) or None

    make = [
        tensor_maker(value.shape, value.dtype)
        if k in tensors
        else functools.partial(np.empty, value.shape, value.dtype.numpy)
        for k, value in enumerate(graph.outputs)
    ]
    holder = Holder(Tensor, "_data", required)
    taken = frozenset(range(len(graph.inputs)))
    face = Face(convert, wrap, make, holder=holder, bare=False, taken=taken, name="direct")
    return Bound(native, fixed, face).function


def _array_of(x: Any, kind: Type, required: Mapping[str, object]) -> np.ndarray:
    """The array in a tensor.

    Raises:
        Missed: the program cannot take it.
    """
    if x.__class__ is not Tensor or any(getattr(x, k) is not v for k, v in required.items()):
        raise Missed
    array = x._data
    if (
        type(array) is not np.ndarray
        or Type(array.shape, x._dtype) != kind
        or not array.flags.carray
    ):
        raise Missed
    return array
