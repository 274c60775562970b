"""Sliding windows: what convolution and pooling are made of."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from dilim.ops.table import OPERATIONS
from dilim.tensors.dispatch import apply

if TYPE_CHECKING:
    from dilim.tensors.tensor import Tensor

_windows: Final = OPERATIONS["windows"]


def windows(x: Tensor, size: tuple[int, int], stride: tuple[int, int] = (1, 1)) -> Tensor:
    """All windows over the last two axes, as a view.

    Args:
        x: (..., H, W).
        size: (h, w), rows and columns of a window.
        stride: rows and columns from one window to the next.

    Returns:
        (..., rows, columns, h, w) with rows = (H - h) // stride[0] + 1, columns likewise.

    Raises:
        ShapeError: a window is larger than x.
    """
    return apply(_windows, x, size=size, stride=stride)
