"""The kernels of eager execution on the CPU, with the bits of compiled programs.

NumPy computes what IEEE 754 fixes. For transcendental functions, extrema, conversions to integers
and matrix products it leaves rounding or order open, so these are ufuncs of our own: one loop per
dtype, for any strides and sizes, made when an operation is first used and kept in the cache. Where
there is no LLVM, recipes are interpreted: slow, with the same bits.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import os
from collections.abc import Callable, Sequence
from typing import Any, Final, TypeAlias

import numpy as np

from dilim import dtypes
from dilim.backends.reference.executor import by_recipe
from dilim.dtypes import DType
from dilim.ir.types import Type
from dilim.ops.expansions import has_expansion
from dilim.ops.expressions import postorder
from dilim.ops.opdef import Kernel, OpDef
from dilim.ops.recipe import Map
from dilim.ops.table import OPERATIONS

_Loop: TypeAlias = tuple[str, Callable[[], str], tuple[DType, ...]]
"""The name of a function, what writes its module, and the dtypes of inputs and result."""
_NEW_UFUNC: Final = 1
_NEW_GENERALIZED: Final = 31
"""Positions in the table of functions that NumPy offers to extension modules."""
_NO_IDENTITY: Final = -1
_OPEN: Final = frozenset({"maximum", "minimum", "bitcast"})
"""Primitives that only occur where NumPy's bits are its own."""
_EXACT: Final = frozenset({"floor", "ceil", "trunc", "round"})
"""Primitives whose expansions only serve machines without an instruction for them."""


def install() -> None:
    """Let eager execution use these kernels; each is made when it is first needed."""
    for op in OPERATIONS.values():
        if _is_open(op):
            _set(op, functools.partial(_first_use, op))
    for name, make in (("matmul", _matmul), ("astype", _astype)):
        op = OPERATIONS[name]
        _set(op, functools.partial(_first_use_of, op, make, op.eager))


def _set(op: OpDef, kernel: Kernel) -> None:
    object.__setattr__(op, "eager", kernel)


@functools.cache
def native() -> bool:
    """Whether there is LLVM."""
    from dilim.runtime.machine import machine

    return machine() is not None


# --- elementwise operations -----------------------------------------------------------------


def _is_open(op: OpDef) -> bool:
    """Whether NumPy's bits are its own for this elementwise operation on floats."""
    if op.name in ("astype", "full") or op.variadic or op.recipe is None:
        return False
    recipe = scalar_recipe(op, dtypes.float32)
    if recipe is None:
        return False
    parts = postorder([recipe.body])
    return any(
        part.op in _OPEN or (part.op not in _EXACT and has_expansion(part)) for part in parts
    )


def scalar_recipe(op: OpDef, dtype: DType) -> Map | None:
    """The recipe for numbers of one dtype, if the operation is elementwise."""
    kinds = [Type((), dtype)] * max(len(op.derivative), 1)
    if op.recipe is None:
        return None
    try:
        op.infer(*kinds)
        recipe = op.recipe(*kinds)
    except (TypeError, ValueError, LookupError):
        return None
    plain = isinstance(recipe, Map) and all(
        part.op not in ("index", "check") for part in postorder([recipe.body])
    )
    return recipe if plain and isinstance(recipe, Map) else None


def _first_use(op: OpDef, *arrays: np.ndarray, **params: Any) -> np.ndarray:
    kernel = _elementwise(op) if native() else _interpreted(op)
    _set(op, kernel)
    result: np.ndarray = kernel(*arrays, **params)
    return result


def _interpreted(op: OpDef) -> Kernel:
    return lambda *arrays, **params: by_recipe(op, arrays, params)


def _elementwise(op: OpDef) -> Kernel:
    before = op.kernel or op.reference
    ufunc = elementwise_ufunc(op)
    if dtypes.INTEGER[0] not in op.sample_dtypes:
        return ufunc

    def kernel(*arrays: np.ndarray) -> np.ndarray:
        floats = all(array.dtype.kind == "f" for array in arrays)
        result: np.ndarray = (ufunc if floats else before)(*arrays)
        return result

    return kernel


def elementwise_ufunc(op: OpDef) -> np.ufunc:
    """A ufunc with a loop for float32 and one for float64."""
    loops: list[_Loop] = []
    for dtype in dtypes.FLOATING:
        recipe = scalar_recipe(op, dtype)
        if recipe is None:
            raise RuntimeError(f"{op.name}: no recipe for numbers of {dtype.name}")
        inputs = (dtype,) * max(len(op.derivative), 1)
        name = f"{op.name}_{dtype.name}"
        write = functools.partial(_write_elementwise, name, recipe, inputs)
        loops.append((name, write, (*inputs, recipe.body.dtype)))
    return _new_ufunc(op.name, op.doc, loops)


def _write_elementwise(name: str, recipe: Map, inputs: Sequence[DType]) -> str:
    from dilim.backends.llvm import binding  # much code, and not needed where it is in the cache
    from dilim.backends.llvm.library import write_elementwise

    return write_elementwise(name, recipe, inputs, binding.host_target().vector_bytes)


def _first_use_of(
    op: OpDef, make: Callable[[OpDef, Kernel], Kernel], before: Kernel, *arrays: Any, **params: Any
) -> np.ndarray:
    kernel = make(op, before) if native() else _interpreted(op)
    _set(op, kernel)
    result: np.ndarray = kernel(*arrays, **params)
    return result


# --- conversions ----------------------------------------------------------------------------


def _astype(op: OpDef, before: Kernel) -> Kernel:
    """Numbers beyond the range of an integer dtype go to its ends, NaN to 0."""
    ufuncs: dict[DType, np.ufunc] = {}

    def kernel(x: np.ndarray, *, dtype: DType) -> np.ndarray:
        if x.dtype.kind != "f" or dtype not in dtypes.INTEGER:
            return before(x, dtype=dtype)
        if dtype not in ufuncs:
            ufuncs[dtype] = _conversion(op, dtype)
        result: np.ndarray = ufuncs[dtype](x)
        return result

    return kernel


def _conversion(op: OpDef, target: DType) -> np.ufunc:
    loops: list[_Loop] = []
    for dtype in dtypes.FLOATING:
        recipe: Any = op.recipe(Type((), dtype), dtype=target) if op.recipe else None
        name = f"{dtype.name}_to_{target.name}"
        write = functools.partial(_write_elementwise, name, recipe, [dtype])
        loops.append((name, write, (dtype, target)))
    return _new_ufunc(f"to_{target.name}", op.doc, loops)


# --- matrix products ------------------------------------------------------------------------

_AREAS: Final = 8
"""Products that can be computed at the same time; others wait."""


def _matmul(op: OpDef, before: Kernel) -> Kernel:
    """Sums of products with k ascending; integers are exact in any order."""
    ufunc = product_ufunc()

    def kernel(x: np.ndarray, y: np.ndarray) -> np.ndarray:
        result: np.ndarray
        if x.dtype.kind == "f" and x.dtype == y.dtype:
            result = ufunc(x, y)
        elif x.dtype.kind == "f" or y.dtype.kind == "f":
            dtype = np.result_type(x, y)
            result = ufunc(x.astype(dtype), y.astype(dtype))
        else:
            result = before(x, y)
        return result

    return kernel


def product_ufunc() -> np.ufunc:
    """A generalized ufunc for matrix products of float32 and float64."""
    from dilim.backends.llvm.library_sizes import AREAS_WORD, SCRATCH_BYTES
    from dilim.runtime import threads

    count = threads.usable_cores()
    stride = SCRATCH_BYTES * count
    memory = np.empty(_AREAS * stride + 64, np.uint8)
    start = memory.ctypes.data + (-memory.ctypes.data % 64)
    words = np.zeros(AREAS_WORD + 2 * _AREAS, np.int64)
    words[:AREAS_WORD] = threads.native_pool(), count, _AREAS
    words[AREAS_WORD + 1 :: 2] = start + stride * np.arange(_AREAS)
    if hasattr(os, "register_at_fork"):  # the threads that held areas are not in the child

        def release() -> None:
            words[AREAS_WORD::2] = 0

        os.register_at_fork(after_in_child=release)
    loops: list[_Loop] = []
    for dtype in dtypes.FLOATING:
        name = f"matmul_{dtype.name}"
        loops.append((name, functools.partial(_write_product, name, dtype), (dtype,) * 3))
    return _new_ufunc(
        "matmul",
        OPERATIONS["matmul"].doc,
        loops,
        signature="(m,k),(k,n)->(m,n)",
        data=words,
        symbols=threads.symbols(),
        keep=(memory,),
    )


def _write_product(name: str, dtype: DType) -> str:
    from dilim.backends.llvm import binding
    from dilim.backends.llvm.library import write_product

    return write_product(name, dtype, binding.host_target().vector_bytes)


# --- NumPy ----------------------------------------------------------------------------------

_alive: list[Any] = []
"""What ufuncs refer to; they are never freed."""


def _new_ufunc(
    name: str,
    doc: str,
    loops: Sequence[_Loop],
    signature: str | None = None,
    data: np.ndarray | None = None,
    symbols: dict[str, int] | None = None,
    keep: tuple[Any, ...] = (),
) -> np.ufunc:
    from dilim.backends.llvm import binding
    from dilim.runtime.build import cached_object_of

    objects = [cached_object_of(f"loop {function}", write) for function, write, _ in loops]
    library = binding.link(objects, symbols) if symbols else binding.add(objects)
    addresses = [library.address(function) for function, _, _ in loops]
    functions = (ctypes.c_void_p * len(loops))(*addresses)
    given = None if data is None else data.ctypes.data
    datas = (ctypes.c_void_p * len(loops))(*[given] * len(loops))
    codes = bytes(np.dtype(kind.numpy).num for _, _, kinds in loops for kind in kinds)
    kinds = ctypes.create_string_buffer(codes)
    texts = ctypes.create_string_buffer(name.encode()), ctypes.create_string_buffer(doc.encode())
    inputs = len(loops[0][2]) - 1
    numbers = (len(loops), inputs, 1, _NO_IDENTITY)
    plain = [ctypes.c_void_p] * 3 + [ctypes.c_int] * 4 + [ctypes.c_void_p] * 2 + [ctypes.c_int]
    position = _NEW_UFUNC if signature is None else _NEW_GENERALIZED
    extra = [] if signature is None else [ctypes.create_string_buffer(signature.encode())]
    make = ctypes.PYFUNCTYPE(ctypes.py_object, *plain, *[ctypes.c_void_p] * len(extra))(
        _numpy_table()[position]
    )
    _alive.append((library, functions, datas, kinds, texts, data, keep, extra))
    at = ctypes.addressof
    first, last = (at(functions), at(datas), at(kinds)), [at(text) for text in extra]
    result: np.ufunc = make(*first, *numbers, at(texts[0]), at(texts[1]), 0, *last)
    return result


@functools.cache
def _numpy_table() -> Any:
    module: Any = importlib.import_module("numpy._core._multiarray_umath")
    capsule = module._UFUNC_API
    get = ctypes.pythonapi["PyCapsule_GetPointer"]
    get.restype, get.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    return ctypes.cast(get(capsule, None), ctypes.POINTER(ctypes.c_void_p))
