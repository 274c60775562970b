"""The type of a value: shape and dtype."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from dilim import shapes
from dilim.dtypes import DType
from dilim.shapes import Shape


class Typed(Protocol):
    """Anything with a static shape and a dtype: an eager tensor, a graph value, a `Type`."""

    @property
    def shape(self) -> Shape:
        """Sizes."""

    @property
    def dtype(self) -> DType:
        """Element type."""


@dataclass(frozen=True, slots=True)
class Type:
    """Shape and dtype of one value.

    Example:
        >>> from dilim import dtypes
        >>> str(Type((2, 3), dtypes.float32))
        'float32[2,3]'
    """

    shape: Shape
    dtype: DType

    @property
    def size(self) -> int:
        """Number of elements."""
        return shapes.size_of(self.shape)

    def __str__(self) -> str:
        return f"{self.dtype.name}[{','.join(map(str, self.shape))}]"


def type_of(value: Typed) -> Type:
    """The `Type` of anything typed."""
    return value if isinstance(value, Type) else Type(value.shape, value.dtype)
