"""What one call from Python into machine code costs, in nanoseconds.

The program adds two vectors of four numbers. ``builtin`` and ``ctypes`` call its bare code with
one pointer; ``public`` is the compiled function, which looks at its arguments and makes a tensor
for the result; ``nothing`` is a call of a Python function that does nothing.

    python benchmarks/call_cost.py [--quick] [--out FILE]
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import numpy as np
from harness import Job, Peer, main

PEERS = [Peer(name) for name in ("nothing", "builtin", "ctypes", "public")]
INPUT = np.arange(4, dtype=np.float32)


def compiled() -> Any:
    import dilim

    return dilim.Graph.from_function(lambda x, y: x + y, INPUT, INPUT).compile()


def nothing(_: int) -> None:
    return None


def job(peer: str, _: str) -> Job:
    """Calls with the very same argument; the check is the sum that the program gives."""
    if peer == "nothing":
        return Job(nothing, [float(INPUT.sum() * 2)], arguments=[(0,)])
    function = compiled()
    right = [float(function(INPUT, INPUT).numpy().sum())]
    if peer == "public":
        return Job(function, right, arguments=[(INPUT, INPUT)])
    native = function.program.native
    activation = native.activation()
    out = np.empty_like(INPUT)
    activation.begin([INPUT.ctypes.data, INPUT.ctypes.data, out.ctypes.data])
    activation.grant(1)
    call: Callable[..., Any] = native.call
    if peer == "ctypes":
        call = ctypes.PYFUNCTYPE(ctypes.c_int32, ctypes.c_size_t)(native.entry)
    call(activation.address)
    kept = native, activation, out
    check = (float(array.sum()) for array in [kept[-1]])
    return Job(call, check, arguments=[(activation.address,)], finish=lambda: kept)


if __name__ == "__main__":
    main(__file__, __doc__, PEERS, ["add"], job, lambda _: [float(INPUT.sum() * 2)])
