"""All that is used of llvmlite, typed; no other file imports it."""

from __future__ import annotations

import functools
from dataclasses import dataclass, field
from typing import Any, Final

import llvmlite.binding as llvm

OPTIMISATION_LEVEL: Final = 2


@dataclass(frozen=True, slots=True)
class Library:
    """Machine code in memory, for as long as this object lives.

    Attributes:
        optimised: the LLVM text after optimisation.
        assembly: the assembly text.
    """

    optimised: str
    assembly: str
    _engine: Any = field(repr=False)

    def address(self, function: str) -> int:
        """Where a function begins."""
        return int(self._engine.get_function_address(function))


@functools.cache
def _initialise() -> None:
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()


def compile_text(text: str) -> Library:
    """Machine code for the processor at hand.

    Args:
        text: an LLVM module without triple or data layout, opaque pointers.

    Raises:
        RuntimeError: LLVM refuses the module: a fault of the code generator.
    """
    _initialise()
    machine = llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(),
        features=llvm.get_host_cpu_features().flatten(),
        opt=OPTIMISATION_LEVEL,
        jit=True,
    )
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    module.verify()
    tuning = llvm.create_pipeline_tuning_options(speed_level=OPTIMISATION_LEVEL)
    passes = llvm.create_pass_builder(machine, tuning)
    passes.getModulePassManager().run(module, passes)
    optimised, assembly = str(module), str(machine.emit_assembly(module))
    engine = llvm.create_mcjit_compiler(module, machine)
    engine.finalize_object()
    return Library(optimised, assembly, engine)
