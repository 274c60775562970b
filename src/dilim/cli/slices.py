"""`dilim slices`: the two programs that a function becomes."""

from __future__ import annotations

import contextlib
import sys
from pathlib import Path
from typing import Annotated

import typer

from dilim.cli.first_call import failure, first_call
from dilim.cli.messages import CommandError, output
from dilim.runtime.files import write_atomic
from dilim.slicing.sliced import Sliced


def slices(
    target: Annotated[
        str,
        typer.Argument(
            metavar="FILE:FUNCTION",
            help="A Python file and one of its functions; a method as Class.method.",
            show_default=False,
        ),
    ],
    arguments: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="ARGUMENT", help="For the script; put -- before them.", show_default=False
        ),
    ] = None,
    explain: Annotated[
        bool,
        typer.Option("--explain", metavar="", help="Also say what is handed over, and why."),
    ] = False,
    svg: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write a picture of both programs.", show_default=False),
    ] = None,
) -> None:
    """Show the graph program and the host program of a function.

    The file runs as a script until it calls the function; that call is carried
    out, and the function is sliced for its arguments. For a function that needs
    no arguments the file is only imported. What is printed goes to stderr.

    Example:  dilim slices examples/linear_classifier.py:train
    """
    name, path = _target(target)
    call = first_call(path, name, arguments or [])
    sliced = Sliced(call.function, compile_after=0)
    try:
        with contextlib.redirect_stdout(sys.stderr):
            sliced(*call.arguments, **call.keywords)
    except Exception as error:
        raise failure(path, error) from error
    shown = sliced.slices(*call.arguments, **call.keywords)
    console = output()
    console.print(str(shown), soft_wrap=True)
    if explain:
        explanation = sliced.explain(*call.arguments, **call.keywords)
        console.print(f"\n\n{explanation}", soft_wrap=True)
    if svg is not None:
        picture = shown._repr_svg_()
        if picture is None:
            raise CommandError(f"there is no picture: {shown}")
        write_atomic(svg, picture.encode())


def _target(target: str) -> tuple[str, Path]:
    """The function and the file."""
    file, colon, name = target.rpartition(":")
    if not colon or not file or not name:
        raise CommandError(
            f"expected FILE:FUNCTION, received {target!r}; for example train.py:train"
        )
    path = Path(file)
    if not path.is_file():
        raise CommandError(f"there is no file {file}")
    return name, path
