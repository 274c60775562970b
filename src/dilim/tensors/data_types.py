"""Questions about dtypes: limits, kinds, promotion."""

from __future__ import annotations

import builtins
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from dilim import dtypes
from dilim.dtypes import DType
from dilim.errors import DtypeError
from dilim.tensors.dispatch import ACCEPTED, NUMBERS

if TYPE_CHECKING:
    from dilim.tensors.tensor import Tensor

KINDS: Final[dict[str, tuple[DType, ...]]] = {
    "bool": (dtypes.bool_,),
    "signed integer": dtypes.SIGNED,
    "unsigned integer": dtypes.UNSIGNED,
    "integral": dtypes.INTEGER,
    "real floating": dtypes.FLOATING,
    "complex floating": (),
    "numeric": dtypes.NUMERIC,
}
"""The standard's names of dtype kinds, and what belongs to each here."""


@dataclass(frozen=True, slots=True)
class FloatInfo:
    """Limits of a floating dtype.

    Attributes:
        bits: width.
        eps: distance from 1.0 to the next larger number.
        max: largest finite number.
        min: smallest finite number, ``-max``.
        smallest_normal: smallest positive number with full precision.
        dtype: the dtype.
    """

    bits: int
    eps: float
    max: float
    min: float
    smallest_normal: float
    dtype: DType


@dataclass(frozen=True, slots=True)
class IntegerInfo:
    """Limits of an integer dtype.

    Attributes:
        bits: width.
        max: largest number.
        min: smallest number.
        dtype: the dtype.
    """

    bits: int
    max: int
    min: int
    dtype: DType


def _dtype_of(value: Any) -> DType:
    """The dtype of a tensor, or the dtype that ``value`` names."""
    return value.dtype if hasattr(value, "_storage") else dtypes.as_dtype(value)


def finfo(type: DType | Tensor, /) -> FloatInfo:
    """Limits of a floating dtype, or of a tensor's.

    Raises:
        DtypeError: it is not floating.
    """
    dtype = _dtype_of(type)
    if not dtype.is_floating:
        raise DtypeError(
            f"finfo: expected a floating dtype, received {dtype.name}; see dilim.iinfo"
        )
    info = np.finfo(dtype.numpy)
    return FloatInfo(
        bits=8 * dtype.itemsize,
        eps=float(info.eps),
        max=float(info.max),
        min=float(info.min),
        smallest_normal=float(info.smallest_normal),
        dtype=dtype,
    )


def iinfo(type: DType | Tensor, /) -> IntegerInfo:
    """Limits of an integer dtype, or of a tensor's.

    Raises:
        DtypeError: it is not an integer dtype.
    """
    dtype = _dtype_of(type)
    if not dtype.is_integer:
        raise DtypeError(
            f"iinfo: expected an integer dtype, received {dtype.name}; see dilim.finfo"
        )
    info = np.iinfo(dtype.numpy)
    return IntegerInfo(8 * dtype.itemsize, int(info.max), int(info.min), dtype)


def isdtype(dtype: DType, kind: DType | str | tuple[DType | str, ...]) -> builtins.bool:
    """Whether a dtype is another one, or of a kind.

    Args:
        dtype: the dtype in question.
        kind: a dtype; or "bool", "signed integer", "unsigned integer", "integral",
            "real floating", "complex floating" (no dtype here is), "numeric"; or a tuple of
            these, of which one has to hold.

    Raises:
        DtypeError: there is no such kind.
    """
    if isinstance(kind, tuple):
        return any(isdtype(dtype, one) for one in kind)
    if isinstance(kind, str):
        if kind not in KINDS:
            raise DtypeError(
                f"isdtype: expected a kind among {', '.join(KINDS)}; received {kind!r}"
            )
        return dtype in KINDS[kind]
    return dtype is dtypes.as_dtype(kind)


def can_cast(from_: DType | Tensor, to: DType, /) -> builtins.bool:
    """Whether promotion leads from one dtype to the other, so that nothing is lost."""
    target = dtypes.as_dtype(to)
    return dtypes.PROMOTIONS.get((_dtype_of(from_), target)) is target


def result_type(*arrays_and_dtypes: DType | Tensor | builtins.bool | int | float) -> DType:
    """The dtype that an operation on all of these has.

    Args:
        arrays_and_dtypes: tensors, dtypes and Python numbers; a number must be of a kind that
            the others take (a float for floats, an int for integers and floats, a bool for
            bools) and changes nothing.

    Raises:
        DtypeError: two of them do not mix, or there is neither a tensor nor a dtype.
    """
    numbers = [x for x in arrays_and_dtypes if x.__class__ in NUMBERS]
    found = [_dtype_of(x) for x in arrays_and_dtypes if x.__class__ not in NUMBERS]
    if not found:
        raise DtypeError("result_type: expected at least one tensor or dtype, received none")
    result = found[0]
    for dtype in found[1:]:
        result = dtypes.promote("result_type", result, dtype)
    for number in numbers:
        if number.__class__ not in ACCEPTED[result]:
            raise DtypeError(
                f"result_type: the Python {number.__class__.__name__} {number!r} does not mix "
                f"with {result.name}; cast one of them"
            )
    return result
