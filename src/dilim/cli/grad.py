"""`dilim grad`: an expression, its value, its gradients, and how they came about."""

from __future__ import annotations

from typing import Annotated

import typer
from rich.console import Console

from dilim.cli.messages import CommandError, output, table_text
from dilim.scalar import Value, build_expression
from dilim.scalar.naming import formula, node_names, number_text


def grad(
    expression: Annotated[
        str,
        typer.Argument(
            metavar="EXPRESSION",
            help="Parts divided by ';': any number of 'name = ...', then the result.",
            show_default=False,
        ),
    ],
    values: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="NAME=NUMBER", help="The number for each name, as x=2.", show_default=False
        ),
    ] = None,
    steps: Annotated[
        bool, typer.Option(metavar="", help="Show every step of the backward pass.")
    ] = True,
) -> None:
    """Differentiate an expression, and show each step.

    Known are + - * / **, relu tanh sigmoid exp log sin cos sqrt abs, and parentheses.

    Example:  dilim grad "s = x * y; s * s" x=2 y=3
    """
    numbers = _numbers(expression, [] if values is None else values)
    result, leaves = build_expression(expression, numbers)
    if result.inputs and not result.label:
        result.label = "result"
    rows = _backward(result)
    console = output()
    console.print(f"value = {number_text(result.data)}", style="bold")
    for name, leaf in leaves.items():
        console.print(f"d value / d {name} = {number_text(leaf.grad)}")
    if steps:
        _print_steps(console, rows)


def _numbers(expression: str, pairs: list[str]) -> dict[str, float]:
    # The parser lets unknown options through, because an expression may begin with a minus.
    for text in (expression, *pairs):
        if text.startswith("--"):
            raise CommandError(f"no such option: {text}; see: dilim grad --help")
    numbers: dict[str, float] = {}
    for pair in pairs:
        name, sign, text = (part.strip() for part in pair.partition("="))
        if not sign or not name.isidentifier():
            raise CommandError(f"expected a name and its number, such as x=2, got {pair!r}")
        if name in numbers:
            raise CommandError(f"{name!r} is given twice")
        try:
            numbers[name] = float(text)
        except ValueError:
            raise CommandError(
                f"{name!r} must be a number, such as {name}=2, got {text!r}"
            ) from None
    return numbers


def _backward(result: Value) -> list[tuple[str, ...]]:
    """Run the backward pass; one row of text per application of the chain rule."""
    names = node_names(result.graph())
    rows: list[tuple[str, ...]] = []
    for number, step in enumerate(result.backward_steps(), 1):
        made = f"{names[step.node]} = {formula(step.node, names)}"
        incoming, local = number_text(step.incoming_gradient), number_text(step.local_derivative)
        product = f"{incoming} * {local} = {number_text(step.added)}"
        rows.append((str(number), made, product, names[step.input], number_text(step.total)))
    return rows


def _print_steps(console: Console, rows: list[tuple[str, ...]]) -> None:
    if not rows:
        return
    headings = ("step", "value", "gradient * local derivative", "added to", "now")
    console.print("\nThe backward pass, from the result to the names:")
    console.print(table_text(headings, rows, console.width), soft_wrap=True)
