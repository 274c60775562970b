"""The values of a region as the host has them: Python code for each (see `actions`)."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import BuiltinMethodType, MethodType
from typing import Any

from dilim.ops.table import OPERATIONS
from dilim.slicing.actions import Action
from dilim.slicing.entry import Entry
from dilim.slicing.errors import OnHost, Peel, Restart, Unsliceable
from dilim.slicing.given_containers import KEY, Containers
from dilim.slicing.iterators import Making
from dilim.slicing.numbers import Number
from dilim.slicing.one_of import OneOf
from dilim.slicing.parts import code_of, steps_of
from dilim.slicing.tracing import SlicerTrace, is_recorded, is_used_up
from dilim.slicing.values import (
    AtEntry,
    Choice,
    Held,
    MadeFunction,
    Range,
    View,
    holds_host,
    is_tuple,
    owner_of,
)
from dilim.tensors.cells import Cell, Frame, Handle
from dilim.tensors.tensor import Tensor


class Objects:
    """Which objects of the host stand for which memory of the graph.

    Attributes:
        held: memory, or a view of some, a list or a dict -> what the host has of it.
        made_in: where views were made, by identity.
        one_of: which tensors are one of several objects.
        leaves: where the host has tensors of the region that have gradients of their own.
        unsure: memory, or a view, of which the host may have some object or other -> what to decide
            for it to be known which.
        makings: iterators that the region has made, and what it has taken from tensors of the
            host; they are never handed out.
    """

    def __init__(self, trace: SlicerTrace, entry: Entry) -> None:
        self.trace = trace
        self.entry = entry
        self.held: dict[Any, Held] = {}
        self._numbers: dict[Any, int] = {}
        self._makers: dict[Cell, Tensor] = {}
        self._kept: list[Any] = []
        self.made_in: dict[int, Frame] = {}
        self._viewed: dict[Any, Cell] = {}
        self.one_of = OneOf(trace, self.made_in)
        self.containers = Containers(self)
        self.leaves: dict[tuple[str, int], None] = {}
        self.unsure: dict[Any, Any] = {}
        self.makings: dict[int, Making] = {}

    def has(self, x: Tensor) -> bool:
        """Whether the host has the object of a tensor that the region makes."""
        return ("view", id(x)) in self.held or (
            x._data.cell in self.held and self._makers.get(x._data.cell) is x
        )

    def may_be_given(self, x: Tensor) -> bool:
        """Whether the host may have the object of a tensor that the region made, and keep it."""
        x = self.one_of.own(x)
        part = self.trace.parts.get(x._data.cell)
        keys = (("view", id(x)), ("view", id(part)), x._data.cell)
        held = [self.held.get(key) for key in keys]
        return any(each is not None and each.is_kept for each in held)

    def number_of_given(self, x: Tensor) -> int | None:
        """The number of the object that the host has of a tensor, if it has it for sure."""
        known = None if x in self.one_of else self.held.get(x._data.cell)
        is_sure = known is not None and known.flag is True and self._makers.get(x._data.cell) is x
        return known.number if known is not None and is_sure else None

    def is_stale(self, x: Tensor) -> bool:
        """Whether memory was written since the host got the object of a tensor that it has."""
        cell = x._data.cell
        return self.held[cell].seen is not self.trace.contents(cell)

    def hold(self, x: Tensor, number: int | None = None, flag: Any = True) -> None:
        """Take note that the host has the object of a tensor.

        Args:
            x: the tensor.
            number: of the object; by default its own.
            flag: see `Held`.
        """
        x = self.one_of.own(x)
        cell = x._data.cell
        self._makers.setdefault(cell, x)
        self._numbers.setdefault(cell, len(self._numbers) if number is None else number)
        self.held[cell] = Held(self._numbers[cell], self.trace.contents(cell), flag)

    def number_of(self, key: Any) -> int:
        """The number of the object for some memory or view, the same on all paths."""
        return self._numbers.setdefault(key, len(self._numbers))

    def is_unknown(self, x: Tensor) -> bool:
        """Whether it is not known of some of what a tensor may be what shares its memory."""
        is_view = x._requires_grad and self.one_of.whole(x) is not None
        return is_view or any(map(self._is_unknown, self._cells_of(x)))

    def _is_unknown(self, cell: Cell) -> bool:
        trace = self.trace
        return cell in trace.blind or cell in trace.frozen or cell in self.unsure

    def _cells_of(self, x: Tensor) -> list[Cell]:
        """The memory that the region makes, of what a tensor may be."""
        every = [x, *(each for _, each in self.one_of.alternatives(x))]
        return [each._data.cell for each in every if self.trace.owns(each)]

    def let_be_like(self, x: Tensor, other: Tensor) -> None:
        """Let no more be known of a tensor than of another from which it comes."""
        trace, own = self.trace, self.one_of.own(x)._data.cell
        for cell in self._cells_of(other):
            if cell in trace.blind or (other._requires_grad and self.one_of.whole(other)):
                trace.blind.update((x._data.cell, own))
            if cell in trace.frozen:
                trace.frozen.add(own)
            if cell in self.unsure:
                self.unsure[own] = self.unsure[cell]

    def end_in(self, sides: set[Frame]) -> None:
        """Take note that branches are over: what they made was made in what is around them."""
        for key, frame in self.made_in.items():
            if frame in sides:
                self.made_in[key] = self.trace.top

    def is_outer(self, key: Any) -> bool:
        """Whether memory, or that of a view, was there before the branch or loop being built."""
        if key.__class__ is tuple and key[0] == KEY:
            return self.containers.is_outer(key)
        if key.__class__ is tuple and key[1] in self.made_in:
            return self.made_in[key[1]] in self.trace.frames[:-1]
        return self.trace.is_outer(self._cell(key))

    def is_known(self, key: Any) -> bool:
        """Whether memory, or that of a view, is there after the branch that was built."""
        if key.__class__ is tuple and key[0] == KEY:
            return True
        cell = self._cell(key)
        return cell.variable is not None or self.trace.is_known(cell)

    def _cell(self, key: Any) -> Cell:
        return self._viewed[key] if key.__class__ is tuple else key

    def expression(self, value: Any, action: Action) -> str:
        """Python code for the object that stands for a value on the host.

        Raises:
            OnHost: it holds something that is not known.
        """
        kind = value.__class__
        if kind is Number:
            if value.origin is not None:
                return self._entered_number(value)
            return f"{action.send(value.tensor)}.item()"
        if isinstance(value, Tensor):
            return self._tensor(value, action)
        if kind is Choice:
            flag = action.send(value.flag.tensor)
            yes, no = self.expression(value.yes, action), self.expression(value.no, action)
            return f"({yes} if {flag} else {no})"
        if kind is AtEntry:
            return f"{self._tensor(value.leaf, action)}.grad"
        if kind is Range:
            parts = (self.expression(x, action) for x in (value.start, value.stop, value.step))
            return f"range({', '.join(parts)})"
        if kind is View:
            return f"{self.expression(value.owner, action)}.{value.method}()"
        if is_tuple(value):
            slot = self.entry.slot(value) if value else None
            if slot is not None:
                return f"S[{slot}]"
            inner = ", ".join(self.expression(x, action) for x in value)
            text = f"({inner}{',' if len(value) == 1 else ''})"
            return text if kind is tuple else self.entry.named(value.kind, text)
        if kind in (list, dict) and self.entry.slot(value) is None and self.is_fresh(value):
            return self.containers.expression(value, action)
        if id(value) in self.makings:
            raise Restart(("host", self.makings[id(value)].maker))
        if isinstance(value, MadeFunction):
            raise Restart(("host", value.maker))
        if holds_host(value):
            raise OnHost("a value that is not known here")
        owner = owner_of(value)
        if isinstance(value, BuiltinMethodType) and owner is not None:
            if self.entry.slot(owner) is not None or self.is_fresh(owner):
                return f"{self.expression(owner, action)}.{value.__name__}"
        if isinstance(value, MethodType) and (
            isinstance(owner, Tensor) or self.entry.slot(owner) is not None
        ):
            maker, function = self.entry.constant(MethodType), self.entry.constant(value.__func__)
            return f"{maker}({function}, {self.expression(owner, action)})"
        slot = self.entry.slot(value)
        return f"S[{slot}]" if slot is not None else self.entry.constant(value)

    tapes: Any
    lenient = False
    _keeps = True

    @contextmanager
    def kept(self, keeps: bool) -> Iterator[None]:
        """A context in which the host may keep the objects that it is told of, or does not."""
        before, self._keeps = self._keeps, keeps
        try:
            yield
        finally:
            self._keeps = before

    @property
    def is_kept(self) -> bool:
        """Whether the host may keep what it is told of."""
        return self._keeps and not self.lenient

    def is_fresh(self, value: Any) -> bool:
        """Whether a value is a list or dict that the region has made."""
        return id(value) in self.containers.fresh

    def _entered_number(self, value: Number) -> str:
        path = value.origin[1]  # type: ignore[index]
        slots = self.entry.slots
        if path not in slots:
            slots.append(str(path))
        return f"S[{slots.index(str(path))}]"

    # --- tensors --------------------------------------------------------------------------

    def _tensor(self, x: Tensor, action: Action) -> str:
        if id(x) in self.makings:
            raise Restart(("host", self.makings[id(x)].maker))
        slot = self.entry.slot(x)
        if slot is not None:
            return f"S[{slot}]"
        device: Any = x.device
        if device is not self.trace:
            found = self.trace.grads_at_entry.get(id(x))
            if found is None:
                return self.entry.constant(x)
            found(x)
            return f"S[{self.entry.slot(x)}]"
        text = self._made(self.one_of.owners.get(id(x), x), action)
        for flag, other in self.one_of.others(x):
            text = f"({self._tensor(other, action)} if {action.send(flag.tensor)} else {text})"
        return text

    def _made(self, x: Tensor, action: Action) -> str:
        """Code for a tensor that the region makes, or a view."""
        text = self._taped(x, action)
        return f"R.past_gradient({text})" if self.trace.is_past(x) else text

    def _taped(self, x: Tensor, action: Action) -> str:
        """The same, with its tape."""
        if not x._requires_grad:
            return self.bare(x, action)
        if x._node is not None:
            maker = x._node.op.name
            known = self.held.get(self.one_of.own(x)._data.cell)
            is_told = known is not None and known.is_kept  # and has it with its tape
            is_looked_at = self.lenient and not is_told and self.tapes.is_certain(x)
            if maker in OPERATIONS and (is_used_up(x) or is_looked_at):
                return f"R.with_gradient({self.bare(x, action)}, {maker!r})"
            if is_used_up(x):
                raise Unsliceable("a tensor that backward() has used up is made on several paths")
            self.tapes.hand_out(x, action)
            return self.bare(x, action)
        if self.trace.is_own_leaf(x):
            text = self.bare(x, action)
            table, number = text.removeprefix("R.").rstrip("]").split("[")
            self.leaves["views" if table == "views" else "objects", int(number)] = None
            return f"{text}.requires_grad_()"
        reason = "a tensor that a loop carries"
        raise Peel(reason) if id(x) in self.tapes.unsure else Unsliceable(reason)

    def bare(self, x: Tensor, action: Action) -> str:
        """Code for a tensor that the region makes, or a view, as if it carried no gradient."""
        x = self.one_of.own(x)
        handle: Handle = x._data
        if handle.cell in self.trace.blind and not self.lenient:
            raise Unsliceable("a view with a gradient, of one of several tensors, is handed out")
        is_whole = handle.base is None and self.one_of.over(handle.cell) is None
        if is_whole and handle.cell.variable is None:
            maker = self._makers.setdefault(handle.cell, x)
            if maker is x:
                return self._contents(handle.cell, x, action)
        self._kept.append(x)
        steps = self.entry.constant(steps_of(handle))
        return self._view(
            x, handle.cell, action, "view", lambda: f"{self._base(handle, action)}, {steps}"
        )

    def _view(self, of: Any, cell: Cell, action: Action, kind: str, how: Callable[[], str]) -> str:
        """Code for a view, which the host makes once.

        Args:
            of: what it stands for.
            cell: the memory.
            action: what needs it.
            kind: the method of `Run` that makes it.
            how: code for what it is a view of, and where.
        """
        key = ("view", id(of))
        if key in self.unsure:
            raise Restart(self.unsure[key])
        known = self.held.get(key)
        if known is not None and known.flag is True:
            self.held[key] = known._replace(is_kept=known.is_kept or self.is_kept)
            return f"R.views[{known.number}]"
        number = self.number_of(key)
        self._viewed[key] = cell
        line = f"R.{kind}({number}, {how()})"
        if known is not None:
            line = f"if not {action.send(known.flag.tensor)}: {line}"
        action.prelude.append(line)
        self.held[key] = Held(number, is_kept=self.is_kept)
        return f"R.views[{number}]"

    def _base(self, handle: Handle, action: Action) -> str:
        """Code for a tensor over all of the memory that a handle looks at."""
        while handle.base is not None:
            handle = handle.base
        cell = handle.cell
        if cell.variable is not None:
            return f"R.memory({self.entry.memory(cell)!r})"
        one = self.one_of.over(cell)
        if one is not None:
            return self._tensor(one, action)
        return self._contents(cell, self.trace.tensor(handle), action)

    def _contents(self, cell: Cell, x: Tensor, action: Action) -> str:
        part = self.trace.parts.get(cell)
        if part is not None:
            place = code_of(part.index, lambda x: self.expression(x, action))
            return self._view(
                part, cell, action, "part", lambda: f"{self._tensor(part.owner, action)}, {place}"
            )
        if cell in self.unsure:
            if self.unsure[cell] in self.entry.decisions:  # it did not help
                raise Unsliceable("a tensor that a turn before has handed out")
            raise Restart(self.unsure[cell])
        lent = self.trace.lent.number_of(cell)
        if lent is not None:
            return f"R.lent.get({lent})"
        now = self.trace.contents(cell)
        number = self.number_of(cell)
        known = self.held.get(cell)
        is_kept = self.is_kept or (known is not None and known.is_kept)
        self.held[cell] = Held(number, now, is_kept=is_kept)
        if known is None:
            action.prelude.append(f"R.tensor({number}, {action.send(x)})")
        elif known.flag is not True:
            line = f"R.tensor({number}, {action.send(x)})"
            action.prelude.append(f"if not {action.send(known.flag.tensor)}: {line}")
            if known.seen is not now:
                action.prelude.append(f"else: R.refresh({number}, {action.send(x)})")
        elif known.seen is not now:
            action.prelude.append(f"R.refresh({number}, {action.send(x)})")
        return f"O[{number}]"

    def stale(self, frame: Frame | None = None) -> list[tuple[Cell, Held]]:
        """Memory of the host's that the graph has written since; see `refresh`."""
        return [
            (cell, known)
            for cell, known in self.held.items()
            if isinstance(cell, Cell)
            and self.trace.is_known(cell)
            and (frame is None or cell.frame is frame)
            and known.seen is not self.trace.contents(cell)
        ]

    def refresh(self, action: Action, frame: Frame | None = None) -> list[str]:
        """Code that brings tensors of the host up to date with what the graph wrote into them.

        Args:
            action: what it is for.
            frame: where they were made, if only those of a branch or loop are wanted.
        """
        lines: list[str] = []
        for cell, known in self.stale(frame):
            now = self.trace.contents(cell)
            maker = self._makers.get(cell)
            if known.is_kept and maker is not None and is_recorded(maker):
                if known.flag is not True:
                    raise Unsliceable("a tensor with a gradient is written that the host may have")
                self._made(maker, action)
                continue
            whole = self.trace.tensor(Handle(cell, now.shape, now.dtype))
            when = "" if known.flag is True else f"if {action.send(known.flag.tensor)}: "
            lines.append(f"{when}R.refresh({known.number}, {action.send(whole)})")
            self.held[cell] = known._replace(seen=now)
        return lines if frame is not None else lines + self.containers.refresh(action)
