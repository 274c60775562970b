"""Checks of arguments that several layers and losses make."""

from __future__ import annotations

from operator import index
from typing import Any

from dilim import dtypes
from dilim.errors import DtypeError, ShapeError
from dilim.nn.module import Module
from dilim.tensors.dispatch import has_numbers
from dilim.tensors.elementwise import where
from dilim.tensors.tensor import Tensor


def check_size(what: str, size: Any, least: int = 1) -> int:
    """``size`` as an int.

    Raises:
        ShapeError: it is not a whole number of at least ``least``.
    """
    if isinstance(size, bool) or not hasattr(size, "__index__") or index(size) < least:
        raise ShapeError(f"{what}: expected a whole number of at least {least}, received {size!r}")
    return index(size)


def pair(what: str, value: Any, least: int = 1) -> tuple[int, int]:
    """(n, n) from n, and (a, b) from a pair.

    Raises:
        ShapeError: neither a size nor two of them.
    """
    values = tuple(value) if isinstance(value, (tuple, list)) else (value, value)
    if len(values) != 2:
        raise ShapeError(f"{what}: expected a number or a pair, received {value!r}")
    return check_size(what, values[0], least), check_size(what, values[1], least)


def check_tensor(who: str, x: Any) -> None:
    """Refuse what is not a tensor.

    Raises:
        DtypeError: the cure is in the message.
    """
    if not isinstance(x, Tensor):
        raise DtypeError(
            f"{who}: expected a Tensor, received {type(x).__name__}; wrap it with "
            "dilim.asarray(..., dtype=dilim.float32)"
        )


def check_input(layer: Module, x: Any, weight: Tensor) -> None:
    """Refuse an input of another dtype than the layer's weight.

    Raises:
        DtypeError: not a tensor, or of another dtype.
    """
    if isinstance(x, Tensor) and x.dtype is weight.dtype:
        return
    check_tensor(layer.described, x)
    kind = weight.dtype.name
    raise DtypeError(
        f"{layer.described}: expected {kind} inputs, received {x.dtype.name}; cast them with "
        f"x.astype(dilim.{kind})"
    )


def checked_indices(who: str, indices: Tensor, count: int, meaning: str) -> Tensor:
    """Refuse numbers that do not name one of ``count`` things.

    In a graph the numbers are not known yet.

    Args:
        who: for the error.
        indices: a tensor of integers, any shape.
        count: how many things there are.
        meaning: what the numbers name, such as "class".

    Returns:
        Positions that are refused when the graph runs, where they name none of them.

    Raises:
        DtypeError: not a tensor of integers.
        IndexError: a number is not in 0 .. count - 1.
    """
    check_tensor(who, indices)
    if not indices.dtype.is_integer:
        raise DtypeError(
            f"{who}: expected integers, received {indices.dtype.name}; cast with "
            "x.astype(dilim.int64)"
        )
    if not has_numbers(indices) and indices.dtype in dtypes.SIGNED:
        positions = indices.astype(dtypes.int64)
        # a position from -count to -1 would count from the end
        shifted: Tensor = where(positions < 0, positions - count, positions)
        return shifted
    if indices.size == 0 or not has_numbers(indices):
        return indices
    for number in (int(indices.min()), int(indices.max())):
        if not 0 <= number < count:
            raise IndexError(f"{who}: {number} is not a {meaning} from 0 to {count - 1}")
    return indices
