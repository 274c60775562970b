"""Element types: which exist, and what comes out when two meet.

The table of promotions is the one of the Python array API standard: inside a kind the wider type
wins, a signed and an unsigned integer meet in the next wider signed one, and kinds never mix.
"""

from __future__ import annotations

from typing import Any, Final

import numpy as np

from dilim.errors import DtypeError


class DType:
    """One element type, for example ``dilim.float32``. There is exactly one object per type.

    Attributes:
        name: ``"float32"``.
        kind: ``"bool"``, ``"int"``, ``"uint"`` or ``"float"``.
        itemsize: bytes per element.
        numpy: the NumPy dtype that stores it.
    """

    __slots__ = ("is_floating", "is_integer", "itemsize", "kind", "name", "numpy")

    def __init__(self, name: str, kind: str) -> None:
        self.name: Final = name
        self.kind: Final = kind
        self.numpy: Final[np.dtype[Any]] = np.dtype(name)
        self.itemsize: Final = self.numpy.itemsize
        self.is_floating: Final = kind == "float"
        self.is_integer: Final = kind in ("int", "uint")

    def __repr__(self) -> str:
        return f"dilim.{self.name}"

    def __copy__(self) -> DType:
        return self

    def __deepcopy__(self, memo: object) -> DType:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (as_dtype, (self.name,))


bool_ = DType("bool", "bool")
int8 = DType("int8", "int")
int16 = DType("int16", "int")
int32 = DType("int32", "int")
int64 = DType("int64", "int")
uint8 = DType("uint8", "uint")
uint16 = DType("uint16", "uint")
uint32 = DType("uint32", "uint")
uint64 = DType("uint64", "uint")
float32 = DType("float32", "float")
float64 = DType("float64", "float")

ALL: Final = (
    bool_, int8, int16, int32, int64, uint8, uint16, uint32, uint64, float32, float64,
)  # fmt: skip
FLOATING: Final = (float32, float64)
SIGNED: Final = (int8, int16, int32, int64)
UNSIGNED: Final = (uint8, uint16, uint32, uint64)
INTEGER: Final = SIGNED + UNSIGNED
NUMERIC: Final = INTEGER + FLOATING

DEFAULT_FLOAT: Final = float32
DEFAULT_INT: Final = int64
INDEX: Final = int64

_BY_NAME: Final = {dtype.name: dtype for dtype in ALL}
_BY_NUMPY: Final = {dtype.numpy: dtype for dtype in ALL}
_BY_PYTHON: Final = {bool: bool_, int: DEFAULT_INT, float: DEFAULT_FLOAT}


def as_dtype(value: object) -> DType:
    """The dilim dtype that ``value`` names: a DType, a NumPy dtype, a name or a Python type.

    Raises:
        DtypeError: nothing of that name exists here (complex and half precision do not).
    """
    if isinstance(value, DType):
        return value
    if isinstance(value, type) and value in _BY_PYTHON:
        return _BY_PYTHON[value]
    if isinstance(value, str) and value in _BY_NAME:
        return _BY_NAME[value]
    try:
        found = _BY_NUMPY.get(np.dtype(value).newbyteorder("="))  # type: ignore[call-overload]
    except TypeError:
        found = None
    if found is None:
        names = ", ".join(_BY_NAME)
        raise DtypeError(f"dtype: expected one of {names}; received {value!r}")
    return found


def from_numpy(dtype: np.dtype[Any]) -> DType:
    """The dilim dtype of a native NumPy dtype; KeyError-free and fast for known ones."""
    found = _BY_NUMPY.get(dtype)
    return found if found is not None else as_dtype(dtype)


def _build_promotions() -> dict[tuple[DType, DType], DType]:
    table = {(dtype, dtype): dtype for dtype in ALL}
    for family in (SIGNED, UNSIGNED, FLOATING):
        for a in family:
            for b in family:
                table[a, b] = a if a.itemsize >= b.itemsize else b
    for signed in SIGNED:
        for unsigned in UNSIGNED:
            needed = max(signed.itemsize, 2 * unsigned.itemsize)
            if needed <= 8:
                wide = next(d for d in SIGNED if d.itemsize == needed)
                table[signed, unsigned] = table[unsigned, signed] = wide
    return table


PROMOTIONS: Final = _build_promotions()


def promote(operation: str, a: DType, b: DType) -> DType:
    """The dtype in which ``a`` and ``b`` meet.

    Raises:
        DtypeError: the standard gives this pair no result (a float with an integer, a bool with
            a number, int64 with uint64).
    """
    found = PROMOTIONS.get((a, b))
    if found is None:
        raise DtypeError(
            f"{operation}: dtypes {a.name} and {b.name} do not mix: there is no dtype that holds "
            f"both. Cast one of them, for example with x.astype(dilim.{_cure(a, b).name})"
        )
    return found


def _cure(a: DType, b: DType) -> DType:
    for dtype in (a, b):
        if dtype.is_floating:
            return dtype
    return int64 if bool_ not in (a, b) else (a if b is bool_ else b)
