"""The graph of a region, as a device that knows of branches, loops and gradients."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Final

from dilim.autodiff.walk import Part
from dilim.ir.graph import Value
from dilim.ir.types import Type
from dilim.ops.table import OPERATIONS
from dilim.shapes import Shape
from dilim.slicing.errors import OnHost, Unsliceable
from dilim.slicing.failures import is_fine
from dilim.slicing.lent import Lent
from dilim.slicing.recorded_inside import is_overwritten
from dilim.slicing.writes import Writes
from dilim.tensors.cells import Cell, Frame, Handle
from dilim.tensors.layouts import Step
from dilim.tensors.region_tape import Region
from dilim.tensors.tape import Node, now
from dilim.tensors.tensor import Tensor
from dilim.tensors.tracer import Trace

WRITTEN: Final = "a gradient through memory that was written"
_POSITIONS: Final = frozenset({"argmax", "argmin"})
_KEEPING: Final = frozenset({"reshape", "astype", "identity", "permute", "slice", "expand"})
Before = dict[Cell, tuple[Value, Frame]]


class SlicerTrace(Trace):
    """A graph whose branches and loops may write memory that was made outside of them.

    Attributes:
        frozen: memory that the host may have, so that it would have to see a write.
        lent: tensors that the host has handed over.
        blind: what may be a view of other memory, of which nothing is known.
        followed: memory that stands for other memory, from which its contents are taken.
        parts: memory that stands for a view at a position of the program -> a `parts.Part`.
        uncounted: memory of variables that was written since the host last heard of it -> whether
            it was: True, or a bool of the graph.
        work: how many operations on tensors that are no numbers were noted.
        outer_writes: per open region, memory from outside that it wrote, as it was before.
        grads_at_entry: id of a gradient that was there at entry -> how it is found.
        writes: what was written while the graph is built.
        noted: ids of the leaves that recorded operations were applied to.
        released: recorded operations that were used up, with what they held.
        limits: positions: values that are 0 or more, and less than this.
        turns: when the present turn of each open loop began; see `tape.now`.
        indices: the numbers of these turns.
    """

    goes_on_outside = True

    def __init__(self) -> None:
        super().__init__()
        self.outer_writes: list[Before] = []
        self.grads_at_entry: dict[int, Any] = {}
        self.before_failure: Callable[[Callable[[], Tensor | None]], None] = lambda is_fine: None
        self.use_grad: Callable[[Tensor], None] = lambda leaf: None
        self.check_reshape: Callable[[Handle], None] = lambda made: None
        self.before_record: Callable[[Tensor], None] = lambda x: None
        self.work, self.started = 0, now()
        self.frozen, self.blind, self.noted = set[Cell](), set[Cell](), set[int]()
        self.followed: dict[Cell, _Followed] = {}
        self.parts, self.uncounted = dict[Cell, Any](), dict[Cell, Any]()
        self.released: list[tuple[Node, Any, Any]] = []
        self.turns: list[int] = []
        self.lent = Lent(self.turns)
        self.indices: list[Tensor] = []
        self._heads: dict[int, Tensor] = {}
        self.writes, self._is_sure, self.limits = Writes(), False, dict[Value, int]()

    def forget(self) -> None:
        """Let go of all values and all memory."""
        for cell in self._cells.values():
            cell.array = cell.storage = None
        vars(self).clear()

    def written(self, x: Tensor) -> None:
        """See `Tracer.written`.

        Raises:
            Unsliceable: a loop carries it with a gradient, which is not known any more.
        """
        if any(
            head._storage is x._storage and head._requires_grad for head in self._heads.values()
        ):
            raise Unsliceable("a tensor with a gradient that a loop carries is written in place")
        self.writes.count(x, self.handle(x).cell)

    # --- the tape -------------------------------------------------------------------------

    def before_recorded_write(self, x: Tensor) -> None:
        """See `Tracer.before_recorded_write`.

        Raises:
            OnHost: it would change the place on the tape of one from outside, or of several.
        """
        if not self.owns(x) or (x._data.cell in self.followed and id(x) not in self._heads):
            raise OnHost("a write, with gradients, into what may be a tensor from outside")

    def input(self, type: Type, name: str = "") -> Tensor:
        """See `Trace.input`."""
        x = super().input(type, name)
        if self.top.is_loop:
            self._heads[id(x)] = x
        return x

    def is_own_leaf(self, x: Tensor) -> bool:
        """Whether the region has made a tensor that requires a gradient and was not computed.

        Raises:
            Unsliceable: it is what a loop carries, which may have been computed in another turn.
        """
        if self._is_leaf(x) and id(x) in self._heads:
            raise Unsliceable("a gradient with respect to a tensor that a loop carries")
        return self._is_leaf(x)

    def is_made_leaf(self, x: Tensor) -> bool:
        """The same, but for what a loop carries, whose own gradient nobody asks for."""
        return self._is_leaf(x) and id(x) not in self._heads

    def is_new_leaf(self, x: Tensor) -> bool:
        """Whether a tensor is a leaf that the turn of a loop being built has made."""
        return self._is_leaf(x) and id(x) not in self._heads and self.made_inside(x)

    def _is_leaf(self, x: Tensor) -> bool:
        return self.owns(x) and x._requires_grad and x._node is None

    def owns(self, x: Tensor) -> bool:
        """Whether the region has made a tensor."""
        device: object = x.device
        return device is self

    def made_inside(self, x: Tensor) -> bool:
        """Whether a tensor was made in the branch or loop that is being built."""
        return not self.is_outer(self.handle(x).cell) if self.owns(x) else not self.holds(x)

    def is_outer(self, cell: Cell) -> bool:
        """Whether memory was there before the branch or loop that is being built."""
        if cell.variable is not None:
            return True
        followed = self.followed.get(cell)
        frame = cell.frame if followed is None else followed.frame
        frame = next((w[cell][1] for w in self.outer_writes if cell in w), frame)
        return any(frame is each for each in self.frames[:-1])

    def note(self, node: Node, operands: list[Any]) -> None:
        """See `Tracer.note`."""
        for x in node.inputs or ():
            self.before_record(x)
        self.noted.update(map(id, node.edges))
        super().note(node, operands)

    def before_pull(self, node: Node) -> None:
        """See `Tracer.before_pull`.

        Raises:
            Unsliceable: what comes next lies outside of the region, or in a turn that is over.
        """
        if node.serial < self.started:
            raise Unsliceable("a gradient goes on outside of the function")
        if any(id(edge) in self._heads for edge in node.edges):
            raise Unsliceable("a gradient goes back through turns of a loop from within it")
        if isinstance(node.op, Region) and is_overwritten(node.op):
            raise Unsliceable(WRITTEN)

    def before_release(self, node: Node) -> None:
        """See `Tracer.before_release`.

        Raises:
            Unsliceable: it would be used up in the first turn of a loop, and missing in the next.
        """
        if self.turns and node.serial < self.turns[-1]:
            raise Unsliceable("backward() in a loop goes through what was computed before the loop")
        self.released.append((node, node.inputs, node.edges))

    def is_past(self, x: Tensor) -> bool:
        """Whether the memory of a tensor was written since it was known how its numbers were made.

        Raises:
            Unsliceable: it may have been, or not.
        """
        node, storage = x._node, x._storage
        if node is None:
            return not x._requires_grad and storage.recorded > x._born
        if node.version != storage.version and storage in self.writes.unsure:
            raise Unsliceable("a tensor that may be written past its gradient")
        return node.version != storage.version

    def forget_releases(self, count: int, since: float = math.inf) -> list[Node]:
        """Undo releases but the first so many; what had been released, in order.

        Args:
            count: how many are kept.
            since: what was recorded after this moment stays released.
        """
        undone = [each for each in self.released[count:] if each[0].serial < since]
        del self.released[count:]
        for node, inputs, edges in reversed(undone):
            node.inputs, node.edges = inputs, edges
        return [node for node, _, _ in undone]

    def tear(self, node: Node) -> None:
        """Note that a recorded operation may be used up, or not."""
        self.released.append((node, node.inputs, node.edges))
        node.inputs = _Torn()  # type: ignore[assignment]

    nothing = -0.0  # to which anything can be added: it is the same afterwards

    def gradient_on_one_path(self) -> None:
        """See `Trace.gradient_on_one_path`.

        Raises:
            Unsliceable: always; on the other path there is no gradient, which is not 0.
        """
        raise Unsliceable("a gradient that a branch gives on one path only")

    def expect_gradient(self, leaf: Tensor) -> None:
        """See `Tracer.expect_gradient`."""
        self.use_grad(leaf)
        super().expect_gradient(leaf)

    def emit(self, op: str, values: Sequence[Value], params: dict[str, Any]) -> Value:
        """See `Trace.emit`."""
        definition = OPERATIONS[op]
        if definition.failure and not self._is_sure:
            if definition.can_fail(definition.infer(*values, **params)[1]):
                self.before_failure(lambda: is_fine(self, op, values, params))
        value = super().emit(op, values, params)
        self.work += bool(value.shape)
        if op in _POSITIONS:
            self.limits[value] = math.prod(values[0].shape)
        elif op in _KEEPING and values[0] in self.limits and value.type.dtype.name == "int64":
            self.limits[value] = self.limits[values[0]]
        return value

    @contextmanager
    def without_failure(self) -> Iterator[None]:
        """A context in which positions are known to lie inside."""
        before, self._is_sure = self._is_sure, True
        try:
            yield
        finally:
            self._is_sure = before

    def follow(
        self,
        x: Tensor,
        sources: Sequence[Tensor],
        take: Callable[[], Tensor],
        put: Callable[[Tensor], None],
    ) -> None:
        """Let a tensor be a part of others, or one of them, whatever becomes of their memory.

        Args:
            x: the tensor; it has what `take` gives.
            sources: tensors that it depends on.
            take: gives its contents.
            put: replaces them.
        """
        cells = tuple(self.handle(source).cell for source in sources)
        seen = tuple(map(self.contents, cells))
        self.followed[x._data.cell] = _Followed(self.top, cells, seen, take, put)

    def contents(self, cell: Cell) -> Value:
        """See `Trace.contents`."""
        followed = self.followed.pop(cell, None)
        if followed is not None:
            seen = tuple(map(self.contents, followed.sources))
            if seen != followed.seen or not cell.frame.is_active:
                fresh: Any = followed.take()
                cell.value, cell.frame = self.value(fresh._data), self.top
                followed = dataclasses.replace(followed, seen=seen)
            self.followed[cell] = followed
        return super().contents(cell)

    def _view(self, base: Handle, step: Step, shape: Shape | None) -> Handle:
        """See `Trace._view`."""
        made = super()._view(base, step, shape)
        if step.op == "reshape" and made.cell is base.cell and base.cell in self.followed:
            self.check_reshape(made)
        return made

    def is_known(self, cell: Cell) -> bool:
        """Whether memory was made, or began to stand for other memory, where the graph is built."""
        followed = self.followed.get(cell)
        frame = cell.frame if followed is None else followed.frame
        return frame.is_active

    def assign(self, cell: Cell, value: Value) -> None:
        """Replace the contents of memory that belongs to the run."""
        if cell.frame is not self.top:
            if not self.outer_writes:
                raise Unsliceable("memory of a branch or loop that is over is written")
            self.outer_writes[-1].setdefault(cell, (cell.value, cell.frame))
        cell.value, cell.frame = value, self.top

    def write(self, target: Handle, source: Handle) -> None:
        """See `Tracer.write`."""
        cell = target.cell
        if cell in self.blind:
            raise Unsliceable("a view with a gradient, of one of several tensors, is written")
        if cell in self.followed:
            put = self.followed[cell].put
            put(self.symbol(self._whole(target, self.value(source))))
            return
        if cell in self.frozen:
            raise OnHost("a write into memory that the host may have")
        if cell.variable is not None or cell.frame is self.top or not self.outer_writes:
            super().write(target, source)
            if cell.variable is not None:
                self.uncounted[cell] = True
            return
        if not cell.frame.is_active:
            raise Unsliceable("memory of a branch or loop that is over is written")
        before = cell.value, cell.frame
        self.value(target)  # views see the contents from outside before they change
        cell.frame = self.top
        try:
            super().write(target, source)
        except BaseException:
            cell.value, cell.frame = before
            raise
        self.outer_writes[-1].setdefault(cell, before)

    def handle(self, x: Any) -> Handle:
        """See `Tracer.handle`."""
        path = self.grads_at_entry.get(id(x))
        if path is not None and id(x._storage) not in self._cells:
            path(x)
        return super().handle(x)


@dataclasses.dataclass(frozen=True, slots=True)
class _Followed:
    """Where the contents of memory come from; see `SlicerTrace.follow`."""

    frame: Frame
    sources: tuple[Cell, ...]
    seen: tuple[Value, ...]
    take: Callable[[], Tensor]
    put: Callable[[Tensor], None]


class _Torn:
    """In place of what a recorded operation holds, where that depends on the path taken."""

    def __iter__(self) -> Any:
        raise Unsliceable("backward() was called on one path, and on the other not")


SEVERAL: Final = Part(0)
"""In place of the operation that made a tensor, where it is another one on another path."""


def is_used_up(x: Tensor) -> bool:
    """Whether a tensor's tape was used up by a backward pass."""
    return x._node is not None and x._node.inputs is None


def without_used_tape(trace: SlicerTrace, x: Tensor) -> Tensor:
    """The same memory without a tape that was used up, which no branch or loop can carry.

    Raises:
        Unsliceable: it was written since it was recorded how it was made.
    """
    if trace.is_past(x):
        raise Unsliceable(
            "a tensor that was written past its gradient goes through a branch or loop"
        )
    return trace.tensor(trace.handle(x)) if is_used_up(x) else x


def use_up(x: Tensor, maker: str = "identity") -> Tensor:
    """Make a tensor one whose tape was used up; ``maker`` names the operation that made it."""
    op: Any = OPERATIONS.get(maker, SEVERAL)
    x._node = Node(op, (), {}, (), (), x._storage.version)
    x._node.inputs = None  # not released: that would be undone on the way back to a state
    x._requires_grad = True
    return x


def symbolic(trace: Trace, x: Tensor) -> Tensor:
    """A tensor of the graph with the numbers of one that is, or is not, one of it."""
    device: Any = x.device
    if device is trace:
        return x
    result = trace.tensor(trace.handle(x))
    result._storage = x._storage
    return result


def is_recorded(x: Tensor) -> bool:
    """Whether a gradient goes on from a tensor that was computed."""
    return x._node is not None and not is_used_up(x)
