"""`dilim train --seeds`: runs that differ in their seed only, side by side."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import typer
from rich.console import Console
from rich.table import Table

from dilim.cli.messages import INTERRUPTED, CommandError, output
from dilim.cli.picture import draw_comparison
from dilim.rl.processes import spread
from dilim.rl.runs import Run, RunConfig, Summary
from dilim.rl.session import Session


class _Trainer:
    """Trains one run after the other in a process."""

    def train(self, folder: str) -> Summary:
        """How far the run has come then."""
        run = Run.open(folder)
        with run.lock:
            return Session(run).train()


def train_all(base: Path, config: RunConfig, count: int) -> None:
    """Train runs in folders beside each other, ``<base>-seed<K>``, over all cores.

    Args:
        base: how the folders begin.
        config: of all runs; its seed is that of the first one.
        count: how many.

    Raises:
        CommandError: there is a folder of that name.
        Exit: Ctrl-C; the last checkpoint of each run stays.
    """
    console = output()
    seeds = range(config.seed, config.seed + count)
    folders = {seed: base.with_name(f"{base.name}-seed{seed}") for seed in seeds}
    for folder in folders.values():
        if folder.exists():
            raise CommandError(f"{folder} exists; choose another --name")
    for seed, folder in folders.items():
        Run.create(folder, replace(config, seed=seed))
    names = {str(folder): seed for seed, folder in folders.items()}
    console.print(
        f"Training {count} agents, {config.agent} on {config.environment}, seeds {seeds[0]} to "
        f"{seeds[-1]}. The runs are {base}-seed*. Ctrl-C stops.",
        soft_wrap=True,
    )
    found: dict[int, Summary] = {}
    try:
        for name, summary in spread(_Trainer, "train", names):
            seed = names[name]
            found[seed] = summary
            console.print(
                f"{len(found)} of {count}: seed {seed}, {_reached(summary)}", soft_wrap=True
            )
    except KeyboardInterrupt:
        for folder in folders.values():
            Run.open(folder).remove_if_empty()
        console.print(
            f"Stopped. {len(found)} of {count} are trained; each other one that is left goes on "
            f"from its last checkpoint with: dilim resume {base}-seed...",
            soft_wrap=True,
        )
        raise typer.Exit(INTERRUPTED) from None
    _show(console, {seed: found[seed] for seed in seeds})
    runs = [Run.open(folder) for folder in folders.values()]
    path = draw_comparison(runs, base.with_name(f"{base.name}.png"))
    console.print(f"The curves are {path}", soft_wrap=True)


def _reached(summary: Summary) -> str:
    last = "no evaluation" if summary.last is None else f"evaluation {summary.last[1]:.2f}"
    return f"{last} after {summary.episodes:,} episodes, {summary.steps:,} steps"


def _show(console: Console, found: dict[int, Summary]) -> None:
    """A table of the runs, and what they are together."""
    table = Table("seed", "episodes", "steps", "seconds", "last evaluation", "best")
    for column in table.columns:
        column.justify = "right"
    for seed, summary in found.items():
        scores = (
            "-" if pair is None else f"{pair[1]:.2f}" for pair in (summary.last, summary.best)
        )
        numbers = (f"{summary.episodes:,}", f"{summary.steps:,}", f"{summary.seconds:.1f}")
        table.add_row(str(seed), *numbers, *scores)
    console.print(table)
    last = [summary.last[1] for summary in found.values() if summary.last is not None]
    if last:
        low, middle, high = np.percentile(last, (25, 50, 75))
        console.print(
            f"Last evaluations: median {middle:.2f}, half of them from {low:.2f} to {high:.2f}, "
            f"all from {min(last):.2f} to {max(last):.2f}.",
            soft_wrap=True,
        )
