"""The quick way into a native program: machine code looks at the arguments."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dilim.backends.llvm import calls, calls_objects
from dilim.backends.llvm.calls import Holder
from dilim.dtypes import DType
from dilim.runtime.bound import Bound, Face
from dilim.runtime.build import load_function
from dilim.runtime.devices import CPU, FIRST_VERSION, Storage
from dilim.runtime.programs import NativeProgram
from dilim.shapes import Shape
from dilim.tensors.symbolic import Traced
from dilim.tensors.tensor import Tensor

HOLDER = Holder(Tensor, "_data", {"_device": CPU})


def fast_call(
    program: NativeProgram,
    traced: Traced,
    convert: Callable[..., Sequence[np.ndarray]],
    wrap: Callable[[list[Any]], Any],
    as_numbers: bool,
) -> Callable[..., Any] | None:
    """A callable for a program that acts on the memory of its variables.

    Args:
        program: what runs.
        traced: its graph and the memory of its variables.
        convert: from what a user gave to one array per input, or a clear error.
        wrap: from tensors and numbers to what the user gets.
        as_numbers: whether results of shape () are Python numbers.

    Returns:
        None where the memory of a variable is not row-major, so that it has to be copied.
    """
    arrays = traced.arrays()
    for cell, array in zip(traced.cells, arrays, strict=True):
        if not np.may_share_memory(array, cell.array):
            return None
    outputs = traced.graph.outputs
    numbers = frozenset(
        number for number, value in enumerate(outputs) if as_numbers and not value.shape
    )
    make = [
        tensor_maker(value.shape, value.dtype)
        for number, value in enumerate(outputs)
        if number not in numbers
    ]
    face = Face(convert, _collected, make, numbers, HOLDER, name="compiled")
    function = Bound(program.native, arrays, face).function
    written = [
        cell.storage for cell in traced.cells if cell.is_written and cell.storage is not None
    ]
    direct = len(outputs) == 1 and traced.structure == 0
    if direct and not written:
        return function
    return _counted(function, written, None if direct else wrap, len(outputs))


def _collected(results: list[Any]) -> Any:
    """The results as machine code gives them: tensors and numbers, alone or in a tuple."""
    made = [Tensor._from_array(x) if isinstance(x, np.ndarray) else x for x in results]
    return made[0] if len(made) == 1 else tuple(made) or None


def _counted(
    function: Callable[..., Any],
    written: Sequence[Storage],
    wrap: Callable[[list[Any]], Any] | None,
    count: int,
) -> Callable[..., Any]:
    """A call after which the tape knows what was written, also after an error."""

    def call(*arguments: Any) -> Any:
        try:
            result = function(*arguments)
        finally:
            for storage in written:
                storage.version += 1
        if wrap is None:
            return result
        return wrap([result] if count == 1 else list(result or ()))

    return call


@functools.lru_cache(256)
def tensor_maker(shape: Shape, dtype: DType) -> Callable[..., Tensor]:
    """A function that makes a tensor of this type.

    Its elements are anything; or those of an array of that type in row-major order, if it is given
    one.
    """
    if not calls.fast_calls():
        return functools.partial(_new_tensor, shape, dtype)
    return calls_objects.maker(_form(shape, dtype), shape, dtype, load_function)


def _form(shape: Shape, dtype: DType) -> calls_objects.Form:
    """A tensor as `Tensor._fill` leaves it."""
    storage = calls_objects.Form(
        Storage,
        {"device": CPU, "recorded": 0, "on_tape": False},
        "buffer",
        {"version": FIRST_VERSION},
    )
    fixed = {
        "_shape": shape, "_dtype": dtype, "_device": CPU, "_node": None, "_is_view": False,
        "_born": 0, "_uid": 0, "grad": None, "_requires_grad": False, "name": None,
    }  # fmt: skip
    return calls_objects.Form(Tensor, fixed, "_data", inner=("_storage", storage))


def _new_tensor(shape: Shape, dtype: DType, array: np.ndarray | None = None) -> Tensor:
    made = np.empty(shape, dtype.numpy) if array is None else array.copy()
    return Tensor._wrap(made, shape, dtype, CPU)
