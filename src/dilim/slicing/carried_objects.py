"""Which objects the tensors are that a loop carries.

A loop carries numbers. Who looks at an object, or writes into it, must find the right one: at the
head of a turn a name may stand for the tensor that it stood for before the loop, for another one
from outside, for one that an earlier turn has made, or for the one that another name stands for.
Where that is not plain, the loop carries which it is, as an int: 0 for one that a turn has made,
otherwise the number of a *candidate*.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dilim import dtypes
from dilim.slicing import identities, numbers, parts
from dilim.slicing.numbers import Number
from dilim.slicing.parts import Part
from dilim.slicing.values import Choice
from dilim.tensors.elementwise import where
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer

Slot = tuple[Any, int]
"""A place of a loop, and the number of a tensor in what it holds."""


class Made:
    """A tensor that a turn has made: the tensor, or what stands for it among others."""

    def __init__(self, tensor: Tensor) -> None:
        self.tensor = tensor


Object = Tensor | Part | Made
Candidate = Tensor | Part | Slot
"""A tensor that was there before the turn, a view at a position of one, or what a slot has."""


@dataclass(eq=False)
class CarriedObjects:
    """What is known of the objects of a loop that is being made.

    Attributes:
        slicer: who interprets.
        starts: what the places held before the loop, those that held something.
        candidates: per slot that carries which object it has.
        same: slots that have one tensor at the end of a turn: each with the first of them.
    """

    slicer: Slicer
    starts: dict[Any, Any] = field(default_factory=dict)
    candidates: dict[Slot, list[Candidate]] = field(default_factory=dict)
    same: dict[Slot, Slot] = field(default_factory=dict)

    # --- before a turn --------------------------------------------------------------------

    def columns(self) -> list[Tensor]:
        """What says before the loop which objects there are."""
        made: list[Any] = []
        for slot, candidates in self.candidates.items():
            made.append(0 if self._start(slot) is None else 1)
            made += [0] * sum(_width(x) for x in candidates)
        return [self._int(x) for x in made]

    def let_be(
        self, values: Mapping[Any, Any], given: Iterator[Tensor], later: Number | None
    ) -> None:
        """Let the tensors at the head of a turn, or after the loop, be the objects that they are.

        Args:
            values: what the places hold.
            given: what says which objects there are.
            later: whether there was a turn before; None for certainly.
        """
        slots = _slots(values)
        for slot, x in slots.items():
            start, same = self._start(slot), slots.get(self.same.get(slot))  # type: ignore[arg-type]
            if slot in self.candidates:
                which = next(given)
                known = self._known(slot, slots, given)
                with no_grad():
                    flags = [Number(which == k, bool) for k in range(1, len(known) + 1)]
                self.slicer.one_of.let_be(x, list(zip(flags, known, strict=True)))
                continue
            others = []
            if start is not None and later is not None:
                others = [(numbers.opposite(later), start)]
            if same is not None:
                is_sure = start is None or later is None
                flag = numbers.symbolic(self.slicer.trace, True) if is_sure else later
                others.append((flag, same))  # type: ignore[arg-type]
            self.slicer.one_of.let_be(x, others)

    def _start(self, slot: Slot) -> Tensor | None:
        found = tensors_of(self.starts.get(slot[0]))
        return found[slot[1]] if slot[1] < len(found) else None

    def _known(
        self, slot: Slot, slots: Mapping[Slot, Tensor], given: Iterator[Tensor]
    ) -> list[Tensor]:
        """The candidates of a slot, found anew."""
        found: list[Tensor] = []
        for candidate in self.candidates[slot]:
            if isinstance(candidate, Part):
                sizes = candidate.owner.shape
                index = tuple(
                    Number(next(given), int, size) if each.__class__ is Number else each
                    for each, size in zip(candidate.index, sizes, strict=False)
                )
                found.append(
                    parts.take(self.slicer.trace, dataclasses.replace(candidate, index=index))
                )
            else:
                found.append(candidate if isinstance(candidate, Tensor) else slots[candidate])
        return found

    def _int(self, x: int | Tensor) -> Tensor:
        return x if isinstance(x, Tensor) else numbers.symbolic(self.slicer.trace, x).tensor

    def forget(self, place: Any) -> None:
        """Carry nothing for a place any more."""
        self.candidates = {
            slot: [x for x in known if not (x.__class__ is tuple and x[0] == place)]
            for slot, known in self.candidates.items()
            if slot[0] != place
        }
        self.same = {slot: x for slot, x in self.same.items() if place not in (slot[0], x[0])}

    # --- at the end of a turn -------------------------------------------------------------

    def look(self, values: Mapping[Any, Any]) -> bool:
        """See which objects the places have at the end of a turn; whether that was known."""
        self._ends = ends = _slots(values)
        first: dict[int, Slot] = {}
        for slot, x in ends.items():
            first.setdefault(id(x), slot)
        same = {slot: first[id(x)] for slot, x in ends.items() if first[id(x)] != slot}
        is_known = same == self.same
        self.same = same
        self._objects = {slot: list(self._leaves(x)) for slot, x in ends.items()}
        made = [each.tensor for x in self._objects.values() for each in x if isinstance(each, Made)]
        for x in made:
            identities.refuse_shared(self.slicer, x, made)
        for slot, found in self._objects.items():
            if slot in same:
                is_known &= self.candidates.pop(slot, None) is None
                continue
            for candidate in self._candidates(slot, found):
                if self._number(slot, candidate) == 0:
                    start = self._start(slot)
                    known = self.candidates.setdefault(slot, [] if start is None else [start])
                    if self._number(slot, candidate) == 0:
                        known.append(candidate)
                    is_known = False
        return is_known

    def ends(self) -> list[Tensor]:
        """What says at the end of a turn which objects there are."""
        made: list[Any] = []
        for slot, candidates in self.candidates.items():
            x = self._ends.get(slot)
            width = 1 + sum(_width(each) for each in candidates)
            made += [0] * width if x is None else self._told(slot, x)
        return [self._int(x) for x in made]

    def made(self, x: Tensor) -> list[Tensor]:
        """The tensors and views that a turn has made, of those that a tensor may be."""
        every = (each for _, each in self.slicer.one_of.alternatives(x))
        owners = self.slicer.one_of.owners
        return [
            owners.get(id(each), each)
            for each in every
            if isinstance(self._object(each), Made | Part)
        ]

    def _leaves(self, x: Tensor) -> list[Object]:
        """The objects that a tensor may be."""
        return [self._object(each) for _, each in self.slicer.one_of.alternatives(x)]

    def _object(self, x: Tensor) -> Object:
        trace = self.slicer.trace
        part = parts.part_of(trace, x)
        if part is not None and not trace.made_inside(part.owner):
            return part
        return Made(x) if trace.made_inside(x) else x

    def _candidates(self, slot: Slot, found: Sequence[Object]) -> Iterator[Candidate]:
        """The objects of a slot that are not its own."""
        for each in found:
            if isinstance(each, Made):
                yield from self._others(slot, each)
            else:
                yield each

    def _others(self, slot: Slot, made: Made) -> Iterator[Slot]:
        """The slots before one that may have an object as well."""
        for other, found in self._objects.items():
            if other == slot:
                return
            if other not in self.same and any(_is(each, made) for each in found):
                yield other

    def _number(self, slot: Slot, candidate: Candidate) -> int:
        """The number of a candidate; 0 for one that is not known."""
        known = self.candidates.get(slot, [])
        return next((k for k, x in enumerate(known, 1) if self._is_same(x, candidate)), 0)

    def _is_same(self, a: Candidate, b: Candidate) -> bool:
        """Whether candidates are one object, or views of the same elements."""
        if isinstance(a, Part) and isinstance(b, Part):
            return a.owner is b.owner and parts.have_one_form(a.index, b.index)
        if isinstance(a, Tensor) and isinstance(b, Tensor):
            return a is b or parts.are_one_view(self.slicer.trace, a, b)
        return a.__class__ is b.__class__ is tuple and a == b

    def _told(self, slot: Slot, x: Tensor) -> list[Any]:
        """Which object a tensor is: its number, and the positions of all candidates."""
        *others, (_, own) = self.slicer.one_of.alternatives(x)
        told = self._told_of(slot, self._object(own))
        for flag, each in others:
            other = self._told_of(slot, self._object(each))
            told = [_chosen(flag, *pair) for pair in zip(other, told, strict=True)]
        return told

    def _told_of(self, slot: Slot, found: Object) -> list[Any]:
        which: Any = 0
        if isinstance(found, Made):
            for other in self._others(slot, found):
                holds = self._holds(self._ends[other], found)
                which = _chosen(holds, self._number(slot, other), which)
        else:
            which = self._number(slot, found)
        told = [which]
        for number, candidate in enumerate(self.candidates[slot], 1):
            places = _positions(found if which.__class__ is int and number == which else None)
            told += [x.tensor for x in places] or [0] * _width(candidate)
        return told

    def _holds(self, x: Tensor, made: Made) -> Any:
        """Whether a tensor is an object that a turn has made."""
        for flag, each in self.slicer.one_of.alternatives(x):
            if _is(self._object(each), made):
                return flag
        return False


def tensors_of(value: Any) -> list[Tensor]:
    """The tensors that a loop carries for a value, in their order."""
    if isinstance(value, Tensor):
        return [value]
    if value.__class__ is tuple:
        return [x for part in value for x in tensors_of(part)]
    return tensors_of(value.yes) if value.__class__ is Choice else []


def _slots(values: Mapping[Any, Any]) -> dict[Slot, Tensor]:
    return {
        (place, k): x for place, value in values.items() for k, x in enumerate(tensors_of(value))
    }


def _is(x: Any, made: Made) -> bool:
    return isinstance(x, Made) and x.tensor is made.tensor


def _positions(x: Any) -> list[Number]:
    """The numbers of the program in the position of a part."""
    index = x.index if isinstance(x, Part) else ()
    return [each for each in index if each.__class__ is Number]


def _width(candidate: Candidate) -> int:
    return len(_positions(candidate))


def _chosen(flag: bool | Number, yes: Any, no: Any) -> Any:
    """One of two ints, of which any may be a tensor."""
    if flag.__class__ is bool:
        return yes if flag else no
    if yes.__class__ is int and no.__class__ is int and yes == no:
        return yes
    with no_grad():
        return where(flag.tensor, yes, no).astype(dtypes.int64)  # type: ignore[union-attr]
