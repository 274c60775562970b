"""The text table that `Module.summary` gives."""

from __future__ import annotations

from collections.abc import Sequence

from dilim.shapes import Shape
from dilim.tensors.tensor import Tensor

HEADER = ("layer", "output shape", "parameters")


def table(
    rows: Sequence[tuple[str, str, Shape | None, int]],
    parameters: Sequence[Tensor],
    buffers: Sequence[Tensor],
) -> str:
    """A table with one line per module and a line of totals.

    Args:
        rows: per module its dotted path, what it is, its output shape or None, and the number of
            elements of its own parameters.
        parameters: all parameters, for the totals.
        buffers: all buffers, for the totals.
    """
    cells = [HEADER]
    for path, label, shape, count in rows:
        layer = f"{path}: {label}" if path else label
        cells.append((layer, "-" if shape is None else str(shape), f"{count:,}" if count else "-"))
    wide = [max(len(line[column]) for line in cells) for column in range(3)]
    lines = [f"{a:<{wide[0]}}  {b:<{wide[1]}}  {c:>{wide[2]}}" for a, b, c in cells]
    rule = "-" * len(lines[0])
    total = f"{sum(x.size for x in parameters):,} parameters ({_bytes(parameters)})"
    if buffers:
        total += f", {sum(x.size for x in buffers):,} in buffers ({_bytes(buffers)})"
    return "\n".join([lines[0], rule, *lines[1:], rule, total])


def _bytes(tensors: Sequence[Tensor]) -> str:
    amount = float(sum(x.nbytes for x in tensors))
    for unit in ("bytes", "kB", "MB"):
        if amount < 1000.0:
            return f"{amount:.0f} {unit}" if unit == "bytes" else f"{amount:.1f} {unit}"
        amount /= 1000.0
    return f"{amount:.1f} GB"
