"""Emits the checks of a kernel: they run before anything else is computed or written."""

from __future__ import annotations

from collections.abc import Sequence

from dilim import dtypes
from dilim.backends.llvm.code import Code, Position
from dilim.backends.llvm.instructions import convert
from dilim.backends.llvm.lowered import LoweredNest, axes_used, needed
from dilim.backends.llvm.values import Values
from dilim.ops.primitives import Expr


def write_checks(code: Code, values: Values, nest: LoweredNest) -> bool:
    """Emit every check as loops over the axes that it depends on; whether there is one.

    The first value that fails goes to the beginning of the scratch memory; the kernel returns 1
    plus the number of the check.
    """
    below = {part: needed(nest.lowering, part.args) for part in nest.parts if part.op == "check"}
    # A check whose position went through other checks comes after them; else in their own order.
    for check in sorted(
        below, key=lambda part: (sum(x.op == "check" for x in below[part]), part.value)
    ):
        axes = sorted(axes_used(nest.lowering, below[check]))
        if all(nest.sizes[axis] for axis in axes):
            _loops(code, values, nest, check, axes)
    return bool(below)


def _loops(code: Code, values: Values, nest: LoweredNest, check: Expr, axes: Sequence[int]) -> None:
    if not axes:
        _test(code, values, check)
        return

    def turn(index: Position, _: list[str]) -> list[str]:
        with values.scope({axes[0]: index}):
            _loops(code, values, nest, check, axes[1:])
        return []

    code.loop(0, nest.sizes[axes[0]], 1, turn)


def _test(code: Code, values: Values, check: Expr) -> None:
    ok, value = check.args
    condition = values.value(ok)[0]
    bad = code.let(f"xor i1 {condition}, true")

    def fail() -> str:
        wide = convert(code, values.value(value)[0], value.dtype, dtypes.INDEX, 0)
        code.do(f"store i64 {wide}, ptr %scratch")
        return str(check.value + 1)

    with values.scope({}):
        code.leave(bad, fail)
