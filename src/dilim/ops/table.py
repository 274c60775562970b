"""The table of all operations: name -> `OpDef`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from dilim.ops import (
    binary,
    checks,
    comparison,
    contract,
    gather,
    joining,
    movement,
    random,
    reduce,
    scans,
    sorting,
    transcendental,
    unary,
    windows,
)
from dilim.ops.opdef import OpDef

MODULES: Final = (
    unary,
    transcendental,
    binary,
    comparison,
    reduce,
    contract,
    movement,
    joining,
    windows,
    gather,
    scans,
    sorting,
    random,
    checks,
)


def _collect() -> Mapping[str, OpDef]:
    table: dict[str, OpDef] = {}
    for module in MODULES:
        for op in module.OPS:
            if op.name in table:
                raise RuntimeError(f"operation {op.name} is defined twice")
            table[op.name] = op
    return MappingProxyType(table)


OPERATIONS: Final[Mapping[str, OpDef]] = _collect()
