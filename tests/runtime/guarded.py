"""Runs random programs in memory that ends at a forbidden page: a script, so that it may crash.

    python guarded.py COUNT [shift]

Every buffer (inputs, results, variables, the activation) lies at the end of its own pages, with a
page behind it that may neither be read nor written; the activation is full of ones before each run.
With ``shift`` every second input is given eight bytes too short, which has to crash.
"""

import ctypes
import mmap
import sys

import numpy as np
from hypothesis import HealthCheck, Phase, given, settings

from dilim.backends.reference.executor import by_recipe
from dilim.ops.table import OPERATIONS
from dilim.runtime.programs import Activation, address_of, compile_graph
from ir.programs import Run, programs, same_run

KNOWN = [name for name, operation in OPERATIONS.items() if operation.recipe is not None]
PAGE = mmap.PAGESIZE
libc = ctypes.CDLL(None, use_errno=True)


class Guarded:
    """Memory that ends, or begins, at a forbidden page."""

    def __init__(self, size, alignment=1):
        size = -(-size // alignment) * alignment
        pages = -(-size // PAGE) * PAGE
        self._map = mmap.mmap(-1, pages + PAGE)
        whole = np.frombuffer(self._map, np.uint8)
        start = address_of(whole)
        if libc.mprotect(ctypes.c_void_p(start + pages), PAGE, 0):
            raise OSError(ctypes.get_errno(), "mprotect")
        self.bytes = whole[pages - size : pages]

    def like(self, array):
        view = self.bytes[: array.nbytes].view(array.dtype).reshape(array.shape)
        view[...] = array
        return view


def guarded(array, keep):
    memory = Guarded(array.nbytes)
    keep.append(memory)
    return memory.like(np.array(array, order="C"))


class GuardedActivation(Activation):
    __slots__ = ("keep",)

    def __init__(self, native):
        super().__init__(native.built.size, native.slots, native._pool)
        self.keep = Guarded(len(self.memory), 64)
        self.keep.bytes[:] = 255
        for name in ("memory", "slots", "_budget", "_failed"):
            part = getattr(self, name)
            offset = address_of(part) - self.address
            moved = self.keep.bytes[offset : offset + part.nbytes].view(part.dtype)
            moved[:] = part if name != "memory" else 255
            setattr(self, name, moved)
        self.address = address_of(self.memory)
        self.memory[32:40].view(np.uint64)[0] = native._pool


def run(program, shift):
    keep = []
    native = compile_graph(program.graph).native
    inputs = [guarded(np.asarray(x), keep) for x in program.inputs]
    if shift:
        inputs = [x for x in inputs if x.size]
        inputs = [x.ravel()[2:] if k % 2 == 0 else x for k, x in enumerate(inputs)]
    variables = [guarded(np.array(x), keep) for x in program.variables]
    results = [np.empty(v.shape, v.dtype.numpy) for v in program.graph.outputs]
    outputs = [guarded(x, keep) for x in results]
    activation, host, error = GuardedActivation(native), program.host(), None
    activation.begin([address_of(x) for x in (*inputs, *outputs, *variables)])
    try:
        native.resume(activation, host)
    except Exception as caught:
        error = caught
    copies = [np.array(x) for x in outputs] if error is None else []
    return Run(copies, [np.array(x) for x in variables], host.sent, error)


def main(count, shift):
    @settings(
        max_examples=count,
        deadline=None,
        database=None,
        derandomize=True,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    @given(programs(operations=KNOWN, errors=not shift))
    def check(program):
        got = run(program, shift)
        if not shift:
            same_run(got, program.run(by_recipe))

    check()


if __name__ == "__main__":
    main(int(sys.argv[1]), "shift" in sys.argv)
