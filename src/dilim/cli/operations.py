"""`dilim ops`: where each part of an operation stands."""

from __future__ import annotations

import ast
import inspect
import sys
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from types import FunctionType, ModuleType
from typing import Annotated, Any

import numpy as np
import typer

import dilim
from dilim.cli.messages import CommandError, output, plain_table, unknown_name
from dilim.dtypes import from_numpy
from dilim.ir.types import Type
from dilim.ops.opdef import OpDef, Sample
from dilim.ops.table import OPERATIONS


def ops(
    name: Annotated[
        str | None,
        typer.Argument(help="An operation, such as tanh; none lists all.", show_default=False),
    ] = None,
) -> None:
    """Show where each part of an operation stands in the source."""
    if name is None:
        _print_all()
    elif name in OPERATIONS:
        _print_one(OPERATIONS[name])
    else:
        _print_composite(name)
