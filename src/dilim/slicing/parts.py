"""Tensors that stand for views of others at positions of the program.

``x[i]`` with a number of the program is a view of x, but a graph has views at known positions
only. So it is a tensor whose contents are taken from x anew whenever x has changed, and a write
into it is a write into x.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any, Final

from dilim import dtypes
from dilim.ops.table import OPERATIONS
from dilim.slicing import numbers
from dilim.slicing.errors import OnHost
from dilim.slicing.numbers import Number
from dilim.slicing.operators import needs_value
from dilim.slicing.program import Step
from dilim.slicing.tracing import SlicerTrace
from dilim.tensors import keys
from dilim.tensors.cells import Handle
from dilim.tensors.creation import arange
from dilim.tensors.dispatch import apply
from dilim.tensors.layouts import Step as Layout
from dilim.tensors.tape import mode, no_grad
from dilim.tensors.tensor import Tensor

_require_position: Final = OPERATIONS["require_position"]


@dataclass(frozen=True, slots=True)
class Part:
    """A view at a position of the program.

    Attributes:
        owner: the tensor that it is a view of.
        index: where, a tuple.
        maker: the step that made it.
        seen: what the user's index was, see `seen`.
    """

    owner: Tensor
    index: tuple[Any, ...]
    maker: Step
    seen: tuple[Any, ...] = ()


def of_index(index: Any) -> tuple[Any, ...]:
    """An index as a tuple."""
    return index if index.__class__ is tuple else (index,)


def position(index: Any) -> tuple[Any, bool]:
    """An index with tensors in place of numbers of the program, and whether there are any."""
    if index.__class__ is Number:
        if index.kind is not int:
            raise OnHost("an index that is no int")
        return index.tensor, True
    if index.__class__ is tuple:
        pairs = [(_positions(x), True) if x.__class__ is tuple else position(x) for x in index]
        return tuple(x for x, _ in pairs), any(flag for _, flag in pairs)
    if index.__class__ is slice:
        for x in (index.start, index.stop, index.step):
            if x.__class__ is Number:
                raise needs_value(x)
    return index, False


def _positions(window: tuple[Number, int]) -> Tensor:
    """The positions in a window; see `windows`."""
    start, length = window
    with no_grad():
        return start.tensor + arange(length, dtype=dtypes.int64)


def numbers_in(index: tuple[Any, ...]) -> list[Number]:
    """The numbers of the program in the index of a part."""
    found = [each[0] if each.__class__ is tuple else each for each in index]
    return [each for each in found if each.__class__ is Number]


def with_numbers(index: tuple[Any, ...], given: Iterator[Number]) -> tuple[Any, ...]:
    """The index of a part with others in place of its numbers."""
    return tuple(
        (next(given), each[1])
        if each.__class__ is tuple
        else next(given)
        if each.__class__ is Number
        else each
        for each in index
    )


def located(x: Tensor, index: Any, is_written: bool = False) -> Any:
    """An index whose tensors of one position are numbers inside; elsewhere the program fails.

    Args:
        x: what is read or written there.
        index: with symbolic tensors.
        is_written: whether it is written.
    """
    places = of_index(index)
    if not any(isinstance(each, Tensor) for each in places):
        return index
    axes = axes_of(places, len(x.shape))
    if axes is None:
        return index
    later = any(each.__class__ is Number for each in places)
    found = list(places)
    for k, each in enumerate(places):
        if isinstance(each, Tensor) and not each.shape and each.dtype.is_integer:
            if later:  # the host looks at all of them, in order
                found[k] = numbers.from_tensor(each, int)
            else:
                size = x.shape[axes[k]]
                inside = apply(_require_position, each, size=size, axis=axes[k])
                found[k] = numbers.below(inside, size)
    kinds = (Tensor, list, Number) if is_written else (Tensor, list)
    joined = sum(isinstance(each, kinds) for each in found) > 1
    for k, each in enumerate(found):
        if joined and isinstance(each, Tensor) and each.dtype.is_integer:
            found[k] = apply(_require_position, each, size=x.shape[axes[k]], axis=None)
    return tuple(found) if index.__class__ is tuple else found[0]


def lies_inside(index: Number, size: int) -> Tensor | None:
    """Whether an index fits a dimension of a size, as Python counts; None for certainly."""
    if index.is_natural and index.bound < size:
        return None
    with no_grad():
        return (index.tensor >= -size) & (index.tensor < size)


def axes_of(places: tuple[Any, ...], rank: int) -> list[int] | None:
    """The axis that each part of an index is about; None where it does not fit."""
    counts = [0 if x is None or x is Ellipsis else _rank(x) for x in places]
    left = rank - sum(counts)
    if left < 0 or sum(x is Ellipsis for x in places) > 1:
        return None
    axes, axis = [], 0
    for each, count in zip(places, counts, strict=True):
        axes.append(axis)
        axis += left if each is Ellipsis else count
    return axes


def sliced(x: Tensor, places: tuple[Any, ...]) -> tuple[int, ...]:
    """The shape of x at an index before its axes of single positions go and new ones come."""
    shape = list(x.shape)
    for each, axis in zip(places, axes_of(places, len(shape)) or (), strict=True):
        if each.__class__ is slice:
            shape[axis] = len(range(*each.indices(shape[axis])))
        elif each.__class__ is tuple:
            shape[axis] = each[1]
        elif each is not None and each is not Ellipsis:
            shape[axis] = 1
    return tuple(shape)


def _rank(part: Any) -> int:
    return 1 if part.__class__ in (Number, slice, tuple) else keys.rank(part)


def seen(trace: SlicerTrace, index: Any) -> tuple[Any, ...]:
    """An index as it is now: the values of its tensors in place of these."""
    return tuple(
        trace.value(trace.handle(x)) if isinstance(x, Tensor) else x for x in of_index(index)
    )


def code_of(index: tuple[Any, ...], code: Callable[[Any], str]) -> str:
    """Python code for the index of a part, from code for each value."""

    def shown(place: Any) -> str:
        if place.__class__ is tuple:  # see `windows`
            return f"R.window({code(place[0])}, {place[1]})"
        if place.__class__ is slice:
            return f"slice({', '.join(map(code, (place.start, place.stop, place.step)))})"
        return code(place)

    return f"({''.join(f'{shown(each)}, ' for each in index)})"


def follow(trace: SlicerTrace, x: Tensor, part: Part) -> None:
    """Let a tensor be a part of another from here on."""
    place, _ = position(part.index)

    def taken() -> Tensor:
        with trace.without_failure():
            return part.owner[place]

    def put(new: Tensor) -> None:
        refuse_gradients(part.owner, new)
        with trace.without_failure():
            part.owner[place] = new

    x._storage = part.owner._storage
    x._born = x._storage.version
    if x._node is not None:
        x._node.version = x._born
    trace.parts[x._data.cell] = part
    trace.follow(x, [part.owner], taken, put)


def take(trace: SlicerTrace, part: Part) -> Tensor:
    """A tensor that is a part of another."""
    with trace.without_failure():
        result: Tensor = part.owner[position(part.index)[0]]
    follow(trace, result, part)
    return result


def refuse_gradients(*tensors: Tensor) -> None:
    """Leave a write to the host where it would be recorded."""
    if mode.recording and any(x.requires_grad for x in tensors):
        raise OnHost("a write, with gradients, into memory that may be that of another tensor")


def part_of(trace: SlicerTrace, x: Any) -> Part | None:
    """Of what a value is a view at a position of the program, as a whole."""
    if not isinstance(x, Tensor) or not trace.owns(x) or x._data.base is not None:
        return None
    return trace.parts.get(x._data.cell)


def is_at(trace: SlicerTrace, x: Tensor, owner: Tensor, index: Any) -> bool:
    """Whether a tensor is the part of another at an index."""
    part = part_of(trace, x)
    if part is None or part.owner is not owner:
        return False
    given = seen(trace, index)
    return len(given) == len(part.seen) and all(
        a is b for a, b in zip(given, part.seen, strict=True)
    )


def have_one_form(a: tuple[Any, ...], b: tuple[Any, ...]) -> bool:
    """Whether indexes differ in their numbers of the program only."""
    return len(a) == len(b) and all(
        x.__class__ is y.__class__
        and (x.__class__ is Number or (x[1:] == y[1:] if x.__class__ is tuple else x == y))
        for x, y in zip(a, b, strict=True)
    )


def are_one_view(trace: SlicerTrace, a: Tensor, b: Tensor) -> bool:
    """Whether two tensors are views of the same elements."""
    x, y = trace.handle(a), trace.handle(b)
    return (
        x.cell is y.cell
        and (x.shape, x.strides) == (y.shape, y.strides)
        and _offset(x) == _offset(y)
    )


def _offset(handle: Handle) -> int:
    """How many elements there are in memory before the first of a view."""
    found = 0
    while handle.base is not None:
        sizes, strides, params = handle.base.shape, handle.base.strides, handle.step.params
        if handle.step.op == "flip":
            found += sum((sizes[axis] - 1) * strides[axis] for axis in params["axis"])
        elif handle.step.op == "slice":
            starts = (start for start, _, _ in params["index"])
            found += sum(start * step for start, step in zip(starts, strides, strict=True))
        handle = handle.base
    return found


def steps_of(handle: Handle) -> tuple[Layout, ...]:
    """How a view is taken of the whole."""
    steps: list[Layout] = []
    while handle.base is not None:
        steps.append(handle.step)
        handle = handle.base
    return tuple(reversed(steps))
