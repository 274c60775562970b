"""Recognises matrix products among loop nests, and emits what follows the sums."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from dilim.backends.llvm.lowered import LoweredNest, needed, weight_of
from dilim.backends.llvm.products_forms import Operand, Position, Product
from dilim.backends.llvm.products_text import Text
from dilim.backends.llvm.results import Results
from dilim.backends.llvm.values import Lanes, Place, Values
from dilim.ir.types import Type
from dilim.ops.affine import Affine
from dilim.ops.primitives import Expr


@dataclass(frozen=True, slots=True)
class ProductNest:
    """A nest that is one matrix product and an epilogue.

    Attributes:
        product: what is multiplied and summed.
        batch: the nest's axes that are batches of the product.
        m: the axis of its rows, or None for one row.
        n: the axis of its columns, or None for one column.
    """

    product: Product
    batch: tuple[int, ...]
    m: int | None
    n: int | None


def as_product(nest: LoweredNest) -> ProductNest | None:
    """The nest as a product, if its only reduction is one: the sum of load times load."""
    if len(nest.reductions) != 1:
        return None
    reduction = nest.reductions[0]
    source, body = reduction.source, reduction.source.body
    if (source.order, source.combine, source.identity) != ("ascending", "add", 0):
        return None
    if body.op != "multiply" or len(reduction.axes) > 1 or body.dtype.kind == "bool":
        return None
    if not all(_is_plain(nest, factor) for factor in body.args):
        return None
    forms = [nest.lowering.addresses[factor] for factor in body.args]
    own = [[a for a in nest.axes if f.coefficient(a)] for f in forms]
    only = [[a for a in own[k] if a not in own[1 - k]] for k in (0, 1)]
    if not only[0] and not only[1]:
        return None
    right = max((0, 1), key=lambda k: only[k][-1] if only[k] else -1)
    left = 1 - right
    n = only[right][-1]
    m = only[left][-1] if only[left] else None
    batch = tuple(a for a in nest.axes if a not in (m, n))
    k = reduction.axes[0] if reduction.axes else None

    def operand(which: int, row: int | None, column: int | None) -> Operand:
        form = forms[which]
        steps = tuple(form.coefficient(axis) for axis in batch)
        return Operand(
            f"%a{body.args[which].value}", _step(form, row), _step(form, column), steps,
            form.constant,
        )  # fmt: skip

    def size(axis: int | None) -> int:
        return 1 if axis is None else nest.sizes[axis]

    product = Product(
        tuple(nest.sizes[axis] for axis in batch),
        size(m),
        size(n),
        0 if 0 in source.over else size(k),
        body.dtype,
        operand(left, m, k),
        operand(right, k, n),
    )
    return ProductNest(product, batch, m, n)


def _is_plain(nest: LoweredNest, factor: Expr) -> bool:
    """Whether a factor is a load at a sum of axes."""
    if factor.op != "load" or factor.guarded:
        return False
    return all(term.op == "index" for term, _ in nest.lowering.addresses[factor].terms)


def _step(form: Affine, axis: int | None) -> int:
    return 0 if axis is None else form.coefficient(axis)


class NestEpilogue:
    """What a nest does with the sums of its product; an `Epilogue`.

    Args:
        nest: with one reduction.
        roles: which axis is what.
        inputs: types of the inputs.
        results: where to.
        contract: whether products and sums may be contracted.
    """

    columns = True

    def __init__(
        self,
        nest: LoweredNest,
        roles: ProductNest,
        inputs: Sequence[Type],
        results: Results,
        contract: bool,
    ) -> None:
        self._nest = nest
        self._roles = roles
        self._inputs = inputs
        self._results = results
        self._contract = contract
        self._values: Values | None = None
        self.weight = 1 + weight_of(needed(nest.lowering, nest.outputs))

    def write(self, text: Text, sums: str, position: Position) -> None:
        """Emit the outputs and their stores."""
        roles, nest = self._roles, self._nest
        if self._values is None:
            pointers = [f"%a{number}" for number in range(len(self._inputs))]
            self._values = Values(text, nest.lowering, pointers, self._inputs, self._contract)
        places: dict[int, Place | str | int] = dict(zip(roles.batch, position.batch, strict=True))
        for axis, place in ((roles.m, position.i), (roles.n, position.j)):
            if axis is not None:
                places[axis] = place
        axis = roles.n if position.axis == "n" else roles.m
        lanes = position.lanes if position.lanes > 1 else 0
        along = Lanes(axis, lanes, position.count) if lanes and axis is not None else None
        values = self._values
        with values.scope(places, along):
            values.define(nest.reductions[0].leaf, sums, lanes)
            self._results.store(text, values, nest, axis, lanes, position.count)
