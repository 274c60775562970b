"""Symbolic tensors: tensors that stand for values of a graph being built.

A symbolic tensor is an ordinary `Tensor` whose device is a `Trace`. Operations on it pass the one
dispatch point, which asks the device to carry them out; this device notes a node instead. Shape
rules, the tape, `backward`, `gradients`, `no_grad` and all library functions therefore work as they
are, and derivative rules add nodes.

**State.** Memory becomes a `Cell`. An eager tensor that meets a symbolic one, or, while a function
is being traced, any other operation, is a *variable*: its storage, keyed by identity, is read when
the program runs. A write into it is a write when the program runs; the tensor itself stays as it
is. Memory that the traced function makes itself belongs to one run, as in eager execution. Views
and aliases are one cell, so that a write through one is seen through all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

import numpy as np

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import GradientError, GraphError
from dilim.ir.graph import Node, Value
from dilim.ir.types import Type
from dilim.ops.opdef import OpDef
from dilim.ops.table import OPERATIONS
from dilim.runtime import devices
from dilim.runtime.devices import CPU, Storage
from dilim.shapes import Shape
from dilim.tensors.cells import Cell, Frame, Handle
from dilim.tensors.dispatch import Tracer
from dilim.tensors.layouts import Step, changes_nothing, steps_to, strides_after, written_back
from dilim.tensors.sites import user_site
from dilim.tensors.tape import Node as TapeNode
from dilim.tensors.tape import traced_by
from dilim.tensors.tensor import Tensor

_WRITTEN_INSIDE: Final = (
    "in-place write: a tensor made outside a branch or loop cannot be written inside it; carry it "
    "through the loop, return it from the branch, or make it before the graph, as a variable"
)


class Trace(Tracer):
    """A graph being built, as the device of the symbolic tensors that stand for its values."""

    goes_on_outside = False
    """Whether gradients may go on to what was recorded before tracing."""

    def __init__(self) -> None:
        self.frames = [Frame()]
        self._cells: dict[int, Cell] = {}
        self._made_here: Callable[[Storage], bool] = lambda storage: False
        self._gradients: list[tuple[Tensor, Tensor | None]] = []
        self._scope: tuple[str, str] | None = None
        self._names: dict[str, int] = {}

    @property
    def top(self) -> Frame:
        """The innermost region being built, or the program."""
        return self.frames[-1]

    def input(self, type: Type, name: str = "") -> Tensor:
        """A symbolic tensor that stands for a new input of the program."""
        return self.symbol(self.top.builder.input(type, name), name)

    def symbol(self, value: Value, name: str = "") -> Tensor:
        """A symbolic tensor that stands for a value."""
        result = self.tensor(self._fresh(value))
        result.name = name or None
        return result

    def tensor(self, handle: Handle) -> Tensor:
        """A symbolic tensor over a handle."""
        device: Any = self  # it has handles, but no buffers to upload
        return Tensor._wrap(handle, handle.shape, handle.dtype, device)

    @contextmanager
    def tracing(self) -> Iterator[None]:
        """A context in which operations on tensors that were there before become nodes too.

        Gradients that became symbolic are put back as they were before it.
        """
        with devices.epoch() as made_here, traced_by(self):
            self._made_here = made_here
            try:
                yield
            finally:
                for leaf, before in reversed(self._gradients):
                    leaf.grad = before
                self._gradients.clear()

    # --- memory ---------------------------------------------------------------------------

    def variable(self, x: Tensor) -> Cell:
        """The cell of the memory of an eager tensor, which the program reads and writes.

        Raises:
            GraphError: the tensor is not plain CPU memory.
        """
        cell = self._cells.get(id(x._storage))
        return self._adopt(x, variable=True) if cell is None else cell

    def _adopt(self, x: Tensor, variable: bool) -> Cell:
        if x.device is not CPU:
            where = "another graph" if isinstance(x.device, Trace) else repr(x.device.name)
            raise GraphError(
                f"graph: a tensor of shape {x.shape} belongs to {where}; a graph takes its own "
                "tensors and those in CPU memory"
            )
        storage = x._storage
        if not variable:
            cell = Cell(None, storage.buffer, storage)
            with self._where_made(storage):
                cell.value, cell.frame = self._constant(storage.buffer), self.top
        else:
            root = row_major_view(storage.buffer)
            kind = Type(root.shape, dtypes.from_numpy(root.dtype))
            name = re.sub(r"\W", "_", x.name) if x.name and not x._is_view else ""
            cell = Cell(self.frames[0].builder.variable(kind, name), root, storage)
        self._cells[id(storage)] = cell
        return cell

    @contextmanager
    def _where_made(self, storage: Storage) -> Iterator[None]:
        """A context in which nodes go to the region in which eager memory was made."""
        before = self.frames
        depth = max(k for k, frame in enumerate(before) if frame.made_here(storage))
        self.frames = before[: depth + 1]
        try:
            yield
        finally:
            self.frames = before

    def before_write(self, x: Any) -> None:
        """See `Tracer.before_write`."""
        if x.device is CPU and not self.top.made_here(x._storage):
            raise GraphError(_WRITTEN_INSIDE)
        self._cells.pop(id(x._storage), None)  # its numbers were noted as constants

    @property
    def cells(self) -> list[Cell]:
        """Those of the variables, in their order."""
        known = {cell.variable: cell for cell in self._cells.values() if cell.variable}
        return [known[variable] for variable in self.frames[0].builder.variables]

    def holds(self, x: Any) -> bool:
        """See `Tracer.holds`."""
        if x.device is not CPU:
            return False
        cell = self._cells.get(id(x._storage))
        if cell is not None:
            return cell.variable is not None or cell.is_written
        return not self._made_here(x._storage)

    def handle(self, x: Any) -> Handle:
        """See `Tracer.handle`.

        Raises:
            GraphError: x belongs elsewhere, or is no simple view of its memory.
            GradientError: x was computed eagerly with a gradient before tracing.
        """
        if x.device is self:
            found: Handle = x._data
            return found
        outside = x.device is CPU and not self._made_here(x._storage)
        if outside and x._node is not None and not self.goes_on_outside:
            raise GradientError(
                f"graph: a tensor of shape {x.shape} was computed eagerly with a gradient, which "
                "would be cut off here; compute it inside the traced function, or use x.detach()"
            )
        cell = self._cells.get(id(x._storage)) or self._adopt(x, outside)
        steps = steps_to(x._data, cell.array)
        if steps is None:
            raise GraphError(
                f"graph: a tensor of shape {x.shape} is a view of memory of shape "
                f"{cell.array.shape} in an order that a graph cannot follow; use x.clone()"
            )
        handle = cell.root
        for step in steps:
            handle = self._view(handle, step, None)
        return handle

    def own(self, x: Any) -> None:
        """See `Tracer.own`."""
        x._data = self._fresh(self.value(x._data))
        x._storage, x._born = Storage(x.device, x._data.buffer), 0
        if x._node is not None:
            x._node.version = x._storage.version

    def _fresh(self, value: Value) -> Handle:
        cell = Cell(None, None, None)
        cell.value, cell.frame = value, self.top
        return Handle(cell, value.shape, value.dtype)

    def _view(self, base: Handle, step: Step, shape: Shape | None) -> Handle:
        if shape is None:
            op = OPERATIONS[step.op]
            shape, _ = op.infer(Type(base.shape, base.dtype), **step.params)
        if changes_nothing(step, base.shape):
            return base
        strides = strides_after(step, base.shape, base.strides, shape)
        if strides is None:
            return self._fresh(self.emit(step.op, [self.value(base)], step.params))
        return Handle(base.cell, shape, base.dtype, strides, base, step)

    # --- values ---------------------------------------------------------------------------

    def value(self, handle: Handle) -> Value:
        """What a handle stands for at this point of the program."""
        if handle.base is None:
            return self.contents(handle.cell)
        root = self.contents(handle.cell)
        if handle.seen is not root or not handle.frame.has(handle.place, handle.taken):
            step = handle.step
            handle.taken = self.emit(step.op, [self.value(handle.base)], step.params)
            handle.seen, handle.frame = root, self.top
            handle.place = len(self.top.builder.nodes) - 1
        return handle.taken

    def contents(self, cell: Cell) -> Value:
        """What memory holds at this point of the program.

        Raises:
            GraphError: it was made inside a loop or branch that is over.
        """
        if cell.variable is None:
            if not cell.frame.is_active:
                raise GraphError(
                    "graph: a tensor made inside a branch or loop is used outside of it; return "
                    "it from there"
                )
            return cell.value
        for frame in reversed(self.frames):
            known = frame.contents.get(cell)
            if known is not None:
                return known
            if frame.is_loop or frame.is_open or cell in frame.contents:
                break
        return self._read(cell)

    def _read(self, cell: Cell) -> Value:
        variable: Any = cell.variable
        top = self.top
        value = top.builder.add("read", [variable], {}, variable.type, user_site())
        top.contents[cell] = value
        if cell not in top.written and not top.is_open:
            top.reads.setdefault(cell, value)
        return value

    def write(self, target: Handle, source: Handle) -> None:
        """See `Tracer.write`.

        Raises:
            GraphError: memory from outside a branch or loop is written inside, and is no variable.
        """
        value = self._whole(target, self.value(source))
        cell = target.cell
        cell.is_written = True
        if cell.variable is not None:
            self.top.write(cell, value, user_site())
        elif cell.frame is self.top:
            cell.value = value
        else:
            raise GraphError(_WRITTEN_INSIDE)

    def _whole(self, target: Handle, value: Value) -> Value:
        """What memory holds after a value is written where a handle on it is."""
        handle = target
        while handle.base is not None:
            base = handle.base
            whole = partial(self.value, base)
            value = written_back(self.emit, handle.step, whole, base.shape, value)
            handle = base
        return value

    # --- nodes ----------------------------------------------------------------------------

    def execute(self, op: OpDef, operands: list[Any], params: dict[str, Any]) -> Handle:
        """See `Tracer.execute`; 0-d arrays (from Python numbers) become `full` nodes."""
        first: Any = operands[0] if operands else None
        if op.is_view and isinstance(first, Handle):
            return self._view(first, Step(op.name, params), None)
        values = [
            self.value(x) if x.__class__ is Handle else self._constant(x) for x in operands
        ]  # fmt: skip
        return self._fresh(self.emit(op.name, values, params))

    def emit(self, op: str, values: Sequence[Value], params: dict[str, Any]) -> Value:
        """A new node of the table; its value."""
        definition = OPERATIONS[op]
        shape, dtype = definition.infer(*values, **params)
        if definition.can_fail(dtype):
            self.top.settle()  # what was written before must be seen if it fails
        builder, site = self.top.builder, user_site()
        number = builder.sites.setdefault(site, len(builder.sites))
        value = Value(Type(shape, dtype), self._name_of(op) if self._scope else "")
        builder.nodes.append(Node(op, tuple(values), params, (value,), (), number))
        return value

    @contextmanager
    def scope(self, name: str, suffix: str) -> Iterator[None]:
        """A context in which values are named ``<name>_<operation>_<suffix>``."""
        before = self._scope
        self._scope = name, suffix
        try:
            yield
        finally:
            self._scope = before

    def _name_of(self, op: str) -> str:
        name, suffix = self._scope  # type: ignore[misc]
        full = f"{name}_{op}_{suffix}"
        count = self._names[full] = self._names.get(full, 0) + 1
        return full if count == 1 else f"{full}_{count}"

    def full(self, *, shape: Shape, value: Any, dtype: DType) -> Tensor:
        """See `Tracer.full`."""
        return self.symbol(self.emit("full", [], {"shape": shape, "value": value, "dtype": dtype}))

    def constant(self, array: np.ndarray) -> Tensor:
        """See `Tracer.constant`."""
        return self.symbol(self._constant(array))

    def _constant(self, array: np.ndarray) -> Value:
        """A repeated number as a `full` node; others as a variable that is only read."""
        dtype = dtypes.from_numpy(array.dtype)
        if array.size and _is_repeated(array):
            params = {"shape": array.shape, "value": _short(array.reshape(-1)[0]), "dtype": dtype}
            key = (array.shape, dtype, repr(params["value"]))
            known = self.top.constants.get(key)
            if known is None:
                known = self.top.constants[key] = self.emit("full", [], params)
            return known
        copy = np.array(array, order="C")
        root = self.frames[0].builder
        cell = Cell(root.variable(Type(array.shape, dtype), "constant"), copy, None)
        self._cells[id(cell)] = cell
        return self.contents(cell)

    def note(self, node: TapeNode, operands: list[Any]) -> None:
        """See `Tracer.note`."""
        if len(self.frames) > 1:
            node.values = [self.value(x) if x.__class__ is Handle else None for x in operands]

    nothing = 0.0
    """What stands for a gradient on a path on which there is none."""

    def gradient_on_one_path(self) -> None:
        """It matters that a branch gives something a gradient on one path only."""

    def expect_gradient(self, leaf: Tensor) -> None:
        """See `Tracer.expect_gradient`."""
        self._gradients.append((leaf, leaf.grad))

    def before_pull(self, node: TapeNode) -> None:
        """See `Tracer.before_pull`."""

    def before_release(self, node: TapeNode) -> None:
        """See `Tracer.before_release`."""

    def __repr__(self) -> str:
        return f"<trace of {len(self.frames[0].builder.nodes)} nodes>"


def row_major_view(array: np.ndarray) -> np.ndarray:
    """The array with its axes as in memory, if it then lies in row-major order."""
    order = sorted(range(array.ndim), key=lambda axis: -abs(array.strides[axis]))
    turned = array[tuple(slice(None, None, -1 if s < 0 else 1) for s in array.strides)]
    turned = turned.transpose(order)
    return turned if turned.flags.c_contiguous and not array.flags.c_contiguous else array


def _is_repeated(array: np.ndarray) -> bool:
    first = array.reshape(-1)[:1].tobytes()
    return array.size == 1 or array.tobytes() == first * array.size


def _short(number: Any) -> Any:
    """A NumPy number as a Python number, floats as they were typed: 0.1, not 0.10000000149."""
    value = number.item()
    if isinstance(value, float):
        short = float(str(number))
        return short if number == number.dtype.type(short) else value
    return value
