"""Python's numbers inside a graph: the same results as Python's, or none.

A `Number` is an int, float or bool that is known only when the program runs: int64, float64 or bool
of shape (). Where Python would raise, need more than 64 bits, or round by rules of its own, the
operation is left to the host (`OnHost`).
"""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any, Final

from dilim import dtypes
from dilim.dtypes import DType
from dilim.slicing import offsets
from dilim.slicing.errors import OnHost, TooLarge
from dilim.tensors import elementwise
from dilim.tensors.dispatch import ACCEPTED
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

SMALL: Final = 1 << 31
"""Ints that the host hands over are smaller than this, or the rest of the run is the host's."""
BOUNDS: Final = (SMALL, 1 << 53, 1 << 60)
"""Entry values of ints are smaller than one of these, or they are the host's."""
LARGE: Final = 1 << 61
"""Carried ints stay below this: no loop makes 2 ** 53 turns, and a turn adds at most `DRIFT`."""
DRIFT: Final = 256
FAR: Final = 1 << 53
"""Farther no loop counts in its turns."""
EXACT: Final = 1 << 53
"""Ints up to here are floats as well."""
MOST: Final = 1 << 62
"""Ints that are looked at when the program runs are smaller than this."""
WIDEST: Final = 1 << 63
"""No int64 is larger in absolute value."""
_TYPES: Final = {int: dtypes.int64, float: dtypes.float64, bool: dtypes.bool_}
_KINDS: Final = {
    kind: {bool: bool, int: int, float: float}[
        bool if kind is dtypes.bool_ else float if kind.is_floating else int
    ]
    for kind in dtypes.ALL
}


class Number:
    """A Python number of a program.

    Attributes:
        tensor: its value, a symbolic tensor of shape ().
        kind: int, float or bool.
        bound: no int is larger in absolute value.
        origin: the decision that would make it a constant; None where none would.
        base: the carried number of a loop that it was counted on from, with ``drift``: by at most
            how much.
        is_natural: whether it is known to be 0 or more.
        is_wide: whether a loop that carries it lets it be any int of 64 bits.
        opposite_of: for a bool: another one that it is the opposite of.
        form: for an int: as a multiple of another one, and a number; see `offsets`.
        source: the origin of an int that it was computed from.
    """

    __slots__ = (
        "base", "bound", "drift", "form", "is_natural", "is_wide", "kind", "opposite_of", "origin",
        "source", "tensor",
    )  # fmt: skip

    def __init__(
        self,
        tensor: Tensor,
        kind: type,
        bound: int = LARGE,
        origin: tuple[str, object] | None = None,
    ) -> None:
        self.tensor = tensor
        self.kind = kind
        self.bound = 1 if kind is bool else bound
        self.origin = origin
        self.base: Number | None = None
        self.drift = 0
        self.is_natural = self.is_wide = False
        self.opposite_of: Number | None = None
        self.form: offsets.Form | None = None
        self.source = origin

    def __repr__(self) -> str:
        return f"<{self.kind.__name__} of a graph>"


def is_number(x: Any) -> bool:
    """Whether x is a Python number, known now or when the program runs."""
    return x.__class__ is Number or x.__class__ in _TYPES


def kind_of(x: Any) -> type:
    """int, float or bool."""
    return x.kind if x.__class__ is Number else x.__class__


def from_tensor(x: Tensor, kind: type | None = None) -> Number:
    """``x.item()``, or ``kind(x)``, of a tensor with one element."""
    with no_grad():
        flat = x.detach().reshape(())
        given = _KINDS[x.dtype]
        wanted = kind or given
        if wanted is bool:
            return Number(flat if given is bool else flat != 0, bool)
        if wanted is int and given is float:
            raise OnHost("int() of a float may raise")
        if x.dtype is dtypes.uint64 and wanted is int:
            raise OnHost("uint64 does not fit")
        return _limited(Number(flat.astype(_TYPES[wanted]), wanted, WIDEST), x.dtype)


def below(x: Tensor, limit: int) -> Number:
    """An int that is known to be one of 0 .. limit - 1."""
    number = Number(x, int, limit - 1)
    number.is_natural = True
    return number


def _limited(x: Number, dtype: DType) -> Number:
    """The same with what its dtype, and what made it, tell of an int."""
    trace: Any = x.tensor.device
    limit = trace.limits.get(trace.value(trace.handle(x.tensor)))
    if limit is not None:
        x.bound, x.is_natural = limit - 1, True
    elif not dtype.is_floating:
        x.is_natural = dtype.name.startswith("uint")
        x.bound = 1 << (8 * dtype.itemsize - (not x.is_natural))
    return x


def as_tensor(x: Number, dtype: DType) -> Tensor:
    """A number as a tensor of shape () that an operation on a tensor of ``dtype`` takes."""
    if x.kind not in ACCEPTED[dtype]:
        raise OnHost(f"a {x.kind.__name__} does not mix with {dtype.name}")
    with no_grad():
        if dtype.is_floating:
            return x.tensor.astype(dtypes.float64).astype(dtype)
        if dtype is dtypes.bool_ or dtype is dtypes.int64:
            return x.tensor
        if dtype is dtypes.uint64 or x.bound >= 1 << (8 * dtype.itemsize - 1):
            raise OnHost(f"the int may not fit in {dtype.name}")
        if not dtype.name.startswith("int"):
            raise OnHost(f"the int may not fit in {dtype.name}")
        return x.tensor.astype(dtype)


def _of_kind(x: Any, kind: type) -> Any:
    """x as an operand of kind int or float: a tensor or a Python number."""
    if x.__class__ is not Number:
        return kind(x)
    if x.kind is kind:
        return x.tensor
    return x.tensor.astype(_TYPES[kind])


def bound_of(x: Any) -> int:
    """No int that x may be is larger in absolute value."""
    if x.__class__ is Number:
        return x.bound
    return LARGE if x.__class__ is float else abs(x)


# --- operators ------------------------------------------------------------------------------


ARITHMETIC: Final[dict[Any, tuple[Callable[..., Tensor], Callable[[int, int], int]]]] = {
    operator.add: (elementwise.add, operator.add),
    operator.sub: (elementwise.subtract, operator.add),
    operator.mul: (elementwise.multiply, operator.mul),
}
_COMPARISONS: Final[dict[Any, Callable[..., Tensor]]] = {
    operator.lt: elementwise.less,
    operator.le: elementwise.less_equal,
    operator.gt: elementwise.greater,
    operator.ge: elementwise.greater_equal,
    operator.eq: elementwise.equal,
    operator.ne: elementwise.not_equal,
}


def binary(
    function: Callable[[Any, Any], Any],
    a: Any,
    b: Any,
    *,
    nonzero: bool = False,
    fits: bool = False,
) -> Number:
    """An arithmetic operation or comparison of numbers, of which one at least is a `Number`.

    Args:
        function: from the module `operator`.
        a: the left operand.
        b: the right operand.
        nonzero: whether b is known not to be 0.
        fits: whether the ints are known to be small enough.

    Raises:
        OnHost: Python might raise.
        TooLarge: Python might need a larger int, or more than 53 bits of one as a float.
    """
    kind = float if float in (kind_of(a), kind_of(b)) else int
    if kind is int and (is_beyond(a) or is_beyond(b)):
        raise TooLarge
    with no_grad():
        if function in _COMPARISONS:
            if kind is float and not fits and any(map(_is_large, (a, b))):
                raise TooLarge("a large int beside a float")
            result = _COMPARISONS[function](*operands(a, b, kind))
            return Number(result, bool)
        if function in ARITHMETIC:
            return _arithmetic(function, a, b, kind, fits)
        if function is operator.truediv and (nonzero or _is_nonzero(b)):
            if kind is int and not fits and any(map(_is_large, (a, b))):
                raise TooLarge("a quotient of large ints")
            return Number(elementwise.divide(*operands(a, b, float)), float)
        if (
            function in (operator.floordiv, operator.mod)
            and kind is int
            and (nonzero or _is_nonzero(b))
        ):
            if function is operator.floordiv:
                op, bound = elementwise.floor_divide, bound_of(a) + (not is_natural(b))
            else:
                op, bound = elementwise.remainder, max(bound_of(b) - 1, 0)
            if bound > WIDEST:
                raise TooLarge
            made = Number(op(*operands(a, b, int)), int, bound)
            made.is_natural = is_natural(b) and (function is operator.mod or is_natural(a))
            return made
        if (
            function in (operator.and_, operator.or_, operator.xor)
            and kind_of(a) is kind_of(b) is bool
        ):
            names = {operator.and_: "logical_and", operator.or_: "logical_or"}
            op = getattr(elementwise, names.get(function, "logical_xor"))
            return Number(op(*(x.tensor if x.__class__ is Number else x for x in (a, b))), bool)
    raise OnHost(f"{function.__name__} of Python numbers")


def is_natural(x: Any) -> bool:
    """Whether an int is known to be 0 or more."""
    return x.is_natural if x.__class__ is Number else x >= 0


def _is_large(x: Any) -> bool:
    return kind_of(x) is int and bound_of(x) > EXACT


def _is_nonzero(x: Any) -> bool:
    return x.__class__ is not Number and x != 0 and x == x


def operands(a: Any, b: Any, kind: type) -> tuple[Any, Any]:
    """Both as tensors or Python numbers, one a tensor."""
    return _of_kind(a, kind), _of_kind(b, kind)


def _arithmetic(function: Any, a: Any, b: Any, kind: type, fits: bool = False) -> Number:
    op, combine = ARITHMETIC[function]
    if kind is float:
        return Number(op(*operands(a, b, float)), float)
    bound = combine(bound_of(a), bound_of(b))
    counted = _counted(function, a, b)
    if bound >= WIDEST and counted is None:
        if not fits:
            raise TooLarge
        bound = MOST
    result = Number(op(*operands(a, b, int)), int, bound)
    result.is_natural = function is not operator.sub and is_natural(a) and is_natural(b)
    result.form = offsets.combined(function, a, b)
    result.source = next((x.source for x in (a, b) if x.__class__ is Number and x.source), None)
    if counted is not None:
        result.base, result.drift = counted
        result.bound = LARGE
    return result


def _counted(function: Any, a: Any, b: Any) -> tuple[Number, int] | None:
    """The carried number that is counted on from, and how far it may have gone this turn."""
    pairs = [(a, b)] if function is operator.sub else [(a, b), (b, a)]
    if function is operator.mul:
        return None
    for number, step in pairs:
        if number.__class__ is Number and number.base is not None and bound_of(step) <= DRIFT:
            drift = number.drift + bound_of(step)
            if drift <= DRIFT:
                return number.base, drift
    return None


def added(a: Any, b: Any) -> Any:
    """The sum of two numbers, of which none need be a `Number`."""
    if a.__class__ is Number or b.__class__ is Number:
        return binary(operator.add, a, b)
    return a + b


def unary(function: Callable[[Any], Any], x: Number) -> Number:
    """``-x``, ``+x``, ``abs(x)`` or ``not x``."""
    with no_grad():
        if function is operator.not_:
            if x.opposite_of is not None:
                return x.opposite_of
            result = Number(elementwise.logical_not(truth(x).tensor), bool)
            result.opposite_of = x if x.kind is bool else None
            return result
        kind = int if x.kind is bool else x.kind
        operand = _of_kind(x, kind)
        if function is operator.pos:
            return Number(operand, kind, x.bound)
        if function in (operator.neg, abs) and (kind is float or x.bound < 1 << 62):
            op = elementwise.negative if function is operator.neg else elementwise.abs
            return Number(op(operand), kind, x.bound)
    raise OnHost(f"{function.__name__} of a Python number")


def truth(x: Number) -> Number:
    """``bool(x)``."""
    if x.kind is bool:
        return x
    with no_grad():
        return Number(x.tensor != (0 if x.kind is int else 0.0), bool)


def opposite(x: Number) -> Number:
    """``not x``."""
    return unary(operator.not_, x)


def both(a: Number, b: Number) -> Number:
    """``a and b`` of bools."""
    with no_grad():
        return Number(elementwise.logical_and(a.tensor, b.tensor), bool)


def either(a: Number, b: Number) -> Number:
    """``a or b`` of bools."""
    with no_grad():
        return Number(elementwise.logical_or(a.tensor, b.tensor), bool)


def chosen(flag: Number, yes: Any, no: Any) -> Any:
    """One of two bools, of which none need be a `Number`."""
    if yes is no:
        return yes
    with no_grad():
        first = yes if yes.__class__ is bool else yes.tensor
        second = no if no.__class__ is bool else no.tensor
        a = elementwise.logical_and(flag.tensor, first)
        b = elementwise.logical_and(elementwise.logical_not(flag.tensor), second)
        return Number(elementwise.logical_or(a, b), bool)


def converted(kind: type, x: Number) -> Number:
    """``kind(x)`` for int, float or bool."""
    if kind is bool:
        return truth(x)
    if kind is int and x.kind is float:
        raise OnHost("int() of a float may raise")
    if kind is x.kind:
        return x
    with no_grad():
        made = Number(_of_kind(x, kind), kind, x.bound)
        made.is_natural = x.is_natural
        return made


def symbolic(trace: Any, x: Any, kind: type | None = None) -> Number:
    """A Python number as a constant of a graph.

    Raises:
        TooLarge: an int that needs more than 64 bits.
    """
    if x.__class__ is Number:
        return x if kind is None else converted(kind, x)
    kind = kind or x.__class__
    if kind is int and is_beyond(x):
        raise TooLarge
    tensor = trace.full(shape=(), value=kind(x), dtype=_TYPES[kind])
    return Number(tensor, kind, abs(int(x)) if kind is not float else LARGE)


def is_beyond(x: Any) -> bool:
    """Whether a constant needs more than 64 bits."""
    return x.__class__ is int and not -WIDEST <= x < WIDEST


def type_of_kind(kind: type) -> DType:
    """The dtype that holds Python numbers of a kind."""
    return _TYPES[kind]
