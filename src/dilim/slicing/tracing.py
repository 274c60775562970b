"""The graph of a region, as a device that knows of branches, loops and gradients."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

from dilim.ir.graph import Value
from dilim.ir.types import Type
from dilim.ops.table import OPERATIONS
from dilim.slicing.errors import OnHost, Unsliceable
from dilim.slicing.failures import is_fine
from dilim.tensors.cells import Cell, Frame, Handle
from dilim.tensors.tape import Node, now
from dilim.tensors.tensor import Tensor
from dilim.tensors.tracer import Trace

Before = dict[Cell, tuple[Value, Frame]]


class SlicerTrace(Trace):
    """A graph whose branches and loops may write memory that was made outside of them.

    Attributes:
        followed: memory that is a view at a position of the program.
        uncounted: memory of variables that was written since the host last heard of it.
        work: how many operations on tensors that are no numbers were noted.
        frozen: memory that stands for other memory, so that a write would be lost.
        outer_writes: per open region, memory from outside that it wrote, as it was before.
        grads_at_entry: id of a gradient that was there at entry -> how it is found.
        released: recorded operations that were used up, with what they held.
        turns: when the present turn of each open loop began; see `tape.now`.
    """

    goes_on_outside = True

    def __init__(self) -> None:
        super().__init__()
        self.outer_writes: list[Before] = []
        self.grads_at_entry: dict[int, Any] = {}
        self.before_failure: Callable[[Callable[[], Tensor | None]], None] = lambda is_fine: None
        self.use_grad: Callable[[Tensor], None] = lambda leaf: None
        self.work = 0
        self.frozen: set[Cell] = set()
        self.followed: dict[Cell, list[Any]] = {}
        self.uncounted: set[Cell] = set()
        self.released: list[tuple[Node, Any, Any]] = []
        self.turns: list[int] = []
        self.started = now()
        self._heads: dict[int, Tensor] = {}

    # --- the tape -------------------------------------------------------------------------

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
        if not (self.owns(x) and x._requires_grad and x._node is None):
            return False
        if id(x) in self._heads:
            raise Unsliceable("a gradient with respect to a tensor that a loop carries")
        return True

    def is_new_leaf(self, x: Tensor) -> bool:
        """Whether a tensor is a leaf that the turn of a loop being built has made."""
        is_leaf = self.owns(x) and x._requires_grad and x._node is None
        return is_leaf and id(x) not in self._heads and self.made_inside(x)

    def owns(self, x: Tensor) -> bool:
        """Whether the region has made a tensor."""
        device: object = x.device
        return device is self

    def made_inside(self, x: Tensor) -> bool:
        """Whether a tensor of the region was made in the branch or loop that is being built."""
        return not self.is_outer(self.handle(x).cell)

    def is_outer(self, cell: Cell) -> bool:
        """Whether memory was there before the branch or loop that is being built."""
        if cell.variable is not None:
            return True
        frame = next((w[cell][1] for w in self.outer_writes if cell in w), cell.frame)
        return any(frame is each for each in self.frames[:-1])

    def before_pull(self, node: Node) -> None:
        """See `Tracer.before_pull`.

        Raises:
            Unsliceable: what comes next lies outside of the region, or in a turn that is over.
        """
        if node.serial < self.started:
            raise Unsliceable("a gradient goes on outside of the function")
        if any(id(edge) in self._heads for edge in node.edges):
            raise Unsliceable("a gradient goes back through turns of a loop from within it")

    def before_release(self, node: Node) -> None:
        """See `Tracer.before_release`.

        Raises:
            Unsliceable: it would be used up in the first turn of a loop, and missing in the next.
        """
        if self.turns and node.serial < self.turns[-1]:
            raise Unsliceable("backward() in a loop goes through what was computed before the loop")
        self.released.append((node, node.inputs, node.edges))

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

    def expect_gradient(self, leaf: Tensor) -> None:
        """See `Tracer.expect_gradient`."""
        self.use_grad(leaf)
        super().expect_gradient(leaf)

    def emit(self, op: str, values: Sequence[Value], params: dict[str, Any]) -> Value:
        """See `Trace.emit`."""
        definition = OPERATIONS[op]
        if definition.failure and definition.can_fail(definition.infer(*values, **params)[1]):
            self.before_failure(lambda: is_fine(self, op, values, params))
        value = super().emit(op, values, params)
        self.work += bool(value.shape)
        return value

    def follow(self, cell: Cell, x: Tensor, take: Callable[[], Tensor]) -> None:
        """Memory that is what `take` gives, whenever it is looked at.

        Args:
            cell: the memory.
            x: the tensor that it is taken from.
            take: takes it.
        """
        source = self.handle(x).cell
        self.followed[cell] = [source, super().contents(source), take]

    def contents(self, cell: Cell) -> Value:
        """See `Trace.contents`."""
        followed = self.followed.get(cell)
        if followed is not None:
            source = self.contents(followed[0])
            if source is not followed[1] or not cell.frame.is_active:
                del self.followed[cell]
                fresh: Any = followed[2]()
                cell.value, cell.frame = self.value(fresh._data), self.top
                self.followed[cell] = [followed[0], source, followed[2]]
        return super().contents(cell)

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
        if cell in self.frozen:
            raise OnHost("a write into memory that may be that of another tensor")
        if cell.variable is not None or cell.frame is self.top or not self.outer_writes:
            super().write(target, source)
            if cell.variable is not None:
                self.uncounted.add(cell)
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


class _Torn:
    """In place of what a recorded operation holds, where that depends on the path taken."""

    def __iter__(self) -> Any:
        raise Unsliceable("backward() was called on one path, and on the other not")


def is_used_up(x: Tensor) -> bool:
    """Whether a tensor's tape was used up by a backward pass."""
    return x._node is not None and x._node.inputs is None


def without_used_tape(trace: SlicerTrace, x: Tensor) -> Tensor:
    """The same memory without a tape that was used up, which no branch or loop can carry."""
    return trace.tensor(trace.handle(x)) if is_used_up(x) else x


def use_up(x: Tensor, maker: str = "identity") -> Tensor:
    """Make a tensor one whose tape was used up; ``maker`` names the operation that made it."""
    op = OPERATIONS.get(maker, OPERATIONS["identity"])
    x._node = Node(op, (), {}, (), (), x._storage.version)
    x._node.release()
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
