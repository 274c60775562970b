"""Runs product kernels and the product function on arrays, for tests and benchmarks."""

import ctypes
import functools
import itertools
import mmap
from dataclasses import replace

import numpy as np

from dilim import dtypes
from dilim.backends.llvm.binding import as_target, emit_object, link
from dilim.backends.llvm.library_sizes import SCRATCH_BYTES
from dilim.backends.llvm.products import (
    Operand,
    Product,
    ProductOptions,
    StoreResult,
    write_product,
)
from dilim.backends.llvm.products_library import library_chunks, write_product_library
from dilim.errors import DeviceError

KERNEL = ctypes.CFUNCTYPE(
    ctypes.c_int32, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p
)
FUNCTION = ctypes.CFUNCTYPE(
    None, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 9, ctypes.c_void_p, *[ctypes.c_int64] * 2
)
MAPPINGS = []


def _options():
    """The targets that this machine can run, and the options for each."""
    found = {}
    for name in ("x86-64", "x86-64-v3", "x86-64-v4", "host"):
        try:
            found[name] = ProductOptions.of(as_target(name).vector_bytes)
        except DeviceError:
            continue
    return found


OPTIONS = _options()
TARGETS = tuple(OPTIONS)
FAST = replace(OPTIONS["host"], numerics="fast")


def aligned(shape, dtype):
    """An empty array that begins at a multiple of 64 bytes."""
    size = int(np.prod(shape)) * np.dtype(dtype).itemsize
    raw = np.full(size + 64, 0xA5, np.uint8)
    start = -raw.ctypes.data % 64
    return raw[start : start + size].view(dtype).reshape(shape)


@functools.lru_cache(maxsize=1000)
def compiled(text, target):
    return link([emit_object(text, as_target(target))])


def operand(argument, array):
    """An array with all its batch axes as a factor."""
    *batch, row, column = (stride // array.itemsize for stride in array.strides)
    return Operand(argument, row, column, tuple(batch))


def kernel_code(a, b, options=None, epilogue=None, arguments=("%a0", "%a1", "%a2"), name="k"):
    """The kernel of ``a @ b``; without an epilogue into a new C-contiguous array in ``%a2``."""
    options = options or OPTIONS["host"]
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    a, b = (np.broadcast_to(x, (*batch, *x.shape[-2:])) for x in (a, b))
    (m, k), n = a.shape[-2:], b.shape[-1]
    dtype = dtypes.from_numpy(a.dtype)
    product = Product(batch, m, n, k, dtype, operand("%a0", a), operand("%a1", b))
    if epilogue is None:
        strides = [m * n * int(np.prod(batch[axis + 1 :])) for axis in range(len(batch))]
        epilogue = StoreResult("%a2", dtype, strides, n)
    return write_product(name, product, epilogue, arguments, options)


class Kernel:
    """A kernel ready to be called on the memory it was made for."""

    def __init__(self, code, *arrays, target="host"):
        self.code = code
        self._library = compiled(code.text, target)
        self._call = KERNEL(self._library.address(code.name))
        self._arrays = arrays
        self.address = self._library.address(code.name)
        self.pointers = (ctypes.c_void_p * len(arrays))(*(x.ctypes.data for x in arrays))

    def scratch(self):
        """Memory for one participant; full of NaN, so that reading before writing shows."""
        return aligned((self.code.scratch_bytes or 64,), np.uint8)

    def __call__(self, begin=0, end=None):
        scratch = self.scratch()
        scratch[:] = 0xFF
        end = self.code.chunks if end is None else end
        assert self._call(self.pointers, begin, end, scratch.ctypes.data) == 0


def run_product(a, b, options=None, target="host", cuts=()):
    """``a @ b`` by a kernel, computed in the chunks between ``cuts`` (fractions)."""
    code = kernel_code(a, b, options or OPTIONS[target])
    batch = np.broadcast_shapes(a.shape[:-2], b.shape[:-2])
    raw = np.full(int(np.prod(batch)) * a.shape[-2] * b.shape[-1] + 64, 77, a.dtype)
    result = raw[32:-32].reshape(*batch, a.shape[-2], b.shape[-1])
    kernel = Kernel(code, a, b, result, target=target)
    for begin, end in pieces(code.chunks, cuts):
        kernel(begin, end)
    assert (raw[:32] == 77).all()
    assert (raw[-32:] == 77).all()
    return result


def pieces(chunks, cuts):
    """``[0, chunks)`` in pieces, the last one first."""
    ends = sorted({0, chunks, *(int(cut * chunks) for cut in cuts)})
    return list(itertools.pairwise(ends))[::-1]


class Function:
    """The product function for one dtype, with its scratch memory."""

    def __init__(self, dtype, options=None, target="host"):
        options = options or OPTIONS[target]
        text = write_product_library("product", dtypes.from_numpy(np.dtype(dtype)), options)
        self._library = compiled(text, target)
        self._call = FUNCTION(self._library.address("product"))
        self._scratch = aligned((SCRATCH_BYTES,), np.uint8)

    def __call__(self, a, b, c, cuts=()):
        self._scratch[:] = 0xFF
        for begin, end in pieces(library_chunks(a.shape[0]), cuts):
            self.bound(a, b, c, begin, end)()

    def bound(self, a, b, c, begin=0, end=1 << 40):
        """A function without parameters that computes ``c = a @ b``, for benchmarks."""
        pointers = (a.ctypes.data, b.ctypes.data, c.ctypes.data)
        numbers = (a.shape[0], b.shape[1], a.shape[1], *a.strides, *b.strides, *c.strides)
        scratch = self._scratch.ctypes.data
        return functools.partial(self._call, *pointers, *numbers, scratch, begin, end)


def at_an_edge(array, end):
    """A copy whose first byte follows memory that cannot be read, or whose last one precedes it.

    The mapping lives as long as the process.
    """
    page = mmap.PAGESIZE
    size = -(-array.nbytes // page) * page
    memory = mmap.mmap(-1, size + 2 * page)
    MAPPINGS.append(memory)
    whole = np.frombuffer(memory, np.uint8)
    protect = ctypes.CDLL(None, use_errno=True).mprotect
    protect.argtypes = (ctypes.c_void_p, ctypes.c_size_t, ctypes.c_int)
    for start in (0, size + page):
        assert protect(whole.ctypes.data + start, page, 0) == 0
    start = page + (size - array.nbytes if end else 0)
    copy = whole[start : start + array.nbytes].view(array.dtype).reshape(array.shape)
    copy[...] = array
    return copy
