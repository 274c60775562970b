"""Types of values of the host, as running as plain Python shows them."""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dilim import dtypes
from dilim.ir.types import Type, type_of
from dilim.runtime.devices import CPU
from dilim.slicing.numbers import SMALL
from dilim.slicing.operators import PLAIN, is_constant
from dilim.slicing.program import Step
from dilim.slicing.swallowing import may_swallow
from dilim.slicing.values import Array, Context
from dilim.slicing.walker import Observer
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
        return type_of(value)
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
        target = getattr(step.node, "targets", [None])[0]
        name = getattr(target, "id", None)
        if name is None:
            return
        kind = kind_of(value)
        if self._learned.setdefault((step, name), kind) != kind:
            self._learned[step, name] = None
