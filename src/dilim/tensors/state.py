"""Copying saved numbers into existing tensors: all of them or none."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dilim import dtypes
from dilim.errors import StateError
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor


def copy_into(
    operation: str, targets: Mapping[str, Tensor], state: Mapping[str, Any], strict: bool = True
) -> None:
    """Copy tensors or arrays into existing tensors by name, in place; gradients stay.

    Args:
        operation: who asks, for the error.
        targets: the tensors to write.
        state: what to write, of the same shapes and dtypes.
        strict: whether the names must be the same on both sides.

    Raises:
        StateError: entries are missing, not expected, or of another shape or dtype; all of them
            are named, and nothing was written.
    """
    problems = []
    if strict:
        missing = [f"{name} {targets[name].shape}" for name in targets if name not in state]
        unexpected = [f"{name} {_shape(state[name])}" for name in state if name not in targets]
        if missing:
            problems.append(f"missing: {', '.join(missing)}")
        if unexpected:
            problems.append(f"unexpected: {', '.join(unexpected)}")
    common = [name for name in targets if name in state]
    for name in common:
        expected, received = _type(targets[name]), _type(state[name])
        if expected != received:
            problems.append(f"{name}: expected {expected}, received {received}")
    if problems:
        raise StateError(f"{operation}: the state does not fit: {'; '.join(problems)}")
    with no_grad():
        for name in common:
            value = state[name] if isinstance(state[name], Tensor) else Tensor(state[name])
            targets[name].copy_(value.to(targets[name].device))


def _shape(value: Any) -> str:
    return str(getattr(value, "shape", f"of type {type(value).__name__}"))


def _type(value: Any) -> str:
    if not hasattr(value, "dtype"):
        return f"a {type(value).__name__}"
    return f"{dtypes.as_dtype(value.dtype).name} {tuple(value.shape)}"
