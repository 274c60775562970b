"""The picture of several runs: how returns rise with steps, and how far seeds differ."""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np

from dilim.rl.runs import Metrics

Curve = tuple[Sequence[float], Sequence[float]]
"""Steps, rising, and what was reached by then."""
_POINTS: Final = 400
_COLORS: Final = ("#1f4e79", "#d1495b", "#4d7c4d", "#b8860b", "#6a4c93", "#444444")


def curve(lines: Sequence[Metrics]) -> Curve:
    """The running average of returns over steps, from the metrics of a run."""
    known = [line for line in lines if line["average"] is not None]
    return [line["steps"] for line in known], [line["average"] for line in known]


def quartiles(curves: Sequence[Curve]) -> tuple[np.ndarray, np.ndarray]:
    """What several curves are together.

    Args:
        curves: each with a point at least. Before its first one a curve has that value, and after
            its last one that: a run that stopped at its goal stays there.

    Returns:
        Steps (P,), from 0 to the longest curve's end; and the lower quartile, the median and the
        upper quartile of the curves there, (3, P).
    """
    steps = np.linspace(0.0, max(xs[-1] for xs, _ in curves), _POINTS)
    values = [np.interp(steps, xs, ys) for xs, ys in curves]
    return steps, np.percentile(values, (25, 50, 75), axis=0)


def comparison_png(groups: Mapping[str, Sequence[Curve]], title: str) -> bytes:
    """Draws the median of each group of runs, and the quartiles around it.

    Args:
        groups: the curves of runs that differ in their seed only, by what to call them. Curves
            without a point are left out.
        title: the line above the picture.

    Returns:
        A PNG of 1280 x 800 pixels.

    Raises:
        ModuleNotFoundError: Matplotlib is missing (``pip install 'dilim[lab]'``).
    """
    # Optional dependency; the Figure class itself, because pyplot opens windows and keeps state.
    from matplotlib.figure import Figure

    figure = Figure(figsize=(8, 5), dpi=160, layout="constrained")
    axes: Any = figure.add_subplot()
    for number, (name, curves) in enumerate(groups.items()):
        known = [pair for pair in curves if pair[0]]
        if not known:
            continue
        color = _COLORS[number % len(_COLORS)]
        steps, (low, middle, high) = quartiles(known)
        label = name if len(known) == 1 else f"{name}, median of {len(known)}"
        axes.plot(steps, middle, color=color, linewidth=2.2, label=label)
        if len(known) > 1:
            axes.fill_between(steps, low, high, color=color, alpha=0.2, linewidth=0)
    axes.set_title(title, loc="left", fontsize=11.5, fontweight="bold")
    axes.set_xlabel("steps")
    axes.set_ylabel("running average of returns")
    axes.set_xlim(left=0)
    axes.grid(visible=True, color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)
    for side in ("top", "right"):
        axes.spines[side].set_visible(False)
    if axes.lines:
        axes.legend(frameon=False, fontsize=9, loc="best")
    else:
        axes.text(0.5, 0.5, "no finished episode yet", ha="center", transform=axes.transAxes)
    picture = io.BytesIO()
    figure.savefig(picture, format="png")
    return picture.getvalue()
