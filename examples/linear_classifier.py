"""Learn the line that parts clean from polluted places, and judge a new place by it.

The survey has a row for each place: two coordinates, and 1 where it is polluted, else 0. The
classifier says ``sigmoid(w0 + w1 x1 + w2 x2)``, the probability of 1, and its weights climb the
likelihood of the survey. Run it:

    python examples/linear_classifier.py [--eager] [--plot line.png]

``--eager`` runs the same function as ordinary Python: same numbers, same lines, slower.
"""

from __future__ import annotations

import argparse
import math
from enum import IntEnum
from pathlib import Path

import dilim

SURVEY = Path(__file__).parent / "data" / "pollution.tsv"
LEARNING_RATE = 0.0005


class Label(IntEnum):
    """What a place is."""

    GREEN = 0
    RED = 1  # polluted


class Classifier:
    """A line in the plane: the weights (3, 1) of ``w0 + w1 x1 + w2 x2``, above 0 where red."""

    def __init__(self, weights: dilim.Tensor) -> None:
        self.weights = weights

    def predict(self, x1: float, x2: float) -> tuple[Label, float]:
        """The class of a place, and the probability that it is red."""
        score = dilim.tensor([[1.0, x1, x2]]) @ self.weights
        label = Label.RED if score.item() > 0.0 else Label.GREEN
        return label, dilim.sigmoid(score).item()


def parse_row(line: str) -> tuple[float, float, float]:
    """Split a row into x1, x2 and label."""
    try:
        x1, x2, label = map(float, line.split("\t"))
        good = math.isfinite(x1) and math.isfinite(x2) and label in (0.0, 1.0)
    except ValueError:
        good = False
    if not good:
        raise ValueError(f"expected x1, x2 and a label 0 or 1, tabs between them; got {line!r}")
    return x1, x2, label


def read_survey(path: str | Path) -> tuple[dilim.Tensor, dilim.Tensor]:
    """Read a survey: inputs (n, 3), each row 1, x1, x2, and labels (n, 1), both float32.

    Line ends may be LF or CRLF; a byte order mark and blank lines at the end do not matter.

    Raises:
        ValueError: a bad row, named by its line, or no row at all.
    """
    # A byte that is no text becomes a sign that is no number: its row is named like any bad one.
    lines = Path(path).read_text(encoding="utf-8-sig", errors="replace").split("\n")
    while lines and not lines[-1].strip():
        lines.pop()
    if not lines:
        raise ValueError(f"{path}: expected rows of x1, x2 and label, got an empty file")
    inputs, labels = [], []
    for number, line in enumerate(lines, start=1):
        try:
            x1, x2, label = parse_row(line)
        except ValueError as error:
            raise ValueError(f"{path}, line {number}: {error}") from None
        inputs.append([1.0, x1, x2])
        labels.append([label])
    return dilim.tensor(inputs), dilim.tensor(labels)


def log_loss(inputs: dilim.Tensor, labels: dilim.Tensor, weights: dilim.Tensor) -> dilim.Tensor:
    """Mean of ``-label log(h) - (1 - label) log(1 - h)`` with h = sigmoid(score).

    It is ``softplus(score) - label * score``, which stays finite where h rounds to 0 or 1.
    """
    scores = inputs @ weights
    return (dilim.softplus(scores) - labels * scores).mean()


def train(
    inputs: dilim.Tensor, labels: dilim.Tensor, weights: dilim.Tensor, epochs: int
) -> dilim.Tensor:
    """Climb the likelihood for a number of passes over the survey; returns the weights."""
    for epoch in range(epochs):
        errors = labels - dilim.sigmoid(inputs @ weights)
        weights = weights + LEARNING_RATE * (inputs.T @ errors)
        if epoch % 100 == 0:
            loss = log_loss(inputs, labels, weights)
            print(f"epoch: {epoch}, log loss: {loss.item():.6f}")
    return weights


def plot(
    path: str | Path, inputs: dilim.Tensor, labels: dilim.Tensor, weights: dilim.Tensor
) -> None:
    """Save a PNG of the places and the line; without Matplotlib, say what is missing."""
    try:
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        print("no picture without Matplotlib: pip install 'dilim[lab]'")
        return
    _, x1, x2 = inputs.numpy().T
    red = labels.numpy()[:, 0] == 1.0
    w0, w1, w2 = weights.flatten().tolist()
    ends = [float(x1.min()) - 0.2, float(x1.max()) + 0.2]

    figure = Figure(figsize=(7, 5), dpi=150, layout="constrained")
    axes = figure.add_subplot()
    axes.scatter(x1[red], x2[red], s=50, c="red", marker="s", label="1, polluted")
    axes.scatter(x1[~red], x2[~red], s=30, c="green", marker="o", label="0, clean")
    axes.plot(ends, [(-w0 - w1 * x) / w2 for x in ends], color="black", label="probability 1/2")
    axes.set(xlabel="x1", ylabel="x2", xlim=ends, ylim=(x2.min() - 1.0, x2.max() + 1.0))
    axes.legend()
    figure.savefig(path, format="png")
    print(f"picture: {path}")


def main(steps: int = 3_001, *, eager: bool = False, picture: str | Path | None = None) -> float:
    """Train for ``steps`` passes, judge two places, draw; returns the share judged right."""
    inputs, labels = read_survey(SURVEY)
    print(f"{len(labels)} places, {int(labels.sum())} of them polluted")
    learn = train if eager else dilim.compile(train)
    weights = learn(inputs, labels, dilim.Generator(1).normal((3, 1)), steps)

    right = (inputs @ weights > 0.0) == (labels > 0.5)
    accuracy: float = right.astype(dilim.float32).mean().item()
    w0, w1, w2 = weights.flatten().tolist()
    print(f"line: {w0:.3f} {w1:+.4f} x1 {w2:+.4f} x2 = 0, {accuracy:.0%} on the right side")
    classifier = Classifier(weights)
    for x1, x2 in [(0.5, 3.0), (-1.0, 11.0)]:
        label, probability = classifier.predict(x1, x2)
        print(f"({x1}, {x2}) is {label.name.lower()}: probability of red {probability:.3f}")
    if picture is not None:
        plot(picture, inputs, labels, weights)
    return accuracy


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--eager", action="store_true", help="run as ordinary Python")
    parser.add_argument("--plot", metavar="FILE", help="save a picture of places and line (PNG)")
    arguments = parser.parse_args()
    main(eager=arguments.eager, picture=arguments.plot)
