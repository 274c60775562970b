"""Operators on values that are known or symbolic."""

from __future__ import annotations

import ast
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from dilim.slicing import numbers
from dilim.slicing.errors import OnHost, Restart, attempted
from dilim.slicing.numbers import Number
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer

PLAIN: Final = frozenset(
    {int, float, bool, str, bytes, type(None), tuple, range, slice, complex, type(Ellipsis)}
)
"""Types of constants: operations on them have no effects and give the same every time."""


BINARY: Final[dict[type, Callable[[Any, Any], Any]]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: operator.pow,
    ast.MatMult: operator.matmul,
    ast.BitAnd: operator.and_,
    ast.BitOr: operator.or_,
    ast.BitXor: operator.xor,
    ast.LShift: operator.lshift,
    ast.RShift: operator.rshift,
}
IN_PLACE: Final[dict[type, Callable[[Any, Any], Any]]] = {
    ast.Add: operator.iadd,
    ast.Sub: operator.isub,
    ast.Mult: operator.imul,
    ast.Div: operator.itruediv,
    ast.FloorDiv: operator.ifloordiv,
    ast.Mod: operator.imod,
    ast.Pow: operator.ipow,
    ast.MatMult: operator.imatmul,
    ast.BitAnd: operator.iand,
    ast.BitOr: operator.ior,
    ast.BitXor: operator.ixor,
    ast.LShift: operator.ilshift,
    ast.RShift: operator.irshift,
}
COMPARE: Final[dict[type, Callable[[Any, Any], Any]]] = {
    ast.Lt: operator.lt,
    ast.LtE: operator.le,
    ast.Gt: operator.gt,
    ast.GtE: operator.ge,
    ast.Eq: operator.eq,
    ast.NotEq: operator.ne,
    ast.Is: operator.is_,
    ast.IsNot: operator.is_not,
    ast.In: lambda a, b: a in b,
    ast.NotIn: lambda a, b: a not in b,
}
UNARY: Final[dict[type, Callable[[Any], Any]]] = {
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
    ast.Invert: operator.invert,
    ast.Not: operator.not_,
}


def applied(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Any:
    """The result of an operator on values that are known or symbolic."""
    if isinstance(a, Tensor) or isinstance(b, Tensor):
        if a.__class__ is Number or b.__class__ is Number:
            if function in (operator.pow, operator.ipow):
                raise needs_value(a if a.__class__ is Number else b)
            a, b = beside(a, b), beside(b, a)
        if all(isinstance(x, Tensor) or is_constant(x) for x in (a, b)):
            return attempted(function, a, b)
        raise OnHost(f"{function.__name__} of a tensor and an object of the host")
    if a.__class__ is Number or b.__class__ is Number:
        if numbers.is_number(a) and numbers.is_number(b):
            return attempted(numbers.binary, function, a, b)
        raise OnHost("a number of the program and another object")
    if is_constant(a) and is_constant(b):
        _check_small(function, a, b)
        return attempted(function, a, b)
    raise OnHost(f"{function.__name__} of {type(a).__name__} and {type(b).__name__}")


def _check_small(function: Any, a: Any, b: Any) -> None:
    if function in (operator.pow, operator.lshift, operator.mul) and not (
        isinstance(a, float) or isinstance(b, float)
    ):
        sizes = [len(x) if hasattr(x, "__len__") else 0 for x in (a, b)]
        large = [x for x in (a, b) if x.__class__ is int and abs(x) > 1 << 16]
        if sum(sizes) or large:
            raise OnHost("a constant that may be large")


def beside(x: Any, other: Any) -> Any:
    """A number of the program as the operand of an operation on a tensor."""
    return numbers.as_tensor(x, other.dtype) if x.__class__ is Number else x


def needs_value(number: Number) -> Exception:
    """What to raise where a number must be known while slicing."""
    if number.origin is not None:
        return Restart(number.origin)
    return OnHost("a number that is known only when the program runs")


def check_depth(slicer: Slicer, container: Any) -> None:
    """Refuse to let a container that was made outside of a loop of the graph grow in a turn.

    A loop carries items, not their number. At the end of each turn it is seen whether that is what
    it was; where nothing is taken out again it need not be tried.
    """
    depth = slicer.depth_of.get(id(container))
    now = sum(frame.is_loop for frame in slicer.trace.frames)
    if depth != now and not any("pop" in x.function.__code__.co_names for x in slicer.scopes):
        raise Restart(("host", slicer.made_by[id(container)]))


def is_constant(x: Any) -> bool:
    """Whether a value is the same in every run, through and through."""
    if x.__class__ is tuple:
        return all(map(is_constant, x))
    if x.__class__ is slice:
        return all(map(is_constant, (x.start, x.stop, x.step)))
    return x.__class__ in PLAIN
