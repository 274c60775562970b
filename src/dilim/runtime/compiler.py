"""Makes machine code: passes, kernels, memory plan, driver."""

from __future__ import annotations

import hashlib
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from dilim.backends.llvm import binding
from dilim.backends.llvm.driver import Call, write_driver
from dilim.backends.llvm.kernel import KernelCode, KernelOptions, write_kernel
from dilim.errors import UnsupportedError
from dilim.ir import structure as s
from dilim.ir.graph import Graph, Node
from dilim.ir.places import at_place
from dilim.ir.plan import Plan, aligned
from dilim.ir.text import digest, to_text
from dilim.ops.nest import compose
from dilim.ops.table import OPERATIONS
from dilim.passes.memory import aliases, plan_memory
from dilim.passes.pipeline import optimise
from dilim.passes.raising import has_check
from dilim.runtime.build import Built, Settings
from dilim.runtime.cache import cache
from dilim.runtime.entries import pack, unpack

PARALLEL_COST: Final = 8_000.0
"""Work worth sharing, in estimated nanoseconds: a few times what handing it out costs."""
LARGE_DRIVER: Final = 200_000
"""Characters of a driver beyond which its code is made in less time. It is much slower to make than
kernels are, as it is one function, and hardly slower to run: it copies, calls and branches."""
SAY_AFTER: Final = 5.0
"""Seconds after which a compilation says that it takes long."""


@dataclass(frozen=True, slots=True)
class Kernel:
    """The machine code of one kernel.

    Attributes:
        name: of its function.
        code: an object file.
        scratch_bytes: memory that it needs while it runs.
        chunks: units of work it can be split into.
        cost: estimated nanoseconds on one core.
    """

    name: str
    code: bytes
    scratch_bytes: int
    chunks: int
    cost: float


def compile_program(graph: Graph, settings: Settings) -> Built:
    """Machine code for a graph; its kernels come from the cache where they were made before."""
    started = time.perf_counter()
    final = optimise(graph)
    _require_recipes(final)
    plan = plan_memory(final)
    kernels = _kernels(final, plan, settings, started)
    calls, scratch = calls_of(kernels, settings)
    driver = write_driver(final, plan, calls, settings.poison)
    level = 0 if len(driver) > LARGE_DRIVER else binding.OPTIMISATION_LEVEL
    objects = {kernel.name: kernel.code for kernel in kernels.values()}
    nodes = list(s.walk(final))
    return Built(
        (binding.emit_object(driver, settings.target, level=level), *objects.values()),
        plan.size + scratch,
        tuple(plan.points.values()),
        any(call.threads > 1 for call in calls.values()),
        sum(kernel.cost for kernel in kernels.values()),
        any(node.op == s.LOOP for node in nodes),
        to_text(final),
        tuple(node.site for node in nodes),
    )


def _require_recipes(graph: Graph) -> None:
    """Raise an UnsupportedError at the first operation that has no loop form."""
    for node in s.walk(graph):
        if node.op in OPERATIONS and OPERATIONS[node.op].recipe is None:
            error = UnsupportedError(
                f"{node.op}: back end 'llvm' cannot run it; compile the graph with "
                "backend='reference', or apply it to eager tensors and give the graph the result"
            )
            at_place(error, node, graph.sites)
            raise error


def calls_of(
    kernels: Mapping[Node, Kernel | KernelCode], settings: Settings
) -> tuple[dict[Node, Call], int]:
    """How kernels are called, and how much scratch memory that takes."""
    calls: dict[Node, Call] = {}
    most = 0
    for node, kernel in kernels.items():
        worth = kernel.chunks > 1 and kernel.cost >= PARALLEL_COST
        threads = min(settings.threads, kernel.chunks) if worth else 1
        checks = any(map(has_check, node.regions[0].nodes))
        stride = aligned(kernel.scratch_bytes)
        most = max(most, stride * threads)
        calls[node] = Call(kernel.name, kernel.chunks, threads, checks, stride)
    return calls, most


# --- kernels --------------------------------------------------------------------------------


def _kernels(graph: Graph, plan: Plan, settings: Settings, started: float) -> dict[Node, Kernel]:
    """The kernel of every fused node; equal ones are made once, heavy ones first."""
    in_place = {node: aliases(node, plan) for node in s.fused_nodes(graph)}
    keys = {node: kernel_key(node, in_place[node], settings) for node in in_place}
    ready: dict[str, Kernel] = {}
    texts: dict[str, KernelCode] = {}
    for node, key in keys.items():
        if key in ready or key in texts:
            continue
        stored = cache().get(key)
        if stored is not None:
            ready[key] = _kernel_from(stored)
        else:
            texts[key] = write_fused(node, kernel_name(key), in_place[node], settings)
    said = False
    for count, key in enumerate(sorted(texts, key=lambda key: -texts[key].cost)):
        text = texts[key]
        code = binding.emit_object(text.text, settings.target)
        kernel = Kernel(text.name, code, text.scratch_bytes, text.chunks, text.cost)
        ready[key] = kernel
        cache().put(key, _kernel_bytes(kernel))
        if not said and time.perf_counter() - started > SAY_AFTER:
            said = True
            print(
                f"dilim: compiling a large program, {count + 1} of {len(texts)} kernels are done",
                file=sys.stderr,
            )
    return {node: ready[key] for node, key in keys.items()}


def kernel_key(node: Node, in_place: Mapping[int, int], settings: Settings) -> str:
    """What the code of a kernel depends on."""
    alias = sorted(in_place.items())
    return f"kernel|{settings.key()}|{alias}|{digest(node.regions[0])}"


def kernel_name(key: str) -> str:
    """The name of a kernel's function."""
    return f"k_{hashlib.sha256(key.encode()).hexdigest()[:24]}"


def write_fused(
    node: Node, name: str, in_place: Mapping[int, int], settings: Settings
) -> KernelCode:
    """The LLVM text of a fused node's kernel.

    Args:
        node: what to compute.
        name: of the function.
        in_place: results that lie in the memory of an input, and of which.
        settings: of the program.
    """
    form = compose(node.regions[0], OPERATIONS)
    return write_kernel(
        name,
        form,
        [value.type for value in node.inputs],
        [value.type for value in node.results],
        in_place,
        KernelOptions(settings.target.vector_bytes, settings.numerics),
    )


def _kernel_bytes(kernel: Kernel) -> bytes:
    header = {
        "name": kernel.name,
        "scratch_bytes": kernel.scratch_bytes,
        "chunks": kernel.chunks,
        "cost": kernel.cost,
    }
    return pack(header, [kernel.code])


def _kernel_from(data: bytes) -> Kernel:
    header, (code,) = unpack(data)
    return Kernel(code=code, **header)
