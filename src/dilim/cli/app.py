"""The application: its commands, and how mistakes are answered."""

from __future__ import annotations

import sys
import warnings
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from dilim._version import __version__
from dilim.cli import cache, grad, operations, show, slices, train
from dilim.cli.messages import INTERRUPTED, CommandError
from dilim.errors import DilimError

_ParserError: Any = typer.BadParameter.__mro__[2]  # ClickException; not everywhere a public name


class _OneLineErrors(TyperGroup):
    """Prints every mistake as one line on stderr and exits with code 2."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        kwargs["standalone_mode"] = False
        try:
            with warnings.catch_warnings():
                warnings.showwarning = _show_warning
                code = super().main(*args, **kwargs)
        except _ParserError as error:
            code = _report(_parser_message(error))
        except OSError as error:
            place = f": {error.filename}" if error.filename else ""
            code = _report(f"{error.strerror or error}{place}")
        except (CommandError, DilimError) as error:
            code = _report(str(error))
        except MemoryError as error:
            code = _report(f"there is not enough memory: {error}".rstrip(": "))
        except (KeyboardInterrupt, typer.Abort):
            code = INTERRUPTED
        sys.exit(code if isinstance(code, int) else 0)


def _report(message: str) -> int:
    sys.stderr.write(f"dilim: {message}\n")
    return 2


def _show_warning(message: Warning | str, *place: Any, **more: Any) -> None:
    sys.stderr.write(f"dilim: note: {message}\n")


def _parser_message(error: Any) -> str:
    context = getattr(error, "ctx", None)
    text: str = error.format_message().rstrip(".")
    if context is None or type(error).__name__ == "NoArgsIsHelpError":
        return text
    joint = ";" if text[-1] not in "?!" else ""
    return f"{text[0].lower()}{text[1:]}{joint} see: {context.command_path} --help"


application = typer.Typer(
    name="dilim",
    cls=_OneLineErrors,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _print_version(wanted: bool) -> None:
    if wanted:
        sys.stdout.write(f"dilim {__version__}\n")
        raise typer.Exit


@application.callback(invoke_without_command=True)
def _start(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version."
        ),
    ] = False,
) -> None:
    """Programs that learn on your own machine.

    Begin with [bold]dilim train cartpole[/bold].
    """
    if context.invoked_subcommand is None:
        sys.stdout.write(context.get_help() + "\n")


_TRAINING, _LEARNING = "Agents", "Under the hood"

application.command("train", rich_help_panel=_TRAINING)(train.train)
application.command("resume", rich_help_panel=_TRAINING)(train.resume)
application.command("play", rich_help_panel=_TRAINING)(show.play)
application.command("evaluate", rich_help_panel=_TRAINING)(show.evaluate)
application.command("runs", rich_help_panel=_TRAINING)(show.runs)
application.command("plot", rich_help_panel=_TRAINING)(show.plot)
application.command(
    "grad", rich_help_panel=_LEARNING, context_settings={"ignore_unknown_options": True}
)(grad.grad)
application.command("ops", rich_help_panel=_LEARNING)(operations.ops)
application.command("slices", rich_help_panel=_LEARNING)(slices.slices)
application.command("cache", rich_help_panel=_LEARNING)(cache.cache)
