"""Slices of tensors at positions of the program, such as a batch ``x[i * 32 : (i + 1) * 32]``.

Their length is known (see `offsets`), only where they begin is not. In the index of a `Part` such a
slice is a *window*, a tuple of the number at which it begins and its length. Where it may reach
beyond the end, which Python allows and which gives fewer rows, the program is left when it does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

from dilim.slicing import numbers, offsets, surprises
from dilim.slicing.errors import OnHost, Restart
from dilim.slicing.numbers import Number
from dilim.slicing.operators import needs_value
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.program import Step
    from dilim.slicing.slicer import Slicer

BEYOND = "a slice reaches beyond the end of a tensor"


def located(slicer: Slicer, step: Step, x: Tensor, index: Any) -> Any:
    """An index with a window in place of a slice at positions of the program, if it has one.

    Raises:
        OnHost: the host has to read there.
        Restart: a number has to be a constant.
    """
    places = index if index.__class__ is tuple else (index,)
    found = [k for k, each in enumerate(places) if _is_dynamic(each)]
    if not found:
        return index
    others = [each for each in places if not _is_dynamic(each)]
    if (
        x.requires_grad  # where the gradient of a slice is not that of picked rows, to the last bit
        or len(found) > 1
        or len(places) > len(x.shape)
        or any(each.__class__ is not slice for each in others)
    ):
        _refuse(places[found[0]])
    (at,) = found
    window = _window(slicer, step, places[at], x.shape[at])
    return (*places[:at], window, *places[at + 1 :])


def _is_dynamic(place: Any) -> bool:
    return place.__class__ is slice and Number in (place.start.__class__, place.stop.__class__)


def _refuse(place: slice) -> NoReturn:
    """Have numbers be constants that come from outside; other slices are the host's."""
    ends = [x for x in (place.start, place.stop) if x.__class__ is Number]
    for each in ends:
        if each.source is not None:
            raise Restart(each.source)
    raise needs_value(ends[0])


def _window(slicer: Slicer, step: Step, place: slice, size: int) -> tuple[Number, int]:
    start, stop = place.start, place.stop
    ends = start.__class__ is Number and stop.__class__ is Number
    length = offsets.distance(start, stop) if ends and place.step in (None, 1) else None
    if length is None or length < 1:
        _refuse(place)
    if not (start.is_natural and stop.bound <= size):
        if stop.bound < numbers.SMALL:  # how far it counts is known, and it does reach beyond
            raise OnHost(BEYOND)
        with no_grad():
            fits = (start.tensor >= 0) & (stop.tensor <= size)
        surprises.unless(slicer, fits, BEYOND, again=True, decision=("host", step))
    return start, length
