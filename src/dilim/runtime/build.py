"""From a graph to machine code: passes, kernels, memory plan, driver, all through the cache."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from dilim import dtypes
from dilim._version import __version__
from dilim.backends.llvm import binding
from dilim.backends.llvm.driver import Call, write_driver
from dilim.backends.llvm.kernel import KernelCode, KernelOptions, write_kernel
from dilim.backends.llvm.targets import Target
from dilim.ir import structure as s
from dilim.ir.graph import Graph, Node
from dilim.ir.plan import Plan, Point, aligned
from dilim.ir.text import digest, to_text
from dilim.ir.types import Type
from dilim.ops.nest import compose
from dilim.ops.table import OPERATIONS
from dilim.passes.memory import aliases, plan_memory
from dilim.passes.pipeline import optimise
from dilim.runtime.cache import cache
from dilim.runtime.entries import pack, unpack

PARALLEL_COST: Final = 8_000.0
"""Work worth sharing, in estimated nanoseconds: a few times what handing it out costs."""
SAY_AFTER: Final = 1.0
"""Seconds after which a compilation says that it takes long."""
_COMPILER: Final = ("ir", "ops", "passes", "backends", "runtime")


@dataclass(frozen=True, slots=True)
class Settings:
    """How a program is compiled.

    Attributes:
        numerics: ``"strict"`` or ``"fast"``.
        target: the processor.
        poison: fill memory with ones when nobody needs it any more; for tests.
        threads: how many may share a kernel.
    """

    numerics: Literal["strict", "fast"]
    target: Target
    poison: bool = False
    threads: int = field(default_factory=lambda: max(_cores(), 1))

    def key(self) -> str:
        """What code for other settings must not share."""
        parts = (self.numerics, str(self.target), self.poison, self.threads, fingerprint())
        return "|".join(map(str, parts))


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


@dataclass(frozen=True, slots=True)
class Built:
    """A program as object files, with what is needed to run it.

    Attributes:
        objects: the driver and all kernels.
        size: bytes of an activation.
        points: channel points by number.
        parallel: whether threads share some kernel.
        cost: estimated nanoseconds of all kernels, once each.
        loops: whether it has loops.
        text: the graph after all passes.
        sites: per node of that graph, regions included, its site; -1 for none.
    """

    objects: tuple[bytes, ...]
    size: int
    points: tuple[Point, ...]
    parallel: bool
    cost: float
    loops: bool
    text: str
    sites: tuple[int, ...]


def build(graph: Graph, settings: Settings) -> Built:
    """Machine code for a graph, from the cache if it was made before."""
    key = f"program|{settings.key()}|{digest(graph)}"
    stored = cache().get(key)
    if stored is not None:
        return _unpacked(stored)
    built = _build(graph, settings)
    cache().put(key, _packed(built))
    return built


def _build(graph: Graph, settings: Settings) -> Built:
    started = time.perf_counter()
    final = optimise(graph)
    plan = plan_memory(final)
    kernels = _kernels(final, plan, settings, started)
    calls, scratch = calls_of(kernels, settings)
    driver = write_driver(final, plan, calls, settings.poison)
    objects = {kernel.name: kernel.code for kernel in kernels.values()}
    nodes = list(s.walk(final))
    return Built(
        (binding.emit_object(driver, settings.target), *objects.values()),
        plan.size + scratch,
        tuple(plan.points.values()),
        any(call.threads > 1 for call in calls.values()),
        sum(kernel.cost for kernel in kernels.values()),
        any(node.op == s.LOOP for node in nodes),
        to_text(final),
        tuple(node.site for node in nodes),
    )


def calls_of(
    kernels: Mapping[Node, Kernel | KernelCode], settings: Settings
) -> tuple[dict[Node, Call], int]:
    """How kernels are called, and how much scratch memory that takes."""
    calls: dict[Node, Call] = {}
    most = 0
    for node, kernel in kernels.items():
        worth = kernel.chunks > 1 and kernel.cost >= PARALLEL_COST
        threads = min(settings.threads, kernel.chunks) if worth else 1
        checks = any(OPERATIONS[inner.op].failure for inner in node.regions[0].nodes)
        stride = aligned(kernel.scratch_bytes)
        most = max(most, stride * threads)
        calls[node] = Call(kernel.name, kernel.chunks, threads, checks, stride)
    return calls, most


# --- kernels --------------------------------------------------------------------------------


def fused_nodes(graph: Graph) -> list[Node]:
    """The kernel calls of a program, in order."""
    return [node for node in s.walk(graph) if node.op == s.FUSED]


def _kernels(graph: Graph, plan: Plan, settings: Settings, started: float) -> dict[Node, Kernel]:
    """The kernel of every fused node; equal ones are made once, heavy ones first."""
    in_place = {node: aliases(node, plan) for node in fused_nodes(graph)}
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


# --- the cache ------------------------------------------------------------------------------


def _packed(built: Built) -> bytes:
    points = [
        [point.op, point.channel, [_type_pair(type) for type in point.types], point.offsets]
        for point in built.points
    ]
    header = {
        "size": built.size,
        "points": points,
        "parallel": built.parallel,
        "cost": built.cost,
        "loops": built.loops,
        "text": built.text,
        "sites": built.sites,
    }
    return pack(header, built.objects)


def _type_pair(type: Type) -> tuple[Any, ...]:
    return (*type.shape, type.dtype.name)


def _unpacked(data: bytes) -> Built:
    header, objects = unpack(data)
    points = tuple(
        Point(op, channel, tuple(map(_type_from, types)), tuple(offsets))
        for op, channel, types, offsets in header.pop("points")
    )
    sites = tuple(header.pop("sites"))
    return Built(objects=tuple(objects), points=points, sites=sites, **header)


def _type_from(pair: list[Any]) -> Type:
    *shape, name = pair
    return Type(tuple(shape), dtypes.as_dtype(name))


@functools.cache
def fingerprint() -> str:
    """Changes with every version of the compiler and of LLVM: older code is not used."""
    package = Path(__file__).parents[1]
    digested = hashlib.sha256(f"{__version__} {binding.version()} {sys.byteorder}".encode())
    for part in _COMPILER:
        for path in sorted((package / part).rglob("*.py")):
            status = path.stat()
            digested.update(f"{path.name} {status.st_size} {status.st_mtime_ns};".encode())
    return digested.hexdigest()[:16]


def cached_object(text: str, level: int = binding.OPTIMISATION_LEVEL) -> bytes:
    """The object for a module on the processor at hand, from the cache if it was made before."""
    key = f"module|{level}|{fingerprint()}|{binding.host_target()}|{text}"
    stored = cache().get(key)
    if stored is None:
        stored = binding.emit_object(text, binding.host_target(), level=level)
        cache().put(key, stored)
    return stored


def _cores() -> int:
    affinity: Mapping[str, Any] = vars(os)
    if "sched_getaffinity" in affinity:
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
