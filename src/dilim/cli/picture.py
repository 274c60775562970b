"""The curve picture of a run."""

from __future__ import annotations

from pathlib import Path

from dilim.cli.messages import CommandError
from dilim.rl.plots import curve_png
from dilim.rl.runs import Run, Summary


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
            [m["return"] for m in lines],
            [m["average"] for m in lines],
            title=f"{run.config.agent} on {run.config.environment}, seed {run.config.seed}: "
            f"{outcome(run, run.summary())}",
            evaluations=evaluations,
            threshold=run.config.until,
        )
    except ModuleNotFoundError as error:
        raise CommandError("no picture without Matplotlib: pip install 'dilim[lab]'") from error
    return run.write_picture(png)


def outcome(run: Run, summary: Summary) -> str:
    """In a few words how far a run has come."""
    if not summary.episodes:
        return "no finished episode yet"
    if summary.reached and summary.last_evaluation is not None:
        return f"reached {summary.last_evaluation:.1f} after {summary.episodes:,} episodes"
    best = "" if summary.best is None else f", best evaluation {summary.best[1]:.1f}"
    return f"{summary.episodes:,} of {run.config.episodes:,} episodes{best}"
