"""Ints that may need more than 64 bits, which is seen when the program runs.

Where one does, plain Python goes on from there, and the next time the operation is the host's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from dilim import dtypes
from dilim.slicing import numbers, surprises
from dilim.slicing.errors import TooLarge
from dilim.slicing.numbers import ARITHMETIC, MOST, Number
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
        if function not in ARITHMETIC or max(map(numbers.bound_of, (a, b))) > 1 << 63:
            raise
        with no_grad():
            pair = (
                x.tensor.astype(dtypes.float64) if x.__class__ is Number else float(x)
                for x in (a, b)
            )
            fits = elementwise.abs(ARITHMETIC[function][0](*pair)) < float(MOST)
        surprises.unless(slicer, fits, refusal.reason, True, decision=("host", step))
        return numbers.binary(function, a, b, fits=True)


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
