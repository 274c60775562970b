"""What LLVM says of the processor at hand, remembered on disk: loading LLVM to ask takes 30 ms."""

from __future__ import annotations

import functools
import importlib.machinery
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from dilim.backends.llvm import binding, images
from dilim.backends.llvm.targets import Target
from dilim.runtime.cache import cache
from dilim.runtime.entries import pack, unpack

_BOOT: Final = Path("/proc/sys/kernel/random/boot_id")
_PROCESSORS: Final = Path("/proc/cpuinfo")
_ABILITIES: Final = ("vendor_id", "cpu family", "model", "stepping", "flags")
_ENOUGH: Final = 1 << 13
"""Bytes that hold what is said of the first processor; there may be hundreds."""


@dataclass(frozen=True, slots=True)
class Machine:
    """Where code runs.

    Attributes:
        llvm: see `binding.version`.
        target: see `binding.host_target`.
    """

    llvm: str
    target: Target


@functools.cache
def machine() -> Machine | None:
    """The machine at hand; None where there is no LLVM."""
    key = _key()
    stored = None if key is None else cache().get(key)
    if stored is not None:
        facts, _ = unpack(stored)
        return Machine(facts["llvm"], Target(*facts["target"]))
    if not binding.available():
        return None
    found = Machine(binding.version(), binding.host_target())
    if key is not None:
        target = found.target
        facts = {"llvm": found.llvm, "target": [target.cpu, target.features, target.triple]}
        cache().put(key, pack(facts))
    return found


def this_machine() -> Machine:
    """The same where there has to be LLVM.

    Raises:
        ImportError: there is none.
    """
    return machine() or Machine(binding.version(), binding.host_target())


def _key() -> str | None:
    """What LLVM's answers depend on: its files, and the processor as the system has found it."""
    if not images.can_load():
        return None  # LLVM is loaded in any case
    spec = importlib.machinery.PathFinder.find_spec("llvmlite")
    if spec is None or not spec.submodule_search_locations:
        return None
    folder = spec.submodule_search_locations[0]
    try:
        status = os.stat(f"{folder}/binding/libllvmlite.so")
        version = Path(folder, "_version.py").read_text(encoding="utf-8")
        boot = _BOOT.read_text(encoding="utf-8")
        with _PROCESSORS.open(encoding="utf-8") as file:
            processor = file.read(_ENOUGH).partition("\n\n")[0]
    except OSError:
        return None
    library = f"{folder} {status.st_size} {status.st_mtime_ns}"
    abilities = [line for line in processor.splitlines() if line.startswith(_ABILITIES)]
    return "|".join(("machine", library, version, boot, *abilities))
