"""What happened to a compiled function so far."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(slots=True)
class Statistics:
    """What happened to a compiled function so far.

    Attributes:
        calls: how often it was called.
        native_calls: how often its two programs ran.
        variants: how many programs were made.
        compile_seconds: what slicing and compiling took.
        fallbacks: (reason, file, line) of what could not be sliced.
        sends: values that went to the host.
        receives: values that came from the host.
        sent_bytes: their size.
        tensor_operations_native: operations of the last program's graph.
        tensor_operations_host: tensor operations that it leaves to the host.
    """

    calls: int = 0
    native_calls: int = 0
    variants: int = 0
    compile_seconds: float = 0.0
    fallbacks: list[tuple[str, str, int]] = field(default_factory=list)
    sends: int = 0
    receives: int = 0
    sent_bytes: int = 0
    tensor_operations_native: int = 0
    tensor_operations_host: int = 0
