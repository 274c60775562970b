"""What a channel point of a native program costs, its handler in Python included, in microseconds.

``send``, ``send32`` and ``receive`` are loops of 1,000 turns with one point each, timed per turn:
a number that the handler reads, 32 numbers that it copies, a number that it sets. ``without`` is
the same loop with no point. ``call`` is a run of a program with 10 inputs and no point; there
``without`` is its bare code, called with one pointer. ``plain`` has no fast calls: it serves
points in Python, as on interpreters other than CPython with a GIL.

    python benchmarks/channel_points.py [--quick] [--cases send,call] [--out FILE]
"""

from __future__ import annotations

from typing import Any

import numpy as np
from harness import Job, Peer, main

PEERS = [Peer(name) for name in ("without", "session", "plain")]
TURNS = 1000
TITLES = {
    "send": "one number, read by the handler",
    "send32": "32 numbers, copied by the handler",
    "receive": "one number, set by the handler",
    "call": "10 inputs, no point",
}
SEND = "send[channel='{}'](%{})\n    %b: float32[] = add(%a, %one)"
POINTS = {
    "send": SEND.format("number", "a"),
    "send32": SEND.format("vector", "x"),
    "receive": "%r: float32[] = receive[channel='set']()\n    %b: float32[] = add(%a, %r)",
    "without": "%b: float32[] = add(%a, %one)",
}
LOOP = """graph(%x: float32[32], %n: int64[], %start: float32[], %one: float32[]) {
  %end: float32[] = loop(%n, %start) (%i: int64[], %a: float32[]) {
    BODY
    yield %b
  }
  return %end
}"""
NUMBERS = [np.array(value, np.float32) for value in (0, 1)]
INPUTS = [np.arange(32, dtype=np.float32), np.array(TURNS), *NUMBERS]
TEN = ", ".join(f"%x{i}: float32[4]" for i in range(10))
CALL = f"graph({TEN}) {{\n  %y: float32[4] = add(%x0, %x9)\n  return %y\n}}"
VECTORS = [np.full(4, i, np.float32) for i in range(10)]


def number(views: Any) -> None:
    views[0].item()


def vector(views: Any) -> None:
    views[0].copy()


def set_to_one(views: Any) -> None:
    views[0][()] = 1.0


HANDLERS = {"number": number, "vector": vector, "set": set_to_one}


def job(peer: str, case: str) -> Job:
    """The check is the result: a count of the turns, or the sum of two of the inputs."""
    from dilim.ir.text import from_text
    from dilim.runtime import sessions
    from dilim.runtime.programs import compile_graph

    if peer == "plain":
        sessions.fast_calls = lambda: False
    if case == "call":
        text, inputs, unit = CALL, VECTORS, 1
    else:
        body = POINTS["without" if peer == "without" else case]
        text, inputs, unit = LOOP.replace("BODY", body), INPUTS, TURNS
    program = compile_graph(from_text(text))
    session = sessions.Session(program, HANDLERS)
    check = [float(session.run(inputs, ())[0].sum())]
    if (peer, case) == ("without", "call"):
        out = np.empty(4, np.float32)
        activation = program.native.activation()
        activation.begin([array.ctypes.data for array in (*inputs, out)])
        kept = activation, out
        arguments = [(activation.address,)]
        return Job(program.native.call, check, arguments=arguments, finish=lambda: kept)
    return Job(session.run, check, arguments=[(inputs, ())], unit=unit)


def right(case: str) -> list[float]:
    return [36.0 if case == "call" else float(TURNS)]


if __name__ == "__main__":
    main(__file__, __doc__, PEERS, list(TITLES), job, right)
