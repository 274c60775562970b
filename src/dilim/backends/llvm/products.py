"""Matrix products as LLVM code: tiles of accumulators in registers, packed factors, blocks.

Each sum has one accumulator, starts from 0 and takes k in ascending order; strict numbers round
every product before it is added. So the bits do not depend on tiles, blocks, strides or threads.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from dilim.backends.llvm.code import METADATA
from dilim.backends.llvm.products_body import Body
from dilim.backends.llvm.products_forms import (
    Epilogue,
    KernelCode,
    Operand,
    Position,
    Product,
    ProductOptions,
    StoreResult,
)
from dilim.backends.llvm.products_plan import CYCLES_PER_NANOSECOND, choose_plan
from dilim.backends.llvm.products_text import Text

__all__ = [
    "Epilogue", "KernelCode", "Operand", "Position", "Product", "ProductOptions", "StoreResult",
    "write_product",
]  # fmt: skip

DEFAULTS: Final = ProductOptions()


def write_product(
    name: str,
    product: Product,
    epilogue: Epilogue,
    arguments: Sequence[str],
    options: ProductOptions = DEFAULTS,
) -> KernelCode:
    """The kernel of one product of known sizes and strides.

    Args:
        name: of the function.
        product: what is multiplied.
        epilogue: what becomes of the sums.
        arguments: LLVM names of the pointers in ``%args``, in order, for example
            ``("%a0", "%a1", "%a2")``; a name given twice is one pointer (in place). The factors
            are never those of a result.
        options: the target and the numbers wanted.

    Returns:
        The module; its cost counts the product, not the epilogue.
    """
    if 0 in (product.m, product.n, *product.batch):
        return KernelCode(name, _module(name, arguments, Text()), 0, 1, 0.0)
    plan = choose_plan(product, epilogue.columns, options)
    body = Body(plan, epilogue, options)
    body.write()
    text = _module(name, arguments, body.text)
    cost = plan.cycles / CYCLES_PER_NANOSECOND
    return KernelCode(name, text, body.scratch_bytes, plan.tiles[plan.split], cost)


def _module(name: str, arguments: Sequence[str], text: Text) -> str:
    head = [f"define i32 @{name}(ptr %args, i64 %begin, i64 %end, ptr %scratch) #0 {{", "entry:"]
    for number, argument in enumerate(arguments):
        if argument not in arguments[:number]:
            head.append(f"  {argument}.slot = getelementptr i8, ptr %args, i64 {8 * number}")
            head.append(f"  {argument} = load ptr, ptr {argument}.slot")
    end = ["  ret i32 0", "}", 'attributes #0 = { nounwind "no-builtins" }']
    return "\n".join([*head, *text.lines()[1:], *end, METADATA])
