"""Python's operators on tensors."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dilim.tensors import elementwise as e
from dilim.tensors import indexing, inplace
from dilim.tensors.linear_algebra import matmul

if TYPE_CHECKING:
    from dilim.tensors.tensor import Tensor


class Operators:
    """The part of `Tensor` that Python's syntax calls."""

    __slots__ = ()

    def __add__(self, other: Any) -> Tensor:
        return e.add(self, other)

    def __radd__(self, other: Any) -> Tensor:
        return e.add(other, self)

    def __sub__(self, other: Any) -> Tensor:
        return e.subtract(self, other)

    def __rsub__(self, other: Any) -> Tensor:
        return e.subtract(other, self)

    def __mul__(self, other: Any) -> Tensor:
        return e.multiply(self, other)

    def __rmul__(self, other: Any) -> Tensor:
        return e.multiply(other, self)

    def __truediv__(self, other: Any) -> Tensor:
        return e.divide(self, other)

    def __rtruediv__(self, other: Any) -> Tensor:
        return e.divide(other, self)

    def __floordiv__(self, other: Any) -> Tensor:
        return e.floor_divide(self, other)

    def __rfloordiv__(self, other: Any) -> Tensor:
        return e.floor_divide(other, self)

    def __mod__(self, other: Any) -> Tensor:
        return e.remainder(self, other)

    def __rmod__(self, other: Any) -> Tensor:
        return e.remainder(other, self)

    def __pow__(self, other: Any) -> Tensor:
        return e.pow(self, other)

    def __rpow__(self, other: Any) -> Tensor:
        return e.pow(other, self)

    def __matmul__(self, other: Any) -> Tensor:
        return matmul(self, other)

    def __rmatmul__(self, other: Any) -> Tensor:
        return matmul(other, self)

    def __and__(self, other: Any) -> Tensor:
        return e.bitwise_and(self, other)

    def __rand__(self, other: Any) -> Tensor:
        return e.bitwise_and(other, self)

    def __or__(self, other: Any) -> Tensor:
        return e.bitwise_or(self, other)

    def __ror__(self, other: Any) -> Tensor:
        return e.bitwise_or(other, self)

    def __xor__(self, other: Any) -> Tensor:
        return e.bitwise_xor(self, other)

    def __rxor__(self, other: Any) -> Tensor:
        return e.bitwise_xor(other, self)

    def __lshift__(self, other: Any) -> Tensor:
        return e.bitwise_left_shift(self, other)

    def __rlshift__(self, other: Any) -> Tensor:
        return e.bitwise_left_shift(other, self)

    def __rshift__(self, other: Any) -> Tensor:
        return e.bitwise_right_shift(self, other)

    def __rrshift__(self, other: Any) -> Tensor:
        return e.bitwise_right_shift(other, self)

    def __neg__(self) -> Tensor:
        return e.negative(self)  # type: ignore[arg-type]

    def __pos__(self) -> Tensor:
        return e.positive(self)  # type: ignore[arg-type]

    def __abs__(self) -> Tensor:
        return e.abs(self)  # type: ignore[arg-type]

    def __invert__(self) -> Tensor:
        return e.bitwise_invert(self)  # type: ignore[arg-type]

    def __eq__(self, other: Any) -> Tensor:  # type: ignore[override]
        return e.equal(self, other) if other is not None else False  # type: ignore[return-value]

    def __ne__(self, other: Any) -> Tensor:  # type: ignore[override]
        return e.not_equal(self, other) if other is not None else True  # type: ignore[return-value]

    def __lt__(self, other: Any) -> Tensor:
        return e.less(self, other)

    def __le__(self, other: Any) -> Tensor:
        return e.less_equal(self, other)

    def __gt__(self, other: Any) -> Tensor:
        return e.greater(self, other)

    def __ge__(self, other: Any) -> Tensor:
        return e.greater_equal(self, other)

    __hash__ = object.__hash__

    # --- in place -----------------------------------------------------------------------

    def __iadd__(self, other: Any) -> Tensor:
        return inplace.update(self, e.add, other)

    def __isub__(self, other: Any) -> Tensor:
        return inplace.update(self, e.subtract, other)

    def __imul__(self, other: Any) -> Tensor:
        return inplace.update(self, e.multiply, other)

    def __itruediv__(self, other: Any) -> Tensor:
        return inplace.update(self, e.divide, other)

    def __ifloordiv__(self, other: Any) -> Tensor:
        return inplace.update(self, e.floor_divide, other)

    def __imod__(self, other: Any) -> Tensor:
        return inplace.update(self, e.remainder, other)

    def __ipow__(self, other: Any) -> Tensor:
        return inplace.update(self, e.pow, other)

    def __imatmul__(self, other: Any) -> Tensor:
        return inplace.update(self, matmul, other)

    def __iand__(self, other: Any) -> Tensor:
        return inplace.update(self, e.bitwise_and, other)

    def __ior__(self, other: Any) -> Tensor:
        return inplace.update(self, e.bitwise_or, other)

    def __ixor__(self, other: Any) -> Tensor:
        return inplace.update(self, e.bitwise_xor, other)

    def __ilshift__(self, other: Any) -> Tensor:
        return inplace.update(self, e.bitwise_left_shift, other)

    def __irshift__(self, other: Any) -> Tensor:
        return inplace.update(self, e.bitwise_right_shift, other)

    # --- indexing -----------------------------------------------------------------------

    def __getitem__(self, key: Any) -> Tensor:
        return indexing.get(self, key)

    def __setitem__(self, key: Any, value: Any) -> None:
        indexing.set_(self, key, value)

    def __iter__(self) -> Any:
        if not self.shape:  # type: ignore[attr-defined]
            raise TypeError("iteration: a tensor of shape () cannot be iterated")
        return (self[i] for i in range(self.shape[0]))  # type: ignore[attr-defined]
