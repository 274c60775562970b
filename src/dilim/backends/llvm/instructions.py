"""How each scalar primitive becomes LLVM instructions, on scalars and on vectors.

An emission is called as ``emission(writer, dtype, lanes, *operands)``, with the dtype of the last
operand, and gives the name of the result. Vectors and scalars give the same bits.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from typing import Final

from dilim import dtypes
from dilim.backends.llvm.vectors import Writer, kind_of, literal, suffix_of
from dilim.dtypes import DType
from dilim.errors import UnsupportedError

Emission = Callable[..., str]


def primitive(
    writer: Writer, name: str, dtype: DType, lanes: int, *operands: str, flags: str = ""
) -> str:
    """Emit one primitive on operands of a dtype.

    Args:
        writer: takes the instructions.
        name: of the primitive.
        dtype: of the last operand.
        lanes: 0 for scalars.
        operands: names or constants.
        flags: ``"contract"`` where a product and a sum may become one rounding.

    Raises:
        UnsupportedError: this back end has no emission for it.
    """
    emission = EMISSIONS.get(name, {}).get(dtype.kind)
    if emission is None:
        raise UnsupportedError(
            f"llvm: the primitive {name} on {dtype.name} cannot be emitted; run it on the "
            "reference back end"
        )
    if flags and dtype.is_floating and name in CONTRACTED:
        return writer.let(
            f"{CONTRACTED[name]} {flags} {kind_of(dtype, lanes)} {', '.join(operands)}"
        )
    return emission(writer, dtype, lanes, *operands)


CONTRACTED: Final = {"add": "fadd", "subtract": "fsub", "multiply": "fmul"}


def convert(w: Writer, value: str, old: DType, new: DType, lanes: int) -> str:
    """A value in another dtype; floats beyond an integer dtype's range go to its ends, NaN to 0."""
    a, b = kind_of(old, lanes), kind_of(new, lanes)
    if new is dtypes.bool_:
        test = f"fcmp une {a}" if old.is_floating else f"icmp ne {a}"
        return w.let(f"{test} {value}, {literal(0, old, lanes)}")
    if old.is_floating and new.is_floating:
        return w.let(f"{'fpext' if new.itemsize > old.itemsize else 'fptrunc'} {a} {value} to {b}")
    if new.is_floating:
        return w.let(f"{'sitofp' if old.kind == 'int' else 'uitofp'} {a} {value} to {b}")
    if old.is_floating:
        return _to_integer(w, value, old, new, lanes)
    if a == b:
        return value
    widen = "sext" if old.kind == "int" else "zext"
    wider = old is dtypes.bool_ or new.itemsize > old.itemsize
    return w.let(f"{widen if wider else 'trunc'} {a} {value} to {b}")


def _to_integer(w: Writer, value: str, old: DType, new: DType, lanes: int) -> str:
    """Towards zero; what does not fit is poison until a selection replaces it."""
    a, b, bits = kind_of(old, lanes), kind_of(new, lanes), 8 * new.itemsize
    signed = new.kind == "int"
    top = 2 ** (bits - 1) if signed else 2**bits
    lowest, highest = (-top, top - 1) if signed else (0, top - 1)
    result = w.let(f"{'fptosi' if signed else 'fptoui'} {a} {value} to {b}")
    above = w.let(f"fcmp oge {a} {value}, {literal(float(top), old, lanes)}")
    result = _select(w, new, lanes, above, literal(highest, new, lanes), result)
    # Numbers between lowest - 1 and lowest are cut off to lowest or, unsigned, to 0.
    below = w.let(f"fcmp ole {a} {value}, {literal(float(lowest - (not signed)), old, lanes)}")
    result = _select(w, new, lanes, below, literal(lowest, new, lanes), result)
    nan = w.let(f"fcmp uno {a} {value}, {value}")
    return _select(w, new, lanes, nan, literal(0, new, lanes), result)


# --- emissions --------------------------------------------------------------------------------


def _instruction(text: str) -> Emission:
    """``text`` followed by type and operands."""
    return lambda w, dtype, lanes, *args: w.let(f"{text} {kind_of(dtype, lanes)} {', '.join(args)}")


def _intrinsic(name: str) -> Emission:
    """A call of ``@llvm.<name>``, inline on every target."""

    def emit(w: Writer, dtype: DType, lanes: int, *args: str) -> str:
        kind = kind_of(dtype, lanes)
        operands = ", ".join(f"{kind} {arg}" for arg in args)
        return w.let(f"call {kind} @llvm.{name}.{suffix_of(dtype, lanes)}({operands})")

    return emit


def _select(w: Writer, dtype: DType, lanes: int, condition: str, yes: str, no: str) -> str:
    kind, test = kind_of(dtype, lanes), kind_of(dtypes.bool_, lanes)
    return w.let(f"select {test} {condition}, {kind} {yes}, {kind} {no}")


def _negative(w: Writer, dtype: DType, lanes: int, x: str) -> str:
    return w.let(f"sub {kind_of(dtype, lanes)} {literal(0, dtype, lanes)}, {x}")


def _absolute(w: Writer, dtype: DType, lanes: int, x: str) -> str:
    return _intrinsic("smax")(w, dtype, lanes, x, _negative(w, dtype, lanes, x))


def _is_nan(w: Writer, dtype: DType, lanes: int, x: str) -> str:
    return w.let(f"fcmp uno {kind_of(dtype, lanes)} {x}, {x}")


def _sign_bit(w: Writer, dtype: DType, lanes: int, x: str) -> str:
    integer = dtypes.int32 if dtype.itemsize == 4 else dtypes.int64
    bits = w.let(f"bitcast {kind_of(dtype, lanes)} {x} to {kind_of(integer, lanes)}")
    return w.let(f"icmp slt {kind_of(integer, lanes)} {bits}, {literal(0, integer, lanes)}")


def _extremum(condition: str) -> Emission:
    """NaN if either is NaN, else the first where it wins, else the second (of equal zeros too)."""

    def emit(w: Writer, dtype: DType, lanes: int, x: str, y: str) -> str:
        kind = kind_of(dtype, lanes)
        if y[0] != "%" and "0x7FF8" not in y:
            # y is a number: x where it is NaN fails the comparison, too
            loses = w.let(f"fcmp {'ole' if condition == 'ogt' else 'oge'} {kind} {x}, {y}")
            return _select(w, dtype, lanes, loses, y, x)
        wins = w.let(f"fcmp {condition} {kind} {x}, {y}")
        best = _select(w, dtype, lanes, wins, x, y)
        nan = _is_nan(w, dtype, lanes, x)
        return _select(w, dtype, lanes, nan, x, best)

    return emit


def _shift(instruction: str, beyond: str) -> Emission:
    """Shifts by the width or more are defined: zero, or the sign where ``beyond`` says so."""

    def emit(w: Writer, dtype: DType, lanes: int, x: str, bits: str) -> str:
        kind, width = kind_of(dtype, lanes), 8 * dtype.itemsize
        if bits[0] != "%" and bits in _small(dtype, lanes):
            return w.let(f"{instruction} {kind} {x}, {bits}")
        inside = w.let(f"icmp ult {kind} {bits}, {literal(width, dtype, lanes)}")
        most = literal(width - 1, dtype, lanes)
        amount = _select(w, dtype, lanes, inside, bits, most)
        result = w.let(f"{instruction} {kind} {x}, {amount}")
        if beyond == "sign":
            return result
        return _select(w, dtype, lanes, inside, result, literal(0, dtype, lanes))

    return emit


@functools.cache
def _small(dtype: DType, lanes: int) -> frozenset[str]:
    """The constants that any value of the dtype may be shifted by."""
    return frozenset(literal(n, dtype, lanes) for n in range(8 * dtype.itemsize))


def _floor_division(remainder: bool) -> Emission:
    """Rounds towards minus infinity; 0 by 0, and the lowest number by -1 wraps."""

    def emit(w: Writer, dtype: DType, lanes: int, x: str, y: str) -> str:
        kind, test = kind_of(dtype, lanes), kind_of(dtypes.bool_, lanes)
        zero, one = literal(0, dtype, lanes), literal(1, dtype, lanes)
        nothing = w.let(f"icmp eq {kind} {y}, {zero}")
        safe = _select(w, dtype, lanes, nothing, one, y)
        if dtype.kind != "int":
            result = w.let(f"{'urem' if remainder else 'udiv'} {kind} {x}, {safe}")
            return _select(w, dtype, lanes, nothing, zero, result)
        inverse = w.let(f"icmp eq {kind} {safe}, {literal(-1, dtype, lanes)}")
        safe = _select(w, dtype, lanes, inverse, one, safe)
        quotient = w.let(f"sdiv {kind} {x}, {safe}")
        rest = w.let(f"sub {kind} {x}, {w.let(f'mul {kind} {quotient}, {safe}')}")
        differs = w.let(f"icmp slt {kind} {w.let(f'xor {kind} {rest}, {safe}')}, {zero}")
        inexact = w.let(f"icmp ne {kind} {rest}, {zero}")
        lower = w.let(f"and {test} {differs}, {inexact}")
        if remainder:
            raised = w.let(f"add {kind} {rest}, {safe}")
            result = _select(w, dtype, lanes, lower, raised, rest)
        else:
            lowered = w.let(f"sub {kind} {quotient}, {one}")
            result = _select(w, dtype, lanes, lower, lowered, quotient)
            result = _select(w, dtype, lanes, inverse, _negative(w, dtype, lanes, x), result)
        return _select(w, dtype, lanes, nothing, zero, result)

    return emit


def _whole(adjust: str) -> Emission:
    """Rounding of floats to whole ones without the instruction that old processors lack.

    From 2**mantissa on every number is whole; below, the conversion to an integer cuts off.
    """

    def emit(w: Writer, dtype: DType, lanes: int, x: str) -> str:
        kind, zero = kind_of(dtype, lanes), literal(0.0, dtype, lanes)
        integer = dtypes.int32 if dtype.itemsize == 4 else dtypes.int64
        limit = 2.0 ** (23 if dtype.itemsize == 4 else 52)
        size = _intrinsic("fabs")(w, dtype, lanes, x)
        small = w.let(f"fcmp olt {kind} {size}, {literal(limit, dtype, lanes)}")
        if adjust == "round":
            magic = literal(limit, dtype, lanes)
            whole = w.let(f"fsub {kind} {w.let(f'fadd {kind} {size}, {magic}')}, {magic}")
        else:
            inside = _select(w, dtype, lanes, small, x, zero)
            cut = w.let(f"fptosi {kind} {inside} to {kind_of(integer, lanes)}")
            whole = w.let(f"sitofp {kind_of(integer, lanes)} {cut} to {kind}")
            if adjust != "trunc":
                condition, step = ("ogt", -1.0) if adjust == "floor" else ("olt", 1.0)
                off = w.let(f"fcmp {condition} {kind} {whole}, {inside}")
                change = _select(w, dtype, lanes, off, literal(step, dtype, lanes), zero)
                whole = w.let(f"fadd {kind} {whole}, {change}")
        whole = _intrinsic("copysign")(w, dtype, lanes, whole, x)
        return _select(w, dtype, lanes, small, whole, x)

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
    "abs": _by_kind(_intrinsic("fabs"), _absolute, lambda w, dtype, lanes, x: x),
    "sqrt": _by_kind(_intrinsic("sqrt")),
    "floor": _by_kind(_whole("floor")),
    "ceil": _by_kind(_whole("ceil")),
    "trunc": _by_kind(_whole("trunc")),
    "round": _by_kind(_whole("round")),
    "copysign": _by_kind(_intrinsic("copysign")),
    "maximum": _by_kind(_extremum("ogt"), _intrinsic("smax"), _intrinsic("umax")),
    "minimum": _by_kind(_extremum("olt"), _intrinsic("smin"), _intrinsic("umin")),
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
