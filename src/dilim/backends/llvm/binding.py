"""All that is used of llvmlite, typed; no other file imports it.

It is loaded when one of these functions first needs it (30 ms), not with this module.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from dilim.backends.llvm import images
from dilim.backends.llvm.targets import HOST, LEVELS, Target
from dilim.errors import DeviceError

OPTIMISATION_LEVEL: Final = 2
CPU_VARIABLE: Final = "DILIM_CPU"


@functools.cache
def _llvm() -> Any:
    """The module of llvmlite, ready for the processor at hand."""
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm


@functools.cache
def _all_targets() -> Any:
    llvm = _llvm()
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    return llvm


def available() -> bool:
    """Whether llvmlite can be loaded."""
    try:
        _llvm()
    except (ImportError, OSError, RuntimeError):
        return False
    return True


@functools.cache
def version() -> str:
    """The versions of llvmlite and LLVM: code made by others is not loaded."""
    import llvmlite

    llvm = _llvm()
    return f"llvmlite {llvmlite.__version__} LLVM {'.'.join(map(str, llvm.llvm_version_info))}"


@functools.cache
def host_target() -> Target:
    """The processor at hand, with everything it can do."""
    llvm = _llvm()
    triple = str(llvm.get_default_triple())
    return Target(llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten(), triple)


def as_target(target: Target | str | None = None, host: Target | None = None) -> Target:
    """The processor that is meant.

    Args:
        target: ``"host"``, a level of x86-64 (``"x86-64"`` has SSE2, ``"x86-64-v3"`` AVX2,
            ``"x86-64-v4"`` AVX-512), ``"generic"`` (the least of the architecture), or a target
            as it is. None is what the environment variable ``DILIM_CPU`` says, by default the host.
        host: see `host_target`, where that is known.

    Raises:
        DeviceError: there is no such level, or the processor at hand cannot run its code.
    """
    if isinstance(target, Target):
        return target
    name = target or os.environ.get(CPU_VARIABLE) or HOST
    host = host or host_target()
    if name == HOST:
        return host
    is_x86 = host.architecture == "x86_64"
    known = [HOST, "generic", *(LEVELS if is_x86 else ())]
    if name not in known:
        raise DeviceError(f"{CPU_VARIABLE}: expected one of {', '.join(known)}, received {name!r}")
    if name == "generic":
        return Target("x86-64" if is_x86 else name, "", host.triple)
    able = set(host.features.split(","))
    missing = [feature for feature in LEVELS[name][0] if f"+{feature}" not in able]
    if missing:
        raise DeviceError(
            f"{CPU_VARIABLE}: {name} needs {', '.join(missing)}, which this processor "
            f"({host.cpu}) lacks; choose {HOST!r}"
        )
    return Target(name, "", host.triple)


def _machine(target: Target, level: int = OPTIMISATION_LEVEL) -> Any:
    """A new target machine. An engine takes it over, so that none can be used twice."""
    is_host = target.triple == host_target().triple
    llvm = _llvm() if is_host else _all_targets()
    # In memory, code holds whole addresses: an engine may put the parts of an object further apart
    # than the two gigabytes that the small model reaches, and offsets from a table of addresses
    # (large model, position-independent) are wrong as soon as it has several objects.
    return llvm.Target.from_triple(target.triple).create_target_machine(
        cpu=target.cpu,
        features=target.features,
        opt=level,
        reloc="default" if is_host else "pic",
        codemodel="jitdefault" if is_host else "default",
        jit=is_host,
    )


@functools.lru_cache(maxsize=8)
def _emitter(target: Target, level: int) -> Any:
    """A target machine for making objects, which stays ours."""
    return _machine(target, level)


def _parsed(
    text: str, target: Target, optimise: bool, level: int = OPTIMISATION_LEVEL
) -> tuple[Any, Any]:
    llvm, machine = _llvm(), _emitter(target, level)
    module = llvm.parse_assembly(text)
    module.triple = target.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    if optimise:
        tuning = llvm.create_pipeline_tuning_options(speed_level=OPTIMISATION_LEVEL)
        passes = llvm.create_pass_builder(machine, tuning)
        passes.getModulePassManager().run(module, passes)
    return module, machine


def emit_object(
    text: str, target: Target, *, optimise: bool = False, level: int = OPTIMISATION_LEVEL
) -> bytes:
    """An object file with the machine code of a module.

    Args:
        text: an LLVM module without triple or data layout, with opaque pointers.
        target: the processor.
        optimise: whether to run LLVM's optimisation pipeline too, which costs several times as
            much as making the code.
        level: of care in making the code, 0 to 3; 0 takes a third of the time, for code that hardly
            matters.

    Raises:
        RuntimeError: LLVM refuses the module: a fault of the code generator.
    """
    module, machine = _parsed(text, target, optimise, level)
    return bytes(machine.emit_object(module))


def emit_assembly(text: str, target: Target, *, optimise: bool = False) -> str:
    """The assembly text for a module; arguments and errors as for `emit_object`."""
    module, machine = _parsed(text, target, optimise)
    return str(machine.emit_assembly(module))


@dataclass(frozen=True, slots=True)
class Library:
    """Machine code in memory, for as long as this object lives."""

    _engine: Any = field(repr=False)

    def address(self, function: str) -> int:
        """Where a function begins.

        Raises:
            KeyError: the library has no such function.
        """
        address = int(self._engine.get_function_address(function))
        if not address:
            raise KeyError(f"llvm: the library has no function {function!r}")
        return address


def link(objects: Sequence[bytes], symbols: Mapping[str, int] | None = None) -> Library:
    """Loads object files for the processor at hand; calls between them are resolved.

    Args:
        objects: from `emit_object`. A name may be defined in one of them only. A name that
            neither they nor ``symbols`` define ends the process.
        symbols: addresses of functions and data that are already in memory, by name.
    """
    image = images.load(objects, symbols or {})
    return Library(_engine(objects, symbols or {}) if image is None else image)


def _engine(objects: Sequence[bytes], named: Mapping[str, int]) -> Any:
    """The same by LLVM."""
    llvm = _llvm()
    declarations = "\n".join(f"declare void @{name}()" for name in named)
    module = llvm.parse_assembly(declarations)
    host = host_target()
    machine = _machine(host)
    module.triple = host.triple
    module.data_layout = str(machine.target_data)
    engine = llvm.create_mcjit_compiler(module, machine)
    for name, address in named.items():
        engine.add_global_mapping(module.get_function(name), address)
    for data in objects:
        engine.add_object_file(llvm.ObjectFileRef.from_data(data))
    engine.finalize_object()
    return engine


_adding: Final = threading.Lock()
_added: Final[dict[tuple[bytes, ...], Library]] = {}


@functools.cache
def _staying() -> Any:
    return _engine([], {})


def add(objects: Sequence[bytes]) -> Library:
    """Loads object files that stay until the process ends; LLVM does that ten times as fast.

    No two may define the same name.

    Args:
        objects: see `link`. They call nothing but each other. What was added before is not added
            again.
    """
    key = tuple(objects)
    with _adding:
        known = _added.get(key)
        if known is None:
            known = _added[key] = Library(images.load(objects, {}) or _added_to_engine(objects))
    return known


def _added_to_engine(objects: Sequence[bytes]) -> Any:
    llvm, engine = _llvm(), _staying()
    for data in objects:
        engine.add_object_file(llvm.ObjectFileRef.from_data(data))
    engine.finalize_object()
    return engine
