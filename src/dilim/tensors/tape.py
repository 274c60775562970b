"""What eager execution remembers: nodes of the tape, and whether it remembers at all."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import ContextDecorator, contextmanager
from typing import TYPE_CHECKING, Any, Final

from dilim.errors import GradientError
from dilim.runtime import devices

if TYPE_CHECKING:
    from dilim.ops.opdef import OpDef
    from dilim.tensors.tensor import Tensor

ROOM: Final = 1 << 32
"""Between the serials of two operations of a compiled program: room for a branch or loop."""
SPACING: Final = ROOM << 32
"""Between the serials of two recordings: room for those that a compiled program hands over."""
_serials = itertools.count(0, SPACING)


def now() -> int:
    """A moment: what is recorded from here on has a serial of at least this."""
    return next(_serials)


class Mode(threading.local):
    """Settings of eager execution, one set per thread.

    Attributes:
        recording: whether operations on tensors that require gradients are recorded.
        anomaly: whether every result is searched for NaN.
        tracer: the graph that the running function is being turned into, or None.
        watched: whether every result is looked at, for one of the last two.
    """

    recording: bool = True
    anomaly: bool = False
    tracer: Any = None
    watched: bool = False


mode: Final = Mode()


class _Recording(ContextDecorator):
    """Sets the mode inside a ``with`` block or a function; can be used again and nested."""

    def __init__(self, value: bool) -> None:
        self._value = value
        self._before: list[bool] = []

    def _recreate_cm(self) -> _Recording:
        return _Recording(self._value)  # decorated functions may run in several threads

    def __enter__(self) -> None:
        self._before.append(mode.recording)
        mode.recording = self._value

    def __exit__(self, *exception: object) -> None:
        mode.recording = self._before.pop()


def no_grad() -> _Recording:
    """A context (and decorator) in which nothing is recorded for differentiation.

    Example:
        >>> import dilim
        >>> w = dilim.tensor([1.0], requires_grad=True)
        >>> with dilim.no_grad():
        ...     (w * 2).requires_grad
        False
    """
    return _Recording(False)


def enable_grad() -> _Recording:
    """A context (and decorator) in which operations are recorded, also inside `no_grad`."""
    return _Recording(True)


@contextmanager
def detect_anomaly() -> Iterator[None]:
    """A context that stops at the first operation that makes a NaN out of none.

    It looks at every result, in the forward and in the backward pass, and raises a
    NonFiniteError that names the operation, its inputs and the user's line. Slow; for searching.
    """
    before = mode.anomaly, mode.watched
    mode.anomaly = mode.watched = True
    try:
        yield
    finally:
        mode.anomaly, mode.watched = before


@contextmanager
def traced_by(tracer: Any) -> Iterator[None]:
    """A context in which operations on tensors made before it become nodes of a graph.

    Args:
        tracer: a `dilim.tensors.dispatch.Tracer`.
    """
    before = mode.tracer, mode.watched
    mode.tracer = tracer
    mode.watched = tracer is not None or mode.anomaly
    try:
        yield
    finally:
        mode.tracer, mode.watched = before


@contextmanager
def eagerly() -> Iterator[None]:
    """A context in which everything is done now, also while a function is being traced.

    For work that a traced function does once and that is no part of it, such as making the state
    that it will write.
    """
    with traced_by(None), devices.no_epoch():
        yield


class Node:
    """One recorded operation.

    It holds its inputs but not its result, so that no reference cycle can arise: the result is
    always at hand as the root of the walk or as the input of a later node.

    Attributes:
        op: the operation.
        params: its static parameters.
        inputs: tensors and Python numbers; None once the node was used up.
        edges: per input the node that made it, the leaf tensor itself, or None.
        versions: the write counts of the inputs' storages when they were read.
        serial: creation order.
        version: the write count of the result's storage when it was made.
        values: the values of a graph that the inputs were; set inside regions of graphs only.
    """

    __slots__ = ("edges", "inputs", "op", "params", "serial", "values", "version", "versions")

    values: list[Any]

    def __init__(
        self,
        op: OpDef,
        inputs: tuple[Any, ...],
        params: dict[str, Any],
        edges: tuple[Any, ...],
        versions: tuple[int, ...],
        version: int,
    ) -> None:
        self.op = op
        self.inputs: tuple[Any, ...] | None = inputs
        self.params = params
        self.edges = edges
        self.versions = versions
        self.version = version
        self.serial = next(_serials)

    def release(self) -> None:
        """Free what the node holds; it cannot be walked again."""
        if mode.tracer is not None:
            mode.tracer.before_release(self)
        self.inputs = None
        self.edges = ()

    def __repr__(self) -> str:
        return f"<{self.op.name} node>"


class Overwritten:
    """Stands for a tensor whose contents were replaced; only its type can still be used."""

    requires_grad = False

    def __init__(self, value: Tensor, operation: str) -> None:
        self.shape = value.shape
        self.dtype = value.dtype
        self.name = value.name
        self._operation = operation

    def refusal(self) -> GradientError:
        """The error for a use of the contents."""
        who = f"tensor '{self.name}'" if self.name else "a tensor"
        return GradientError(
            f"backward of {self._operation}: {who} of shape {self.shape} was written in place "
            f"after {self._operation} had used it, and its old value is needed; write into a "
            f"copy, or write after backward()"
        )

    @property
    def _data(self) -> Any:
        """Any use as an operand asks for the data first, and fails here."""
        raise self.refusal()

    device = _data
