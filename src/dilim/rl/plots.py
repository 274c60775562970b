"""The picture of a training run: returns over episodes."""

from __future__ import annotations

import io
from collections.abc import Sequence
from typing import Any

_RAW = "#9bb8d3"
_AVERAGE = "#1f4e79"
_EVALUATION = "#d1495b"
_THRESHOLD = "#4d7c4d"
_FEW = 50  # episodes below which each has a dot


def curve_png(
    returns: Sequence[float],
    averages: Sequence[float],
    *,
    title: str,
    evaluations: Sequence[tuple[int, float]] = (),
    threshold: float | None = None,
    window: int = 100,
) -> bytes:
    """Draws a learning curve.

    Args:
        returns: the sum of rewards of episode 1, 2, ...
        averages: the running average after episode 1, 2, ...
        title: the line above the picture.
        evaluations: (episode, mean return of the evaluation after it).
        threshold: the mean return at which training stops; None draws no line.
        window: over how many episodes at most `averages` goes, for the legend.

    Returns:
        A PNG of 1280 x 800 pixels.

    Raises:
        ModuleNotFoundError: Matplotlib is missing (``pip install 'dilim[lab]'``).
    """
    # Optional dependency; the Figure class itself, because pyplot opens windows and keeps state.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), dpi=160, layout="constrained")
    axes: Any = figure.add_subplot()
    numbers = range(1, len(returns) + 1)
    marker = "." if len(returns) < _FEW else ""
    axes.plot(numbers, returns, color=_RAW, linewidth=0.8, marker=marker, label="training episode")
    axes.plot(
        numbers, averages, color=_AVERAGE, linewidth=2.2, label=f"average of the last {window}"
    )
    if evaluations:
        episodes, means = zip(*evaluations, strict=True)
        axes.plot(
            episodes,
            means,
            "o",
            color=_EVALUATION,
            markersize=4.5,
            clip_on=False,
            zorder=3,
            label="evaluation (mean, greedy)",
        )
    if threshold is not None:
        axes.axhline(
            threshold, color=_THRESHOLD, linestyle="--", linewidth=1.2, label=f"goal {threshold:g}"
        )
    _finish(axes, title, len(returns))
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()


def _finish(axes: Any, title: str, count: int) -> None:
    axes.set_title(title, loc="left", fontsize=11.5, fontweight="bold", pad=26)
    axes.set_xlabel("episode (number)")
    axes.set_ylabel("return (sum of rewards of an episode)")
    axes.set_xlim(0 if count >= _FEW else 0.5, max(count, 2) + 0.5)
    axes.xaxis.get_major_locator().set_params(integer=True)
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if not count:
        axes.set_ylim(bottom=0)
        axes.text(0.5, 0.5, "no finished episode yet", ha="center", transform=axes.transAxes)
    axes.legend(
        frameon=False,
        fontsize=9,
        ncols=4,
        loc="lower left",
        bbox_to_anchor=(0, 1),
        borderaxespad=0.2,
        borderpad=0,
        columnspacing=1.4,
        handlelength=1.6,
    )
