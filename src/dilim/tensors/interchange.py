"""Numbers out of tensors: NumPy, DLPack, Python numbers, text."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dilim import dtypes
from dilim.errors import DeviceError, ShapeError
from dilim.runtime.devices import CPU
from dilim.tensors import transfer
from dilim.tensors.dispatch import Tracer

if TYPE_CHECKING:
    from dilim.tensors.tensor import Tensor

API_VERSIONS: Final = ("2021.12", "2022.12", "2023.12", "2024.12", "2025.12")
"""Versions of the array API standard whose names and meanings hold here."""


def numpy_of(x: Any, copy: bool = False) -> np.ndarray:
    """The numbers of ``x`` as a NumPy array: a read-only view, or a copy."""
    array = transfer.host(x)
    if copy:
        return np.array(array, order="C")
    view = array.view()
    view.flags.writeable = False
    return view


class Interchange:
    """The part of `Tensor` that hands numbers to other libraries and to people."""

    __slots__ = ()
    __array_ufunc__ = None  # NumPy gives way to Tensor's operators

    if TYPE_CHECKING:
        shape: tuple[int, ...]
        dtype: dtypes.DType
        requires_grad: bool
        _data: Any
        _storage: Any

    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any:
        """The module whose functions take tensors, for code written against the array API.

        Raises:
            ValueError: a version of the standard was asked for that is not known here.
        """
        if api_version is not None and api_version not in API_VERSIONS:
            raise ValueError(
                f"__array_namespace__: expected api_version among {', '.join(API_VERSIONS)}, "
                f"received {api_version!r}"
            )
        return sys.modules["dilim"]

    def numpy(self, *, copy: bool = False) -> np.ndarray:
        """The numbers as a NumPy array.

        Args:
            copy: False gives a read-only view of the memory (zero copies on the CPU), True an
                independent, writable array.
        """
        return numpy_of(self, copy)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> np.ndarray:
        array = numpy_of(self)
        if dtype is not None and array.dtype != dtype:
            if copy is False:
                raise ValueError(
                    f"__array__: {array.dtype} to {dtype} needs a copy, and copy=False"
                )
            return array.astype(dtype)
        return np.array(array) if copy else array

    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[Any, int] | None = None,
        copy: bool | None = None,
    ) -> Any:
        """A DLPack capsule of the memory; read-only while gradients are recorded for it.

        Raises:
            DeviceError: the tensor is not on the CPU.
            BufferError: the consumer asks for what cannot be, or knows no read-only memory.
        """
        self._need_cpu("__dlpack__")
        taped = self.requires_grad or self._storage.on_tape
        readonly = taped or not self._data.flags.writeable
        if readonly and not copy and (max_version is None or max_version < (1, 0)):
            raise BufferError(
                "__dlpack__: this memory is read-only (it is shared, or a gradient may need it), "
                "and the consumer's DLPack is too old to be told; export x.detach().clone()"
            )
        array = numpy_of(self) if taped else self._data
        return array.__dlpack__(
            stream=stream, max_version=max_version, dl_device=dl_device, copy=copy
        )

    def __dlpack_device__(self) -> tuple[Any, int]:
        self._need_cpu("__dlpack_device__")
        device: tuple[Any, int] = self._data.__dlpack_device__()
        return device

    def _need_cpu(self, operation: str) -> None:
        device = self.device  # type: ignore[attr-defined]
        if device is not CPU:
            raise DeviceError(
                f"{operation}: expected a tensor on 'cpu', this one lives on {device.name!r}; "
                "use x.to('cpu')"
            )

    def tolist(self) -> Any:
        """Nested lists of Python numbers; a number for shape ()."""
        return transfer.host(self).tolist()  # type: ignore[arg-type]

    def item(self) -> Any:
        """The only element as a Python number.

        Raises:
            ShapeError: there is not exactly one element.
        """
        array = numpy_of(self)
        if array.size != 1:
            raise ShapeError(f"item: expected exactly one element, received shape {self.shape}")
        return array.item()

    def __bool__(self) -> bool:
        return bool(self._scalar("bool"))

    def __int__(self) -> int:
        return int(self._scalar("int"))

    def __float__(self) -> float:
        return float(self._scalar("float"))

    def __complex__(self) -> complex:
        return complex(self._scalar("complex"))

    def __index__(self) -> int:
        if not self.dtype.is_integer:
            raise TypeError(f"index: expected an integer tensor, received {self.dtype.name}")
        return int(self._scalar("index"))

    def _scalar(self, operation: str) -> Any:
        array = numpy_of(self)
        if array.size != 1:
            cure = "; use x.any() or x.all()" if operation == "bool" else ""
            raise ShapeError(
                f"{operation}(): expected a tensor with one element, received shape "
                f"{self.shape}{cure}"
            )
        return array.item()

    def __len__(self) -> int:
        if not self.shape:
            raise TypeError("len(): a tensor of shape () has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        tensor: Tensor = self  # type: ignore[assignment]
        if isinstance(tensor.device, Tracer):
            name = f", name={tensor.name!r}" if tensor.name is not None else ""
            return f"tensor(symbolic, shape={self.shape}, dtype={self.dtype.name}{name})"
        array = numpy_of(self)
        text = np.array2string(array, separator=", ", prefix="tensor(", threshold=1000, precision=4)
        parts = [text]
        if self.dtype not in (dtypes.float32, dtypes.int64, dtypes.bool_) or array.size == 0:
            parts.append(f"dtype={self.dtype.name}")
        if array.size == 0 and self.shape != (0,):
            parts.append(f"shape={self.shape}")
        if tensor.name is not None:
            parts.append(f"name={tensor.name!r}")
        if tensor.device is not CPU:
            parts.append(f"device={tensor.device.name!r}")
        if tensor._node is not None:
            parts.append(f"made_by={tensor._node.op.name}")
        elif self.requires_grad:
            parts.append("requires_grad=True")
        return f"tensor({', '.join(parts)})"

    def __format__(self, specification: str) -> str:
        if specification and not self.shape:
            return format(self.item(), specification)
        return format(repr(self), specification)
