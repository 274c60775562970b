"""Machine code for a graph, from the cache or made anew."""

from __future__ import annotations

import functools
import hashlib
import os
import sys
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from dilim import dtypes
from dilim._version import __version__
from dilim.backends.llvm import binding
from dilim.backends.llvm.calls_signature import CallerCode
from dilim.backends.llvm.targets import Target
from dilim.ir.graph import Graph
from dilim.ir.plan import Point
from dilim.ir.text import digest
from dilim.ir.types import Type
from dilim.runtime.cache import cache
from dilim.runtime.entries import pack, unpack
from dilim.runtime.machine import this_machine
from dilim.runtime.threads import usable_cores

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
    threads: int = field(default_factory=usable_cores)

    def key(self) -> str:
        """What code for other settings must not share."""
        parts = (self.numerics, str(self.target), self.poison, self.threads, fingerprint())
        return "|".join(map(str, parts))


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
    key = _key(graph, settings)
    stored = cache().get(key)
    if stored is not None:
        return _unpacked(stored)
    from dilim.runtime.compiler import compile_program  # much code, and not needed on a hit

    built = compile_program(graph, settings)
    cache().put(key, _packed(built))
    return built


def is_built(graph: Graph, settings: Settings) -> bool:
    """Whether the machine code of a graph is in the cache."""
    return cache().get(_key(graph, settings)) is not None


# --- the cache ------------------------------------------------------------------------------


def _key(graph: Graph, settings: Settings) -> str:
    return f"program|{settings.key()}|{digest(graph)}"


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
    digested = hashlib.sha256(f"{__version__} {this_machine().llvm} {sys.byteorder}".encode())
    for part in _COMPILER:
        for folder, _, names in sorted(os.walk(package / part)):
            for name in sorted(names):
                if name.endswith(".py"):
                    status = os.stat(f"{folder}/{name}")
                    text = f"{name} {status.st_size} {status.st_mtime_ns};"
                    digested.update(text.encode())
    return digested.hexdigest()[:16]


def load_function(what: str, write: Callable[[], CallerCode]) -> tuple[binding.Library, str]:
    """Machine code of functions that are no part of a program; see `calls_writer.Load`.

    It stays until the process ends.
    """
    return _staying(what, _Write(write))


def load_caller(what: str, write: Callable[[], CallerCode]) -> tuple[binding.Library, str]:
    """The same for code that is one of very many, and hardly matters: made in less time."""
    return _caller(what, _Write(write))


@dataclass(frozen=True, slots=True)
class _Write:
    """How code is written; not part of what it is."""

    function: Callable[[], CallerCode] = field(compare=False)


@functools.cache
def _staying(what: str, write: _Write) -> tuple[binding.Library, str]:
    data, name = _function(what, binding.OPTIMISATION_LEVEL, write.function)
    return binding.add([data]), name


@functools.lru_cache(64)
def _caller(what: str, write: _Write) -> tuple[binding.Library, str]:
    data, name = _function(what, 0, write.function)
    return binding.link([data]), name


def _function(what: str, level: int, write: Callable[[], CallerCode]) -> tuple[bytes, str]:
    """Code and its name, from the cache if it was made before."""
    key = f"function|{level}|{fingerprint()}|{this_machine().target}|{what}"
    stored = cache().get(key)
    if stored is None:
        code = write()
        data = binding.emit_object(code.text, this_machine().target, level=level)
        cache().put(key, pack({"name": code.name}, [data]))
        return data, code.name
    header, (data,) = unpack(stored)
    return data, header["name"]


def cached_object(text: str) -> bytes:
    """The object for a module on the processor at hand, from the cache if it was made before."""
    return cached_object_of(text, lambda: text)


def cached_object_of(what: str, write: Callable[[], str]) -> bytes:
    """The same for a module that is written only if it is not in the cache.

    Args:
        what: tells it from all others of the same version.
        write: writes it.
    """
    key = f"module|{fingerprint()}|{this_machine().target}|{what}"
    stored = cache().get(key)
    if stored is None:
        stored = binding.emit_object(write(), this_machine().target)
        cache().put(key, stored)
    return stored
