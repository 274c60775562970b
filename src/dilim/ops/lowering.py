"""Expressions made ready for a machine: expansions applied, equal parts shared, loads addressed."""

from __future__ import annotations

import functools
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Final

from dilim.dtypes import DType
from dilim.ir.types import Type
from dilim.ops.affine import Affine, Interner
from dilim.ops.expansions import EXPANSIONS, has_expansion
from dilim.ops.expressions import postorder
from dilim.ops.primitives import Expr

NOWHERE: Final[Mapping[int, tuple[int, int]]] = MappingProxyType({})


class Lowering:
    """Lowers expressions over the same loop axes and inputs.

    Args:
        sizes: of the loop axes 0, 1, ...
        inputs: types of the inputs that loads count.
        moved: for some axes ``(start, step)``: the axis stands for ``start + step * axis``.

    Attributes:
        interner: holds the ranges of the axes; all lowered expressions are from it.
        addresses: of every lowered load, in elements from the start of its input.
        exact: parts of expansions, which must not be contracted.
    """

    def __init__(
        self,
        sizes: Sequence[int],
        inputs: Sequence[Type],
        moved: Mapping[int, tuple[int, int]] = NOWHERE,
    ) -> None:
        self.interner = Interner(sizes)
        self.addresses: dict[Expr, Affine] = {}
        self.exact: set[Expr] = set()
        self._inputs = inputs
        self._moved = moved
        self._done: dict[Expr, Expr] = {}

    def index(self, axis: int) -> Expr:
        """The position that a loop axis stands for."""
        index = self.interner.index(axis)
        if axis not in self._moved:
            return index
        start, step = self._moved[axis]
        return self.interner.expression(self.interner.moved(index, start, step))

    def lower(self, root: Expr) -> Expr:
        """The expression in terms of primitives without expansion."""
        done, make = self._done, self.interner.make
        for part in postorder([root]):
            if part in done:
                continue
            args = tuple([done[arg] for arg in part.args])
            if has_expansion(part):
                done[part] = self._expand(part.op, args)
                continue
            if part.op == "index":
                done[part] = self.index(part.value)
                continue
            made = done[part] = make(part, args)
            if made.op == "load" and made not in self.addresses:
                index = made.args[1:] if made.guarded else made.args
                shape = self._inputs[made.value].shape
                self.addresses[made] = self.interner.address(index, shape)
        return done[root]

    def _expand(self, op: str, args: tuple[Expr, ...]) -> Expr:
        made: dict[Expr, Expr] = {}
        parts = _template(op, tuple(arg.dtype for arg in args))
        for part in parts:
            if part.op == "argument":
                made[part] = args[part.value]
            else:
                result = self.interner.make(part, tuple([made[arg] for arg in part.args]))
                made[part] = result
                self.exact.add(result)
        return made[parts[-1]]


@functools.cache
def _template(op: str, kinds: tuple[DType, ...]) -> tuple[Expr, ...]:
    """An expansion of ``argument`` leaves without expansions in it, operands first."""
    leaves = [Expr("argument", (), kind, number) for number, kind in enumerate(kinds)]
    done: dict[Expr, Expr] = {}
    root = EXPANSIONS[op](*leaves)
    for part in postorder([root]):
        args = tuple(done[arg] for arg in part.args)
        if has_expansion(part):
            inner: dict[Expr, Expr] = {}
            template = _template(part.op, tuple(arg.dtype for arg in args))
            for piece in template:
                if piece.op == "argument":
                    inner[piece] = args[piece.value]
                else:
                    inner[piece] = _like(piece, tuple(inner[arg] for arg in piece.args))
            done[part] = inner[template[-1]]
        else:
            done[part] = _like(part, args)
    return tuple(postorder([done[root]]))


def _like(model: Expr, args: tuple[Expr, ...]) -> Expr:
    if all(a is b for a, b in zip(args, model.args, strict=True)):
        return model
    return Expr(model.op, args, model.dtype, model.value, model.guarded)
