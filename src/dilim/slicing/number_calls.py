"""Calls of dilim's functions with a number that is known only when the program runs.

Dilim's own code looks at numbers, so it is given a tensor of shape () instead: of the dtype that
the number would be taken for beside the tensors of the call.
"""

from __future__ import annotations

import ast
import functools
import operator
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Final

from dilim import dtypes
from dilim.slicing import contents, numbers, received
from dilim.slicing.errors import OnHost, attempted
from dilim.slicing.numbers import Number
from dilim.slicing.operators import beside
from dilim.slicing.values import holds_number, is_among, owner_of
from dilim.tensors import elementwise
from dilim.tensors.creation import as_shape, asarray, full, tensor
from dilim.tensors.manipulation import broadcast_to, stack
from dilim.tensors.random import Generator
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.slicer import Slicer

_MAKERS: Final = (Tensor, tensor, asarray)
_OPERATIONS: Final = frozenset(
    {"add", "subtract", "multiply", "divide", "floor_divide", "remainder", "pow", "maximum"}
    | {"minimum", "hypot", "logaddexp", "less", "less_equal", "greater", "greater_equal", "equal"}
    | {"not_equal", "where", "clip"}
)
"""Operations on tensors of one dtype, any of which may be a number."""
_NATURAL: Final = {int: dtypes.DEFAULT_INT, float: dtypes.DEFAULT_FLOAT, bool: dtypes.bool_}

Compute = Callable[[], Any]


def made_of_numbers(
    slicer: Slicer, function: Any, node: ast.Call, args: list[Any], keywords: dict[str, Any]
) -> Compute | None:
    """How to make or fill a tensor with numbers of the program; None for other calls."""
    given = args[-1] if args else None
    if given.__class__ in (list, tuple) and len(args) == 1 and is_among(function, _MAKERS):
        are_numbers = holds_number(given) and keywords.keys() <= {"dtype"}
        return (lambda: _stacked(slicer, given, keywords.get("dtype"))) if are_numbers else None
    if given.__class__ is not Number and not received.is_number(given):
        return None
    take = functools.partial(received.taken, slicer, node.args[-1], given)
    if len(args) == 1 and is_among(function, _MAKERS):
        return lambda: _made(take(), **keywords)
    if len(args) == 2 and function is full and keywords.keys() <= {"dtype"}:
        return lambda: _full(slicer, args[0], take(), keywords.get("dtype"))
    owner = owner_of(function)
    is_filled = isinstance(owner, Tensor) and function.__name__ == "fill_" and len(args) == 1
    return (lambda: _filled(owner, take())) if is_filled and not keywords else None


def with_tensors(
    function: Any, args: list[Any], keywords: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    """The arguments of a call of dilim's, with tensors for numbers of the program where it can be.

    Raises:
        OnHost: only Python can make that call, with the number itself.
    """
    if not any(x.__class__ is Number for x in (*args, *keywords.values())):
        return args, keywords
    name, owner = getattr(function, "__name__", ""), owner_of(function)
    if isinstance(owner, Generator) and name == "integers":
        named = {k: _bound(x) if k in ("low", "high") else x for k, x in keywords.items()}
        return [*map(_bound, args[:2]), *args[2:]], named
    if name in _OPERATIONS and (
        isinstance(owner, Tensor) or function is getattr(elementwise, name, None)
    ):
        return _of_one_dtype(function, owner, args, keywords)
    return args, keywords


def _made(x: Number, **keywords: Any) -> Tensor:
    """A tensor of one number; memory of its own, as the number may be carried by a loop."""
    if not keywords.keys() <= {"dtype"}:
        raise OnHost("a number of the program is given to a tensor operation")
    made = numbers.as_tensor(x, _dtype(x.kind, keywords.get("dtype")))
    return asarray(made, copy=True) if made is x.tensor else made


def _full(slicer: Slicer, shape: Any, value: Number, dtype: Any) -> Tensor:
    """A tensor of one number in all places."""
    known = attempted(as_shape, contents.argument(slicer, shape))
    made = numbers.as_tensor(value, _dtype(value.kind, dtype))
    with no_grad():
        return _own(slicer, broadcast_to(made, known))


def _stacked(slicer: Slicer, items: Any, dtype: Any) -> Tensor:
    """A tensor of a row of numbers.

    Raises:
        OnHost: it depends on them which type they have in common, or how they are rounded.
    """
    row = [numbers.symbolic(slicer.trace, x) for x in items if numbers.is_number(x)]
    kinds = {x.kind for x in row}
    kind = _dtype(next(iter(kinds), int), dtype)
    is_large = kind.is_floating and any(x.kind is int and x.bound > numbers.EXACT for x in row)
    if len(row) < len(items) or bool in kinds or is_large or (dtype is None and len(kinds) > 1):
        raise OnHost("numbers for a tensor")
    with no_grad():
        return _own(slicer, stack([numbers.as_tensor(x, kind) for x in row]))


def _dtype(kind: type, dtype: Any) -> dtypes.DType:
    """The dtype that is asked for, or that of numbers of a kind."""
    return _NATURAL[kind] if dtype is None else attempted(dtypes.as_dtype, dtype)


def _own(slicer: Slicer, x: Tensor) -> Tensor:
    """A tensor with memory of its own."""
    return slicer.trace.symbol(slicer.trace.value(slicer.trace.handle(x)))


def _filled(x: Tensor, value: Number) -> Tensor:
    attempted(operator.setitem, x, ..., beside(value, x))
    return x


def _bound(x: Any) -> Any:
    if x.__class__ is Number and x.kind is not int:
        raise OnHost("a bound that is no int")
    return x.tensor if x.__class__ is Number else x


def _of_one_dtype(
    function: Any, owner: Any, args: list[Any], keywords: dict[str, Any]
) -> tuple[list[Any], dict[str, Any]]:
    operands = [owner, *args] if isinstance(owner, Tensor) else args
    operands = operands[1:] if function is elementwise.where else operands
    tensors = [x for x in (*operands, *keywords.values()) if isinstance(x, Tensor)]
    if not tensors or any(x.dtype is not tensors[0].dtype for x in tensors):
        return args, keywords
    named = {key: beside(x, tensors[0]) for key, x in keywords.items()}
    return [beside(x, tensors[0]) for x in args], named


def extreme(function: Callable[..., Any], values: Sequence[Any]) -> Any:
    """``max`` or ``min`` of numbers of one kind: the first that no later one beats.

    Raises:
        OnHost: they are not of one kind.
    """
    beats = operator.gt if function is max else operator.lt
    best, kind = values[0], numbers.kind_of(values[0])
    for x in values[1:]:
        if numbers.kind_of(x) is not kind or kind not in (int, float):
            raise OnHost("a builtin of numbers of several kinds")
        if Number not in (x.__class__, best.__class__):
            best = x if beats(x, best) else best
            continue
        flag, bound = (
            numbers.binary(beats, x, best),
            max(numbers.bound_of(x), numbers.bound_of(best)),
        )
        with no_grad():
            chosen = elementwise.where(flag.tensor, *numbers.operands(x, best, kind))
        natural = [kind is int and numbers.is_natural(y) for y in (x, best)]
        if function is min and all(natural):
            bound = min(numbers.bound_of(x), numbers.bound_of(best))
        best = Number(chosen, kind, bound)
        best.is_natural = any(natural) if function is max else all(natural)
    return best
