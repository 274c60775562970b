"""Callables over programs: tensors and arrays in, tensors out, state in place."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dilim import dtypes
from dilim.backends.reference.executor import by_kernel
from dilim.errors import GraphError, ShapeError
from dilim.ir.graph import Graph, Value
from dilim.runtime.devices import CPU
from dilim.runtime.reference import ReferenceProgram
from dilim.tensors.symbolic import Traced
from dilim.tensors.tensor import Tensor

BACKENDS = ("llvm", "reference")
NUMERICS = ("strict", "fast")


def program_of(graph: Graph, numerics: Any, backend: Any) -> Any:
    """A graph made ready to run by a back end.

    Raises:
        GraphError: there is no such back end or kind of numerics.
    """
    for what, given, known in (("numerics", numerics, NUMERICS), ("backend", backend, BACKENDS)):
        if given not in known:
            raise GraphError(f"compile: expected {what} in {known}, received {given!r}")
    if backend == "reference":
        return ReferenceProgram(graph, by_kernel)
    from dilim.runtime.programs import compile_graph  # llvmlite takes time to import

    return compile_graph(graph, numerics=numerics, backend=backend)


class Compiled:
    """A program to be called like a function.

    Attributes:
        program: what runs.
        traced: its graph, and the memory of its variables.
    """

    def __init__(
        self,
        traced: Traced,
        *,
        numerics: str = "strict",
        backend: str = "llvm",
        as_numbers: bool = False,
    ) -> None:
        self.traced = traced
        self.program = program_of(traced.graph, numerics, backend)
        self._as_numbers = as_numbers
        self._fast = self._fast_call() if backend == "llvm" else None

    def _fast_call(self) -> Callable[..., Any] | None:
        """Machine code that looks at the arguments, where no host and no copies are needed."""
        from dilim.tensors.fast_calls import fast_call  # with the back end

        if self.program.native.built.points:
            return None
        structure = self.traced.structure
        return fast_call(
            self.program,
            self.traced,
            self._arrays,
            lambda results: _built(structure, results),
            self._as_numbers,
        )

    def _arrays(self, *arguments: Any) -> list[np.ndarray]:
        inputs = self.graph.inputs
        if len(arguments) != len(inputs):
            raise ShapeError(f"graph: expected {len(inputs)} inputs, received {len(arguments)}")
        return [array_for(*pair) for pair in zip(inputs, arguments, strict=True)]

    @property
    def graph(self) -> Graph:
        """The program as data."""
        return self.traced.graph

    def __call__(self, *arguments: Any, host: Any = None) -> Any:
        """Run once.

        Args:
            arguments: one per input: a tensor or an array of its dtype and shape, or numbers.
            host: the other end of channels: an object with ``send(channel, arrays)`` and
                ``receive(channel)``.

        Returns:
            New tensors in the form that was asked for.

        Raises:
            ShapeError: an argument is missing or of another type.
            GraphError: the program has channels, and there is no host.
            IndexError, ValueError: an operation fails as it does when it is computed eagerly; a
                note names your line.
        """
        if host is None and self._fast is not None:
            return self._fast(*arguments)
        arrays = self._arrays(*arguments)
        variables = self.traced.arrays()
        try:
            results = self.program.run(arrays, variables, host=host)
        finally:
            self.traced.written(variables)
        return _built(self.traced.structure, [self._result(x) for x in results])

    def _result(self, array: np.ndarray) -> Any:
        if self._as_numbers and array.ndim == 0:
            return array.item()
        return Tensor._from_array(array)

    def llvm_ir(self) -> str:
        """The program as LLVM text: its kernels, and the driver that calls them.

        Raises:
            GraphError: the program runs on another back end.
        """
        from dilim.runtime.listing import llvm_ir  # with the back end

        return llvm_ir(*self._native())

    def assembly(self) -> str:
        """The program in the processor's assembly language; errors as `llvm_ir`."""
        from dilim.runtime.listing import assembly

        return assembly(*self._native())

    def _native(self) -> tuple[Any, Any]:
        if isinstance(self.program, ReferenceProgram):
            raise GraphError("compiled graph: NumPy runs it; compile it with backend='llvm'")
        return self.program.native.built, self.program.settings

    def __repr__(self) -> str:
        return f"<compiled graph of {len(self.graph.nodes)} nodes>"


def array_for(value: Value, given: Any) -> np.ndarray:
    """The array for an input of a graph.

    Raises:
        ShapeError: it has another shape or dtype; numbers and lists take the input's dtype.
    """
    if isinstance(given, Tensor):
        array: np.ndarray = given._data if given.device is CPU else given.numpy()
    elif isinstance(given, np.ndarray):
        array = given
    else:
        array = np.asarray(given, value.dtype.numpy)
    if array.shape != value.shape or array.dtype != value.dtype.numpy:
        name = f" {value.name!r}" if value.name else ""
        received = dtypes.from_numpy(array.dtype).name
        raise ShapeError(
            f"graph: expected input{name} of type {value.type}, received {received}"
            f"[{','.join(map(str, array.shape))}]"
        )
    return array


def _built(structure: Any, results: Sequence[Any]) -> Any:
    """The results in the form of a structure of their numbers."""
    if isinstance(structure, int):
        return results[structure]
    if isinstance(structure, dict):
        return {key: _built(item, results) for key, item in structure.items()}
    if isinstance(structure, tuple) and hasattr(structure, "_fields"):
        return type(structure)(*(_built(item, results) for item in structure))
    if isinstance(structure, (list, tuple)):
        return type(structure)(_built(item, results) for item in structure)
    return None
