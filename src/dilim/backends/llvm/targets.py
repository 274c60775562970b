"""Which processor machine code is made for."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

HOST: Final = "host"
"""The name of the processor at hand, with everything it can do."""

LEVELS: Final = {
    "x86-64": ((), 16),
    "x86-64-v2": (("ssse3", "sse4.2", "popcnt"), 16),
    "x86-64-v3": (("avx2", "fma", "bmi2", "f16c"), 32),
    "x86-64-v4": (("avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"), 64),
}
"""Levels of x86-64: what the processor must be able to do, and the bytes of a vector."""


@dataclass(frozen=True, slots=True)
class Target:
    """A kind of processor.

    Attributes:
        cpu: LLVM's name for it, such as ``"znver4"`` or ``"x86-64-v3"``.
        features: LLVM's list of what it can do beyond that, ``"+avx2,-sse4a"``; may be empty.
        triple: architecture, vendor and system, ``"x86_64-unknown-linux-gnu"``.
    """

    cpu: str
    features: str
    triple: str

    @property
    def architecture(self) -> str:
        """The first part of the triple."""
        return self.triple.partition("-")[0]

    @property
    def vector_bytes(self) -> int:
        """The size of its largest vectors in bytes: 16, 32 or 64."""
        if self.cpu in LEVELS:
            return LEVELS[self.cpu][1]
        able = set(self.features.split(","))
        return 64 if "+avx512f" in able else 32 if "+avx" in able else 16

    def __str__(self) -> str:
        return f"{self.triple}/{self.cpu}/{self.features}"
