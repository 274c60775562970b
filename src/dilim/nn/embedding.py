"""`Embedding`: rows of a table, looked up by number."""

from __future__ import annotations

from dilim import dtypes
from dilim.dtypes import DType
from dilim.nn.checks import check_size, checked_indices
from dilim.nn.init import Initializer
from dilim.nn.module import Module
from dilim.tensors.indexing import take
from dilim.tensors.random import Generator, default_generator
from dilim.tensors.tensor import Tensor


class Embedding(Module):
    """y = weight[x]: a learned vector for each of a number of things.

    Args:
        count: K, how many things there are, numbered from 0.
        size: E, numbers per vector.
        init: a function like those of `dilim.nn.init`; by default normal numbers N(0, 1).
        generator: where random numbers come from; the default generator if None.
        dtype: float32 or float64.
        name: free text for errors and for the name of the tensor.

    Attributes:
        weight: (K, E).
    """

    def __init__(
        self,
        count: int,
        size: int,
        *,
        init: Initializer | None = None,
        generator: Generator | None = None,
        dtype: DType | str = dtypes.float32,
        name: str | None = None,
    ) -> None:
        shape = check_size("Embedding: count", count), check_size("Embedding: size", size)
        if init is None:
            weight = (generator or default_generator()).normal(shape, dtype=dtype)
        else:
            weight = init(shape, None, generator, dtype)
        self.name = name
        self.weight = weight.requires_grad_()
        self.weight.name = f"{name or 'embedding'}.weight"

    def forward(self, x: Tensor) -> Tensor:
        """Integers (...) from 0 to K - 1, to (..., E). A number used twice adds its gradients.

        Raises:
            DtypeError: x does not hold integers.
            IndexError: a number is below 0 or above K - 1.
        """
        rows = checked_indices(self.described, x, self.weight.shape[0], "row")
        return take(self.weight, rows, axis=0)

    def __repr__(self) -> str:
        return f"Embedding({self.weight.shape[0]} -> {self.weight.shape[1]})"
