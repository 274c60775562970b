"""What the turns of a loop carry: where it is, what it is before, and what a turn makes of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

from dilim.slicing import bundles, grads, heap, numbers, program, shown
from dilim.slicing.actions import CHECK
from dilim.slicing.carried_objects import CarriedObjects
from dilim.slicing.errors import Again, Before, Peel, Restart, Unsliceable, bound_in_loop
from dilim.slicing.given_containers import KEY
from dilim.slicing.interpreter import RESULT
from dilim.slicing.made_functions import refuse
from dilim.slicing.numbers import Number
from dilim.slicing.tapes import is_node
from dilim.slicing.tracing import is_used_up
from dilim.slicing.turn_gradients import TurnGradients
from dilim.slicing.turn_objects import tensors_of
from dilim.slicing.turn_writes import TurnWrites
from dilim.slicing.values import UNBOUND, Choice, Conflict, Held, Host, is_same, is_tuple, items_of
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.interpreter import State
    from dilim.slicing.slicer import Slicer

GO: Final = "%go"
"""Stands for whether a loop has another turn."""
Place = tuple[str, Any]
"""What a loop carries: ("name", (depth, name)), ("heap", key), ("grad", key), ("cell", cell),
("item", (identity of a list or dict, index or key)), ("held", key): whether the host has the
object for some memory, ("shown", group): whether it sees what is there; see `shown`, or
("counted", cell): whether memory was written of which the host has not heard."""


def tensor_in(value: Any) -> Any:
    """The tensor that a value is, or may be beside None and the like; else None."""
    value = value.yes if value.__class__ is Choice else value
    return value if isinstance(value, Tensor) else None


@dataclass(eq=False)
class Carried:
    """What a loop node that is being made carries from turn to turn.

    Attributes:
        slicer: who interprets.
        statement: the loop.
        names: that a turn may bind.
        places: what is carried.
        first: for places that are unbound before the loop: what their zeros are like.
        starts: for what is None or unbound before the loop, and may be again: likewise, and which.
        hosted: names whose values only the host has -> their type.
        entered: whether there is a turn, if that is known.
        can_peel: whether the first turn may be taken out of the loop.
        used_up: tensors whose tape is used up after a turn, by place and number -> what made them.
        gradients: which tensors have a gradient in some turns only.
        shown: attributes whose value on the host is not that of the graph at a turn's beginning.
        objects: which objects the tensors are.
        writes: what a turn writes of the memory from before the loop.
        given: places whose tensor at the end of a turn the host may have -> the number of its
            object there, None where that depends on the path.
        moved: those of them whose object is given again in the next turn.
        truths: whether the host sees what is at the places of a group, at this point.
        words: for places that hold one of a few texts: which.
        lost: places that hold something before the loop, and after a turn may hold None.
    """

    slicer: Slicer
    statement: program.While | program.For
    names: list[str]
    places: dict[Place, None] = field(default_factory=dict)
    first: dict[Place, Any] = field(default_factory=dict)
    starts: dict[Place, Any] = field(default_factory=dict)
    hosted: dict[str, Any] = field(default_factory=dict)
    entered: Any = None
    can_peel: bool = True
    used_up: dict[tuple[Place, int], str] = field(default_factory=dict)
    gradients: TurnGradients = field(init=False)
    shown: dict[Any, None] = field(default_factory=dict)
    objects: CarriedObjects = field(init=False)
    writes: TurnWrites = field(init=False)
    given: dict[Place, int | None] = field(default_factory=dict)
    moved: set[Place] = field(default_factory=set)
    lost: set[Place] = field(default_factory=set)
    words: dict[Place, list[Any]] = field(default_factory=dict)
    truths: dict[Any, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.objects = CarriedObjects(self.slicer)
        self.writes = TurnWrites(self.slicer.trace)
        self.gradients = TurnGradients(self.slicer)

    def start_of(self, place: Place) -> Any:
        """What a place holds before the loop; for one that is unbound, what zeros stand for it."""
        if place in self.first and place not in self.words:
            return self.first[place]
        if place in self.starts:
            is_there = numbers.symbolic(self.slicer.trace, False)
            return Choice(is_there, *self.starts[place])
        value = self.now(place)
        if place in self.words:
            first = self.words[place][0] if self.begins_empty(place) else value
            return bundles.Words(first, tuple(self.words[place]))
        if place in self.lost and bundles.is_carriable(value):
            return Choice(numbers.symbolic(self.slicer.trace, True), value, None)
        return value

    def put(
        self, place: Place, value: Any, *, after: bool = False, sure: bool = True, limit: Any = None
    ) -> None:
        """Make a place hold a value: at the head of a turn, or after the loop."""
        slicer = self.slicer
        kind, key = place
        if kind == "name":
            if after and place in self.first and not sure and key[1] != RESULT:
                value = self._maybe(value, limit)
            slicer.scopes[key[0]].env[key[1]] = value
        elif kind == "heap":
            slicer.heap[key] = value
        elif kind == "grad":
            slicer.leaves[key].grad = value
        elif kind == "item":
            slicer.fresh[key[0]][key[1]] = value
        elif kind == "shown":
            self.truths[key] = value
        elif kind == "counted":
            self.writes.let_be(key, value)
        elif kind == "held":
            is_old = key.__class__ is tuple or ("cell", key) in self.places
            known, now = slicer.objects.held, None if is_old else slicer.trace.contents(key)
            seen = now if key not in known or known[key].seen is now else None
            known[key] = Held(slicer.objects.number_of(key), seen, value)
        else:
            slicer.trace.assign(key, slicer.trace.value(value._data))

    def now(self, place: Place) -> Any:
        """What a place holds."""
        slicer = self.slicer
        kind, key = place
        if kind == "name":
            return slicer.scopes[key[0]].env.get(key[1], UNBOUND)
        if kind == "heap":
            value = slicer.heap.get(key, UNBOUND)
            return slicer.original(key) if value is UNBOUND else value
        if kind == "grad":
            return slicer.leaves[key].grad
        if kind == "held":
            known = slicer.objects.held.get(key)
            return known is not None and known.flag
        if kind == "counted":
            return slicer.trace.uncounted.get(key, False)
        if kind == "item":
            return slicer.fresh[key[0]][key[1]]
        if kind == "shown":
            return shown.are_seen(slicer, (x for x in self.shown if shown.group(x) == key))
        return slicer.trace.symbol(slicer.trace.contents(key))

    def old_places(self) -> set[Any]:
        """What the host has of memory and of lists and dicts that a turn changes."""
        cells = {key for kind, key in self.places if kind == "cell"}
        return cells | {(KEY, key[0]) for kind, key in self.places if kind == "item"}

    def turned(self, limit: Any) -> Number:
        """Whether there was a turn."""
        if not isinstance(limit, Tensor):
            return numbers.symbolic(self.slicer.trace, self.entered)
        with no_grad():
            return Number(limit > 0, bool)

    def _maybe(self, value: Any, limit: Any) -> Any:
        """The value of a name that is unbound if there is no turn."""
        return Choice(self.turned(limit), value, UNBOUND)

    def begins_empty(self, place: Place) -> bool:
        """Whether a place holds nothing before the loop, so that what it holds a turn has made."""
        return place in self.first or place in self.starts

    def collect(self, place: Place, shape: Any, out: list[Tensor]) -> None:
        """Append the tensors that carry what a place holds.

        Raises:
            Again: it may be None now.
            Peel: it is of another type than before the turn.
        """
        value = self.now(place)
        for number, x in enumerate(tensors_of(value)):
            if self.slicer.trace.is_new_leaf(x):
                raise Unsliceable("a tensor that requires a gradient is made in each turn")
            maker = x._node.op.name if is_used_up(x) else None  # type: ignore[union-attr]
            if maker is not None and self.used_up.get((place, number)) != maker:
                self.used_up[place, number] = maker
                raise Again
            if maker is None and self._begins_used_up(place, number):
                raise Peel("a tensor that backward() has used up goes through a loop")
        try:
            bundles.collect(self.slicer.trace, shape, value, out)
        except bundles.ChangesType:
            if place in self.words and bundles.note_words(self.words, place, value):
                raise Again from None
            is_second = self.slicer.peeled.get(self.statement)
            may_hold = place not in self.lost and bundles.may_be_none(value)
            if may_hold and (is_second or not self.can_peel):
                self.lost.add(place)
                raise Again from None
            if place[0] == "item" and is_second:
                raise Restart(("host", self.slicer.made_by[place[1][0]])) from None
            if place[0] == "heap" and is_second:
                raise Restart(heap.decision(self.slicer.owners[place[1][0]], place[1][1])) from None
            name = place[1][1] if place[0] in ("name", "heap", "item") else "a gradient"
            raise Peel(f"{name} changes its type in a loop") from None

    def _begins_used_up(self, place: Place, number: int) -> bool:
        """Whether a turn may read what backward() had used up before the loop."""
        found = tensors_of(self.objects.starts.get(place))
        live = self.slicer.scope.live.head[self.statement]
        is_read = place[0] != "name" or place[1][1] in live
        return is_read and number < len(found) and is_used_up(found[number])

    def check(self, head: State, places: list[Place]) -> None:
        """See whether more has to be carried.

        Args:
            head: what was so at the head of the turn.
            places: what is carried.

        Raises:
            Again: more has to be.
            Peel: a name changes its type.
        """
        slicer = self.slicer
        known = set(places)
        more = [
            *self._changed_names(head, known),
            *self._changed_items(head, known),
            *self._changed_memory(head, known),
        ]
        now = [key for key, x in slicer.seen.items() if head.seen.get(key, UNBOUND) is not x]
        now += [key for key, x in slicer.shown.items() if head.shown.get(key) is not x]
        if now and any(action.channel[0] == CHECK for action in slicer.actions):
            more += [x for x in (("shown", shown.group(k)) for k in now) if x not in known]
        more += [x for x in self.writes.uncertain(head) if x not in known]
        ends = {place: self.now(place) for place in places if place[0] != "cell"}
        is_known = self.objects.look(ends)
        is_known &= self.writes.look(head)
        if more or not self.shown.keys() >= set(now) or not is_known:
            self.shown.update(dict.fromkeys(now))
            self.places.update(dict.fromkeys(more))
            self.objects.expect({place: self.now(place) for place in more if place[0] != "cell"})
            raise Again

    def find_given(self, heads: dict[Place, Any]) -> None:
        """Find places whose tensor the host has at the end of a turn.

        Args:
            heads: what the places held at the beginning of the turn.

        Raises:
            Again: the object at the beginning is that of the turn before.
            Unsliceable: the next turn writes into it, which the host would have to see.
        """
        slicer = self.slicer
        for place in heads:
            head, value = tensor_in(heads[place]), tensor_in(self.now(place))
            if is_tuple(self.now(place)):
                self.objects.refuse_given(place, self.now(place))
            if head is None or value is None or place[0] in ("cell", "held"):
                continue
            if not self.objects.may_be_given(value):
                continue
            own = slicer.one_of.own(head)._data.cell
            if own.is_written:
                raise Unsliceable("a tensor that the host has is written in a later turn of a loop")
            was_known = self.given.get(place, 0) is None
            number = self.given[place] = slicer.objects.number_of_given(value)
            if number is None:
                if not was_known:
                    raise Again
                continue
            if slicer.objects.is_stale(value):
                slicer.refresh()
            if not slicer.objects.may_be_given(head):
                continue
            if place not in self.moved:
                self.moved.add(place)
                raise Again
            to, now = slicer.objects.number_of(own), self.now(place)
            if number != to:
                slicer.move_object(number, to, now.flag if now.__class__ is Choice else None)

    def _changed_names(self, head: State, known: set[Place]) -> list[Place]:
        """Names that have another value at the end of a turn, and are not carried."""
        slicer = self.slicer
        depth = len(slicer.scopes) - 1
        more: list[Place] = []
        for name in self.names:
            place: Place = ("name", (depth, name))
            before, now = head.envs[-1].get(name, UNBOUND), slicer.env.get(name, UNBOUND)
            if before is now or name == GO or (place in known and now.__class__ is not Host):
                continue
            refuse(before, now)
            if now.__class__ is Host or before.__class__ is Host:
                self._host_name(name, before, now)
            elif before is UNBOUND and bundles.is_carriable(now):
                if name in slicer.scope.live.exposed[self.statement]:
                    self.starts[place] = bundles.zeros_like(now), UNBOUND
                else:
                    self.first[place] = bundles.zeros_like(now)
                more.append(place)
            elif (
                before is UNBOUND
                and name not in slicer.scope.live.exposed[self.statement]
                and (bundles.note_words(self.words, place, now))
            ):
                self.first[place] = None
                more.append(place)
            elif before is not UNBOUND and is_same(before, now):
                continue
            elif bundles.is_carriable(before) and bundles.is_carriable(now):
                more.append(place)
            elif bundles.is_absent(before) and bundles.may_be(now, before):
                self.starts[place] = bundles.zeros_like(now), before
                more.append(place)
            elif bundles.is_optional(before) and bundles.may_be(now, before.no):
                more.append(place)
            elif bundles.note_words(self.words, place, before, now):
                more.append(place)
            elif before.__class__ is Conflict or now.__class__ is Conflict:
                continue
            elif before is UNBOUND:
                raise Unsliceable(bound_in_loop(name), self.statement.line)
            else:
                raise Peel(f"{name} changes its type in a loop")
        return more

    def _changed_items(self, head: State, known: set[Place]) -> list[Place]:
        """Items of lists and dicts of the region that a turn has replaced, and are not carried."""
        slicer = self.slicer
        more: list[Place] = []
        for made, contents in head.contents.items():
            pairs, found = items_of(contents), items_of(slicer.fresh[made])
            if [key for key, _ in pairs] != [key for key, _ in found]:
                raise Restart(("host", slicer.made_by[made]))
            for (key, before), (_, now) in zip(pairs, found, strict=True):
                place: Place = ("item", (made, key))
                if place in known or before is now or is_same(before, now):
                    continue
                if bundles.is_absent(before) and bundles.may_be(now, before):
                    self.starts[place] = bundles.zeros_like(now), before
                elif not (bundles.may_be(before) and bundles.may_be(now)):
                    raise Restart(("host", slicer.made_by[made]))
                more.append(place)
        return more

    def _changed_memory(self, head: State, known: set[Place]) -> list[Place]:
        """Attributes, gradients and memory that a turn has written, and that are not carried."""
        slicer = self.slicer
        more: list[Place] = []
        for key in heap.set_since(slicer, head.heap):
            if ("heap", key) not in known:
                before = head.heap.get(key, UNBOUND)
                before = slicer.original(key) if before is UNBOUND else before
                bundles.note_words(self.words, ("heap", key), before, slicer.heap[key])
                if key in slicer.modes and not slicer.peeled.get(self.statement):
                    raise Peel("the mode of a module changes in a loop")
                more.append(("heap", key))
        for leaf_key, leaf in slicer.leaves.items():
            place: Place = ("grad", leaf_key)
            if place in known or (slicer.trace.owns(leaf) and slicer.trace.made_inside(leaf)):
                continue
            before, now = grads.known_together(slicer, leaf_key, head, None)
            if before is not now:
                if bundles.is_absent(before):
                    self.starts[place] = bundles.zeros_like(now), before
                more.append(place)
        for cell in slicer.trace.outer_writes[-1]:
            if ("cell", cell) not in known:
                more.append(("cell", cell))
        for key, held in slicer.objects.held.items():
            before = head.held.get(key)
            if ("held", key) in known or not held.is_kept or is_node(key):
                continue
            if (before is None or before.flag is not held.flag) and slicer.objects.is_outer(key):
                more.append(("held", key))
        return more

    def _host_name(self, name: str, before: Any, now: Any) -> None:
        slicer = self.slicer
        if name in self.hosted:
            if now.__class__ is not Host and now is not UNBOUND:
                slicer.hand_over(slicer.scope, name, now)
                slicer.env[name] = Host(self.hosted[name])
            return
        if before is not UNBOUND and not isinstance(before, Host | Conflict):
            raise Before(name)
        live = slicer.scope.live.exposed if now.is_sure else slicer.scope.live.head
        if before is UNBOUND and name in live[self.statement]:
            raise Before(name)  # it has what an earlier turn has bound
