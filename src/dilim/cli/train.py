"""`dilim train` and `dilim resume`."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Annotated, Any

import gymnasium
import typer

from dilim.cli.find import DEFAULT_FOLDER, RunName, RunsFolder, command, open_run
from dilim.cli.messages import CommandError, output, unknown_name
from dilim.cli.picture import draw_curve
from dilim.cli.progress import Progress
from dilim.rl.agents.table import AGENTS
from dilim.rl.envs.table import ENVIRONMENTS
from dilim.rl.presets import PRESETS, default_agent, preset
from dilim.rl.runs import Run, RunConfig, Summary, free_name
from dilim.rl.session import Session
from dilim.rl.training import Interrupted

INTERRUPTED = 130  # 128 + SIGINT, as shells count


def train(
    environment: Annotated[
        str,
        typer.Argument(
            metavar="ENVIRONMENT",
            help=f"{', '.join(ENVIRONMENTS)}, or a name that Gymnasium knows.",
            show_default=False,
        ),
    ],
    agent: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Which agent; by default the best known.", show_default=False),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="N", min=0, help="Of everything random.")] = 0,
    episodes: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Stop after so many.", show_default=False),
    ] = None,
    until: Annotated[
        str | None,
        typer.Option(
            metavar="RETURN",
            help="Stop at the first evaluation whose mean return is at least this; or none.",
            show_default=False,
        ),
    ] = None,
    learning_rate: Annotated[
        float | None, typer.Option(metavar="X", help="Of the agent.", show_default=False)
    ] = None,
    gamma: Annotated[
        float | None,
        typer.Option(metavar="X", help="Discount of rewards per step.", show_default=False),
    ] = None,
    hidden_sizes: Annotated[
        str | None,
        typer.Option(metavar="N,N", help="Sizes of the hidden layers.", show_default=False),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME=VALUE",
            help="Any other setting of the agent, such as batch_episodes=4; may be repeated.",
            show_default=False,
        ),
    ] = None,
    evaluate_every: Annotated[
        int | None,
        typer.Option(metavar="N", min=1, help="Episodes between evaluations.", show_default=False),
    ] = None,
    name: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Of the run; by default numbered.", show_default=False),
    ] = None,
    teacher: Annotated[
        str | None,
        typer.Option("--from", metavar="RUN", help="Begin with the agent of this run.", show_default=False),
    ] = None,
    runs_dir: RunsFolder = DEFAULT_FOLDER,
) -> None:
    """Train an agent; Ctrl-C saves it, and it can be resumed.

    Settings that are not given are those that were tuned for this environment.

    Example:  dilim train cartpole --seed 1
    """
    chosen = _chosen_environment(environment)
    agent_name = _chosen_agent(chosen, agent)
    given = {"learning_rate": learning_rate, "gamma": gamma, "hidden_sizes": _sizes(hidden_sizes)}
    options = {key: value for key, value in given.items() if value is not None}
    options.update(_pairs(option or []))
    source = None if teacher is None else open_run(teacher, runs_dir)
    ...
