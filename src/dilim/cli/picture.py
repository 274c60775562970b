"""The curve picture of a run."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from dilim.cli.messages import CommandError
from dilim.rl.agents.table import AGENTS
from dilim.rl.comparison import Curve, comparison_png, curve
from dilim.rl.envs.table import ENVIRONMENTS
from dilim.rl.plots import curve_png
from dilim.rl.runs import Metrics, Run, RunConfig, Summary
from dilim.runtime.files import write_atomic


def draw_curve(run: Run) -> Path:
    """Draw the returns of a run into its `curve.png`; returns the path.

    Raises:
        CommandError: Matplotlib is missing.
        FileFormatError: the metrics are damaged.
        OSError: the file cannot be written.
    """
    lines = run.metrics()
    evaluations = [(m["episode"], m["evaluation"]) for m in lines if m["evaluation"] is not None]
    try:
        png = curve_png(
            _by_episode(lines, "return"),
            _by_episode(lines, "average"),
            title=f"{_title(run.config)}: {outcome(run, run.summary())}",
            evaluations=evaluations,
            threshold=run.config.until,
            window=run.config.options.get("window_size", 100),
        )
    except ModuleNotFoundError as error:
        raise CommandError("no picture without Matplotlib: pip install 'dilim[lab]'") from error
    return run.write_picture(png)


def draw_comparison(runs: list[Run], path: Path | None = None) -> Path:
    """Draw several runs into one picture, by default beside their folders; returns the path.

    Raises:
        CommandError: Matplotlib is missing, or the file cannot be written.
        FileFormatError: the metrics of a run are damaged.
    """
    groups: dict[str, list[Curve]] = {}
    for name, group in _groups(runs).items():
        groups[name] = [curve(run.metrics()) for run in group]
    environments = sorted({run.config.environment for run in runs})
    path = runs[0].folder.parent / "curves.png" if path is None else path
    try:
        write_atomic(path, comparison_png(groups, ", ".join(environments)))
    except ModuleNotFoundError as error:
        raise CommandError("no picture without Matplotlib: pip install 'dilim[lab]'") from error
    except OSError as error:
        raise CommandError(f"cannot write {path}: {error.strerror or error}") from error
    return path


def _groups(runs: list[Run]) -> dict[str, list[Run]]:
    """Runs that differ in their seed only are together; by what to call them."""
    found: dict[str, list[Run]] = {}
    for run in runs:
        found.setdefault(repr(replace(run.config, seed=0, episodes=1, until=None)), []).append(run)
    names: dict[str, list[Run]] = {}
    for group in found.values():
        name = f"{group[0].config.agent} on {group[0].config.environment}"
        if any(other.startswith(name) for other in names):  # with other settings
            name += f" ({group[0].name})"
        names[name] = group
    return names


def _by_episode(lines: list[Metrics], name: str) -> list[float]:
    """The numbers of episodes 1, 2, ...; NaN, which leaves a gap, where there is none."""
    numbers = [math.nan] * (lines[-1]["episode"] if lines else 0)
    for line in lines:
        if line[name] is not None:
            numbers[line["episode"] - 1] = line[name]
    return numbers


def _title(config: RunConfig) -> str:
    agent = AGENTS[config.agent].__name__ if config.agent in AGENTS else config.agent
    known = ENVIRONMENTS.get(config.environment)
    environment = config.environment if known is None else known.kind.__name__
    return f"{agent} on {environment}, seed {config.seed}"


def outcome(run: Run, summary: Summary) -> str:
    """In a few words how far a run has come."""
    if not summary.episodes:
        return "no finished episode yet"
    if summary.reached and summary.last is not None:
        return f"evaluation {summary.last[1]:.1f} after {summary.last[0]:,} episodes"
    best = "" if summary.best is None else f", best evaluation {summary.best[1]:.1f}"
    return f"{summary.episodes:,} of {run.config.episodes:,} episodes{best}"
