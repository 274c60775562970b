"""The arguments and options of commands, as annotated types."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from dilim.rl.agents.table import AGENTS
from dilim.rl.envs.table import ENVIRONMENTS

_LARGEST_SEED = 2**64 - 1


def _folder(text: str | Path) -> Path:
    if not str(text):
        raise typer.BadParameter("expected a folder, got ''")
    path = Path(text)
    if path.is_file():
        raise typer.BadParameter(f"{text} is a file, not a folder")
    return path


def _option(*names: str, **settings: Any) -> Any:
    """An option whose default is not worth showing."""
    return typer.Option(*names, show_default=False, **settings)


EnvironmentName = Annotated[
    str,
    typer.Argument(
        metavar="ENVIRONMENT",
        help=f"{', '.join(ENVIRONMENTS)}, or a name that Gymnasium knows.",
        show_default=False,
    ),
]
RunName = Annotated[
    str | None,
    typer.Argument(
        metavar="RUN",
        help="Name or folder of a run; without it, the run that changed last.",
        show_default=False,
    ),
]
RunNames = Annotated[
    list[str] | None,
    typer.Argument(
        metavar="RUN...",
        help="Names or folders of runs; without any, the run that changed last.",
        show_default=False,
    ),
]
Picture = Annotated[
    Path | None,
    _option(metavar="FILE", help="Of several runs: where to draw, curves.png beside them."),
]
RunsFolder = Annotated[
    Path,
    typer.Option(
        "--runs-dir", metavar="FOLDER", parser=_folder, help="The folder that holds the runs."
    ),
]

# --- train and resume -----------------------------------------------------------------------

AgentName = Annotated[
    str | None, _option(metavar="NAME", help=f"{', '.join(AGENTS)}. By default the best one known.")
]
TrainingSeed = Annotated[
    int, typer.Option(metavar="N", min=0, max=_LARGEST_SEED, help="Of all random numbers.")
]
Episodes = Annotated[int | None, _option(metavar="N", min=1, help="The most episodes to train.")]
Until = Annotated[
    str | None,
    _option(
        metavar="RETURN",
        help="Stop at the first evaluation with this mean return; 'none' never does.",
    ),
]
EvaluateEvery = Annotated[
    int | None, _option(metavar="N", min=1, help="Episodes between evaluations.")
]
NumEnvs = Annotated[
    int | None,
    _option(metavar="N", min=1, help="Environments that are stepped at once (not: REINFORCE)."),
]
Seeds = Annotated[
    int | None,
    _option(metavar="N", min=1, help="Train N agents, with seeds from --seed on, over all cores."),
]
LearningRate = Annotated[float | None, _option(metavar="X", help="Of the optimiser.")]
Gamma = Annotated[float | None, _option(metavar="X", help="Discount of rewards per step.")]
HiddenSizes = Annotated[str | None, _option(metavar="N,N", help="Sizes of the hidden layers.")]
AgentSettings = Annotated[
    list[str] | None,
    _option(
        metavar="NAME=VALUE",
        help="Any other setting of the agent, such as batch_episodes=4. Can be repeated.",
    ),
]
NewName = Annotated[
    str | None, _option(metavar="NAME", help="Of the run. By default it is numbered.")
]
Teacher = Annotated[
    str | None, _option("--from", metavar="RUN", help="Begin with the networks of this run.")
]
NewLimit = Annotated[
    str | None, _option(metavar="N", help="A new limit, or as +N: so many more than there are.")
]
NewGoal = Annotated[
    str | None, _option(metavar="RETURN", help="A new goal for evaluations, or none.")
]

# --- play and evaluate ----------------------------------------------------------------------

Count = Annotated[int, typer.Option("--episodes", metavar="N", min=1, help="How many.")]
StepsPerSecond = Annotated[
    float | None,
    _option(
        "--fps",
        metavar="X",
        min=0.1,
        max=1000,
        help="Steps per second; by default as the environment asks.",
    ),
]
StartSeed = Annotated[
    int | None,
    _option(
        "--seed",
        metavar="N",
        min=0,
        max=_LARGEST_SEED,
        help="Of the starts; by default that of the run + 1,000,000, the same every time.",
    ),
]
Latest = Annotated[
    bool, typer.Option("--latest", metavar="", help="The latest checkpoint, not the best.")
]
