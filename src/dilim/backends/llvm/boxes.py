"""Partial writes in place: only the elements that change are visited."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from dilim.ir.types import Type
from dilim.ops.affine import Affine
from dilim.ops.lowering import Lowering
from dilim.ops.nest import Nest
from dilim.ops.primitives import Expr


@dataclass(slots=True)
class Range:
    """The positions ``start, start + step, ...`` below ``stop`` along one axis."""

    start: int
    stop: int
    step: int = 1

    @property
    def count(self) -> int:
        """How many positions."""
        return max(0, -(-(self.stop - self.start) // self.step))


def changed_ranges(
    nest: Nest, inputs: Sequence[Type], aliases: Mapping[int, int]
) -> list[Range] | None:
    """Where results that lie in the memory of an input differ from it, or None for everywhere.

    That is so where every output is the input itself unless a condition on the loop axes holds:
    ``select(condition, value, load of that input at the own position)``.
    """
    if nest.reductions or nest.checks or len(aliases) < len(nest.outputs):
        return None
    if any(output.op != "select" for output in nest.outputs):
        return None
    lowering = Lowering(nest.space, inputs)
    place = lowering.interner.address(
        [lowering.interner.index(axis) for axis in range(len(nest.space))], nest.space
    )
    conditions = []
    for number, output in enumerate(nest.outputs):
        condition, _, old = lowering.lower(output).args
        if old.op != "load" or old.value != aliases[number] or old.guarded:
            return None
        if dict(lowering.addresses[old].terms) != dict(place.terms):
            return None
        conditions.append(condition)
    if any(condition is not conditions[0] for condition in conditions):
        return None
    ranges = [Range(0, size) for size in nest.space]
    # Steps come last: they start from the final beginning of the range.
    for part in sorted(_parts(conditions[0]), key=lambda part: part.op == "equal"):
        _restrict(ranges, lowering, part)
    return ranges


def _parts(condition: Expr) -> Iterator[Expr]:
    if condition.op == "bit_and":
        for arg in condition.args:
            yield from _parts(arg)
    else:
        yield condition


def _restrict(ranges: list[Range], lowering: Lowering, condition: Expr) -> None:
    """Use a condition of the kind that slices have; leave others to the selection."""
    if condition.op not in ("less", "less_equal", "equal"):
        return
    left, right = (lowering.interner.form(arg) for arg in condition.args)
    if condition.op == "equal":
        _restrict_step(ranges, lowering, left, right)
        return
    terms = dict(right.terms)
    for term, coefficient in left.terms:
        terms[term] = terms.get(term, 0) - coefficient
    # sum(terms) + constant >= 0
    constant = right.constant - left.constant - (condition.op == "less")
    if len(terms) != 1:
        return
    ((term, coefficient),) = terms.items()
    if term.op == "floor_divide" and coefficient == -1:
        # x // d <= c where x <= d (c + 1) - 1
        inner, divisor = lowering.interner.form(term.args[0]), int(term.args[1].value)
        if len(inner.terms) != 1:
            return
        term, coefficient = inner.terms[0][0], -inner.terms[0][1]
        constant = divisor * (constant + 1) - 1 - inner.constant
    if term.op != "index":
        return
    own = ranges[term.value]
    if coefficient > 0:
        own.start = max(own.start, -(constant // coefficient))
    else:
        own.stop = min(own.stop, constant // -coefficient + 1)


def _restrict_step(ranges: list[Range], lowering: Lowering, left: Affine, right: Affine) -> None:
    """``(x + a) % d == 0``: every d-th position."""
    if right.terms or right.constant or left.constant or len(left.terms) != 1:
        return
    term, coefficient = left.terms[0]
    if term.op != "remainder" or coefficient != 1:
        return
    inner, divisor = lowering.interner.form(term.args[0]), int(term.args[1].value)
    if len(inner.terms) != 1 or inner.terms[0][0].op != "index":
        return
    axis, factor = inner.terms[0]
    if abs(factor) != 1 or ranges[axis.value].step != 1:
        return
    own = ranges[axis.value]
    phase = -inner.constant * factor % divisor
    own.start += (phase - own.start) % divisor
    own.step = divisor
