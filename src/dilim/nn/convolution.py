"""Convolution and pooling over images: views of windows, then one matrix product or a maximum.

Images are (B, C, height, width): batch, channels, rows, columns.
"""

from __future__ import annotations

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import ShapeError
from dilim.nn.checks import check_input, check_size, check_tensor, pair
from dilim.nn.init import Initializer, known, weight_and_bias
from dilim.nn.module import Module
from dilim.tensors.linear_algebra import matmul
from dilim.tensors.manipulation import pad
from dilim.tensors.random import Generator
from dilim.tensors.reductions import max as maximum_over
from dilim.tensors.tensor import Tensor
from dilim.tensors.windows import windows

Pair = int | tuple[int, int]
Widths = tuple[tuple[int, int], tuple[int, int]]


class Conv2d(Module):
    """y[b, o, i, j] = bias[o] + sum over c, k, l of weight[o, c, k, l] x[b, c, i s + k, j s + l].

    Here s is the stride and x is padded with zeros. (A cross-correlation, as in other libraries.)

    Args:
        input_channels: C, at least 1.
        output_channels: O, at least 1.
        kernel_size: rows and columns of a window: a number or a pair.
        stride: step from window to window: a number or a pair.
        padding: rows above and below and columns left and right that are added: a number, a pair,
            or "same" for an output of ceil(size / stride); an odd row or column more goes below
            and right.
        bias: whether there is a bias.
        init: see `Dense`; fan_in is C times the size of a window.
        generator: where random numbers come from; the default generator if None.
        dtype: float32 or float64.
        name: free text for errors and for the names of the tensors.

    Attributes:
        weight: (O, C, rows, columns).
        bias: (O,), or None.

    Raises:
        ShapeError: a size that is not allowed.
        ValueError: padding is a text other than "same".
    """

    def __init__(
        self,
        input_channels: int,
        output_channels: int,
        kernel_size: Pair,
        *,
        stride: Pair = 1,
        padding: Pair | str = 0,
        bias: bool = True,
        init: str | Initializer = "fan_in",
        generator: Generator | None = None,
        dtype: DType | str = dtypes.float32,
        name: str | None = None,
    ) -> None:
        channels = check_size("Conv2d: input_channels", input_channels)
        outputs = check_size("Conv2d: output_channels", output_channels)
        self.kernel_size = pair("Conv2d: kernel_size", kernel_size)
        self.stride = pair("Conv2d: stride", stride)
        self.padding: tuple[int, int] | str
        if isinstance(padding, str):
            self.padding = known("Conv2d: padding", padding, ["same"])
        else:
            self.padding = pair("Conv2d: padding", padding, least=0)
        self.name = name
        shape = (outputs, channels, *self.kernel_size)
        self.weight, offset = weight_and_bias(init, shape, outputs, generator, dtype)
        self.weight.name = f"{name or 'conv2d'}.weight"
        offset.name = f"{name or 'conv2d'}.bias"
        self.bias = offset if bias else None

    def forward(self, x: Tensor) -> Tensor:
        """(B, C, height, width) to (B, O, rows, columns).

        Raises:
            ShapeError: x does not have 4 axes and C channels, or is smaller than a window.
            DtypeError: x has another dtype than the weight.
        """
        check_input(self, x, self.weight)
        outputs, channels, height, width = self.weight.shape
        if len(x.shape) != 4 or x.shape[1] != channels:
            raise ShapeError(
                f"{self.described}: expected images (batch, {channels}, height, width), "
                f"received shape {x.shape}"
            )
        widths = self._widths(x.shape[2], x.shape[3])
        if widths != ((0, 0), (0, 0)):
            x = pad(x, ((0, 0), (0, 0), *widths))
        _check_fits(self, x, self.kernel_size)
        patches = windows(x, self.kernel_size, self.stride)  # (B, C, rows, columns, h, w)
        batch, _, rows, columns = patches.shape[:4]
        patches = patches.permute(0, 2, 3, 1, 4, 5).reshape(
            batch * rows * columns, channels * height * width
        )
        kernel = self.weight.reshape(outputs, channels * height * width).T
        result = matmul(patches, kernel)
        if self.bias is not None:
            result = result + self.bias
        return result.reshape(batch, rows, columns, outputs).permute(0, 3, 1, 2)

    def _widths(self, height: int, width: int) -> Widths:
        """Rows above and below, columns left and right."""
        if isinstance(self.padding, str):
            rows = _same(height, self.kernel_size[0], self.stride[0])
            return rows, _same(width, self.kernel_size[1], self.stride[1])
        rows_each, columns_each = self.padding
        return (rows_each, rows_each), (columns_each, columns_each)

    def __repr__(self) -> str:
        outputs, channels = self.weight.shape[:2]
        text = f"Conv2d({channels} -> {outputs}, {_short(self.kernel_size)}"
        if self.stride != (1, 1):
            text += f", stride={_short(self.stride)}"
        if self.padding != (0, 0):
            text += f", padding={_short(self.padding)}"
        return f"{text})" if self.bias is not None else f"{text}, bias=False)"


class MaxPool2d(Module):
    """The largest number of each window of each channel; a tie shares the gradient equally.

    Args:
        kernel_size: rows and columns of a window: a number or a pair.
        stride: step from window to window; by default the size of a window.

    Raises:
        ShapeError: a size below 1.
    """

    def __init__(self, kernel_size: Pair, *, stride: Pair | None = None) -> None:
        self.kernel_size = pair("MaxPool2d: kernel_size", kernel_size)
        self.stride = self.kernel_size if stride is None else pair("MaxPool2d: stride", stride)

    def forward(self, x: Tensor) -> Tensor:
        """(..., height, width) to (..., rows, columns); what does not fill a window is left out.

        Raises:
            ShapeError: x is smaller than a window.
        """
        check_tensor("MaxPool2d", x)
        _check_fits(self, x, self.kernel_size)
        return maximum_over(windows(x, self.kernel_size, self.stride), axis=(-2, -1))

    def __repr__(self) -> str:
        stride = "" if self.stride == self.kernel_size else f", stride={_short(self.stride)}"
        return f"MaxPool2d({_short(self.kernel_size)}{stride})"


def _same(size: int, window: int, stride: int) -> tuple[int, int]:
    """Padding before and after, so that ceil(size / stride) windows fit."""
    count = -(-size // stride)
    total = max((count - 1) * stride + window - size, 0)
    return total // 2, total - total // 2


def _check_fits(layer: Module, x: Tensor, size: tuple[int, int]) -> None:
    if len(x.shape) < 2 or x.shape[-2] < size[0] or x.shape[-1] < size[1]:
        raise ShapeError(
            f"{layer.described}: a window of {size} does not fit in shape {x.shape} (after padding)"
        )


def _short(value: tuple[int, int] | str) -> str:
    if isinstance(value, str):
        return repr(value)
    return str(value[0]) if value[0] == value[1] else str(value)
