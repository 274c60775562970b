"""What this namespace of the array API can do, for libraries that ask."""

from __future__ import annotations

from typing import Any

from dilim import dtypes as types
from dilim.dtypes import DType
from dilim.runtime.devices import CPU, Device, as_device, known_devices
from dilim.tensors.data_types import KINDS, isdtype


class NamespaceInfo:
    """Answers about dtypes and devices, as the array API standard words them."""

    def capabilities(self) -> dict[str, Any]:
        """What is supported: masks as keys, shapes that depend on data, and how many axes.

        NumPy, which holds the memory, stops at 64 axes.
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Device:
        """Where tensors are made when nothing is said."""
        return CPU

    def devices(self) -> tuple[Device, ...]:
        """All devices that tensors can be on."""
        return tuple(known_devices())

    def default_dtypes(self, *, device: Device | str | None = None) -> dict[str, DType]:
        """The dtypes of Python floats, of Python ints and of positions; there is no complex one.

        Raises:
            DeviceError: there is no such device.
        """
        as_device(device)
        return {
            "real floating": types.DEFAULT_FLOAT,
            "integral": types.DEFAULT_INT,
            "indexing": types.INDEX,
        }

    def dtypes(
        self, *, device: Device | str | None = None, kind: str | tuple[str, ...] | None = None
    ) -> dict[str, DType]:
        """Name -> dtype of all dtypes, or of those of a kind (see `isdtype`).

        Raises:
            DeviceError: there is no such device.
            DtypeError: there is no such kind.
        """
        as_device(device)
        wanted = tuple(KINDS) if kind is None else kind
        return {dtype.name: dtype for dtype in types.ALL if isdtype(dtype, wanted)}


def __array_namespace_info__() -> NamespaceInfo:
    """What this namespace can do; see `NamespaceInfo`."""
    return NamespaceInfo()
