"""A second device for tests: its own memory, handles that are no arrays, and counters."""

import math

import numpy as np

from dilim.runtime.devices import quiet


class Buffer:
    def __init__(self, flat):
        self.flat = flat


class Handle:
    """A strided window on a buffer; strides and offset count elements."""

    def __init__(self, buffer, shape, strides, offset):
        self.buffer, self.shape, self.strides, self.offset = buffer, shape, strides, offset

    def array(self):
        flat = self.buffer.flat[self.offset :]
        steps = tuple(s * flat.itemsize for s in self.strides)
        return np.lib.stride_tricks.as_strided(flat, self.shape, steps)


class MemoryDevice:
    """Does what an accelerator does, in host memory that nobody else may touch."""

    def __init__(self, name="memory"):
        self.name = name
        self.uploads = self.downloads = self.executed = 0

    def upload(self, flat):
        self.uploads += 1
        return Buffer(np.array(flat))

    def download(self, buffer):
        self.downloads += 1
        return np.array(buffer.flat)

    def view(self, buffer, shape, strides, offset):
        return Handle(buffer, shape, strides, offset)

    def execute(self, op, operands, params):
        self.executed += 1
        arrays = [x.array() if isinstance(x, Handle) else x for x in operands]
        out = np.asarray(quiet.run(op.reference, *arrays, **params))
        source = operands[0] if operands else None
        if op.is_view and np.may_share_memory(out, arrays[0]):
            base = source.buffer.flat
            offset = (out.ctypes.data - base.ctypes.data) // out.itemsize
            return Handle(source.buffer, out.shape, _steps(out), offset)
        flat = np.array(out, order="C").reshape(-1)
        return Handle(Buffer(flat), out.shape, _row_major(out.shape), 0)

    def write(self, target, source):
        target.array()[...] = source.array()


def _steps(array):
    return tuple(s // array.itemsize for s in array.strides)


def _row_major(shape):
    return tuple(math.prod(shape[axis + 1 :]) for axis in range(len(shape)))
