"""`OpDef`: the one place where an operation is described.

A derivative is a tuple with one rule per input. A rule is called as
``rule(b, g, out, *inputs, **params)`` and gives the gradient of its input, written in the same
operations through the builder ``b`` (``b.multiply(g, out)``). On eager tensors that computes; on
symbolic values it adds nodes; so derivatives of any order come from one text. The walk sums the
result back over broadcast axes and casts it to the input's dtype: rules need not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np

from dilim import dtypes
from dilim.dtypes import DType
from dilim.ops.recipe import RecipeRule
from dilim.shapes import Shape


class Builder(Protocol):
    """Applies operations by name: ``b.exp(x)``, ``b.sum(x, axis=(0,))``.

    Operands are typed values or Python numbers; parameters go by keyword.
    """

    def __getattr__(self, name: str) -> Callable[..., Any]: ...


Rule = Callable[..., Any]
InferRule = Callable[..., tuple[Shape, DType]]
Kernel = Callable[..., np.ndarray]


@dataclass(frozen=True, slots=True)
class Sample:
    """One set of arguments that tests run.

    Attributes:
        inputs: arrays and Python numbers.
        params: static parameters.
        smooth: whether derivatives may be compared with differences here (no kink, no tie).
    """

    inputs: tuple[Any, ...]
    params: dict[str, Any]
    smooth: bool = True


@dataclass(frozen=True, slots=True, eq=False)
class OpDef:
    """A primitive operation.

    Attributes:
        name: the array API's name where it has one.
        doc: what it computes, with its conventions.
        infer: ``infer(*values, **params) -> (shape, dtype)``; raises ShapeError or DtypeError.
        reference: NumPy arrays in, NumPy array out; the meaning of the operation.
        derivative: one rule per input, ``None`` for an input without derivative; an empty tuple
            for an operation without any.
        variadic: any number of inputs; the single rule is told which by ``position=``.
        recipe: ``recipe(*types, **params) -> Recipe``; ``None`` when no loop form fits.
        backends: names of back ends that serve an operation without a recipe.
        samples: ``samples(rng, dtype) -> iterator of Sample``.
        sample_dtypes: dtypes that tests draw samples of.
        formula: an independent definition for tests, on float64 or exact integers.
        kernel: what eager execution on the CPU calls; by default the reference. A kernel may
            round differently (BLAS), never mean something else.
        is_view: the result shares the input's memory when it can.
        failure: ``failure(value, *types, **params) -> Exception``: what a recipe's check that fails
            at ``value`` (64 bits, signed) means; for operations whose recipe has a `check`.
        failing: dtypes of the result for which the recipe has it.
        tolerance: allowed difference in units in the last place between recipe and reference.
        eager: the function that eager execution on the CPU calls: kernel or reference.
    """

    name: str
    doc: str
    infer: InferRule
    reference: Kernel
    samples: Callable[[np.random.Generator, DType], Iterator[Sample]]
    sample_dtypes: tuple[DType, ...]
    derivative: tuple[Rule | None, ...] = ()
    recipe: RecipeRule | None = None
    backends: tuple[str, ...] = ("reference",)
    formula: Callable[..., Any] | None = None
    kernel: Kernel | None = None
    variadic: bool = False
    is_view: bool = False
    failure: Callable[..., Exception] | None = None
    failing: tuple[DType, ...] = dtypes.ALL
    tolerance: int = 0
    eager: Kernel = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "eager", self.kernel or self.reference)

    def can_fail(self, dtype: DType) -> bool:
        """Whether the recipe has a check where the result is of this dtype."""
        return self.failure is not None and dtype in self.failing

    def __repr__(self) -> str:
        return f"<op {self.name}>"
