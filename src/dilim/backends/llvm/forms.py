"""Kernels of every loop form but nests."""

from __future__ import annotations

from collections.abc import Sequence

from dilim.backends.llvm.arg_reductions import write_arg_reduce
from dilim.backends.llvm.blocks import write_blocks
from dilim.backends.llvm.form_writer import FormCode
from dilim.backends.llvm.picks import write_pick
from dilim.backends.llvm.scans import write_scan
from dilim.backends.llvm.scatters import write_scatter
from dilim.backends.llvm.sorts import write_sort
from dilim.ir.types import Type
from dilim.ops.recipe import ArgReduce, Blocks, Pick, Scan, Scatter, Sort

OtherForm = ArgReduce | Blocks | Pick | Scan | Scatter | Sort


def write_form(
    form: OtherForm, inputs: Sequence[Type], vector_bytes: int, in_place: bool = False
) -> FormCode:
    """The body of a kernel: inputs are at ``%a0``, ``%a1``, ..., the result at ``%r0``.

    Args:
        form: what to compute.
        inputs: types of its inputs.
        vector_bytes: of one register.
        in_place: whether the result lies in the memory of an input, for a `Scatter` of its base.
    """
    if isinstance(form, Scatter):
        return write_scatter(form, inputs, vector_bytes, in_place)
    if isinstance(form, ArgReduce):
        return write_arg_reduce(form, inputs, vector_bytes)
    if isinstance(form, Blocks):
        return write_blocks(form, inputs, vector_bytes)
    if isinstance(form, Pick):
        return write_pick(form, inputs, vector_bytes)
    if isinstance(form, Scan):
        return write_scan(form, inputs, vector_bytes)
    return write_sort(form, inputs, vector_bytes)
