"""Learning rates of optimisers that a region sets.

An optimiser has its learning rate twice: as an attribute, and as memory that its step reads in a
graph. What the region sets is written into that memory, and the attribute is a place of the heap
as any other; nothing but the step may then be asked of the optimiser while the region is sliced.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dilim.slicing import heap, numbers, surprises
from dilim.slicing.attributes import in_classes
from dilim.slicing.errors import OnHost
from dilim.slicing.numbers import Number
from dilim.tensors.tape import no_grad

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer

_PLACE: Final = "_learning_rate"
_NAME: Final = "learning_rate"


def is_rate(owner: Any, name: str) -> bool:
    """Whether an attribute is the learning rate of an optimiser of dilim's."""
    found = in_classes(type(owner), name) if name == _NAME else None
    return type(found) is property and found.fget.__module__ == "dilim.optim.optimizer"


def is_set(slicer: Slicer, owner: Any) -> bool:
    """Whether the region has set the learning rate of an optimiser."""
    return (id(owner), _PLACE) in slicer.heap


def read(slicer: Slicer, owner: Any) -> Any:
    """The learning rate that the region has set; `UNBOUND` if none."""
    return heap.find(slicer, owner, _PLACE)


def assign(slicer: Slicer, owner: Any, value: Any) -> Callable[[], None]:
    """How to set a learning rate.

    Raises:
        OnHost: the host has to.
    """
    kinds = type(owner.__dict__.get(_PLACE)), numbers.is_number(value)
    if kinds != (float, True) or numbers.kind_of(value) is bool:
        raise OnHost("a learning rate that is no number")
    if value.__class__ is not Number and not 0 <= value < math.inf:
        raise OnHost("it raises")
    slicer.rely_on(owner)
    slicer.rely_on_names(type(owner), _NAME, "__setattr__")
    rate = numbers.converted(float, value) if value.__class__ is Number else float(value)
    bind = heap.put(slicer, owner, _PLACE, rate)

    def set_both() -> None:
        state = owner._rate_state
        with no_grad():
            if rate.__class__ is Number:
                fits = (rate.tensor >= 0.0) & (rate.tensor < math.inf)
                reason = "a learning rate that is refused"
                surprises.unless(slicer, fits, reason, True, decision=("host", slicer.current))
                state[...] = rate.tensor
            else:
                state.fill_(rate)
        bind()

    return set_both


def refuse_other_uses(slicer: Slicer, owner: Any, name: str) -> None:
    """Refuse to look into an optimiser whose attribute is not what the program has set.

    Raises:
        OnHost: the host has to look.
    """
    if name not in ("step", "zero_grad") and is_set(slicer, owner):
        raise OnHost("an optimiser whose learning rate was set")
