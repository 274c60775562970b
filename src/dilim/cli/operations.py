"""`dilim ops`: where each part of an operation stands."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from typing import Annotated, Any

import numpy as np
import typer

import dilim
from dilim import dtypes
from dilim.cli.messages import CommandError, output, table_text, unknown_name
from dilim.cli.places import code_place, object_place
from dilim.dtypes import DType, from_numpy
from dilim.ir.types import Type
from dilim.ops.opdef import OpDef, Sample
from dilim.ops.table import OPERATIONS

_WIDTH_FOR_SENTENCES = 100  # characters a line below which the list has no sentences


def ops(
    name: Annotated[
        str | None,
        typer.Argument(
            metavar="NAME", help="An operation, such as tanh; none lists all.", show_default=False
        ),
    ] = None,
) -> None:
    """Show where each part of an operation stands in the source.

    Example:  dilim ops tanh
    """
    if name is None:
        _print_all()
    elif name in OPERATIONS:
        _print_parts(name, OPERATIONS[name].doc, _parts(OPERATIONS[name]))
    elif place := _public_place(name):
        _print_parts(name, "Composed of other operations.", [("function", f"dilim.{name}", place)])
    else:
        raise CommandError(unknown_name("operation", name, OPERATIONS))


def _print_all() -> None:
    console = output()
    headings = ["name", "loop form", "derivative", "defined in", "what it computes"]
    rows = [
        [
            op.name,
            _loop_form(op) or "-",
            "yes" if op.derivative else "-",
            object_place(op, "dilim.ops.") or "-",
            _first_sentence(op.doc),
        ]
        for op in OPERATIONS.values()
    ]
    if console.width < _WIDTH_FOR_SENTENCES:
        headings, rows = headings[:-1], [row[:-1] for row in rows]
    console.print(table_text(headings, rows, console.width), soft_wrap=True)
    console.print(f"\n{len(rows)} operations. Where the parts of one stand: dilim ops tanh")


def _first_sentence(text: str) -> str:
    return re.split(r"(?<![.\s])\. |; ", text)[0].rstrip(".")


def _print_parts(name: str, doc: str, parts: list[tuple[str, str, str]]) -> None:
    rows = [(part, place, text) for part, text, place in parts]
    console = output()
    console.print(name, style="bold")
    console.print(f"{doc}\n")
    console.print(table_text(("part", "stands in", "is"), rows, console.width), soft_wrap=True)


def _parts(op: OpDef) -> list[tuple[str, str, str]]:
    """(part, what it is, where it stands) for every part of an operation."""
    parts = []
    if place := _public_place(op.name):
        parts.append(("function", f"dilim.{op.name}", place))
    parts.append(("definition", "OpDef", object_place(op, "dilim.ops.") or "-"))
    parts.append(("shape rule", *_described(op.infer)))
    parts.append(("reference", *_described(op.reference)))
    if op.kernel is not None:
        parts.append(("eager kernel", *_described(op.kernel)))
    parts += [("derivative", text, place) for text, place in _derivatives(op)]
    if op.recipe is None:
        parts.append(("recipe", "none: no loop form fits", "-"))
    else:
        parts.append(("recipe", f"loop form {_loop_form(op)}", _recipe_place(op) or "-"))
    parts.append(("samples", _dtype_names(op.sample_dtypes), code_place(op.samples) or "-"))
    served = ", ".join(op.backends)
    parts.append(("back ends", "all, by the recipe" if op.recipe is not None else served, "-"))
    return parts


def _dtype_names(group: tuple[DType, ...]) -> str:
    for words, whole in (("all dtypes", dtypes.ALL), ("all numeric dtypes", dtypes.NUMERIC)):
        if set(group) == set(whole):
            return f"of {words}"
    return f"of {', '.join(dtype.name for dtype in group)}"


def _described(function: Any) -> tuple[str, str]:
    """(first line of the docstring or name, place)."""
    place = code_place(function)
    if place is None:
        name = getattr(function, "__name__", repr(function))
        return f"numpy.{name}", "NumPy"
    return (inspect.getdoc(function) or _plain_name(function)).partition("\n")[0], place


def _plain_name(function: Any) -> str:
    """``same_type`` for ``same_type.<locals>.infer``; nothing for a lambda at module level."""
    name: str = function.__qualname__.partition(".<locals>")[0]
    return "" if name == "<lambda>" else name


def _derivatives(op: OpDef) -> Iterator[tuple[str, str]]:
    if not op.derivative:
        yield "none", "-"
        return
    names = [
        parameter.name
        for parameter in inspect.signature(op.infer).parameters.values()
        if parameter.kind is parameter.POSITIONAL_OR_KEYWORD
    ]
    for number, rule in enumerate(op.derivative):
        name = names[number] if number < len(names) else f"input {number}"
        target = "each input" if op.variadic else name
        if rule is None:
            yield f"to {target}: none", "-"
        else:
            yield f"to {target}", code_place(rule) or "-"


def _recipe_place(op: OpDef) -> str | None:
    """Where the body of an elementwise recipe stands, or else the recipe itself."""
    variables = inspect.getclosurevars(op.recipe).nonlocals if op.recipe is not None else {}
    return code_place(variables.get("body", op.recipe))


def _loop_form(op: OpDef) -> str | None:
    """``Map``, ``Reduce``, ...: what the recipe makes of the operation's first sample."""
    if op.recipe is None:
        return None
    dtype = op.sample_dtypes[0]
    sample = next(op.samples(np.random.default_rng(0), dtype))
    return type(op.recipe(*_types(sample, dtype), **sample.params)).__name__


def _types(sample: Sample, dtype: DType) -> list[Type]:
    """A Python number has the dtype of the last array beside it."""
    arrays = [x for x in sample.inputs if isinstance(x, np.ndarray)]
    number_dtype = from_numpy(arrays[-1].dtype) if arrays else dtype
    return [
        Type(x.shape, from_numpy(x.dtype)) if isinstance(x, np.ndarray) else Type((), number_dtype)
        for x in sample.inputs
    ]


def _public_place(name: str) -> str | None:
    function = getattr(dilim, name, None)
    return object_place(function, "dilim.tensors.") if callable(function) else None
