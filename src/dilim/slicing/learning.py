"""Types of values of the host, as running as plain Python shows them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import numpy as np

from dilim import dtypes
from dilim.ir.types import Type, type_of
from dilim.runtime.devices import CPU
from dilim.slicing.numbers import SMALL
from dilim.slicing.observers import Observer
from dilim.slicing.operators import PLAIN, is_constant
from dilim.slicing.program import Step
from dilim.slicing.scopes import unpacked
from dilim.slicing.swallowing import may_swallow
from dilim.slicing.values import Array, Context, Kinds, is_old
from dilim.tensors.tensor import Tensor

_DTYPES: Final = frozenset(x.numpy for x in dtypes.ALL)


def kind_of(value: Any) -> Any:
    """The type of a value of the host, as far as a graph can take it; None for others."""
    kind = type(value)
    if kind is int:
        return kind if -SMALL < value < SMALL else None
    if kind is float or kind is bool:
        return kind
    if kind is Tensor and value.device is CPU and not value.requires_grad:
        return None if is_old(value) else type_of(value)
    if kind is np.ndarray and value.dtype in _DTYPES:
        return Array(Type(value.shape, dtypes.from_numpy(value.dtype)))
    if kind is tuple:
        return "plain tuple" if is_constant(value) else "tuple"
    if kind in (list, dict, str):
        return kind.__name__
    if issubclass(kind, np.generic | np.ndarray) and kind.__module__ == "numpy":
        return None if value.dtype.hasobject else "plain"
    if kind in PLAIN and is_constant(value):
        return "plain"
    return Context(may_swallow(value)) if hasattr(kind, "__exit__") else None


MOST_KINDS: Final = 3
"""How many types a value may have of which the graph knows."""


def merged(known: Any, kind: Any) -> Any:
    """The kind of a value that has been of two kinds."""
    if known == kind:
        return known
    every: dict[Any, None] = {}
    for each in (known, kind):
        every |= dict.fromkeys(each.kinds if isinstance(each, Kinds) else (each,))
    is_few = len(every) <= MOST_KINDS and all(isinstance(x, Type | Array) for x in every)
    return Kinds(tuple(every)) if is_few else None


def teach(profile: dict[Any, Any], seen: Mapping[Any, Any]) -> bool:
    """Take over what is to be known when a function is sliced anew; whether a value has more types.

    Args:
        profile: what is known, by statement and name.
        seen: likewise, what the rest of a run has shown.
    """
    is_more = False
    for place, kind in seen.items():
        known = profile.setdefault(place, kind)
        both = merged(known, kind)
        if both != known and isinstance(both, Kinds):
            profile[place] = both
            is_more = True
    return is_more


class Learner(Observer):
    """Takes note of the types of what calls give.

    Args:
        learned: to be filled in, by statement and name; None for what has had several.
    """

    wants_steps = True

    def __init__(self, learned: dict[Any, Any]) -> None:
        self._learned = learned

    def after_step(self, step: Step, value: Any) -> None:
        """See `Observer.after_step`."""
        names = unpacked(step)
        pairs = zip(names, value, strict=True) if names else [(_target(step), value)]
        for name, each in pairs:
            if name is None:
                continue
            kind = kind_of(each)
            known = self._learned.setdefault((step, name), kind)
            if known != kind:
                self._learned[step, name] = merged(known, kind)


def _target(step: Step) -> str | None:
    """The name that a step binds, and nothing else."""
    return getattr(getattr(step.node, "targets", [None])[0], "id", None)
