"""Tensors of the graph that are one of several objects; which, is known when the program runs.

After a branch, or at the head of a turn of a loop, a name may stand for a tensor that was there
before, or for one that was made since. What happens to the memory of one happens to the other, and
the host gets the right one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import Any

from dilim.slicing import numbers
from dilim.slicing.errors import OnHost
from dilim.slicing.numbers import Number
from dilim.slicing.parts import part_of, refuse_gradients, steps_of, take
from dilim.slicing.tracing import SlicerTrace, is_used_up
from dilim.tensors.cells import Cell, Frame, Handle
from dilim.tensors.elementwise import where
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

Others = Sequence[tuple[Number, Tensor]]


class OneOf:
    """Knows of which objects a tensor may be one.

    Args:
        trace: the graph.
        made_in: where views are made, by identity.

    Attributes:
        owners: what stands for the object of its own that such a tensor may be -> the tensor.
    """

    def __init__(self, trace: SlicerTrace, made_in: dict[int, Frame]) -> None:
        self._trace = trace
        self._made_in = made_in
        self._others: dict[int, Others] = {}
        self._none: dict[int, Number | None] = {}
        self._own: dict[int, Tensor] = {}
        self._kept: list[Tensor] = []
        self._over: dict[Cell, Tensor] = {}
        self._views: dict[tuple[int, int], Tensor] = {}
        self.owners: dict[int, Tensor] = {}
        trace.check_reshape = self._check_reshape

    def __contains__(self, x: Any) -> bool:
        return id(x) in self._others

    def others(self, x: Tensor) -> Others:
        """The objects that a tensor may be beside one of its own, each with the flag for it."""
        return self._others.get(id(x), ())

    def own(self, x: Tensor) -> Tensor:
        """What stands for a tensor's own object: itself where it is no other."""
        return self._own.get(id(x), x)

    def over(self, cell: Cell) -> Tensor | None:
        """The tensor that is one of several and has this memory, which stands for theirs."""
        return self._over.get(cell)

    def alternatives(self, x: Tensor) -> list[tuple[Any, Tensor]]:
        """The objects of which a tensor is one, each with True or the flag for it."""
        if x not in self:
            return [(True, x)]
        none = self._none[id(x)]
        return [*self.others(x), *([(none, self.own(x))] if none is not None else [])]

    def spread(
        self,
        x: Tensor,
        stays: Callable[[Tensor], bool],
        within: Callable[[], AbstractContextManager[None]] = nullcontext,
    ) -> Iterator[tuple[Any, Tensor]]:
        """The objects of which a tensor is one; for a view of one of several, views of each.

        Args:
            x: the tensor.
            stays: whether a tensor will be there, so that it need not be told of what it is a view.
            within: a context in which what is needed for the views is put at its place.

        Yields:
            Each with True or the flag for it.
        """
        left = self.alternatives(x)
        while left:
            flag, each = left.pop(0)
            whole = None if stays(each) else self.whole(each)
            if whole is None or each._requires_grad:
                yield flag, each
                continue
            with within():
                left[:0] = [
                    (known if flag is True else numbers.both(flag, known), self._view(each, source))
                    for known, source in self.alternatives(whole)
                ]

    def whole(self, x: Tensor) -> Tensor | None:
        """The tensor, one of several, that another is a view of; None for what is no such view."""
        if not self._trace.owns(x):
            return None
        part = part_of(self._trace, x)
        whole = self._over.get(x._data.cell) if part is None else part.owner
        return whole if whole in self and whole is not x else None

    def _view(self, like: Tensor, source: Tensor) -> Tensor:
        """The view of a tensor that another is of one of several, always the same object."""
        known = self._views.get((id(like), id(source)))
        if known is None:
            part = part_of(self._trace, like)
            if part is None:
                known = self._trace.tensor(self._viewed(source, like._data))
            else:
                known = take(self._trace, dataclasses.replace(part, owner=source))
            self._views[id(like), id(source)] = known
            self._made_in[id(known)] = self._trace.top
            self._kept += [like, source]
        return known

    def _viewed(self, source: Tensor, like: Handle) -> Handle:
        """The handle of a view of a tensor, taken like another of what stands for it.

        Raises:
            OnHost: it would be a copy.
        """
        handle = whole = self._trace.handle(source)
        for step in steps_of(like):
            handle = self._trace._view(handle, step, None)
        if handle.cell is not whole.cell:
            raise OnHost("a reshape that copies, or does not, depending on the tensor it is given")
        return handle

    def _check_reshape(self, made: Handle) -> None:
        """See to it that a view of what stands for other tensors would be a view of these."""
        whole, part = self._over.get(made.cell), self._trace.parts.get(made.cell)
        if part is not None:
            index = tuple(0 if x.__class__ is Number else x for x in part.index)
            self._viewed(self._trace.tensor(self._trace.handle(part.owner))[index], made)
        elif whole is not None:
            for _, source in self.alternatives(whole):
                self._viewed(source, made)

    def let_be(self, x: Tensor, others: Others, is_one: bool = False) -> None:
        """Let a tensor be one of several objects from here on.

        Args:
            x: the tensor; it is an object of its own where no flag holds.
            others: the others, each with the flag that says that it is that one; of these flags
                no two hold at once.
            is_one: whether one of them always holds.
        """
        known = self._flat(others)
        if not known:
            return
        is_other = known[0][0]
        for flag, _ in known[1:]:
            is_other = numbers.either(is_other, flag)
        self._none[id(x)] = None if is_one else numbers.opposite(is_other)
        own = self._own[id(x)] = self._trace.symbol(self._trace.value(self._trace.handle(x)))
        self._others[id(x)] = known
        self._over[x._data.cell] = x
        self.owners[id(own)] = x
        self._kept += [x, own]

        def take() -> Tensor:
            with no_grad():
                found = own
                for flag, other in known:
                    found = where(flag.tensor, other, found)
                return found

        def put(new: Tensor) -> None:
            refuse_gradients(own, new, *(other for _, other in known))
            for flag, other in known:  # one after the other: they may be views of one tensor
                other[...] = where(flag.tensor, new, other)
            own[...] = where(is_other.tensor, own, new)

        self._trace.follow(x, [own, *(other for _, other in known)], take, put)

    def told(self, x: Tensor, tell: Callable[[Tensor], bool]) -> bool | Number:
        """A bool that is told of each of the objects that a tensor may be, for the one it is.

        Args:
            x: the tensor.
            tell: what is told, of an object and not of its numbers.
        """
        found: Any = tell(x)
        for flag, other in self.others(x):
            found = numbers.chosen(flag, tell(self.owners.get(id(other), other)), found)
        return found  # type: ignore[no-any-return]

    def refuse_torn(self, x: Tensor) -> None:
        """Refuse to record what is done to a tensor that is used up only if it is some object.

        Raises:
            OnHost: it is such a tensor; the host has the right one.
        """
        every = (self.owners.get(id(each), each) for _, each in self.alternatives(x))
        if x in self and len(set(map(is_used_up, every))) > 1:
            raise OnHost("a tensor that backward() has used up on one path only")

    def _flat(self, others: Others) -> Others:
        """The same objects, each once, and none of which is itself one of several."""
        found: dict[int, tuple[Number, Tensor]] = {}
        for flag, other in others:
            for each, known in self.alternatives(other):
                holds = flag if each is True else numbers.both(flag, each)
                if id(known) in found:
                    holds = numbers.either(found[id(known)][0], holds)
                found[id(known)] = holds, known
        return list(found.values())

    def is_same(self, a: Any, b: Any) -> bool | Number:
        """Whether two objects are one."""
        if a not in self and b not in self:
            return a is b
        same: Any = False
        for flag, x in self.alternatives(a):
            for other_flag, y in self.alternatives(b):
                if x is y:
                    flags = [each for each in (flag, other_flag) if each is not True]
                    holds = flags[0] if len(flags) == 1 else numbers.both(*flags)
                    same = holds if same is False else numbers.either(same, holds)
        return same  # type: ignore[no-any-return]
