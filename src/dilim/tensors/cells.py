"""What a graph under construction knows of memory: cells, handles on them, and frames."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import numpy as np

from dilim import dtypes
from dilim.dtypes import DType
from dilim.ir.graph import GraphBuilder, Node, Site, Value, Variable
from dilim.runtime.devices import Storage
from dilim.shapes import Shape, row_major_strides
from dilim.tensors.layouts import READ_ONLY, Step

_NO_STEP: Final = Step("", {})


class Cell:
    """Memory, as a program sees it.

    Attributes:
        variable: what the program reads and writes; None for memory that belongs to one run.
        array: the eager memory, row-major where possible; None for results of nodes.
        storage: the eager storage that is kept alive; None for results and constants.
        root: the handle of the whole, for eager memory.
        value: the contents, where there is no variable.
        frame: where ``value`` was made.
        is_written: whether the program writes it.
    """

    __slots__ = ("array", "frame", "is_written", "root", "storage", "value", "variable")

    value: Value
    frame: Frame

    def __init__(
        self, variable: Variable | None, array: np.ndarray | None, storage: Storage | None
    ) -> None:
        self.variable = variable
        self.array: Any = array
        self.storage = storage
        self.is_written = False
        if array is not None:
            steps = tuple(step // array.itemsize for step in array.strides)
            self.root = Handle(self, array.shape, dtypes.from_numpy(array.dtype), steps)


class Handle:
    """What a symbolic tensor holds in place of memory: a cell, or a view of one.

    Attributes:
        cell: the memory.
        shape: sizes.
        dtype: element type.
        strides: as an eager tensor would have them.
        base: the handle that a view is taken of; None for the whole.
        step: how it is taken.
        seen: the contents of which ``taken`` is the view, as made in ``frame`` by the node at
            ``place``.
    """

    __slots__ = (
        "base",
        "cell",
        "dtype",
        "frame",
        "place",
        "seen",
        "shape",
        "step",
        "strides",
        "taken",
    )

    offset = 0
    taken: Value
    frame: Frame
    place: int

    def __init__(
        self,
        cell: Cell,
        shape: Shape,
        dtype: DType,
        strides: Shape | None = None,
        base: Handle | None = None,
        step: Step = _NO_STEP,
    ) -> None:
        self.cell = cell
        self.shape = shape
        self.dtype = dtype
        self.strides = row_major_strides(shape) if strides is None else strides
        self.base = base
        self.step = step
        self.seen: Value | None = None

    @property
    def buffer(self) -> Cell:
        """The memory: two handles share it if this is the same."""
        return self.cell

    @property
    def writeable(self) -> bool:
        """Whether no two elements are one place in memory."""
        handle: Handle | None = self
        while handle is not None:
            if handle.step.op in READ_ONLY:
                return False
            handle = handle.base
        return True


class Frame:
    """A region being built, or the program itself.

    Attributes:
        builder: takes the nodes.
        is_loop: whether it may run many times, so that variables have to be read inside.
        is_active: whether it is still being built.
        contents: what variables hold now, as far as this region knows; None where a region inside
            has written, so that it must be read.
        reads: what variables held when this region began, where it reads that.
        written: the variables that it writes, inner regions included.
        constants: repeated numbers that were noted already.
        made_here: whether eager memory was made since it began.
        is_open: whether others than the program may have written into memory since it began.
    """

    __slots__ = (
        "_pending",
        "builder",
        "constants",
        "contents",
        "dead",
        "is_active",
        "is_loop",
        "is_open",
        "made_here",
        "reads",
        "written",
    )

    def __init__(
        self,
        builder: GraphBuilder | None = None,
        is_loop: bool = False,
        made_here: Callable[[Storage], bool] = lambda storage: True,
    ) -> None:
        self.builder = builder or GraphBuilder()
        self.is_loop = is_loop
        self.made_here = made_here
        self.is_active, self.is_open = True, False
        self.contents: dict[Cell, Value | None] = {}
        self.reads: dict[Cell, Value] = {}
        self.written: dict[Cell, None] = {}
        self.constants: dict[Any, Value] = {}
        self.dead: set[Node] = set()
        self._pending: dict[Cell, Node] = {}

    def write(self, cell: Cell, value: Value, site: Site) -> None:
        """Note a write; an earlier one that nobody can have seen is dropped."""
        earlier = self._pending.pop(cell, None)
        if earlier is not None:
            self.dead.add(earlier)
        variable: Any = cell.variable
        self.builder.add_node("write", [variable, value], {}, [], site=site)
        self._pending[cell] = self.builder.nodes[-1]
        self.contents[cell] = value
        self.written[cell] = None

    def has(self, place: int, value: Value) -> bool:
        """Whether a value can be used that the node at this place made: it may have been undone."""
        nodes = self.builder.nodes
        return self.is_active and place < len(nodes) and nodes[place].results == (value,)

    def settle(self) -> None:
        """From here on the writes so far can be seen."""
        self._pending.clear()

    def nodes(self) -> list[Node]:
        """The nodes without dropped writes."""
        return [node for node in self.builder.nodes if node not in self.dead]
