"""Runs the native kernel of one loop form on arrays."""

import ctypes
import itertools

import numpy as np

from dilim.backends.llvm import binding
from dilim.backends.llvm.forms import write_form
from dilim.backends.llvm.kernel import function_text


class KernelFailed(Exception):
    """A check failed."""

    def __init__(self, number, value):
        super().__init__(number, value)
        self.number = number
        self.value = value


class NativeForm:
    """A compiled form; called with arrays it gives the result.

    ``base`` is the number of the input in whose memory the result lies.
    """

    def __init__(self, form, types, result, *, base=None, target=None):
        self.target = binding.as_target(target)
        self.form = write_form(form, types, self.target.vector_bytes, base is not None)
        names = [*(f"%a{number}" for number in range(len(types))), "%r0"]
        self.text = function_text("kernel", self.form.code, names)
        self._library = binding.link([binding.emit_object(self.text, self.target)])
        kinds = [ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64, ctypes.c_void_p]
        self.call = ctypes.CFUNCTYPE(ctypes.c_int32, *kinds)(self._library.address("kernel"))
        self._result, self._base = result, base

    def __call__(self, *arrays, pieces=1):
        out = np.full(self._result.shape, 77, self._result.dtype.numpy)
        if self._base is not None:
            out = arrays[self._base]
        pointers = [x.ctypes.data for x in (*arrays, out)]
        table = (ctypes.c_void_p * len(pointers))(*pointers)
        size, guard = self.form.scratch_bytes, 64
        scratch = np.full(size + 64 + guard, 0xAB, np.uint8)
        start = -scratch.ctypes.data % 64
        chunks = self.form.chunks
        borders = sorted({chunks * i // pieces for i in range(pieces + 1)})
        for begin, end in itertools.pairwise(borders):
            status = self.call(table, begin, end, scratch.ctypes.data + start)
            assert np.all(scratch[start + size : start + size + guard - 1] == 0xAB)
            if status:
                raise KernelFailed(status - 1, int(scratch[start : start + 8].view(np.int64)[0]))
        return out
