"""The scalar primitives that recipes are written in, and the expressions they form.

A back end implements each primitive once, for one element; every operation whose recipe is made of
them then runs on it. The NumPy function beside each name is its meaning.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from dilim import dtypes
from dilim.dtypes import DType
from dilim.ops import special


@dataclass(frozen=True, slots=True)
class Primitive:
    """One scalar function.

    Attributes:
        arity: number of arguments.
        compute: its meaning on NumPy arrays.
        boolean: whether the result is a bool; otherwise it has the dtype of the last argument.
    """

    arity: int
    compute: Callable[..., Any]
    boolean: bool = False


PRIMITIVES: Final[dict[str, Primitive]] = {
    # arithmetic
    "add": Primitive(2, np.add),
    "subtract": Primitive(2, np.subtract),
    "multiply": Primitive(2, np.multiply),
    "divide": Primitive(2, np.divide),
    "floor_divide": Primitive(2, np.floor_divide),
    "remainder": Primitive(2, np.remainder),
    "maximum": Primitive(2, np.maximum),
    "minimum": Primitive(2, np.minimum),
    "negative": Primitive(1, np.negative),
    "abs": Primitive(1, np.abs),
    "sqrt": Primitive(1, np.sqrt),
    "floor": Primitive(1, np.floor),
    "ceil": Primitive(1, np.ceil),
    "trunc": Primitive(1, np.trunc),
    "round": Primitive(1, np.rint),
    "copysign": Primitive(2, np.copysign),
    "nextafter": Primitive(2, np.nextafter),
    # transcendental
    "exp": Primitive(1, np.exp),
    "expm1": Primitive(1, np.expm1),
    "log": Primitive(1, np.log),
    "log1p": Primitive(1, np.log1p),
    "sin": Primitive(1, np.sin),
    "cos": Primitive(1, np.cos),
    "tanh": Primitive(1, np.tanh),
    "atan2": Primitive(2, np.arctan2),
    "pow": Primitive(2, np.power),
    "erf": Primitive(1, special.erf),
    "sigmoid": Primitive(1, special.sigmoid),
    # comparison and choice
    "equal": Primitive(2, np.equal, boolean=True),
    "less": Primitive(2, np.less, boolean=True),
    "less_equal": Primitive(2, np.less_equal, boolean=True),
    "is_nan": Primitive(1, lambda x: np.not_equal(x, x), boolean=True),
    "sign_bit": Primitive(1, np.signbit, boolean=True),
    "select": Primitive(3, np.where),
    # bits
    "bit_and": Primitive(2, np.bitwise_and),
    "bit_or": Primitive(2, np.bitwise_or),
    "bit_xor": Primitive(2, np.bitwise_xor),
    "shift_left": Primitive(2, np.left_shift),
    "shift_right": Primitive(2, np.right_shift),
}
"""Name of each primitive -> its meaning. ``bitcast``, ``cast``, ``check``, ``constant``, ``index``
and ``load`` are expression nodes of their own."""


@dataclass(frozen=True, slots=True, eq=False)
class Expr:
    """A scalar expression: a primitive applied to expressions, or a leaf.

    Attributes:
        op: a key of `PRIMITIVES`, or ``"constant"`` (``value`` is the number), ``"index"``
            (``value`` is the number of the loop axis), ``"load"`` (``value`` is the number of the
            input, ``args`` its index expressions, preceded by a guard when ``guarded``),
            ``"cast"``, ``"bitcast"``, ``"check"`` (see `check`; ``value`` is the number of the
            message), ``"reduced"`` (``value`` is the number of a reduction of the same loop nest).
        args: the operands.
        dtype: dtype of the result.
        value: payload of leaves.
        guarded: for loads: the first operand is a condition, and where it is false the load gives
            0 and touches nothing.
    """

    op: str
    args: tuple[Expr, ...]
    dtype: DType
    value: Any = None
    guarded: bool = False

    def __add__(self, other: Expr | float) -> Expr:
        return prim("add", self, other)

    def __sub__(self, other: Expr | float) -> Expr:
        return prim("subtract", self, other)

    def __mul__(self, other: Expr | float) -> Expr:
        return prim("multiply", self, other)

    def __truediv__(self, other: Expr | float) -> Expr:
        return prim("divide", self, other)

    def __floordiv__(self, other: Expr | float) -> Expr:
        return prim("floor_divide", self, other)

    def __mod__(self, other: Expr | float) -> Expr:
        return prim("remainder", self, other)

    def __neg__(self) -> Expr:
        return prim("negative", self)

    def __lt__(self, other: Expr | float) -> Expr:
        return prim("less", self, other)

    def __le__(self, other: Expr | float) -> Expr:
        return prim("less_equal", self, other)

    def __gt__(self, other: Expr | float) -> Expr:
        return prim("less", constant(other, self.dtype), self)

    def __ge__(self, other: Expr | float) -> Expr:
        return prim("less_equal", constant(other, self.dtype), self)

    def __and__(self, other: Expr | int) -> Expr:
        return prim("bit_and", self, other)

    def __or__(self, other: Expr | int) -> Expr:
        return prim("bit_or", self, other)

    def __xor__(self, other: Expr | int) -> Expr:
        return prim("bit_xor", self, other)

    def __lshift__(self, other: Expr | int) -> Expr:
        return prim("shift_left", self, other)

    def __rshift__(self, other: Expr | int) -> Expr:
        return prim("shift_right", self, other)


def constant(value: Expr | float, dtype: DType) -> Expr:
    """A number of the given dtype (an expression passes through)."""
    return value if isinstance(value, Expr) else Expr("constant", (), dtype, value)


def prim(name: str, *args: Expr | float) -> Expr:
    """Apply the primitive ``name``; bare numbers take the dtype of the first expression."""
    primitive = PRIMITIVES[name]
    dtype = next(arg.dtype for arg in reversed(args) if isinstance(arg, Expr))
    operands = tuple(constant(arg, dtype) for arg in args)
    if len(operands) != primitive.arity:
        raise TypeError(f"primitive {name} takes {primitive.arity} operands, got {len(operands)}")
    result = dtypes.bool_ if primitive.boolean else operands[-1].dtype
    return Expr(name, operands, result)


def converted(x: np.ndarray, dtype: DType) -> np.ndarray:
    """What "cast" computes: integers from floats stop at the ends of their range, NaN becomes 0."""
    if x.dtype.kind != "f" or not dtype.is_integer:
        return x.astype(dtype.numpy)
    limits, number = np.iinfo(dtype.numpy), dtype.numpy.type
    with np.errstate(invalid="ignore"):
        result = x.astype(dtype.numpy)
    result = np.where(x >= x.dtype.type(limits.max), number(limits.max), result)
    result = np.where(x <= x.dtype.type(limits.min), number(limits.min), result)
    return np.where(np.isnan(x), number(0), result)


def cast(x: Expr, dtype: DType) -> Expr:
    """Convert to ``dtype``; nothing where it is that already."""
    return x if x.dtype is dtype else Expr("cast", (x,), dtype)


def bitcast(x: Expr, dtype: DType) -> Expr:
    """The same bits read as another dtype of the same size."""
    if x.dtype.itemsize != dtype.itemsize:
        raise TypeError(f"bitcast: {x.dtype.name} and {dtype.name} differ in size")
    return Expr("bitcast", (x,), dtype)


def loop_index(axis: int) -> Expr:
    """The position along loop axis ``axis``, an int64."""
    return Expr("index", (), dtypes.INDEX, axis)


def load(number: int, dtype: DType, *index: Expr, guard: Expr | None = None) -> Expr:
    """The element of input ``number`` at ``index``; 0 where ``guard`` is false."""
    if guard is None:
        return Expr("load", index, dtype, number)
    return Expr("load", (guard, *index), dtype, number, guarded=True)


def select(condition: Expr, yes: Expr | float, no: Expr | float) -> Expr:
    """``yes`` where the condition holds, else ``no``."""
    dtype = next(arg.dtype for arg in (yes, no) if isinstance(arg, Expr))
    return Expr("select", (condition, constant(yes, dtype), constant(no, dtype)), dtype)


def check(ok: Expr, value: Expr, number: int = 0) -> Expr:
    """``value``, an integer; where ``ok`` is false the run fails and tells the first such value.

    ``number`` says which check of a kernel it is; a recipe has one at most, number 0, described by
    `OpDef.failure`.
    """
    return Expr("check", (ok, value), value.dtype, number)
