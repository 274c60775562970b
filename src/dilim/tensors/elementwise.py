"""Elementwise functions of the array API, and those that networks need."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dilim import dtypes
from dilim.errors import DtypeError
from dilim.ops.opdef import OpDef
from dilim.ops.table import OPERATIONS
from dilim.tensors.dispatch import NUMBERS, apply

if TYPE_CHECKING:
    from dilim.tensors.tensor import Tensor

Unary = Callable[["Tensor"], "Tensor"]
Binary = Callable[[Any, Any], "Tensor"]


def _unary(name: str) -> Unary:
    """A public function for an elementwise operation of one input."""
    op = OPERATIONS[name]

    def function(x: Tensor, /) -> Tensor:
        return apply(op, x)

    _name(function, op)
    return function


def _binary(name: str) -> Binary:
    """A public function for an elementwise operation of two inputs."""
    op = OPERATIONS[name]

    def function(x1: Any, x2: Any, /) -> Tensor:
        return apply(op, x1, x2)

    _name(function, op)
    return function


def _name(function: Any, op: OpDef) -> None:
    function.__name__ = function.__qualname__ = op.name
    function.__doc__ = op.doc


abs = _unary("abs")
acos = _unary("acos")
acosh = _unary("acosh")
asin = _unary("asin")
asinh = _unary("asinh")
atan = _unary("atan")
atanh = _unary("atanh")
bitwise_invert = _unary("bitwise_invert")
ceil = _unary("ceil")
cos = _unary("cos")
cosh = _unary("cosh")
erf = _unary("erf")
exp = _unary("exp")
expm1 = _unary("expm1")
floor = _unary("floor")
isfinite = _unary("isfinite")
isinf = _unary("isinf")
isnan = _unary("isnan")
log = _unary("log")
log10 = _unary("log10")
log1p = _unary("log1p")
log2 = _unary("log2")
logical_not = _unary("logical_not")
negative = _unary("negative")
relu = _unary("relu")
round = _unary("round")
sigmoid = _unary("sigmoid")
sign = _unary("sign")
signbit = _unary("signbit")
sin = _unary("sin")
sinh = _unary("sinh")
sqrt = _unary("sqrt")
tan = _unary("tan")
tanh = _unary("tanh")
trunc = _unary("trunc")

add = _binary("add")
atan2 = _binary("atan2")
bitwise_and = _binary("bitwise_and")
bitwise_left_shift = _binary("bitwise_left_shift")
bitwise_or = _binary("bitwise_or")
bitwise_right_shift = _binary("bitwise_right_shift")
bitwise_xor = _binary("bitwise_xor")
copysign = _binary("copysign")
equal = _binary("equal")
floor_divide = _binary("floor_divide")
greater = _binary("greater")
greater_equal = _binary("greater_equal")
hypot = _binary("hypot")
less = _binary("less")
less_equal = _binary("less_equal")
logaddexp = _binary("logaddexp")
logical_and = _binary("logical_and")
logical_or = _binary("logical_or")
logical_xor = _binary("logical_xor")
maximum = _binary("maximum")
minimum = _binary("minimum")
multiply = _binary("multiply")
nextafter = _binary("nextafter")
not_equal = _binary("not_equal")
pow = _binary("pow")
remainder = _binary("remainder")
subtract = _binary("subtract")

_divide: Final = OPERATIONS["divide"]
_identity: Final = OPERATIONS["identity"]
_where: Final = OPERATIONS["where"]
_astype: Final = OPERATIONS["astype"]


def _floating(x: Any) -> Any:
    """Integers and bools as float32; floats and Python numbers as they are."""
    if isinstance(x, (int, float)):
        return float(x)
    return x if x.dtype.is_floating else apply(_astype, x, dtype=dtypes.DEFAULT_FLOAT)


def divide(x1: Any, x2: Any, /) -> Tensor:
    """x1 / x2, always floating: integers are converted to float32 first."""
    return apply(_divide, _floating(x1), _floating(x2))


def positive(x: Tensor, /) -> Tensor:
    """+x: a new tensor with the same numbers."""
    return apply(_identity, x)


def conj(x: Tensor, /) -> Tensor:
    """Complex conjugate: x itself as a new tensor, since every dtype here is real."""
    return apply(_identity, x)


def real(x: Tensor, /) -> Tensor:
    """Real part: x itself as a new tensor, since every dtype here is real."""
    return apply(_identity, x)


def imag(x: Tensor, /) -> Tensor:
    """Imaginary part: zeros, since every dtype here is real."""
    return where(equal(x, x), 0, 0).astype(x.dtype)


def reciprocal(x: Tensor, /) -> Tensor:
    """1 / x."""
    return apply(_divide, 1.0, x)


def square(x: Tensor, /) -> Tensor:
    """x * x."""
    return multiply(x, x)


def softplus(x: Tensor, /) -> Tensor:
    """log(1 + exp(x)) without overflow; derivative sigmoid(x)."""
    return logaddexp(x, 0.0)


def where(condition: Tensor, x1: Any, x2: Any, /) -> Tensor:
    """x1 where the condition (bool) holds, else x2; numbers and tensors, broadcast.

    The branch not taken gets gradient 0, even where its own derivative is not finite.
    """
    if x1.__class__ in NUMBERS and x2.__class__ in NUMBERS:
        zeros = apply(_astype, logical_and(condition, False), dtype=_number_dtype(x1, x2))
        x1 = add(zeros, x1) if zeros.dtype is not dtypes.bool_ else logical_or(zeros, x1)
    return apply(_where, condition, x1, x2)


def _number_dtype(*values: Any) -> dtypes.DType:
    kinds = {type(value) for value in values}
    if float in kinds:
        return dtypes.DEFAULT_FLOAT
    if kinds == {bool}:
        return dtypes.bool_
    return dtypes.DEFAULT_INT


def clip(x: Tensor, /, min: Any = None, max: Any = None) -> Tensor:
    """x limited to [min, max]; NaN stays; the derivative is 1 from min to max inclusive.

    Args:
        x: a numeric tensor.
        min: a number or a tensor that broadcasts, or None for no lower limit.
        max: likewise.

    Raises:
        DtypeError: a limit has another kind of dtype.
    """
    result = x
    for limit, beyond in ((min, less), (max, greater)):
        if limit is None:
            continue
        if limit.__class__ is float and not x.dtype.is_floating:
            raise DtypeError(
                f"clip: a float limit {limit} for a {x.dtype.name} tensor; use an int, or cast "
                "the tensor with x.astype(dilim.float32)"
            )
        result = where(beyond(result, limit), limit, result)
    return positive(x) if result is x else result
