"""`apply`: the one point through which every operation on tensors goes."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import DeviceError, DtypeError, GradientError
from dilim.ir.types import Type
from dilim.ops.opdef import OpDef
from dilim.runtime import eager
from dilim.runtime.devices import CPU, Device, MirroredStorage, Storage, quiet
from dilim.shapes import Shape
from dilim.tensors.anomaly import check_finite
from dilim.tensors.tape import Node, mode

if TYPE_CHECKING:
    from dilim.tensors.tensor import Tensor

eager.install()

NUMBERS: Final = frozenset({int, float, bool})
_SCALARS: Final = {dtype: Type((), dtype) for dtype in dtypes.ALL}
ACCEPTED: Final = {
    dtype: {bool} if dtype is dtypes.bool_ else {int, float} if dtype.is_floating else {int}
    for dtype in dtypes.ALL
}
_ndarray = np.ndarray
_array = np.array


def apply(op: OpDef, *inputs: Any, **params: Any) -> Tensor:
    """Apply an operation to tensors and Python numbers.

    Numbers take the dtype of the last tensor. On eager tensors the result is computed now and,
    where a gradient may be wanted, remembered on the tape.

    Raises:
        ShapeError, DtypeError: the operation's rules refuse the inputs.
        DeviceError: tensors on different devices.
        GradientError: an input's memory was written through another view.
    """
    if mode.watched:
        tracer = mode.tracer
        if tracer is not None and _is_held(tracer, inputs):
            return _apply_in_graph(tracer, op, inputs, params)
    operands: list[Any] = []
    last: Any = None
    numbers = False
    for x in inputs:
        if x.__class__ in NUMBERS:
            numbers = True
            operands.append(x)
            continue
        try:
            operands.append(x._data)
        except AttributeError:
            raise _not_a_tensor(op.name, x) from None
        if x.device is not CPU:
            return _apply_elsewhere(op, inputs, params)
        last = x
    if numbers and last is not None:
        types, operands = _with_numbers(op, inputs, operands, last.dtype)
        shape, dtype = op.infer(*types, **params)
    else:
        shape, dtype = op.infer(*inputs, **params)
    data = quiet.run(op.eager, *operands, **params)
    if data.__class__ is not _ndarray:
        data = np.asarray(data)
    result: Tensor = object.__new__(last.__class__)
    result._data = data
    result._shape = shape
    result._dtype = dtype
    result._device = CPU
    result.grad = None
    result.name = None
    result._uid = 0
    result._node = None
    result._requires_grad = False
    if op.is_view and np.may_share_memory(data, inputs[0]._data):
        storage = inputs[0]._storage
        result._storage = storage
        result._born = storage.version
        result._is_view = True
    else:
        result._storage = Storage(CPU, data)
        result._born = 0
        result._is_view = False
    if mode.recording and dtype.is_floating and op.derivative:
        for x in inputs:
            if x.__class__ not in NUMBERS and (x._requires_grad or x._storage.recorded > x._born):
                record(op, inputs, params, result)
                break
    if mode.watched and mode.anomaly:
        check_finite(op, inputs, result)
    return result


def _is_held(tracer: Any, inputs: tuple[Any, ...]) -> bool:
    """Whether an operation on these belongs to a graph being traced; not so for wrong operands."""
    held = False
    for x in inputs:
        if x.__class__ in NUMBERS:
            continue
        if not hasattr(x, "_data"):
            return False
        held = held or (x.device is CPU and tracer.holds(x))
    return held


def record(op: OpDef, inputs: tuple[Any, ...], params: dict[str, Any], result: Tensor) -> None:
    """Put an applied operation on the tape as the maker of ``result``."""
    edges: list[Any] = []
    versions = []
    for x in inputs:
        if x.__class__ in NUMBERS:
            edges.append(None)
            versions.append(0)
            continue
        storage = x._storage
        version = storage.version
        versions.append(version)
        storage.on_tape = True
        if not x._requires_grad:
            if storage.recorded > x._born:
                raise _written_through_view(op, x)
            edges.append(None)
            continue
        node = x._node
        if node is None:
            edges.append(x)
        else:
            if node.version != version:
                raise _written_through_view(op, x)
            edges.append(node)
    node = Node(op, inputs, params, tuple(edges), tuple(versions), result._storage.version)
    result._node = node
    result._storage.on_tape = True
    result._requires_grad = True


def _with_numbers(
    op: OpDef, inputs: tuple[Any, ...], operands: list[Any], dtype: DType
) -> tuple[list[Any], list[Any]]:
    """Types and operands with Python numbers as 0-d arrays of ``dtype``."""
    types = list(inputs)
    arrays = list(operands)
    for position, x in enumerate(inputs):
        kind = x.__class__
        if kind in NUMBERS:
            if kind not in ACCEPTED[dtype]:
                raise DtypeError(
                    f"{op.name}: the Python {kind.__name__} {x!r} does not mix with a "
                    f"{dtype.name} tensor; cast the tensor, for example "
                    f"x.astype(dilim.{'float32' if kind is float else 'int64'})"
                )
            types[position] = _SCALARS[dtype]
            arrays[position] = quiet.run(_array, x, dtype.numpy)
    return types, arrays


def _not_a_tensor(operation: str, value: Any) -> TypeError:
    kind = type(value).__name__
    cure = (
        "wrap it with dilim.asarray(...)"
        if isinstance(value, (np.ndarray, np.generic, list))
        else ("use a Tensor, or a Python int, float or bool")
    )
    return DtypeError(f"{operation}: expected Tensors or Python numbers, received {kind}; {cure}")


def rank_of(operation: str, x: Any) -> int:
    """The number of dimensions of a tensor.

    Raises:
        DtypeError: x is something else, such as a list.
    """
    try:
        return len(x.shape)
    except AttributeError:
        raise _not_a_tensor(operation, x) from None


def _written_through_view(op: OpDef, value: Tensor) -> GradientError:
    who = f"tensor '{value.name}'" if value.name else "a tensor"
    return GradientError(
        f"{op.name}: {who} of shape {value.shape} shares memory with a tensor that was written in "
        f"place since it was made, so its gradient is not known; make the view again after the "
        f"write, or write into a copy"
    )


# --- other devices --------------------------------------------------------------------------


class Tracer(ABC):
    """A device whose tensors stand for values of a program to come: it notes, never computes.

    Unlike other devices it takes tensors that live elsewhere into its program. They stay as they
    are; what the program does to their memory is done when it runs.
    """

    name = "graph"

    @abstractmethod
    def handle(self, x: Any) -> Any:
        """The handle of ``x`` in the program, whether it is symbolic or eager."""

    @abstractmethod
    def holds(self, x: Any) -> bool:
        """Whether the numbers of an eager tensor are the program's affair.

        So it is for memory that was there before tracing began, and for what the program writes.
        """

    @abstractmethod
    def full(self, *, shape: Shape, value: Any, dtype: DType) -> Any:
        """A tensor of this device that is one repeated number."""

    @abstractmethod
    def constant(self, array: np.ndarray) -> Any:
        """A tensor of this device with the numbers of a host array."""

    @abstractmethod
    def execute(self, op: OpDef, operands: list[Any], params: dict[str, Any]) -> Any:
        """Note an operation on handles and 0-d arrays; the handle of its result."""

    @abstractmethod
    def write(self, target: Any, source: Any) -> None:
        """Note that the elements of one handle are replaced by those of another."""

    @abstractmethod
    def own(self, x: Any) -> None:
        """Give a tensor of this device, which is a view, memory of its own for what it shows."""

    @abstractmethod
    def before_write(self, x: Any) -> None:
        """Take note that an eager tensor is about to be written now, while the program is built.

        Raises:
            GraphError: x was made outside the branch or loop that is being built.
        """

    def written(self, x: Any) -> None:
        """Count a write into the memory of ``x`` that was noted."""
        x._storage.version += 1

    def before_recorded_write(self, x: Any) -> None:  # noqa: B027 - most have nothing to do
        """Take note that a write into a tensor is about to be recorded on the tape."""

    @abstractmethod
    def note(self, node: Node, operands: list[Any]) -> None:
        """Take note that an operation on these handles was recorded on the tape."""

    @abstractmethod
    def expect_gradient(self, leaf: Any) -> None:
        """Take note that the ``grad`` of an eager leaf is about to become symbolic."""

    @abstractmethod
    def before_pull(self, node: Node) -> None:
        """Take note that a gradient is about to be pulled back through a recorded operation."""

    @abstractmethod
    def before_release(self, node: Node) -> None:
        """Take note that a recorded operation is about to be used up."""


def tracer_of(*values: Any) -> Any:
    """The tracer to whose program an operation on these tensors and numbers belongs, or None."""
    for x in values:
        if x.__class__ not in NUMBERS and isinstance(x.device, Tracer):
            return x.device
    tracer = mode.tracer
    if tracer is not None and any(tracer.holds(x) for x in values if x.__class__ not in NUMBERS):
        return tracer
    return None


def as_own(x: Tensor) -> Tensor:
    """x, which was just made and may be a view of memory that nobody else has, as no view."""
    if x._is_view:
        device: Any = x.device
        if isinstance(device, Tracer):
            device.own(x)
        x._is_view = False
    return x


def has_numbers(x: Any) -> bool:
    """Whether the numbers of ``x`` can be looked at now: not while a graph is being built."""
    return tracer_of(x) is None


def common_device(op: OpDef, tensors: list[Any]) -> Device:
    """The device on which an operation on these tensors runs.

    Mirrored tensors follow the others; alone they run on their device side.

    Raises:
        DeviceError: tensors are bound to different devices.
    """
    bound = [x for x in tensors if not isinstance(x._storage, MirroredStorage)]
    devices = {x.device.name: x.device for x in (bound or tensors)}
    if len(devices) > 1:
        raise DeviceError(
            f"{op.name}: expected tensors on one device, received {' and '.join(devices)}; move "
            f"one with x.to({next(iter(devices))!r})"
        )
    device: Device = next(iter(devices.values()))
    return device


def _apply_elsewhere(op: OpDef, inputs: tuple[Any, ...], params: dict[str, Any]) -> Tensor:
    """`apply` when some tensor is not plain CPU memory."""
    tracer = tracer_of(*inputs)
    if tracer is not None:
        return _apply_in_graph(tracer, op, inputs, params)
    tensors = [x for x in inputs if x.__class__ not in NUMBERS]
    device = common_device(op, tensors)
    operands = [x if x.__class__ in NUMBERS else x._on(device) for x in inputs]
    types, operands = _with_numbers(op, inputs, operands, tensors[-1].dtype)
    shape, dtype = op.infer(*types, **params)
    handle = device.execute(op, operands, params)
    result: Tensor = type(tensors[-1])._wrap(handle, shape, dtype, device)
    if op.is_view and device is not CPU:
        storage = inputs[0]._storage
        mirrored = isinstance(storage, MirroredStorage)
        if handle.buffer is (storage.side(device) if mirrored else storage.buffer):
            result._storage = storage
            result._born = storage.version
            result._is_view = True
    _record_if_wanted(op, inputs, params, result)
    return result


def _apply_in_graph(
    tracer: Any, op: OpDef, inputs: tuple[Any, ...], params: dict[str, Any]
) -> Tensor:
    """`apply` as a node of a graph; eager inputs are read when it runs."""
    tensors = [x for x in inputs if x.__class__ not in NUMBERS]
    operands = [x if x.__class__ in NUMBERS else tracer.handle(x) for x in inputs]
    types, operands = _with_numbers(op, inputs, operands, tensors[-1].dtype)
    shape, dtype = op.infer(*types, **params)
    handle = tracer.execute(op, operands, params)
    result: Tensor = type(tensors[-1])._wrap(handle, shape, dtype, tracer)
    if op.is_view and handle.buffer is operands[0].buffer:
        storage = inputs[0]._storage
        result._storage = storage
        result._born = storage.version
        result._is_view = True
    _record_if_wanted(op, inputs, params, result)
    if result._node is not None:
        tracer.note(result._node, operands)
    return result


def _record_if_wanted(
    op: OpDef, inputs: tuple[Any, ...], params: dict[str, Any], result: Tensor
) -> None:
    if not (mode.recording and result.dtype.is_floating and op.derivative):
        return
    tensors = [x for x in inputs if x.__class__ not in NUMBERS]
    if any(x.requires_grad or x._storage.recorded > x._born for x in tensors):
        record(op, inputs, params, result)


class EagerBuilder:
    """Gives derivative rules the operations by name, on eager tensors."""

    def __init__(self, operations: dict[str, Any]) -> None:
        self.__dict__.update(operations)

    if TYPE_CHECKING:

        def __getattr__(self, name: str) -> Any: ...
