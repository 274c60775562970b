"""Which objects the tensors are that a loop carries.

A loop carries numbers. Who looks at an object, or writes into it, must find the right one: at the
head of a turn a name may stand for the tensor that it stood for before the loop, for another one
from outside, for one that an earlier turn has made, or for the one that another name stands for.
Where that is not plain, the loop carries which it is, as an int: 0 for one that a turn has made,
otherwise the number of a *candidate*.
"""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dilim import dtypes
from dilim.ir.types import Type, type_of
from dilim.slicing import numbers, parts
from dilim.slicing.errors import Restart, Unsliceable
from dilim.slicing.numbers import Number
from dilim.slicing.parts import Part
from dilim.slicing.turn_objects import (
    Made,
    Object,
    Slot,
    View,
    are_one,
    left_to_host,
    memory_of,
    objects_of,
    refuse_shared,
    slots_of,
    tensors_of,
)
from dilim.tensors.elementwise import where
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer

Candidate = Tensor | Part | View | Slot
"""A tensor that was there before the turn, a view that a turn takes of one, at a position of the
program or a known one, or what a slot has."""


@dataclass(eq=False)
class CarriedObjects:
    """What is known of the objects of a loop that is being made.

    Attributes:
        slicer: who interprets.
        starts: what the places held before the loop, those that held something.
        candidates: per slot that carries which object it has.
        same: slots that have one tensor at the end of a turn: each with the first of them.
        settled: slots in which there is never what a turn has made, but for views.
    """

    slicer: Slicer
    starts: dict[Any, Any] = field(default_factory=dict)
    candidates: dict[Slot, list[Candidate]] = field(default_factory=dict)
    same: dict[Slot, Slot] = field(default_factory=dict)
    settled: set[Slot] = field(default_factory=set)
    _unsettled: set[Slot] = field(default_factory=set)
    _objects: dict[Slot, list[Object]] = field(default_factory=dict)
    _expected: dict[Slot, tuple[Type, list[Object]]] = field(default_factory=dict)

    # --- before a turn --------------------------------------------------------------------

    def begin(self, firsts: Mapping[Any, Any], starts: dict[Any, Any]) -> None:
        """Begin an attempt.

        Args:
            firsts: what the places hold at the head of the first turn.
            starts: see the attribute.
        """
        self.starts = starts
        slots = slots_of(firsts)
        new = {
            slot: found
            for slot, (type, found) in self._expected.items()
            if slot in slots and type_of(slots[slot]) == type
        }
        self._expected = {}
        self._objects |= new
        for slot, found in new.items():
            self._note(slot, found)

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
        slots = self._heads = slots_of(values)
        told = {slot: (next(given), self._known(slot, slots, given)) for slot in self.candidates}
        for slot, x in slots.items():
            is_one = slot in self.settled
            start, same = self._start(slot), slots.get(self.same.get(slot))  # type: ignore[arg-type]
            if slot in told:
                which, known = told[slot]
                with no_grad():
                    flags = [Number(which == k, bool) for k in range(1, len(known) + 1)]
                self.slicer.one_of.let_be(x, list(zip(flags, known, strict=True)), is_one)
                continue
            others = []
            if start is not None and later is not None:
                others = [(numbers.opposite(later), start)]
            if same is not None:
                is_sure = start is None or later is None
                flag = numbers.symbolic(self.slicer.trace, True) if is_sure else later
                others.append((flag, same))  # type: ignore[arg-type]
            self.slicer.one_of.let_be(x, others, is_one)

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
                known = (Number(next(given), int, max(sizes)) for _ in itertools.count())
                index = parts.with_numbers(candidate.index, known)
                found.append(
                    parts.take(self.slicer.trace, dataclasses.replace(candidate, index=index))
                )
            elif isinstance(candidate, View):
                self.slicer.objects.made_in[id(candidate.tensor)] = self.slicer.trace.top
                found.append(candidate.tensor)
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
        ends = {slot: x for slot, x in slots_of(values).items() if self._keeps_type(slot, x)}
        first: dict[int, Slot] = {}
        for slot, x in ends.items():
            first.setdefault(id(x), slot)
        same = {slot: first[id(x)] for slot, x in ends.items() if first[id(x)] != slot}
        is_known = same == self.same
        self.same = same
        self._told = {slot: objects_of(self.slicer, x) for slot, x in ends.items()}
        self._objects = {slot: [each for _, each in told] for slot, told in self._told.items()}
        is_known &= self._settle()
        for slot, found in self._objects.items():
            if slot in same:
                is_known &= self.candidates.pop(slot, None) is None
            else:
                is_known &= self._note(slot, found)
        return is_known

    def _note(self, slot: Slot, found: Sequence[Object]) -> bool:
        """Take note of the objects that a slot has; whether they were known."""
        is_known = True
        for candidate in self._candidates(slot, found):
            if self._number(slot, candidate) == 0:
                start = self._start(slot)
                known = self.candidates.setdefault(slot, [] if start is None else [start])
                if self._number(slot, candidate) == 0:
                    known.append(self._standing_for(candidate))
                is_known = False
        return is_known

    def expect(self, values: Mapping[Any, Any]) -> None:
        """See at the end of a turn which objects other places have, that the next attempt carries.

        Mostly it finds the same, and then it is the last one.
        """
        for slot, x in slots_of(values).items():
            try:
                found = [each for _, each in objects_of(self.slicer, x)]
            except Unsliceable:
                continue  # that is for the next attempt to say
            if all(each.__class__ is Made or isinstance(each, Tensor) for each in found):
                self._expected[slot] = type_of(x), found

    def _keeps_type(self, slot: Slot, x: Tensor) -> bool:
        head = self._heads.get(slot)
        return head is not None and type_of(head) == type_of(x)

    def ends(self) -> list[Tensor]:
        """What says at the end of a turn which objects there are."""
        made: list[Any] = []
        for slot, candidates in self.candidates.items():
            width = 1 + sum(_width(each) for each in candidates)
            made += self._tell(slot) if slot in self._told else [0] * width
        return [self._int(x) for x in made]

    def made(self, x: Tensor) -> list[Tensor]:
        """The tensors and views that a turn has made, of those that a tensor may be."""
        owners, found = self.slicer.one_of.owners, list[Tensor]()
        for _, each in self.slicer.one_of.alternatives(x):
            is_old = all(isinstance(x, Tensor) for _, x in objects_of(self.slicer, each))
            found += [] if is_old else [owners.get(id(each), each)]
        return found

    def may_be_given(self, value: Any) -> bool:
        """Whether the host may have the object of a tensor that turns have made, in a value."""
        objects, own = self.slicer.objects, self.slicer.one_of.own
        made = [each for x in tensors_of(value) for each in self.made(x)]
        return any(objects.may_be_given(x) or own(x)._data.cell in objects.unsure for x in made)

    def refuse_given(self, place: tuple[str, Any], value: Any) -> None:
        """Refuse to carry a tuple with a tensor of which the host has the object.

        Raises:
            Restart: the place is to be left to the host.
            Unsliceable: it is a name, or that did not help.
        """
        if self.may_be_given(value):
            decision = left_to_host(self.slicer, place)
            if decision is None or decision in self.slicer.decisions:
                raise Unsliceable("a loop carries a tuple with a tensor that the host has")
            raise Restart(decision)

    def be_unsure(self, x: Tensor, decision: Any) -> None:
        """Take note that the host may have some object or other of what turns have left.

        Args:
            x: a tensor at the head of a turn, or after the loop.
            decision: what is decided for it to be known which; None where nothing helps.
        """
        cell = self.slicer.one_of.own(x)._data.cell
        self.slicer.trace.frozen.add(cell)
        if decision is not None:
            views = (("view", id(each)) for each in self._taken(x))
            self.slicer.objects.unsure |= dict.fromkeys((cell, *views), decision)

    def _taken(self, x: Tensor) -> list[Any]:
        """What stands for the views that a turn may have taken, of what a tensor may be."""
        views = {
            id(each.tensor)
            for known in self.candidates.values()
            for each in known
            if isinstance(each, View)
        }
        found = list[Any]()
        for _, each in self.slicer.one_of.alternatives(x):
            part = parts.part_of(self.slicer.trace, each)
            found += [part] if part is not None else [each] if id(each) in views else []
        return found

    def _settle(self) -> bool:
        """Find slots in which there is never what a turn has made; whether no more were found.

        Raises:
            Restart: what turns make shares memory, so that the host has to make it.
        """
        slots = {self.slicer.one_of.own(x)._data.cell: slot for slot, x in self._heads.items()}
        memory = {
            slot: {
                id(each.tensor): memory_of(self.slicer, each)
                for each in found
                if each.__class__ is Made
            }
            for slot, found in self._objects.items()
        }
        made = set[Slot]()
        grows = True
        while grows:
            grows = False
            for slot, found in memory.items():
                cells = set[Any]().union(*found.values())
                if slot not in made and any(slots.get(x) in {None, *made} for x in cells):
                    made.add(slot)
                    grows = True
        if self.settled & made:
            self._unsettled |= made
            self.settled -= made
            return False
        more = {
            slot
            for slot, found in self._objects.items()
            if memory[slot] and any(isinstance(each, View | Part) for each in found)
        }
        more -= made | self._unsettled | self.settled
        self.settled |= more
        if not more:
            real = {
                key: cells
                for found in memory.values()
                for key, cells in found.items()
                if any(slots.get(x) in {None, *made} for x in cells)
            }
            refuse_shared(self.slicer, real)
        return not more

    def _candidates(self, slot: Slot, found: Sequence[Object]) -> Iterator[Candidate]:
        """The objects of a slot that are not its own."""
        for each in found:
            if not isinstance(each, Tensor):
                yield from self._others(slot, each)
            if each.__class__ is not Made:
                yield each  # type: ignore[misc]

    def _others(self, slot: Slot, made: Object) -> Iterator[Slot]:
        """The slots before one that may have an object as well."""
        for other, found in self._objects.items():
            if other == slot:
                return
            if other not in self.same and any(are_one(each, made) for each in found):
                yield other

    def _number(self, slot: Slot, candidate: Candidate) -> int:
        """The number of a candidate; 0 for one that is not known."""
        known = self.candidates.get(slot, [])
        return next((k for k, x in enumerate(known, 1) if self._is_same(x, candidate)), 0)

    def _standing_for(self, candidate: Candidate) -> Candidate:
        """What stands for a candidate in all turns, for one slot alone."""
        if not isinstance(candidate, View):
            return candidate
        trace = self.slicer.trace
        return View(trace.tensor(trace.handle(candidate.tensor)))

    def _is_same(self, a: Candidate, b: Candidate) -> bool:
        """Whether candidates are one object, or views of the same elements."""
        if isinstance(a, Part) and isinstance(b, Part):
            return a.owner is b.owner and parts.have_one_form(a.index, b.index)
        if isinstance(a, View) and isinstance(b, View):
            return parts.are_one_view(self.slicer.trace, a.tensor, b.tensor)
        return a is b or (a.__class__ is b.__class__ is tuple and a == b)

    def _tell(self, slot: Slot) -> list[Any]:
        """Which object a slot has: its number, and the positions of all candidates."""
        *others, (_, last) = self._told[slot]
        told = self._tell_of(slot, last)
        for flag, each in others:
            other = self._tell_of(slot, each)
            told = [_chosen(flag, *pair) for pair in zip(other, told, strict=True)]
        return told

    def _tell_of(self, slot: Slot, found: Object) -> list[Any]:
        number = 0 if found.__class__ is Made else self._number(slot, found)  # type: ignore[arg-type]
        which: Any = number
        if not isinstance(found, Tensor):
            for other in self._others(slot, found):
                which = _chosen(self._holds(other, found), self._number(slot, other), which)
        told = [which]
        for k, candidate in enumerate(self.candidates[slot], 1):
            places = _positions(found if k == number else None)
            told += [x.tensor for x in places] or [0] * _width(candidate)
        return told

    def _holds(self, slot: Slot, made: Object) -> Any:
        """Whether a slot has an object that a turn has made."""
        return next((flag for flag, each in self._told[slot] if are_one(each, made)), False)


def _positions(x: Any) -> list[Number]:
    """The numbers of the program in the position of a part."""
    return parts.numbers_in(x.index) if isinstance(x, Part) else []


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
