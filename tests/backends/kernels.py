"""Runs kernels on arrays, and regions by the interpreter, for the tests of the LLVM back end."""

import ctypes
import functools

import numpy as np

from dilim import dtypes
from dilim.backends.llvm.binding import as_target, emit_object, link
from dilim.backends.llvm.kernel import KernelOptions, write_kernel
from dilim.backends.reference.nests import interpret_form
from dilim.ir.graph import GraphBuilder
from dilim.ir.types import Type
from dilim.ops.nest import compose
from dilim.ops.table import OPERATIONS

TARGETS = {16: "x86-64", 32: "x86-64-v3", 64: "x86-64-v4"}


class Region:
    """Builds the region of a fused node from calls like ``region.exp(x)``."""

    def __init__(self):
        self.builder = GraphBuilder()
        self.arrays = []

    def input(self, array):
        self.arrays.append(np.ascontiguousarray(array).reshape(array.shape))
        return self.builder.input(type_of(array))

    def __getattr__(self, name):
        def apply(*values, **params):
            result = Type(*OPERATIONS[name].infer(*values, **params))
            return self.builder.add(name, values, params, result)

        return apply


def type_of(array):
    return Type(array.shape, dtypes.from_numpy(array.dtype))


def usable(vector_bytes):
    """The target for vectors of this size, or None where this machine has none."""
    try:
        return as_target(TARGETS[vector_bytes])
    except Exception:
        return None


@functools.lru_cache(maxsize=2000)
def machine_code(text, target):
    return link([emit_object(text, target)])


def guarded(array):
    """A copy between two pages of a pattern; the whole buffer and the view."""
    raw = np.full(array.nbytes + 256, 0xA5, np.uint8)
    view = raw[128 : 128 + array.nbytes].view(array.dtype).reshape(array.shape)
    view[...] = array
    return raw, view


def run_kernel(form, arrays, results, vector_bytes=64, numerics="strict", aliases=None):
    """The results of a kernel, its status and the value that failed."""
    aliases = aliases or {}
    types = [type_of(array) for array in arrays]
    options = KernelOptions(vector_bytes=vector_bytes, numerics=numerics)
    kernel = write_kernel("k", form, types, results, aliases, options)
    target = usable(vector_bytes)
    library = machine_code(kernel.text, target)
    inputs = [guarded(array) for array in arrays]
    outputs = []
    for number, result in enumerate(results):
        if number in aliases:
            outputs.append(inputs[aliases[number]])
        else:
            outputs.append(guarded(np.zeros(result.shape, result.dtype.numpy)))
    pointers = [view.ctypes.data for _, view in (*inputs, *outputs)]
    table = (ctypes.c_void_p * max(len(pointers), 1))(*pointers)
    scratch = np.full(kernel.scratch_bytes + 256, 0x5A, np.uint8)
    aligned = -scratch.ctypes.data % 64
    call = ctypes.CFUNCTYPE(
        ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
    )(library.address("k"))
    for chunk in range(kernel.chunks):
        status = call(table, chunk, chunk + 1, scratch.ctypes.data + aligned)
        if status:
            return status, int(scratch[aligned : aligned + 8].view(np.int64)[0])
    assert np.all(scratch[aligned + kernel.scratch_bytes :] == 0x5A)
    for (raw, view), array in zip(inputs, arrays, strict=True):
        assert np.all(raw[:128] == 0xA5)
        assert np.all(raw[128 + view.nbytes :] == 0xA5)
        if view.ctypes.data not in pointers[len(inputs) :]:
            np.testing.assert_array_equal(
                view.view(np.uint8), array.view(np.uint8)
            ) if array.ndim else None
    for raw, view in outputs:
        assert np.all(raw[:128] == 0xA5)
        assert np.all(raw[128 + view.nbytes :] == 0xA5)
    return [view for _, view in outputs]


def check_region(region, outputs, vector_bytes=64, aliases=None):
    """Compare the kernel of a region with the interpreter on the nest; the form."""
    graph = region.builder.build_region(outputs)
    form = compose(graph, OPERATIONS)
    results = [value.type for value in outputs]
    want = interpret_form(form, region.arrays, results)
    got = run_kernel(form, region.arrays, results, vector_bytes, aliases=aliases)
    for a, b in zip(got, want, strict=True):
        assert_same(a, b)
    return form


def assert_same(got, want):
    """Equal as integers; NaNs are equal whatever their payload."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if got.dtype.kind == "f":
        nan = np.isnan(want)
        np.testing.assert_array_equal(np.isnan(got), nan)
        unsigned = f"u{got.dtype.itemsize}"
        np.testing.assert_array_equal(got[~nan].view(unsigned), want[~nan].view(unsigned))
    else:
        np.testing.assert_array_equal(got, want)
