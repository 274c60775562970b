"""`Tensor`: a typed, strided view into flat storage, with a place on the tape."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from operator import attrgetter
from typing import Any, Final, Self

import numpy as np

from dilim import dtypes, shapes
from dilim.dtypes import DType
from dilim.errors import DeviceError, DtypeError, GradientError, GraphError, ShapeError
from dilim.runtime.devices import CPU, Device, MirroredStorage, Storage, as_device, quiet
from dilim.shapes import Shape
from dilim.tensors import transfer
from dilim.tensors.dispatch import has_numbers
from dilim.tensors.interchange import Interchange
from dilim.tensors.methods import Methods
from dilim.tensors.operators import Operators
from dilim.tensors.tape import Node

_uids: Final = itertools.count(1)


class Tensor(Operators, Methods, Interchange):
    """A multi-dimensional array of one dtype that can be differentiated.

    Args:
        data: a number, nested sequences of numbers, a NumPy array or a Tensor; it is copied.
        dtype: element type. By default that of the data: float32 for Python floats, int64 for
            ints, bool for bools; arrays keep theirs.
        device: where it lives; the CPU by default.
        requires_grad: whether operations on it are recorded and ``backward()`` fills ``grad``.
        name: free text for errors and pictures.
        mirrored: keep a copy in host memory and one on ``device``, and copy only the stale one.

    Attributes:
        shape: sizes, a tuple.
        dtype: a dilim dtype.
        device: where it lives.
        grad: the accumulated gradient, a Tensor, or None before ``backward()``.
        requires_grad: see above.
        name: see above.

    Raises:
        DtypeError: a gradient was asked for on a dtype that is not floating.

    Example:
        >>> import dilim
        >>> x = dilim.Tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        >>> (x * x).sum().backward()
        >>> x.grad.tolist()
        [[2.0, 4.0], [6.0, 8.0]]
    """

    __slots__ = (
        "__weakref__",
        "_born",
        "_data",
        "_device",
        "_dtype",
        "_is_view",
        "_node",
        "_requires_grad",
        "_shape",
        "_storage",
        "_uid",
        "grad",
        "name",
    )

    _data: Any
    _storage: Storage
    _node: Node | None
    _is_view: bool
    _born: int  # the version of the memory when this tensor was made or last recorded
    _uid: int
    _shape: Shape
    _dtype: DType
    _device: Device
    _requires_grad: bool
    grad: Tensor | None
    name: str | None

    # properties without a Python frame: these are read several times per operation
    shape: Shape = property(attrgetter("_shape"), doc="Sizes, a tuple.")  # type: ignore[assignment]
    dtype: DType = property(attrgetter("_dtype"), doc="Element type.")  # type: ignore[assignment]
    device: Device = property(  # type: ignore[assignment]
        attrgetter("_device"), doc="Where the tensor lives."
    )
    requires_grad: bool = property(  # type: ignore[assignment]
        attrgetter("_requires_grad"),
        lambda self, value: self.requires_grad_(value),
        doc="Whether operations are recorded; see `requires_grad_`.",
    )

    def __init__(
        self,
        data: Any,
        dtype: DType | str | None = None,
        device: Device | str | None = None,
        requires_grad: bool = False,
        name: str | None = None,
        mirrored: bool = False,
    ) -> None:
        array = np.array(host_array(data, dtype), order="C")
        target = as_device(device)
        self._fill(array, array.shape, dtypes.from_numpy(array.dtype), CPU)
        self.name = name
        if mirrored:
            transfer.mirror(self, target)
        elif target is not CPU:
            transfer.move(self, target)
        if requires_grad:
            self.requires_grad_()

    def _fill(self, handle: Any, shape: Shape, dtype: DType, device: Device) -> None:
        self._data = handle
        self._shape = shape
        self._dtype = dtype
        self._device = device
        self._storage = Storage(device, handle if device is CPU else handle.buffer)
        self._node = None
        self._is_view = False
        self._born = 0
        self._uid = 0
        self.grad = None
        self._requires_grad = False
        self.name = None

    @classmethod
    def _wrap(cls, handle: Any, shape: Shape, dtype: DType, device: Device) -> Self:
        """A tensor over a device's handle; nothing is copied."""
        result = object.__new__(cls)
        result._fill(handle, shape, dtype, device)
        return result

    @classmethod
    def _from_array(cls, array: np.ndarray) -> Self:
        """A tensor over a NumPy array; nothing is copied."""
        return cls._wrap(array, array.shape, dtypes.from_numpy(array.dtype), CPU)

    def _alias(self) -> Self:
        """Another tensor over the same memory with the same place on the tape."""
        result = object.__new__(type(self))
        result._data = self._data
        result._shape = self.shape
        result._dtype = self.dtype
        result._device = self.device
        result._storage = self._storage
        result._node = self._node
        result._is_view = True
        result._born = self._storage.version
        result._uid = 0
        result.grad = None
        result._requires_grad = self.requires_grad
        result.name = self.name
        return result

    # --- shape and memory ---------------------------------------------------------------

    @property
    def uid(self) -> int:
        """A number that no other tensor of this process has."""
        if not self._uid:
            self._uid = next(_uids)
        return self._uid

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.shape)

    @property
    def size(self) -> int:
        """Number of elements."""
        return shapes.size_of(self.shape)

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return self.dtype.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.size * self.dtype.itemsize

    @property
    def strides(self) -> Shape:
        """Elements (not bytes) to step in storage per dimension."""
        if isinstance(self._data, np.ndarray):
            return tuple(step // self.dtype.itemsize for step in self._data.strides)
        strides: Shape = self._data.strides
        return strides

    @property
    def is_contiguous(self) -> bool:
        """Whether the elements lie in row-major order without gaps."""
        return self.size <= 1 or self.strides == shapes.row_major_strides(self.shape)

    @property
    def T(self) -> Tensor:
        """The transpose of a matrix; other tensors need ``mT`` or ``permute``.

        Raises:
            ShapeError: not two dimensions.
        """
        if len(self.shape) != 2:
            raise ShapeError(
                f"T: expected 2 dimensions, received shape {self.shape}; use x.mT for stacks of "
                "matrices or x.permute(...)"
            )
        return self.permute(1, 0)

    @property
    def mT(self) -> Tensor:
        """The last two axes swapped."""
        if len(self.shape) < 2:
            raise ShapeError(f"mT: expected at least 2 dimensions, received shape {self.shape}")
        return self.permute(*range(self.ndim - 2), self.ndim - 1, self.ndim - 2)

    # --- devices ------------------------------------------------------------------------

    def to(self, target: Device | DType | str, *, copy: bool = False) -> Tensor:
        """This tensor on another device, or in another dtype; itself if nothing changes.

        Args:
            target: a device, its name, or a dtype.
            copy: make a new tensor in any case.
        """
        return transfer.to(self, target, copy)

    def to_device(self, device: Device | str, /, *, stream: object = None) -> Tensor:
        """This tensor on another device (array API name of `to`).

        Raises:
            DeviceError: a stream was given; no device here has any.
        """
        if stream is not None:
            raise DeviceError("to_device: expected stream=None, received a stream")
        return transfer.to(self, as_device(device), False)

    def move_(self, device: Device | str) -> Self:
        """Move to a device in place and free the old side.

        Raises:
            DeviceError: another tensor shares the memory, so that it cannot be freed.
            GradientError: the tensor is the result of a recorded operation.
        """
        transfer.move(self, as_device(device))
        return self

    def _on(self, device: Device) -> Any:
        """The handle of this tensor on ``device`` (mirrored tensors have two)."""
        storage = self._storage
        if isinstance(storage, MirroredStorage):
            return transfer.mirrored_handle(self, storage, device)
        return self._data

    # --- gradients ----------------------------------------------------------------------

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made this tensor."""
        return self._node is None

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Switch recording on or off for a leaf; returns the tensor.

        Raises:
            DtypeError: the dtype is not floating.
            GradientError: the tensor is the result of a recorded operation.
        """
        if requires_grad and not self.dtype.is_floating:
            raise DtypeError(
                f"requires_grad: only floating tensors can have gradients, this one is "
                f"{self.dtype.name}; cast it with x.astype(dilim.float32)"
            )
        if self._node is not None and not requires_grad:
            raise GradientError(
                "requires_grad_: this tensor is the result of a recorded operation; use x.detach()"
            )
        self._requires_grad = requires_grad
        return self

    def detach(self) -> Self:
        """The same memory as a leaf without gradient."""
        result = self._alias()
        result._node = None
        result._requires_grad = False
        return result

    def zero_grad(self) -> None:
        """Forget the accumulated gradient (``grad`` becomes None)."""
        self.grad = None

    def __copy__(self) -> Self:
        return self._alias()

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        if self._node is not None:
            raise GradientError(
                "deepcopy: only leaves can be copied; this tensor is the result of a recorded "
                "operation, copy x.detach()"
            )
        result = type(self)._from_array(np.array(self.numpy(), order="C"))
        if isinstance(self._storage, MirroredStorage):
            transfer.mirror(result, self.device)
        elif self.device is not CPU:
            transfer.move(result, self.device)
        result._requires_grad = self.requires_grad
        result.name = self.name
        memo[id(self)] = result
        if self.grad is not None:
            result.grad = self.grad.detach().__deepcopy__(memo)
        return result

    def __reduce__(self) -> Any:
        raise TypeError(
            "pickle: tensors are saved with dilim.save (safetensors), not with pickle; or pickle "
            "x.numpy()"
        )


def host_array(data: Any, dtype: DType | str | None) -> np.ndarray:
    """A NumPy array of ``data`` in a dtype that dilim has; shares memory where it can.

    Raises:
        DtypeError: it is not made of numbers, or a Python number does not fit the dtype.
        ShapeError: rows of different lengths.
    """
    wanted = None if dtype is None else dtypes.as_dtype(dtype).numpy
    if isinstance(data, Tensor):
        array = data.numpy()
    elif isinstance(data, (np.ndarray, np.generic)):
        array = np.asarray(data)
    else:
        return _from_python(data, wanted)
    if wanted is None:
        wanted = dtypes.as_dtype(array.dtype).numpy
    return array if array.dtype == wanted else np.asarray(quiet.run(array.astype, wanted))


def _plain(item: Any, typed: list[bool]) -> Any:
    """Nested lists with arrays for tensors; notes in ``typed`` whether anything had a dtype."""
    if isinstance(item, Sequence) and not isinstance(item, (str, bytes)):
        return [_plain(x, typed) for x in item]
    if hasattr(item, "dtype"):
        typed.append(True)
    if isinstance(item, Tensor) and not has_numbers(item):
        raise GraphError(
            "tensor: expected numbers, received tensors of a graph, whose numbers are not known "
            "while it is being built; use dilim.stack"
        )
    return item.numpy() if isinstance(item, Tensor) else item


def _from_python(data: Any, wanted: Any) -> np.ndarray:
    """A NumPy array of (nested) Python numbers, tensors and arrays; plain floats are float32."""
    typed: list[bool] = []
    plain = _plain(data, typed)
    try:
        array = np.asarray(plain)
    except ValueError:
        raise ShapeError("tensor: expected rows of equal length, received a ragged one") from None
    if array.dtype.kind not in "biuf":
        raise DtypeError(
            f"tensor: expected numbers, received {type(data).__name__} of {data!r:.60}"
        )
    if wanted is None:
        floats = array.dtype.kind == "f" and not typed
        wanted = (dtypes.DEFAULT_FLOAT if floats else dtypes.as_dtype(array.dtype)).numpy
    if wanted.kind in "iu" and array.dtype.kind != "b" and wanted != array.dtype and array.size:
        limits = np.iinfo(wanted)
        if not (array.min() >= limits.min and array.max() <= limits.max):
            raise DtypeError(
                f"tensor: expected numbers from {limits.min} to {limits.max} for {wanted}, "
                f"received {array.min()} to {array.max()}"
            )
    return np.asarray(quiet.run(array.astype, wanted, copy=False))
