"""Emits recipe bodies: one scalar expression at a time, by a table of primitives."""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np

from dilim import dtypes, shapes
from dilim.backends.llvm.writer import REGISTER, FunctionWriter
from dilim.dtypes import DType
from dilim.errors import UnsupportedError
from dilim.ir.types import Type
from dilim.ops.primitives import Expr

Emission = Callable[..., str]
"""``emission(writer, dtype, *operands)``: writes instructions; the name of their result."""


class Body:
    """Emits expressions at one place of a loop nest; shared parts are emitted once.

    Args:
        writer: of the function.
        inputs: the types of the operation's inputs, which lie in ``%in0``, ``%in1``, ... row-major.
        indices: the names of the loop indices.
        operation: named in errors.
    """

    def __init__(
        self, writer: FunctionWriter, inputs: Sequence[Type], indices: Sequence[str], operation: str
    ) -> None:
        self._writer = writer
        self._inputs = inputs
        self._indices = indices
        self._operation = operation
        self._done: dict[int, str] = {}

    def emit(self, expr: Expr) -> str:
        """The name of the value of an expression."""
        if id(expr) not in self._done:
            self._done[id(expr)] = self._emit(expr)
        return self._done[id(expr)]

    def _emit(self, expr: Expr) -> str:
        if expr.op == "constant":
            return literal(expr.value, expr.dtype)
        if expr.op == "index":
            index: str = self._indices[expr.value]
            return index
        operands = [self.emit(arg) for arg in expr.args]
        if expr.op == "load":
            return self._load(expr, operands)
        if expr.op == "cast":
            return convert(self._writer, operands[0], expr.args[0].dtype, expr.dtype)
        if expr.op == "bitcast":
            kinds = REGISTER[expr.args[0].dtype], REGISTER[expr.dtype]
            return self._writer.let(f"bitcast {kinds[0]} {operands[0]} to {kinds[1]}")
        return primitive(self._writer, self._operation, expr.op, expr.args[-1].dtype, *operands)

    def _load(self, expr: Expr, operands: list[str]) -> str:
        if any(_reads(arg) for arg in expr.args):
            raise UnsupportedError(
                f"llvm: {self._operation}: it reads at positions that are data, which cannot be "
                "checked natively yet; run it on the reference back end"
            )
        w, source = self._writer, self._inputs[expr.value]
        index = operands[1:] if expr.guarded else operands
        if source.size == 0:  # only a guard that is never true can lead here
            return literal(0, expr.dtype)
        offset = flat_offset(w, index, source.shape)
        if not expr.guarded:
            return w.load(expr.dtype, f"%in{expr.value}", offset)
        offset = w.let(f"select i1 {operands[0]}, i64 {offset}, i64 0")
        value = w.load(expr.dtype, f"%in{expr.value}", offset)
        kind = REGISTER[expr.dtype]
        zero = literal(0, expr.dtype)
        return w.let(f"select i1 {operands[0]}, {kind} {value}, {kind} {zero}")


def _reads(expr: Expr) -> bool:
    return expr.op == "load" or any(_reads(arg) for arg in expr.args)


def flat_offset(writer: FunctionWriter, index: Sequence[str], shape: shapes.Shape) -> str:
    """The row-major position of a multi-index."""
    total = "0"
    for position, stride in zip(index, shapes.row_major_strides(shape), strict=True):
        step = position if stride == 1 else writer.let(f"mul i64 {position}, {stride}")
        total = step if total == "0" else writer.let(f"add i64 {total}, {step}")
    return total


def literal(value: object, dtype: DType) -> str:
    """A number as LLVM text, rounded to its dtype; floats by their bits."""
    number = np.asarray(value).astype(dtype.numpy)
    if dtype is dtypes.bool_:
        return "true" if number else "false"
    if dtype.is_floating:
        return "0x" + struct.pack(">d", float(number)).hex().upper()
    return str(int(number))


def convert(w: FunctionWriter, value: str, old: DType, new: DType) -> str:
    """A value in another dtype; floats beyond an integer dtype's range go to its ends, NaN to 0."""
    a, b = REGISTER[old], REGISTER[new]
    if new is dtypes.bool_:
        test = f"fcmp une {a}" if old.is_floating else f"icmp ne {a}"
        return w.let(f"{test} {value}, {literal(0, old)}")
    if old.is_floating and new.is_floating:
        return w.let(f"{'fpext' if new.itemsize > old.itemsize else 'fptrunc'} {a} {value} to {b}")
    if new.is_floating:
        return w.let(f"{'sitofp' if old.kind == 'int' else 'uitofp'} {a} {value} to {b}")
    if old.is_floating:
        signed = "s" if new.kind == "int" else "u"
        return w.let(f"call {b} @llvm.fpto{signed}i.sat.{b}.f{8 * old.itemsize}({a} {value})")
    if a == b:
        return value
    widen = "sext" if old.kind == "int" else "zext"
    wider = old is dtypes.bool_ or new.itemsize > old.itemsize
    return w.let(f"{widen if wider else 'trunc'} {a} {value} to {b}")


# --- primitives -----------------------------------------------------------------------------


def primitive(w: FunctionWriter, operation: str, name: str, dtype: DType, *operands: str) -> str:
    """Emit one primitive on operands of a dtype.

    Raises:
        UnsupportedError: this back end has no emission for it.
    """
    emission = EMISSIONS.get(name, {}).get(dtype.kind)
    if emission is None:
        raise UnsupportedError(
            f"llvm: {operation}: the primitive {name} on {dtype.name} cannot be emitted; run it on "
            "the reference back end"
        )
    return emission(w, dtype, *operands)


def _instruction(text: str) -> Emission:
    """``text`` followed by type and operands."""
    return lambda w, dtype, *args: w.let(f"{text} {REGISTER[dtype]} {', '.join(args)}")


def _intrinsic(name: str) -> Emission:
    """A call of ``@llvm.<name>`` on one or two operands, inline on every target."""

    def emit(w: FunctionWriter, dtype: DType, *args: str) -> str:
        kind = REGISTER[dtype]
        suffix = f"f{8 * dtype.itemsize}" if dtype.is_floating else kind
        return w.let(
            f"call {kind} @llvm.{name}.{suffix}({', '.join(f'{kind} {arg}' for arg in args)})"
        )

    return emit


def _negative(w: FunctionWriter, dtype: DType, x: str) -> str:
    return w.let(f"sub {REGISTER[dtype]} 0, {x}")


def _absolute(w: FunctionWriter, dtype: DType, x: str) -> str:
    return _intrinsic("smax")(w, dtype, x, _negative(w, dtype, x))


def _select(w: FunctionWriter, dtype: DType, condition: str, yes: str, no: str) -> str:
    kind = REGISTER[dtype]
    return w.let(f"select i1 {condition}, {kind} {yes}, {kind} {no}")


def _is_nan(w: FunctionWriter, dtype: DType, x: str) -> str:
    return w.let(f"fcmp uno {REGISTER[dtype]} {x}, {x}")


def _sign_bit(w: FunctionWriter, dtype: DType, x: str) -> str:
    bits = f"i{8 * dtype.itemsize}"
    return w.let(f"icmp slt {bits} {w.let(f'bitcast {REGISTER[dtype]} {x} to {bits}')}, 0")


def _shift(instruction: str, beyond: str) -> Emission:
    """Shifts by the width or more are defined: zero, or the sign where ``beyond`` says so."""

    def emit(w: FunctionWriter, dtype: DType, x: str, bits: str) -> str:
        kind, width = REGISTER[dtype], 8 * dtype.itemsize
        inside = w.let(f"icmp ult {kind} {bits}, {width}")
        amount = _select(w, dtype, inside, bits, str(width - 1))
        result = w.let(f"{instruction} {kind} {x}, {amount}")
        return result if beyond == "sign" else _select(w, dtype, inside, result, "0")

    return emit


def _floor_division(remainder: bool) -> Emission:
    """Rounds towards minus infinity; 0 by 0, and the lowest number by -1 wraps."""

    def emit(w: FunctionWriter, dtype: DType, x: str, y: str) -> str:
        kind, signed = REGISTER[dtype], dtype.kind == "int"
        zero = w.let(f"icmp eq {kind} {y}, 0")
        safe = _select(w, dtype, zero, "1", y)
        if not signed:
            result = w.let(f"{'urem' if remainder else 'udiv'} {kind} {x}, {safe}")
            return _select(w, dtype, zero, "0", result)
        inverse = w.let(f"icmp eq {kind} {safe}, -1")
        safe = _select(w, dtype, inverse, "1", safe)
        quotient = w.let(f"sdiv {kind} {x}, {safe}")
        rest = w.let(f"srem {kind} {x}, {safe}")
        differs = w.let(f"icmp slt {kind} {w.let(f'xor {kind} {rest}, {safe}')}, 0")
        inexact = w.let(f"icmp ne {kind} {rest}, 0")
        lower = w.let(f"and i1 {differs}, {inexact}")
        if remainder:
            result = _select(w, dtype, lower, w.let(f"add {kind} {rest}, {safe}"), rest)
            return _select(w, dtype, zero, "0", result)
        result = _select(w, dtype, lower, w.let(f"sub {kind} {quotient}, 1"), quotient)
        result = _select(w, dtype, inverse, _negative(w, dtype, x), result)
        return _select(w, dtype, zero, "0", result)

    return emit


def _by_kind(
    floats: Emission | None,
    signed: Emission | None = None,
    unsigned: Emission | None = None,
    bools: Emission | None = None,
) -> dict[str, Emission]:
    table = {"float": floats, "int": signed, "uint": unsigned or signed, "bool": bools}
    return {kind: emission for kind, emission in table.items() if emission is not None}


def _compare(condition: str) -> dict[str, Emission]:
    unsigned = _instruction(f"icmp {condition if condition == 'eq' else 'u' + condition}")
    signed = unsigned if condition == "eq" else _instruction(f"icmp s{condition}")
    return _by_kind(_instruction(f"fcmp o{condition}"), signed, unsigned, unsigned)


def _bitwise(name: str) -> dict[str, Emission]:
    return _by_kind(None, _instruction(name), bools=_instruction(name))


EMISSIONS: Final[Mapping[str, Mapping[str, Emission]]] = {
    "add": _by_kind(_instruction("fadd"), _instruction("add")),
    "subtract": _by_kind(_instruction("fsub"), _instruction("sub")),
    "multiply": _by_kind(_instruction("fmul"), _instruction("mul")),
    "divide": _by_kind(_instruction("fdiv")),
    "floor_divide": _by_kind(None, _floor_division(False)),
    "remainder": _by_kind(None, _floor_division(True)),
    "negative": _by_kind(_instruction("fneg"), _negative),
    "abs": _by_kind(_intrinsic("fabs"), _absolute, lambda w, dtype, x: x),
    "sqrt": _by_kind(_intrinsic("sqrt")),
    "copysign": _by_kind(_intrinsic("copysign")),
    "maximum": _by_kind(_intrinsic("maximum"), _intrinsic("smax"), _intrinsic("umax")),
    "minimum": _by_kind(_intrinsic("minimum"), _intrinsic("smin"), _intrinsic("umin")),
    "equal": _compare("eq"),
    "less": _compare("lt"),
    "less_equal": _compare("le"),
    "is_nan": _by_kind(_is_nan),
    "sign_bit": _by_kind(_sign_bit),
    "select": _by_kind(_select, _select, bools=_select),
    "bit_and": _bitwise("and"),
    "bit_or": _bitwise("or"),
    "bit_xor": _bitwise("xor"),
    "shift_left": _by_kind(None, _shift("shl", "zero")),
    "shift_right": _by_kind(None, _shift("ashr", "sign"), _shift("lshr", "zero")),
}
"""Name of a primitive -> kind of its last operand -> how it is emitted."""
