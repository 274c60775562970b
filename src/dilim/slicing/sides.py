"""Sides of a branch that was interpreted: what is left of each when they meet."""

from __future__ import annotations

import functools
import operator
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from dilim.runtime.devices import Storage
from dilim.slicing import given_containers, identities
from dilim.slicing.errors import Unsliceable
from dilim.slicing.given_containers import have_seen_one
from dilim.slicing.host import Objects
from dilim.slicing.numbers import Number
from dilim.slicing.tapes import is_node, perhaps
from dilim.slicing.tracing import SlicerTrace
from dilim.slicing.values import UNBOUND, Held
from dilim.slicing.writes import Write, Writes
from dilim.tensors.cells import Cell, Frame
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.interpreter import State

Made = Callable[[Sequence[Tensor]], Any]
"""From the results of the node of a branch to a value."""
_INNER = ("%return", "%result", "%break", "%continue", "%go", "%found", "%read")


@dataclass(slots=True, eq=False)
class Side:
    """One side of a branch after it was interpreted."""

    frame: Frame
    state: State
    written: dict[Cell, Any]
    released: list[Any]
    writes: list[Write]

    @property
    def dead(self) -> bool:
        """Whether it never comes to its end."""
        return self.state.dead

    def containers(self) -> dict[int, None]:
        """The lists and dicts that somebody may look at later, by identity."""
        state = self.state
        if state.dead:
            return {}
        reached = identities.containers(state.envs, state.heap, state.contents)
        return reached | dict.fromkeys(given_containers.unseen(state.held, state.contents))


def drop(sides: Sequence[Side], wanted: Sequence[frozenset[str]], start: State) -> None:
    """Forget what became of names that nobody reads any more."""
    for side in sides:
        for env, names, before in zip(side.state.envs, wanted, start.envs, strict=True):
            for name in [x for x in env if x not in names and not x.startswith(_INNER)]:
                del env[name]
                if name in before:  # a branch around this one may have it on its other side
                    env[name] = before[name]


def write_again(writes: Writes, sides: Sequence[Side]) -> None:
    """Count what sides have written; what not both of them have may be written, or not."""
    ends = [Counter(w.x._storage for w in s.writes if w.is_outer) for s in sides if not s.dead]
    found = {w.x._storage: w for side in sides for w in side.writes}
    for storage, count in functools.reduce(operator.or_, ends, Counter[Storage]()).items():
        written = found[storage]
        if all(storage in each for each in ends):
            for _ in range(count):
                writes.count(written.x, written.cell)
        else:
            writes.may_be(written.x, written.cell, count)


def release_again(
    trace: SlicerTrace, sides: Sequence[Side], is_given: Callable[[Any], bool]
) -> None:
    """Use up the tape that both sides have used up; what one has may be, or not.

    Args:
        trace: the graph.
        sides: both.
        is_given: whether the host may have a recorded operation.

    Raises:
        Unsliceable: the host may have what one side has used up.
    """
    ends = [set(side.released) for side in sides if not side.dead]
    for node in dict.fromkeys(node for side in sides for node in side.released):
        if ends and all(node in released for released in ends):
            node.release()
        elif any(node in released for released in ends):
            if is_given(node):
                raise Unsliceable("backward() on one path, of what host code may have")
            trace.tear(node)


def held_after(
    key: Any,
    sides: Sequence[Side],
    objects: Objects,
    flag: Callable[[Any, Any], Made],
    alone: Callable[[int, Any], Made],
) -> Made:
    """What the host has of something in the graph after a branch: from both paths, or from one.

    Args:
        key: see `Objects.held`.
        sides: both.
        objects: what stands for what.
        flag: how a bool is made that is one thing on the first side, and another on the second.
        alone: how a value is made of which the other side has none.
    """
    a, b = (side.state.held.get(key) for side in sides)
    if sides[0].dead or sides[1].dead or a is b:
        side = 0 if sides[1].dead else 1
        known: Any = (a, b)[side]
        if known is None or is_node(key) or known.flag is True:
            return lambda _: known
        told = alone(side, known.flag)
        return lambda results: known._replace(flag=told(results))
    found: Any = a or b
    if is_node(key):
        return lambda _: a if a == b else perhaps(found)
    seen = None if a and b and not have_seen_one(a, b) else found.seen
    is_kept = any(x is not None and x.is_kept for x in (a, b))
    if a and b and a.flag is b.flag:
        return lambda _: Held(found.number, seen, found.flag, is_kept)
    if not is_kept or not objects.is_known(key):
        return lambda _: None
    make = flag(*(False if x is None else x.flag for x in (a, b)))
    return lambda results: Held(found.number, seen, make(results))


def counted_after(
    sides: Sequence[Side],
    flag: Callable[[Any, Any], Made],
    alone: Callable[[int, Any], Made],
) -> dict[Cell, Made]:
    """Whether memory was written after a branch, and the host has not heard of it.

    What is known in the same way of several pieces of memory stays one flag for all of them.

    Args:
        sides: both.
        flag: see `held_after`.
        alone: likewise.
    """
    a, b = (side.state.uncounted for side in sides)
    made: dict[tuple[int, int], Made] = {}
    found = {}
    for cell in {**a, **b}:
        one, two = a.get(cell, False), b.get(cell, False)
        key = id(one), id(two)
        if key not in made:
            made[key] = _once(_counted_after(one, two, sides, flag, alone))
        found[cell] = made[key]
    return found


def _counted_after(
    a: Any,
    b: Any,
    sides: Sequence[Side],
    flag: Callable[[Any, Any], Made],
    alone: Callable[[int, Any], Made],
) -> Made:
    if sides[0].dead or sides[1].dead:
        return alone(1, b) if sides[0].dead else alone(0, a)
    return (lambda _: a) if a is b else flag(a, b)


def _once(make: Made) -> Made:
    """What makes a thing when it is asked for first."""
    known: list[Any] = []

    def made(results: Sequence[Tensor]) -> Any:
        if not known:
            known.append(make(results))
        return known[0]

    return made


def renewed(old: Number, tensor: Tensor) -> Number:
    """A number like another, with another value."""
    made = Number(tensor, old.kind, old.bound)
    made.base, made.drift = old.base, old.drift
    return made


def common(a: dict[Any, Any], b: dict[Any, Any]) -> dict[Any, Any]:
    """What is the same object in both."""
    return {key: value for key, value in a.items() if b.get(key, UNBOUND) is value}


def kept_apart(trace: Any, x: Tensor) -> str:
    """Why a tensor of a side cannot be one with what the other side has; "" if it can."""
    if trace.is_made_leaf(x):
        return "a tensor that requires a gradient is made on one path"
    if trace.owns(x) and not x._data.writeable and x._data.cell.variable is None:
        return "a tensor that cannot be written, as it was stretched, is made in a branch or loop"
    return ""
