"""Ints that may need more than 64 bits, which is seen when the program runs.

Where one does, plain Python goes on from there, and the next time the operation is the host's.
"""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dilim import dtypes
from dilim.slicing import numbers, surprises
from dilim.slicing.errors import TooLarge
from dilim.slicing.numbers import ARITHMETIC, EXACT, MOST, Number
from dilim.slicing.operators import applied
from dilim.tensors import elementwise
from dilim.tensors.tape import no_grad
from dilim.tensors.tensor import Tensor

if TYPE_CHECKING:
    from dilim.slicing.program import Step
    from dilim.slicing.slicer import Slicer


def calculated(
    slicer: Slicer, step: Step, function: Callable[[Any, Any], Any], a: Any, b: Any
) -> Any:
    """The result of an operator on values that are known or symbolic."""
    try:
        return applied(function, a, b)
    except TooLarge as refusal:
        leave_unless_small(slicer, step, function, a, b, refusal)
        return numbers.binary(function, a, b, fits=True)


def leave_unless_small(
    slicer: Slicer,
    step: Step,
    function: Callable[[Any, Any], Any],
    a: Any,
    b: Any,
    refusal: TooLarge,
) -> None:
    """Let plain Python go on where ints are too large for the graph.

    Raises:
        TooLarge: they always are.
    """
    fits = _fits(function, a, b)
    if fits is None:
        raise refusal
    surprises.unless(slicer, fits, refusal.reason, True, decision=("host", step))


def _fits(function: Callable[[Any, Any], Any], a: Any, b: Any) -> Tensor | None:
    """Whether ints are small enough for the graph, a bool; None where they never are."""
    with no_grad():
        if function in ARITHMETIC:
            if max(map(numbers.bound_of, (a, b))) > numbers.WIDEST or any(
                map(numbers.is_beyond, (a, b))
            ):
                return None
            pair = (
                x.tensor.astype(dtypes.float64) if x.__class__ is Number else float(x)
                for x in (a, b)
            )
            return elementwise.abs(ARITHMETIC[function][0](*pair)) < float(MOST)
        ints = [x for x in (a, b) if numbers.kind_of(x) is int]
        if function in (operator.floordiv, operator.mod) or any(
            x.__class__ is not Number and abs(x) > EXACT for x in ints
        ):
            return None
        small = [elementwise.abs(x.tensor) <= EXACT for x in ints if x.__class__ is Number]
        return functools.reduce(elementwise.logical_and, small)


def is_float(x: Any) -> bool:
    """Whether a value is a float, or a tensor with one, that is known when the program runs."""
    if isinstance(x, Tensor):
        return x.dtype.is_floating and x.size == 1
    return x.__class__ is Number and x.kind is float


def truncated(slicer: Slicer, step: Step, x: Any) -> Number:
    """``int(x)`` of a float, or of a tensor with one; plain Python goes on where that raises."""
    number = numbers.from_tensor(x, float) if isinstance(x, Tensor) else x
    with no_grad():
        fits = elementwise.abs(number.tensor) < float(MOST)
        made = Number(number.tensor.astype(dtypes.int64), int, MOST)
    reason = "int() of a float that is no number or a large one"
    surprises.unless(slicer, fits, reason, True, decision=("host", step))
    return made
