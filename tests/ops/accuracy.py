"""What the tests of expansions share: arguments, the two ways to run them, errors in mpmath."""

import ctypes
import functools

import numpy as np
import pytest

from dilim import dtypes
from dilim.backends.llvm.binding import emit_object, host_target, link
from dilim.backends.llvm.kernel import KernelOptions, write_kernel
from dilim.backends.reference.interpreter import interpret
from dilim.ir.types import Type
from dilim.ops.expansions import expanded
from dilim.ops.nest import Nest
from dilim.ops.primitives import PRIMITIVES, load, loop_index, prim
from dilim.ops.recipe import Map

mp = pytest.importorskip("mpmath").mp
FLOATS = ("float32", "float64")


def expression(name, dtype):
    inputs = [load(number, dtype, loop_index(0)) for number in range(PRIMITIVES[name].arity)]
    return prim(name, *inputs)


def own(name, *arrays):
    """The expansion as the interpreter runs it."""
    body = expression(name, dtypes.from_numpy(arrays[0].dtype))
    return interpret(expanded(Map(arrays[0].shape, body)), arrays)


@functools.cache
def _library(name, dtype, size, vector_bytes):
    vector = Type((size,), dtype)
    count = PRIMITIVES[name].arity
    nest = Nest((size,), (), (expression(name, dtype),))
    options = KernelOptions(vector_bytes=vector_bytes)
    kernel = write_kernel("kernel", nest, [vector] * count, [vector], options=options)
    return kernel, link([emit_object(kernel.text, host_target())])


def native(name, *arrays, vector_bytes=64):
    """The expansion as machine code."""
    dtype = dtypes.from_numpy(arrays[0].dtype)
    kernel, library = _library(name, dtype, arrays[0].size, vector_bytes)
    words = ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
    call = ctypes.CFUNCTYPE(ctypes.c_int32, *words)(library.address("kernel"))
    out, scratch = np.empty_like(arrays[0]), np.zeros(kernel.scratch_bytes + 64, np.uint8)
    table = (ctypes.c_void_p * (len(arrays) + 1))(*(x.ctypes.data for x in (*arrays, out)))
    assert call(table, 0, kernel.chunks, scratch.ctypes.data) == 0
    return out


def assert_same_bits(got, want):
    """Equal as integers; NaNs are equal whatever their payload."""
    assert (got.shape, got.dtype) == (want.shape, want.dtype)
    if got.dtype.kind == "f":
        missing = np.isnan(want)
        np.testing.assert_array_equal(np.isnan(got), missing)
        unsigned = f"u{got.dtype.itemsize}"
        got, want = got[~missing].view(unsigned), want[~missing].view(unsigned)
    np.testing.assert_array_equal(got, want)


# --- arguments ------------------------------------------------------------------------------


def magnitudes(dtype, count, seed=0, low=None, high=None):
    """Both signs, every exponent (of 2, from low to high; by default all, denormal ones too)."""
    info, rng = np.finfo(dtype), np.random.default_rng(seed)
    low = info.minexp - info.nmant if low is None else low
    high = info.maxexp - 0.001 if high is None else high
    return (rng.choice([-1.0, 1.0], count) * 2.0 ** rng.uniform(low, high, count)).astype(dtype)


def special(dtype):
    """Zeros, infinities, NaN, the ends of the ranges, small numbers, large odd and even ones."""
    info = np.finfo(dtype)
    whole = 2.0**info.nmant
    x = [0, 0.5, 1, 1.5, 2, 3, np.inf, info.max, info.tiny, info.smallest_subnormal]
    x += [5 * info.smallest_subnormal, 1 + info.eps, 1 - info.epsneg, whole - 0.5, whole + 1]
    x = np.array([*x, 2 * whole, 4 * whole + 4]).astype(dtype)
    return np.concatenate([x, -x, np.array([np.nan], dtype)])


def pairs(x):
    """Every element with every one."""
    first, second = np.meshgrid(x, x)
    return first.ravel().copy(), second.ravel().copy()


def any_bits(dtype, count, seed=0):
    """Floats whose bits are random."""
    size = np.dtype(dtype).itemsize
    return np.frombuffer(np.random.default_rng(seed).bytes(size * count), dtype)


# --- errors ---------------------------------------------------------------------------------


def largest_error(got, function, *arrays, digits=1400):
    """In units in the last place, against ``function`` computed with so many binary digits.

    A result that should have overflowed or vanished and has not counts as infinitely wrong.
    """
    info = np.finfo(got.dtype)
    worst = 0.0
    with mp.workprec(digits):
        for result, *operands in zip(got.tolist(), *(x.tolist() for x in arrays), strict=True):
            want = function(*(mp.mpf(x) for x in operands))
            exponent = int(mp.floor(mp.log(abs(want), 2))) if want else info.minexp
            unit = mp.mpf(2) ** (max(exponent, int(info.minexp)) - info.nmant)
            beyond = abs(want) > mp.mpf(float(info.max)) + unit / 2
            if beyond or not np.isfinite(result):
                error = 0.0 if beyond and result == np.inf * int(mp.sign(want)) else np.inf
            else:
                error = float(abs(mp.mpf(result) - want) / unit)
            worst = max(worst, error)
    return worst
