"""LLVM types, constants, loads and stores for scalars and vectors.

``lanes`` is 0 for a scalar, else the number of elements of a vector. ``count`` lanes exist; the
others are neither read nor written.
"""

from __future__ import annotations

import functools
import struct
from typing import Final, Protocol

import numpy as np

from dilim import dtypes
from dilim.dtypes import DType

SCALARS: Final = {
    dtype: {"bool": "i1", "float": "float" if dtype.itemsize == 4 else "double"}.get(
        dtype.kind, f"i{8 * dtype.itemsize}"
    )
    for dtype in dtypes.ALL
}
"""The LLVM type of one value of each dtype."""


class Writer(Protocol):
    """What takes instructions."""

    def let(self, instruction: str) -> str:
        """Write an instruction that has a result; the name of the result."""

    def do(self, instruction: str) -> None:
        """Write an instruction."""


@functools.cache
def kind_of(dtype: DType, lanes: int) -> str:
    """The LLVM type of a value."""
    return f"<{lanes} x {SCALARS[dtype]}>" if lanes else SCALARS[dtype]


@functools.cache
def memory_kind(dtype: DType, lanes: int) -> str:
    """The LLVM type of a value in memory, where a bool takes a byte."""
    if dtype is dtypes.bool_:
        return f"<{lanes} x i8>" if lanes else "i8"
    return kind_of(dtype, lanes)


@functools.cache
def suffix_of(dtype: DType, lanes: int) -> str:
    """How intrinsics name the type: ``v16f32``."""
    letter = "f" if dtype.is_floating else "i"
    size = 1 if dtype is dtypes.bool_ else 8 * dtype.itemsize
    return f"v{lanes}{letter}{size}" if lanes else f"{letter}{size}"


def literal(value: object, dtype: DType, lanes: int = 0) -> str:
    """A number, rounded to its dtype; floats by their bits."""
    text = _scalar_literal(_key(value), dtype)
    return f"splat ({SCALARS[dtype]} {text})" if lanes else text


def _key(value: object) -> object:
    """Distinguishes -0.0 from 0.0 and 1 from True, and equates NaNs."""
    return repr(value) if isinstance(value, float) else value


@functools.lru_cache(maxsize=4096)
def _scalar_literal(value: object, dtype: DType) -> str:
    number = float(value) if isinstance(value, str) else value
    with np.errstate(all="ignore"):
        array = np.asarray(number).astype(dtype.numpy)
    if dtype is dtypes.bool_:
        return "true" if array else "false"
    if dtype.is_floating:
        return "0x" + struct.pack(">d", float(array)).hex().upper()
    return str(int(array))


@functools.cache
def mask(lanes: int, count: int) -> str:
    """The constant vector of bools that is true in the first ``count`` lanes."""
    return _vector(["i1 true"] * count + ["i1 false"] * (lanes - count))


@functools.cache
def steps(lanes: int) -> str:
    """The constant vector 0, 1, 2, ... of positions."""
    return _vector([f"i64 {lane}" for lane in range(lanes)])


@functools.cache
def numbers(*lanes: int) -> str:
    """A constant vector for `shufflevector`."""
    return _vector([f"i32 {lane}" for lane in lanes])


def _vector(parts: list[str]) -> str:
    return f"<{', '.join(parts)}>"


def splat(writer: Writer, value: str, dtype: DType, lanes: int) -> str:
    """A vector of copies of a scalar."""
    kind = SCALARS[dtype]
    first = writer.let(f"insertelement <{lanes} x {kind}> poison, {kind} {value}, i32 0")
    return writer.let(
        f"shufflevector <{lanes} x {kind}> {first}, <{lanes} x {kind}> poison, "
        f"<{lanes} x i32> zeroinitializer"
    )


def element(writer: Writer, vector: str, dtype: DType, lanes: int, lane: int) -> str:
    """One lane of a vector."""
    return writer.let(f"extractelement {kind_of(dtype, lanes)} {vector}, i32 {lane}")


def place(writer: Writer, dtype: DType, base: str, offset: str | int) -> str:
    """The address ``offset`` elements after ``base``."""
    if offset == 0:
        return base
    kind = memory_kind(dtype, 0)
    return writer.let(f"getelementptr inbounds {kind}, ptr {base}, i64 {offset}")


def load(
    writer: Writer, dtype: DType, address: str, lanes: int, count: int, guard: str = ""
) -> str:
    """Consecutive elements; 0 in lanes that do not exist, or where the guard is false.

    Args:
        writer: takes the instructions.
        dtype: of the elements.
        address: of the first.
        lanes: of the result.
        count: lanes that exist.
        guard: a vector of bools, or empty.
    """
    kind = memory_kind(dtype, lanes)
    if guard or count < lanes:
        suffix = suffix_of(dtypes.uint8 if dtype is dtypes.bool_ else dtype, lanes)
        value = writer.let(
            f"call {kind} @llvm.masked.load.{suffix}.p0(ptr align {dtype.itemsize} {address}, "
            f"<{lanes} x i1> {guard or mask(lanes, count)}, {kind} zeroinitializer)"
        )
    else:
        value = writer.let(f"load {kind}, ptr {address}, align {dtype.itemsize}")
    return truth(writer, value, lanes) if dtype is dtypes.bool_ else value


def store(writer: Writer, dtype: DType, value: str, address: str, lanes: int, count: int) -> None:
    """Write consecutive elements, as far as their lanes exist."""
    kind = memory_kind(dtype, lanes)
    if dtype is dtypes.bool_:
        value = writer.let(f"zext {kind_of(dtype, lanes)} {value} to {kind}")
    if count < lanes:
        suffix = suffix_of(dtypes.uint8 if dtype is dtypes.bool_ else dtype, lanes)
        writer.do(
            f"call void @llvm.masked.store.{suffix}.p0({kind} {value}, "
            f"ptr align {dtype.itemsize} {address}, <{lanes} x i1> {mask(lanes, count)})"
        )
    else:
        writer.do(f"store {kind} {value}, ptr {address}, align {dtype.itemsize}")


SCATTERED: Final = 4
"""Bytes of the smallest elements for which processors have gathers and scatters."""


def _addresses(writer: Writer, dtype: DType, address: str, step: int, lanes: int) -> str:
    """The addresses of lanes ``step`` elements apart."""
    places = _vector([f"i64 {lane * step}" for lane in range(lanes)])
    return writer.let(f"getelementptr {SCALARS[dtype]}, ptr {address}, <{lanes} x i64> {places}")


def gather(writer: Writer, dtype: DType, address: str, step: int, lanes: int, count: int) -> str:
    """Elements ``step`` apart; 0 in lanes that do not exist. Not for bools."""
    kind, places = kind_of(dtype, lanes), _addresses(writer, dtype, address, step, lanes)
    return writer.let(
        f"call {kind} @llvm.masked.gather.{suffix_of(dtype, lanes)}.v{lanes}p0("
        f"<{lanes} x ptr> align {dtype.itemsize} {places}, <{lanes} x i1> {mask(lanes, count)}, "
        f"{kind} zeroinitializer)"
    )


def scatter(
    writer: Writer, dtype: DType, value: str, address: str, step: int, lanes: int, count: int
) -> None:
    """Write elements ``step`` apart, as far as their lanes exist. Not for bools."""
    kind, places = kind_of(dtype, lanes), _addresses(writer, dtype, address, step, lanes)
    writer.do(
        f"call void @llvm.masked.scatter.{suffix_of(dtype, lanes)}.v{lanes}p0({kind} {value}, "
        f"<{lanes} x ptr> align {dtype.itemsize} {places}, <{lanes} x i1> {mask(lanes, count)})"
    )


def truth(writer: Writer, value: str, lanes: int) -> str:
    """Bytes as bools."""
    kind = f"<{lanes} x i8>" if lanes else "i8"
    return writer.let(f"icmp ne {kind} {value}, {'zeroinitializer' if lanes else '0'}")
