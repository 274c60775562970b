"""States of environments: a tensor, or a tuple of tensors, whose leading axes are environments."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from dilim.errors import StateError
from dilim.tensors.elementwise import where
from dilim.tensors.indexing import take
from dilim.tensors.random import Generator
from dilim.tensors.tensor import Tensor

State = Any
"""A tensor, or a tuple (also a named one) of tensors."""


def parts(state: State) -> dict[str, Tensor]:
    """The tensors of a state by name: a field's, a position, or "value" for a single tensor."""
    if state is None:
        return {}
    if not isinstance(state, tuple):
        return {"value": state}
    fields = getattr(state, "_fields", map(str, range(len(state))))
    return dict(zip(fields, state, strict=True))


def like(pattern: State, tensors: list[Tensor]) -> State:
    """A state of the same form with other tensors."""
    if type(pattern) is tuple:
        return tuple(tensors)
    return type(pattern)(*tensors) if isinstance(pattern, tuple) else tensors[0]


def rows(state: State, positions: Tensor) -> State:
    """Some of the environments in a state, by their positions in the first axis."""
    return like(state, [take(x, positions, axis=0) for x in parts(state).values()])


def taken(kind: str, pattern: State, arrays: Mapping[str, np.ndarray]) -> State:
    """A state of the form of ``pattern`` from what `get_state` gave; None if that had none.

    Args:
        kind: the name of the environment's class, for the error.
        pattern: a state.
        arrays: those of the state are called ``state.`` and a name as in `parts`.

    Raises:
        StateError: an array is missing, or has another dtype or shape.
    """
    expected = {f"state.{name}": x for name, x in parts(pattern).items()}
    given = {name for name in arrays if name.startswith("state.")}
    if (given and given != set(expected)) or not {"steps", "ended"} <= set(arrays):
        raise StateError(
            f"{kind}.set_state: expected {', '.join(sorted(expected))}, steps and ended; received "
            f"{', '.join(sorted(arrays)) or 'nothing'}"
        )
    if not given:
        return None
    tensors = []
    for name, wanted in expected.items():
        x = Tensor(arrays[name])
        if x.dtype is not wanted.dtype or x.shape != wanted.shape:
            raise StateError(
                f"{kind}.set_state: expected {name} as {wanted.dtype.name} of shape "
                f"{wanted.shape}, received {x.dtype.name} of shape {x.shape}"
            )
        tensors.append(x)
    return like(pattern, tensors)


def generator_from(arrays: Mapping[str, np.ndarray]) -> Generator | None:
    """The generator that `get_state` gave, if there was one."""
    if "generator" not in arrays:
        return None
    generator = Generator()
    generator.state = arrays["generator"]
    return generator


def chosen(flags: Tensor, this: State, other: State) -> State:
    """Of each environment the state in ``this`` where its flag is set, else that in ``other``."""
    if type(other) is tuple:
        return tuple([_chosen(flags, x, y) for x, y in zip(this, other, strict=True)])
    if isinstance(other, tuple):
        return type(other)(*[_chosen(flags, x, y) for x, y in zip(this, other, strict=True)])
    return _chosen(flags, this, other)


def _chosen(flags: Tensor, x: Tensor, y: Tensor) -> Tensor:
    aligned = flags.reshape((*flags.shape, *((1,) * (len(y.shape) - len(flags.shape)))))
    return where(aligned, x, y)
