"""Machine code for direct calls, and gradients that nobody has any more.

A training step gives its parameters new gradients each time. The tensors that they replace are
mostly dropped then: nobody has them but the parameter. Two sets of them are kept and used in turns,
so that they need not be made anew. A set is used only if nobody else refers to any part of it, and
all is as it was when it was made; otherwise new tensors are made.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

import numpy as np

from dilim.ir.structure import written
from dilim.runtime.devices import CPU, Storage
from dilim.slicing.gates import Gate
from dilim.tensors.tensor import Tensor

_SETS: Final = 2
"""While one is with the parameters, the other is filled."""
_PATIENCE: Final = 3
"""Calls after which they are made."""
_LARGEST: Final = 1 << 20
"""Bytes of a set; for more it does not matter what making it anew costs."""


class Missed(Exception):
    """An argument is not of the type that the program takes."""


class Stopped(BaseException):
    """Ctrl-C was pressed, and a loop has come to the end of a turn.

    Attributes:
        channel: of the point.
        arrays: what is sent there.
    """

    def __init__(self, channel: str, arrays: Sequence[np.ndarray]) -> None:
        super().__init__(channel)
        self.channel = channel
        self.arrays = arrays


class _Host:
    """The other end of a program that sends where Ctrl-C was pressed only."""

    def send(self, channel: str, arrays: Sequence[np.ndarray]) -> None:
        raise Stopped(channel, arrays)

    def receive(self, channel: str) -> Any:
        raise RuntimeError("a direct call does not receive")


class Code:
    """Makes functions that run a program on numbers and tensors.

    Args:
        native: the program as machine code.
        tensors: the numbers of results that are new tensors; others are arrays.
        gate: which variables are given at each call, and the memory of all others.
        is_plain: whether all that are given have nothing to do with gradients.
        apart: memory that must not be given.
    """

    def __init__(
        self,
        native: Any,
        tensors: frozenset[int],
        gate: Gate,
        is_plain: bool,
        apart: tuple[Storage, ...],
    ) -> None:
        self.native = native
        self.tensors = tensors
        constants = gate.constants
        self._fixed = [constants[x]._data if x in constants else None for x in gate.memory]
        self._apart = apart
        self._required: dict[str, object] = {"_device": CPU}
        if is_plain:
            self._required |= {"_node": None, "_requires_grad": False}

    def function(self, outputs: Mapping[int, np.ndarray] | None = None) -> Callable[..., Any]:
        """A function of the inputs, as numbers, and of the variables that are given.

        It gives the results, in a tuple if there are several; or raises `Missed`.

        Args:
            outputs: memory for some results, which are then not given.
        """
        from dilim.backends.llvm.calls import Holder  # llvmlite takes time to import
        from dilim.runtime.bound import Bound, Face

        known = outputs or {}
        results = self.native.graph.outputs
        made = [k for k in range(len(results)) if k not in known]

        def wrap(objects: list[Any]) -> Any:
            wrapped = [
                Tensor._from_array(x) if k in self.tensors and isinstance(x, np.ndarray) else x
                for k, x in zip(made, objects, strict=True)
            ]
            return wrapped[0] if len(wrapped) == 1 else tuple(wrapped) or None

        excluded = ("_storage", self._apart) if self._apart else None
        face = Face(
            self._arrays,
            wrap,
            [self._maker(k) for k in made],
            holder=Holder(Tensor, "_data", self._required, excluded),
            bare=False,
            taken=frozenset(range(len(self.native.graph.inputs))),
            name="direct",
        )
        arrays = [known.get(k) for k in range(len(results))]
        return Bound(self.native, self._fixed, face, arrays, _Host()).function

    def _maker(self, number: int) -> Callable[..., Any]:
        from dilim.tensors.fast_calls import tensor_maker

        value = self.native.graph.outputs[number]
        if number in self.tensors:
            return tensor_maker(value.shape, value.dtype)
        return functools.partial(np.empty, value.shape, value.dtype.numpy)

    def _arrays(self, *given: Any) -> list[np.ndarray]:
        """What `function` was given, as arrays.

        Raises:
            Missed: the program cannot take it.
        """
        graph = self.native.graph
        count = len(graph.inputs)
        arrays = [
            np.array(x, value.dtype.numpy)
            for value, x in zip(graph.inputs, given[:count], strict=True)
        ]
        changed = {variable for node in graph.nodes for variable in written(node)}
        places = zip(graph.variables, self._fixed, strict=True)
        wanted = [variable for variable, array in places if array is None]
        for variable, x in zip(wanted, given[count:], strict=True):
            if not self._is_takeable(x):
                raise Missed
            array = x._data
            fits = array.shape == variable.shape and x._dtype is variable.dtype
            flags = array.flags
            if not (fits and flags.c_contiguous and flags.aligned):
                raise Missed
            if variable in changed and not flags.writeable:
                raise Missed
            arrays.append(array)
        return arrays

    def _is_takeable(self, x: Any) -> bool:
        return (
            x.__class__ is Tensor
            and all(getattr(x, name) is value for name, value in self._required.items())
            and type(x._data) is np.ndarray
            and not any(x._storage is storage for storage in self._apart)
        )


class _Spare:
    """A set of tensors, and the program that puts its results there.

    Attributes:
        function: see `Code.function`.
        tensors: the tensors.
        same: whether nobody else has them, and all is as it was.
    """

    __slots__ = ("function", "same", "tensors")

    def __init__(self, code: Code, numbers: Sequence[int]) -> None:
        from dilim.backends.llvm.calls_objects import Watch
        from dilim.runtime.build import load_function

        self.tensors = tuple(code._maker(number)() for number in numbers)
        arrays = {k: x._data for k, x in zip(numbers, self.tensors, strict=True)}
        self.function = code.function(arrays)
        del arrays
        watch = Watch(load_function)
        _look_at_all(watch, self.tensors)
        watch.begin()
        self.same = watch.same


def _look_at_all(watch: Any, tensors: Sequence[Tensor]) -> None:
    for x in tensors:
        for part in (x, x._storage, x._data):
            watch.whole(part)


class Spares:
    """Sets of tensors for some results, which are used in turns.

    Who needs one takes the last, looks whether it is the ``same``, and puts it in front when done.

    Args:
        code: makes the functions that use them.
        numbers: of the results.

    Attributes:
        sets: those that are not in use.
    """

    def __init__(self, code: Code, numbers: Sequence[int]) -> None:
        self.sets: list[_Spare] = []
        self._code = code
        self._numbers = numbers
        outputs = [code.native.graph.outputs[number] for number in numbers]
        size = sum(value.type.size * value.dtype.itemsize for value in outputs)
        self._left = _PATIENCE if size <= _LARGEST else -1

    def more(self) -> None:
        """There is none: make some, if this has been said often enough."""
        from dilim.backends.llvm.calls_objects import can_watch

        if self._left < 0 or not can_watch():
            return
        self._left -= 1
        if self._left < 0:
            self.sets += [_Spare(self._code, self._numbers) for _ in range(_SETS)]
