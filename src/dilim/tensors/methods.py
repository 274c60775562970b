"""Methods of `Tensor` for the usual functions; each does what the function of its name does."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dilim.dtypes import DType, bool_
from dilim.errors import ShapeError
from dilim.tensors import backward as engine
from dilim.tensors import elementwise as e
from dilim.tensors import inplace
from dilim.tensors import manipulation as m
from dilim.tensors import reductions as r

if TYPE_CHECKING:
    from dilim.tensors.reductions import Axes
    from dilim.tensors.tensor import Tensor


def _sizes(sizes: tuple[Any, ...]) -> Any:
    """``(2, 3)`` from ``f(2, 3)`` and from ``f((2, 3))``."""
    return sizes[0] if len(sizes) == 1 and not isinstance(sizes[0], int) else sizes


class Methods:
    """The part of `Tensor` that mirrors functions."""

    __slots__ = ()

    if TYPE_CHECKING:
        shape: tuple[int, ...]

    # --- gradients ----------------------------------------------------------------------

    def backward(
        self,
        gradient: Tensor | None = None,
        *,
        retain_graph: bool | None = None,
        create_graph: bool = False,
    ) -> None:
        """Add the derivative of this tensor to ``grad`` of every leaf it was made from.

        Args:
            gradient: what to start with; may be left out for a single element (then 1).
            retain_graph: keep the tape for another call; by default only with create_graph.
            create_graph: record the derivatives too, for derivatives of higher order.

        Raises:
            GradientError: nothing to differentiate, the tape was used up, or a needed value was
                written in place.
        """
        engine.backward(self, gradient, retain_graph, create_graph)

    # --- elementwise --------------------------------------------------------------------

    def abs(self) -> Tensor:
        """See `dilim.abs`."""
        return e.abs(self)  # type: ignore[arg-type]

    def exp(self) -> Tensor:
        """See `dilim.exp`."""
        return e.exp(self)  # type: ignore[arg-type]

    def log(self) -> Tensor:
        """See `dilim.log`."""
        return e.log(self)  # type: ignore[arg-type]

    def sqrt(self) -> Tensor:
        """See `dilim.sqrt`."""
        return e.sqrt(self)  # type: ignore[arg-type]

    def sin(self) -> Tensor:
        """See `dilim.sin`."""
        return e.sin(self)  # type: ignore[arg-type]

    def cos(self) -> Tensor:
        """See `dilim.cos`."""
        return e.cos(self)  # type: ignore[arg-type]

    def tanh(self) -> Tensor:
        """See `dilim.tanh`."""
        return e.tanh(self)  # type: ignore[arg-type]

    def sigmoid(self) -> Tensor:
        """See `dilim.sigmoid`."""
        return e.sigmoid(self)  # type: ignore[arg-type]

    def relu(self) -> Tensor:
        """See `dilim.relu`."""
        return e.relu(self)  # type: ignore[arg-type]

    def square(self) -> Tensor:
        """See `dilim.square`."""
        return e.square(self)  # type: ignore[arg-type]

    def clip(self, min: Any = None, max: Any = None) -> Tensor:
        """See `dilim.clip`."""
        return e.clip(self, min, max)  # type: ignore[arg-type]

    # --- reductions ---------------------------------------------------------------------

    def sum(self, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        """See `dilim.sum`."""
        return r.sum(self, axis=axis, keepdims=keepdims)  # type: ignore[arg-type]

    def prod(self, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        """See `dilim.prod`."""
        return r.prod(self, axis=axis, keepdims=keepdims)  # type: ignore[arg-type]

    def mean(self, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        """See `dilim.mean`."""
        return r.mean(self, axis=axis, keepdims=keepdims)  # type: ignore[arg-type]

    def var(self, axis: Axes = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
        """See `dilim.var`."""
        return r.var(self, axis=axis, correction=correction, keepdims=keepdims)  # type: ignore[arg-type]

    def std(self, axis: Axes = None, *, correction: float = 0.0, keepdims: bool = False) -> Tensor:
        """See `dilim.std`."""
        return r.std(self, axis=axis, correction=correction, keepdims=keepdims)  # type: ignore[arg-type]

    def norm(self, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        """See `dilim.norm`."""
        return r.norm(self, axis=axis, keepdims=keepdims)  # type: ignore[arg-type]

    def max(self, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        """See `dilim.max`."""
        return r.max(self, axis=axis, keepdims=keepdims)  # type: ignore[arg-type]

    def min(self, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        """See `dilim.min`."""
        return r.min(self, axis=axis, keepdims=keepdims)  # type: ignore[arg-type]

    def any(self, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        """See `dilim.any`."""
        return r.any(self, axis=axis, keepdims=keepdims)  # type: ignore[arg-type]

    def all(self, axis: Axes = None, *, keepdims: bool = False) -> Tensor:
        """See `dilim.all`."""
        return r.all(self, axis=axis, keepdims=keepdims)  # type: ignore[arg-type]

    def argmax(self, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
        """See `dilim.argmax`."""
        return r.argmax(self, axis=axis, keepdims=keepdims)  # type: ignore[arg-type]

    def argmin(self, axis: int | None = None, *, keepdims: bool = False) -> Tensor:
        """See `dilim.argmin`."""
        return r.argmin(self, axis=axis, keepdims=keepdims)  # type: ignore[arg-type]

    # --- shape --------------------------------------------------------------------------

    def reshape(self, *shape: Any) -> Tensor:
        """See `dilim.reshape`; sizes one by one or as a tuple."""
        return m.reshape(self, _sizes(shape))  # type: ignore[arg-type]

    def permute(self, *axes: Any) -> Tensor:
        """See `dilim.permute_dims`; axes one by one or as a tuple."""
        return m.permute_dims(self, _sizes(axes))  # type: ignore[arg-type]

    def transpose(self, axis1: int, axis2: int) -> Tensor:
        """Two axes swapped."""
        return m.transpose(self, axis1, axis2)  # type: ignore[arg-type]

    def expand(self, *shape: Any) -> Tensor:
        """See `dilim.broadcast_to`; sizes one by one or as a tuple; -1 keeps a size."""
        sizes = tuple(_sizes(shape))
        offset = len(sizes) - len(self.shape)
        if offset < 0:
            raise ShapeError(f"expand: shape {self.shape} does not stretch to {sizes}")
        kept = tuple(self.shape[i - offset] if n == -1 else n for i, n in enumerate(sizes))
        return m.broadcast_to(self, kept)  # type: ignore[arg-type]

    def flip(self, axis: Axes = None) -> Tensor:
        """See `dilim.flip`."""
        return m.flip(self, axis=axis)  # type: ignore[arg-type]

    def squeeze(self, axis: int | tuple[int, ...] | None = None) -> Tensor:
        """See `dilim.squeeze`."""
        return m.squeeze(self, axis)  # type: ignore[arg-type]

    def unsqueeze(self, axis: int) -> Tensor:
        """See `dilim.expand_dims`."""
        return m.expand_dims(self, axis)  # type: ignore[arg-type]

    def flatten(self, start_axis: int = 0) -> Tensor:
        """See `dilim.flatten`."""
        return m.flatten(self, start_axis)  # type: ignore[arg-type]

    def split(self, sizes: int | list[int], axis: int = 0) -> tuple[Tensor, ...]:
        """See `dilim.split`."""
        return m.split(self, sizes, axis=axis)  # type: ignore[arg-type]

    def astype(self, dtype: DType | str, *, copy: bool = True) -> Tensor:
        """See `dilim.astype`."""
        return m.astype(self, dtype, copy=copy)  # type: ignore[arg-type]

    def contiguous(self) -> Tensor:
        """This tensor if it lies in row-major order, else a copy that does."""
        if self.is_contiguous:  # type: ignore[attr-defined]
            return self  # type: ignore[return-value]
        return m.astype(self, self.dtype)  # type: ignore[arg-type, attr-defined]

    def clone(self) -> Tensor:
        """A copy with its own memory; gradients flow through it."""
        return m.astype(self, self.dtype)  # type: ignore[arg-type, attr-defined]

    # --- in place -----------------------------------------------------------------------

    def add_(self, other: Any) -> Tensor:
        """x += other; returns x."""
        return inplace.update(self, e.add, other)

    def sub_(self, other: Any) -> Tensor:
        """x -= other; returns x."""
        return inplace.update(self, e.subtract, other)

    def mul_(self, other: Any) -> Tensor:
        """x *= other; returns x."""
        return inplace.update(self, e.multiply, other)

    def div_(self, other: Any) -> Tensor:
        """x /= other; returns x."""
        return inplace.update(self, e.divide, other)

    def copy_(self, other: Any) -> Tensor:
        """x[...] = other; returns x."""
        self[...] = other  # type: ignore[index]
        return self  # type: ignore[return-value]

    def fill_(self, value: float) -> Tensor:
        """Every element set to a number; returns x."""
        self[...] = value  # type: ignore[index]
        return self  # type: ignore[return-value]

    def zero_(self) -> Tensor:
        """Every element set to 0 (False for bools); returns x."""
        return self.fill_(False if self.dtype is bool_ else 0)  # type: ignore[attr-defined]
