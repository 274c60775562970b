"""Writes the LLVM module of one kernel: chooses the way, and puts the parts together."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Final, Literal

from dilim.backends.llvm.boxes import changed_ranges
from dilim.backends.llvm.checks import write_checks
from dilim.backends.llvm.code import METADATA, Code
from dilim.backends.llvm.costs import cost_of
from dilim.backends.llvm.forms import write_form
from dilim.backends.llvm.lowered import LoweredNest, lower_nest, needed
from dilim.backends.llvm.maps import NestWriter
from dilim.backends.llvm.product_nests import NestEpilogue, as_product
from dilim.backends.llvm.products import ProductOptions, write_product
from dilim.backends.llvm.products_forms import KernelCode
from dilim.backends.llvm.reductions import RESERVED
from dilim.backends.llvm.results import Results
from dilim.backends.llvm.values import Values
from dilim.ir.types import Type
from dilim.ops.nest import Form, Nest

__all__ = ["KernelCode", "KernelOptions", "write_kernel"]

# LLVM must not turn loops into calls of memset and memcpy, which bare targets lack.
ATTRIBUTES: Final = 'attributes #0 = { nounwind "no-builtins" }'
NOTHING: Final[Mapping[int, int]] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class KernelOptions:
    """How kernels are written.

    Attributes:
        vector_bytes: of one register: 16, 32 or 64.
        numerics: ``"strict"`` keeps every rounding, ``"fast"`` may contract products and sums.
    """

    vector_bytes: int = 64
    numerics: Literal["strict", "fast"] = "strict"


STANDARD: Final = KernelOptions()


def write_kernel(
    name: str,
    form: Form,
    input_types: Sequence[Type],
    result_types: Sequence[Type],
    aliases: Mapping[int, int] = NOTHING,
    options: KernelOptions = STANDARD,
) -> KernelCode:
    """Write a kernel.

    Args:
        name: of the function.
        form: what `dilim.ops.nest.compose` gave.
        input_types: of the inputs that loads count.
        result_types: of the results, in order.
        aliases: numbers of the results that lie in the memory of an input, and of these inputs.
        options: of the target and of the user.

    Raises:
        UnsupportedError: a primitive of a body has no emission here.
    """
    inputs = [f"%a{number}" for number in range(len(input_types))]
    results = [f"%r{number}" for number in range(len(result_types))]
    if not isinstance(form, Nest):
        in_place = aliases.get(0) is not None and aliases.get(0) == getattr(form, "base", None)
        written = write_form(form, input_types, options.vector_bytes, in_place)
        text = function_text(name, written.code, [*inputs, *results])
        return KernelCode(
            name, text, written.scratch_bytes, written.chunks, written.cost, written.checks
        )
    nest = lower_nest(form, input_types, changed_ranges(form, input_types, aliases))
    where = Results(results, result_types)
    product = _write_product(name, nest, input_types, where, options)
    return product or _write_nest(name, nest, input_types, where, options)


def _write_product(
    name: str,
    nest: LoweredNest,
    input_types: Sequence[Type],
    results: Results,
    options: KernelOptions,
) -> KernelCode | None:
    roles = as_product(nest)
    if roles is None or any(part.op == "check" for part in nest.parts):
        return None
    fast = options.numerics == "fast"
    epilogue = NestEpilogue(nest, roles, input_types, results, fast)
    arguments = [*(f"%a{number}" for number in range(len(input_types))), *results.pointers]
    kernel = write_product(
        name,
        roles.product,
        epilogue,
        arguments,
        ProductOptions(
            vector_bytes=options.vector_bytes,
            registers=32 if options.vector_bytes == 64 else 16,
            numerics=options.numerics,
            masked=options.vector_bytes == 64,
            broadcast=options.vector_bytes == 64,
        ),
    )
    after = cost_of(needed(nest.lowering, nest.outputs), nest.size, options.vector_bytes)
    return replace(kernel, cost=kernel.cost + after)


def _write_nest(
    name: str,
    nest: LoweredNest,
    input_types: Sequence[Type],
    results: Results,
    options: KernelOptions,
) -> KernelCode:
    code = Code()
    inputs = [f"%a{number}" for number in range(len(input_types))]
    values = Values(code, nest.lowering, inputs, input_types, options.numerics == "fast")
    checks = write_checks(code, values, nest)
    writer = NestWriter(code, values, nest, results, options.vector_bytes, splits=not checks)
    writer.write()
    scratch = writer.scratch_bytes
    if scratch or checks:
        scratch += RESERVED
    text = function_text(name, code, [*inputs, *results.pointers])
    return KernelCode(name, text, scratch, writer.chunks, writer.cost, checks)


def function_text(name: str, code: Code, arguments: Sequence[str]) -> str:
    """The module of a kernel whose arguments have these names in its code."""
    body = "\n".join(code.lines()[1:])
    head = [f"define i32 @{name}(ptr %args, i64 %begin, i64 %end, ptr %scratch) #0 {{", "entry:"]
    for number, argument in enumerate(arguments):
        place = "%args"
        if number:
            place = f"{argument}.at"
            head.append(f"  {place} = getelementptr inbounds ptr, ptr %args, i64 {number}")
        head.append(f"  {argument} = load ptr, ptr {place}")
    end = ["  ret i32 0", "}", "", ATTRIBUTES]
    if code.loops:
        end += ["", METADATA]
    return "\n".join([*head, body, *end, ""])
