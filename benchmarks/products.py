"""Matrix products: our kernels beside NumPy's BLAS, float32, on one and on two threads.

    python benchmarks/products.py                      # every size, about four minutes
    python benchmarks/products.py --quick --cases 1024x1024x1024,64x64x64.TN

A case is MxKxN, then the layout of both factors: N as they are, T transposed in memory. Peers:

- ``numpy``: ``numpy.dot`` with ``out=``, called from Python, which costs half a microsecond.
- ``strict`` and ``fast``: the kernel of that one size, as programs contain it, called in a loop of
  machine code. On two threads each computes half of the chunks.
- ``function``: the function for all sizes, with strict numbers, called through ctypes.

Printed at the end: GFLOP/s from the fastest batches, and the time for the smallest sizes.
"""

from __future__ import annotations

import ctypes
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import numpy as np
from harness import ONE_THREAD, TWO_THREADS, Job, Peer, Row, main

from dilim.backends.llvm.binding import as_target, emit_object, link

sys.path.insert(0, str(Path(__file__).parents[1] / "tests/backends"))
from product_runner import FAST, Function, Kernel, aligned, kernel_code

PEERS = [
    Peer(f"{name}_{threads}", ONE_THREAD if threads == 1 else TWO_THREADS)
    for threads in (1, 2)
    for name in ("numpy", "strict", "fast")
] + [Peer("function_1")]
SHAPES = (
    "1024x1024x1024", "2048x2048x2048", "256x1024x1024", "1024x256x1024", "512x512x512",
    "256x256x256", "128x128x128", "64x64x64", "128x784x256", "784x128x256", "128x256x128",
    "64x256x128", "64x128x256", "64x11x256", "64x128x3", "128x128x10", "128x10x128",
    "32x64x64", "32x4x64", "32x64x2", "64x32x2", "32x2x64", "97x101x103", "1x4x64", "1x64x64",
    "1x64x2", "32x64x1", "1x1024x1024",
)  # fmt: skip
TRANSPOSED = (
    "1024x1024x1024", "256x256x256", "256x128x784", "64x64x64", "64x32x64", "64x32x2", "128x784x256"
)  # fmt: skip
CASES = (*SHAPES, *(f"{shape}.{layout}" for shape in TRANSPOSED for layout in ("TN", "NT")))
BATCH_FLOPS = 2e8
REPEAT = """
define void @repeat(ptr %f, ptr %args, i64 %begin, i64 %end, ptr %scratch, i64 %times) {
entry:
  br label %turn
turn:
  %i = phi i64 [ 0, %entry ], [ %next, %turn ]
  %status = call i32 %f(ptr %args, i64 %begin, i64 %end, ptr %scratch)
  %next = add i64 %i, 1
  %more = icmp ult i64 %next, %times
  br i1 %more, label %turn, label %done
done:
  ret void
}
"""


def factors(case: str) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The arrays of a case, and one for the result."""
    shape, _, layout = case.partition(".")
    m, k, n = map(int, shape.split("x"))
    rng = np.random.default_rng(0)
    a = aligned((m, k) if layout[:1] != "T" else (k, m), np.float32)
    b = aligned((k, n) if layout[1:] != "T" else (n, k), np.float32)
    a[...], b[...] = rng.random(a.shape), rng.random(b.shape)
    a, b = a.T if layout[:1] == "T" else a, b.T if layout[1:] == "T" else b
    return a, b, aligned((m, n), np.float32)


def flops(case: str) -> float:
    m, k, n = map(int, case.partition(".")[0].split("x"))
    return 2.0 * m * k * n


def prepare(peer: str, case: str) -> Job:
    """What a peer does for a case: many products per step."""
    name, threads = peer.split("_")
    a, b, c = factors(case)
    # Long enough for the system to put two threads on two cores.
    wanted = BATCH_FLOPS * (1 if threads == "1" else 10)
    times = max(1, min(100_000, round(wanted / flops(case))))
    if name == "numpy":
        step = repeated(lambda: np.dot(a, b, out=c), times)
    elif name == "function":
        function = Function(np.float32)
        step = repeated(function.bound(a, b, c), times)
        step.keep = function, a, b, c
    else:
        kernel = Kernel(kernel_code(a, b, FAST if name == "fast" else None), a, b, c)
        step = native(kernel, times, int(threads))
    step(0)
    right = a.astype(np.float64) @ b.astype(np.float64)
    error = float(np.abs(c - right).max() / np.abs(right).max())
    return Job(step, [error], facts={"times": times})


def repeated(product: Callable[[], object], times: int) -> Callable[[int], None]:
    def step(_: int) -> None:
        for _ in range(times):
            product()

    return step


def native(kernel: Kernel, times: int, threads: int) -> Callable[[int], None]:
    """Calls the kernel from machine code, on each thread for its share of the chunks."""
    library = link([emit_object(REPEAT, as_target())])
    kind = ctypes.CFUNCTYPE(
        None, *[ctypes.c_void_p] * 2, *[ctypes.c_int64] * 2, ctypes.c_void_p, ctypes.c_int64
    )
    repeat = kind(library.address("repeat"))
    cuts = [kernel.code.chunks * part // threads for part in range(threads + 1)]
    scratch = [kernel.scratch() for _ in range(threads)]

    def share(part: int) -> None:
        limits = cuts[part], cuts[part + 1]
        repeat(kernel.address, kernel.pointers, *limits, scratch[part].ctypes.data, times)

    start, ready = threading.Semaphore(0), threading.Semaphore(0)

    def helper() -> None:
        while True:
            start.acquire()
            share(1)
            ready.release()

    if threads == 2:
        threading.Thread(target=helper, daemon=True).start()

    def step(_: int) -> None:
        if threads == 2:
            start.release()
        share(0)
        if threads == 2:
            ready.acquire()

    step.keep = library
    return step


def table(rows: list[Row]) -> str:
    """GFLOP/s and, in brackets, times NumPy's on as many threads."""
    names = [peer.name for peer in PEERS]
    by_case: dict[str, dict[str, Row]] = {}
    for row in rows:
        by_case.setdefault(row["case"], {})[row["peer"]] = row
    lines = ["| case | " + " | ".join(names) + " |", "|---" * (len(names) + 1) + "|"]
    for case, peers in by_case.items():
        cells = []
        for name in names:
            row = peers.get(name, {})
            if "min_us" not in row:
                cells.append("")
                continue
            micro = row["min_us"] / row["times"]
            base = peers.get(f"numpy_{name[-1]}", {})
            ratio = ""
            if "min_us" in base and not name.startswith("numpy"):
                ratio = f" ({base['min_us'] / base['times'] / micro:.2f})"
            short = f" {micro:.2f} us" if micro < 5 else ""
            cells.append(f"{flops(case) / micro / 1e3:.0f}{ratio}{short}")
        lines.append(f"| {case} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    rows = main(__file__, __doc__, PEERS, CASES, prepare, lambda _: [0.0])
    if rows:
        print(table(rows))
