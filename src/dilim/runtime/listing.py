"""The code of a program as text, for people and for tests that look for what must be there."""

from __future__ import annotations

from dilim.backends.llvm import binding
from dilim.backends.llvm.driver import write_driver
from dilim.ir.structure import fused_nodes
from dilim.ir.text import from_text
from dilim.passes.memory import aliases, plan_memory
from dilim.runtime.build import Built, Settings
from dilim.runtime.compiler import calls_of, kernel_key, kernel_name, write_fused


def modules(built: Built, settings: Settings) -> dict[str, str]:
    """The LLVM text of each kernel, by name, and of the driver, ``"run"``, made anew."""
    final = from_text(built.text)
    plan = plan_memory(final)
    kernels = {}
    for node in fused_nodes(final):
        in_place = aliases(node, plan)
        name = kernel_name(kernel_key(node, in_place, settings))
        kernels[node] = write_fused(node, name, in_place, settings)
    texts = {kernel.name: kernel.text for kernel in kernels.values()}
    calls, _ = calls_of(kernels, settings)
    return {**texts, "run": write_driver(final, plan, calls, settings.poison)}


def llvm_ir(built: Built, settings: Settings) -> str:
    """All modules, one after the other, under their names."""
    parts = modules(built, settings).items()
    return "\n".join(f"; --- {name} ---\n{text}" for name, text in parts)


def assembly(built: Built, settings: Settings) -> str:
    """The assembly text of all modules, one after the other, under their names."""
    parts = modules(built, settings).items()
    return "\n".join(
        f"# --- {name} ---\n{binding.emit_assembly(text, settings.target)}" for name, text in parts
    )
