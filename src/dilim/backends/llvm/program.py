"""Turns a graph into a native program: one function per kernel, and an entry that calls them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from dilim.backends.llvm.binding import compile_text
from dilim.backends.llvm.loops import Kernel, write_kernel
from dilim.backends.llvm.writer import FunctionWriter
from dilim.errors import ShapeError, UnsupportedError
from dilim.ir.graph import Graph, Node, Value
from dilim.ops.table import OPERATIONS

ENTRY: Final = "run"
ALIGNMENT: Final = 64
# LLVM must not turn loops into calls of memset and memcpy, which bare targets lack.
ATTRIBUTES: Final = 'attributes #0 = { nounwind "no-builtins" }'


class Program:
    """A compiled graph.

    The entry takes one pointer to a table of addresses: inputs, results that are outputs, and the
    arena, which holds all other values.

    Args:
        graph: a verified graph whose operations have recipes in the forms `Map` and `Reduce`.

    Attributes:
        llvm_ir: the text given to LLVM.
        library: the machine code, with its optimised and assembly text.

    Raises:
        UnsupportedError: an operation or a primitive cannot be emitted.
    """

    def __init__(self, graph: Graph) -> None:
        self._graph = graph
        made = dict.fromkeys(value for node in graph.nodes for value in node.results)
        self._returned = [value for value in dict.fromkeys(graph.outputs) if value in made]
        inside = [value for value in made if value not in set(self._returned)]
        kernels, calls = _write_kernels(graph)
        offsets: dict[Value, int] = {}
        self._arena_bytes = _aligned(max((k.scratch_bytes for k in kernels), default=0))
        for value in inside:
            offsets[value] = self._arena_bytes
            self._arena_bytes += _aligned(value.type.size * value.dtype.itemsize)
        entry = _write_entry([*graph.inputs, *self._returned], offsets, calls)
        self.llvm_ir = "\n\n".join([*(kernel.text for kernel in kernels), entry, ATTRIBUTES])
        self.library = compile_text(self.llvm_ir)
        self._call: Any = ctypes.CFUNCTYPE(None, ctypes.c_void_p)(self.library.address(ENTRY))

    def __call__(self, *inputs: np.ndarray) -> list[np.ndarray]:
        """Run the program; one new array per output of the graph.

        Raises:
            ShapeError: an input is missing, of another type, or not in row-major order.
        """
        graph = self._graph
        arrays: dict[Value, np.ndarray] = {}
        if len(inputs) != len(graph.inputs):
            raise ShapeError(f"graph: expected {len(graph.inputs)} inputs, received {len(inputs)}")
        for value, array in zip(graph.inputs, inputs, strict=True):
            same = array.shape == value.shape and array.dtype == value.dtype.numpy
            if not same or not array.flags.c_contiguous:
                raise ShapeError(
                    f"graph: expected a row-major input of type {value.type}, received shape "
                    f"{array.shape}, dtype {array.dtype} and strides {array.strides}"
                )
            arrays[value] = array
        for value in self._returned:
            arrays[value] = np.empty(value.shape, value.dtype.numpy)
        arena = np.empty(self._arena_bytes, np.uint8)
        addresses = [array.ctypes.data for array in (*arrays.values(), arena)]
        self._call((ctypes.c_void_p * len(addresses))(*addresses))
        given = set(graph.inputs)
        results: list[np.ndarray] = []
        for position, value in enumerate(graph.outputs):
            shared = value in given or value in graph.outputs[:position]
            results.append(arrays[value].copy() if shared else arrays[value])
        return results


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


def _write_kernels(graph: Graph) -> tuple[list[Kernel], list[tuple[str, Node]]]:
    """All kernels, equal ones once, and the calls in order."""
    kernels: dict[Any, tuple[str, Kernel]] = {}
    calls: list[tuple[str, Node]] = []
    for node in graph.nodes:
        types = tuple(value.type for value in node.inputs)
        key = (node.op, types, tuple(node.params.items()))
        if key not in kernels:
            op = OPERATIONS[node.op]
            if op.recipe is None:
                raise UnsupportedError(
                    f"llvm: {node.op}: it has no recipe; run it on the reference back end"
                )
            name = f"{node.op}_{len(kernels)}"
            recipe = op.recipe(*types, **node.params)
            kernels[key] = (name, write_kernel(name, node.op, recipe, types))
        calls.append((kernels[key][0], node))
    return [kernel for _, kernel in kernels.values()], calls


def _write_entry(
    slots: Sequence[Value], offsets: dict[Value, int], calls: list[tuple[str, Node]]
) -> str:
    writer = FunctionWriter(ENTRY, ["ptr %table"])

    def slot(number: int) -> str:
        place = writer.let(f"getelementptr inbounds ptr, ptr %table, i64 {number}")
        return writer.let(f"load ptr, ptr {place}")

    pointers = {value: slot(number) for number, value in enumerate(slots)}
    arena = slot(len(slots))
    for value, offset in offsets.items():
        pointers[value] = writer.let(f"getelementptr inbounds i8, ptr {arena}, i64 {offset}")
    for kernel, node in calls:
        used = [pointers[value] for value in (*node.inputs, *node.results)]
        arguments = ", ".join(f"ptr {pointer}" for pointer in (*used, arena))
        writer.do(f"call void @{kernel}({arguments})")
    return writer.text()
