"""Elementwise functions: our compiled expansions beside NumPy's own loops, on one thread.

    python benchmarks/vector_math.py                     # every function with an expansion
    python benchmarks/vector_math.py exp tanh --target x86-64-v3

Each function is compiled as one kernel and called on arrays of 4,096 normally distributed numbers
that begin at a multiple of 64 bytes, in turns with NumPy's function writing into a given array.
Each row has the medians in nanoseconds per element and the operations per element.
NumPy has no `erf` and `sigmoid`; for the latter the usual formula is timed.
"""

from __future__ import annotations

import argparse
import ctypes
import statistics
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
from harness import Row, writer

from dilim import dtypes
from dilim.backends.llvm.binding import as_target, emit_object, link
from dilim.backends.llvm.kernel import KernelOptions, write_kernel
from dilim.dtypes import DType
from dilim.ir.types import Type
from dilim.ops.expansions import EXPANSIONS, expanded
from dilim.ops.nest import Nest
from dilim.ops.primitives import PRIMITIVES, Expr, load, loop_index, prim
from dilim.ops.recipe import Map
from dilim.ops.special import sigmoid

COUNT = 4096
CALLS = 40
WITHOUT_PEER = ("erf",)
OUTSIDE_OF_UFUNCS = {"sigmoid": sigmoid}
POSITIVE = ("log", "log1p", "pow")
LEAVES = ("constant", "load", "index", "bitcast")
Run = Callable[[], object]


def expression(name: str, dtype: DType) -> Expr:
    inputs = (load(number, dtype, loop_index(0)) for number in range(PRIMITIVES[name].arity))
    return prim(name, *inputs)


def operations(name: str, dtype: DType) -> int:
    """Operations per element, the bare reading of bits as another dtype not counted."""
    found: set[Expr] = set()
    waiting = [expanded(Map((COUNT,), expression(name, dtype))).body]
    while waiting:
        part = waiting.pop()
        if part not in found:
            found.add(part)
            waiting += part.args
    return sum(part.op not in LEAVES for part in found)


def aligned(values: np.ndarray) -> np.ndarray:
    room = np.empty(values.nbytes + 64, np.uint8)
    start = -room.ctypes.data % 64
    view = room[start : start + values.nbytes].view(values.dtype)
    view[...] = values
    return view


def arguments(name: str, dtype: DType) -> list[np.ndarray]:
    rng = np.random.default_rng(0)
    arrays = [rng.normal(size=COUNT) for _ in range(PRIMITIVES[name].arity)]
    if name in POSITIVE:
        arrays[0] = np.abs(arrays[0]) + 0.01
    return [aligned(x.astype(dtype.numpy)) for x in arrays]


def ours(name: str, dtype: DType, target_name: str, arrays: list[np.ndarray]) -> Run:
    """A call of the kernel; the pointers are made once."""
    target = as_target(target_name)
    vector = Type((COUNT,), dtype)
    options = KernelOptions(vector_bytes=target.vector_bytes)
    nest = Nest((COUNT,), (), (expression(name, dtype),))
    kernel = write_kernel("kernel", nest, [vector] * len(arrays), [vector], options=options)
    library = link([emit_object(kernel.text, target)])
    prototype = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
    )
    call = prototype(library.address("kernel"))
    out, scratch = aligned(np.empty_like(arrays[0])), aligned(np.zeros(kernel.scratch_bytes + 64))
    pointers = [x.ctypes.data for x in (*arrays, out)]
    table = (ctypes.c_void_p * len(pointers))(*pointers)
    kept = library, out, scratch
    where = ctypes.c_void_p(scratch.ctypes.data)

    def run(kept: object = kept) -> object:
        return call(table, 0, kernel.chunks, where)

    return run


def theirs(name: str, arrays: list[np.ndarray]) -> Run | None:
    if name in WITHOUT_PEER:
        return None
    if name in OUTSIDE_OF_UFUNCS:
        return lambda: OUTSIDE_OF_UFUNCS[name](*arrays)
    out = aligned(np.empty_like(arrays[0]))
    return lambda: PRIMITIVES[name].compute(*arrays, out=out)


def nanoseconds(runs: list[Run], rounds: int) -> list[float]:
    """Medians per element; the runs take turns."""
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds):
        for run, found in zip(runs, times, strict=True):
            start = time.perf_counter_ns()
            for _ in range(CALLS):
                run()
            found.append((time.perf_counter_ns() - start) / CALLS / COUNT)
    return [statistics.median(found) for found in times]


def measured(name: str, dtype: DType, target: str, rounds: int) -> Row:
    """One function at one dtype."""
    arrays = arguments(name, dtype)
    peer = theirs(name, arrays)
    runs = [ours(name, dtype, target, arrays), *([peer] if peer else [])]
    found = dict(zip(("dilim_ns", "numpy_ns"), nanoseconds(runs, rounds), strict=False))
    row = {"benchmark": "vector_math", "case": f"{name} {dtype.name}", "peer": "both"}
    row["operations"] = operations(name, dtype)
    return row | {key: round(value, 4) for key, value in found.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("names", nargs="*", metavar="FUNCTION", help="default: all of them")
    parser.add_argument("--target", default="host", help="processor to compile for")
    parser.add_argument("--rounds", type=int, default=31)
    parser.add_argument("--quick", action="store_true", help="few rounds")
    parser.add_argument("--out", type=Path, help="append the JSON lines to this file")
    options = parser.parse_args()
    emit = writer(options.out)
    rounds = 5 if options.quick else options.rounds
    for dtype in dtypes.FLOATING:
        for name in options.names or sorted(EXPANSIONS):
            emit(measured(name, dtype, options.target, rounds))


if __name__ == "__main__":
    main()
