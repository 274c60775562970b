"""`LayerNorm`: numbers of each sample brought to mean 0 and variance 1."""

from __future__ import annotations

from collections.abc import Sequence

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import ShapeError
from dilim.nn.checks import check_input, check_size
from dilim.nn.module import Module
from dilim.tensors import elementwise as e
from dilim.tensors.creation import ones, zeros
from dilim.tensors.reductions import mean
from dilim.tensors.tensor import Tensor


class LayerNorm(Module):
    """y = (x - mean) / sqrt(variance + epsilon) * weight + bias, per sample.

    Mean and variance (of the population) are taken over the last axes of each sample.

    Args:
        shape: the size of the last axis, or the sizes of the last axes.
        epsilon: keeps the division finite; inside the root.
        dtype: float32 or float64.
        name: free text for errors and for the names of the tensors.

    Attributes:
        weight: of ``shape``, ones at first.
        bias: of ``shape``, zeros at first.

    Source: Ba, Kiros and Hinton, Layer normalization, 2016.
    """

    def __init__(
        self,
        shape: int | Sequence[int],
        *,
        epsilon: float = 1e-5,
        dtype: DType | str = dtypes.float32,
        name: str | None = None,
    ) -> None:
        sizes = [shape] if not isinstance(shape, (list, tuple)) else shape
        self.shape = tuple(check_size("LayerNorm: a size", size) for size in sizes)
        if not self.shape:
            raise ShapeError("LayerNorm: expected at least one size, received none")
        self.epsilon = epsilon
        self.name = name
        prefix = name or "layer_norm"
        self.weight = ones(self.shape, dtype=dtype, requires_grad=True, name=f"{prefix}.weight")
        self.bias = zeros(self.shape, dtype=dtype, requires_grad=True, name=f"{prefix}.bias")

    def forward(self, x: Tensor) -> Tensor:
        """(..., *shape) to the same shape.

        Raises:
            ShapeError: the last sizes of x are others.
            DtypeError: x has another dtype than the weight.
        """
        check_input(self, x, self.weight)
        count = len(self.shape)
        if x.shape[-count:] != self.shape:
            raise ShapeError(
                f"{self.described}: expected the last sizes to be {self.shape}, received shape "
                f"{x.shape}"
            )
        axes = tuple(range(-count, 0))
        centred = x - mean(x, axis=axes, keepdims=True)
        variance = mean(centred * centred, axis=axes, keepdims=True)
        return centred / e.sqrt(variance + self.epsilon) * self.weight + self.bias

    def __repr__(self) -> str:
        sizes = self.shape[0] if len(self.shape) == 1 else self.shape
        return f"LayerNorm({sizes})"
