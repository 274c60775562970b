"""Teach a small network of single numbers to tell two interleaved half circles apart.

Every weight, every sum and every product is a `Value` that you can look at. Run it with

    python examples/scalar_moons.py
"""

from __future__ import annotations

import argparse
import math
import random

from dilim.scalar import MLP, SGD, loss


def two_moons(count: int, noise: float, seed: int) -> tuple[list[list[float]], list[int]]:
    """Return `count` points (x, y) on two half circles, and their classes -1 and 1."""
    generator = random.Random(seed)
    points, classes = [], []
    for index in range(count):
        angle = math.pi * generator.random()
        upper = index % 2 == 0
        x, y = math.cos(angle), math.sin(angle)
        point = [x, y] if upper else [1.0 - x, 0.5 - y]
        points.append([coordinate + generator.gauss(0.0, noise) for coordinate in point])
        classes.append(-1 if upper else 1)
    return points, classes


def picture(model: MLP, columns: int = 56, rows: int = 18) -> str:
    """Draw the plane as text: `#` where the model says class 1, `.` where it says -1."""
    lines = []
    for row in range(rows):
        y = 1.5 - 2.5 * row / (rows - 1)
        xs = [-1.5 + 4.0 * column / (columns - 1) for column in range(columns)]
        lines.append("".join("#" if model([x, y]) > 0.0 else "." for x in xs))
    return "\n".join(lines)


def main(steps: int = 100) -> float:
    """Train for `steps` passes over 100 points; return the share that ends up classified right."""
    points, classes = two_moons(100, noise=0.1, seed=0)
    model = MLP(2, [16, 16, 1], seed=1)
    optimizer = SGD(model.parameters(), learning_rate=1.0)
    print(model)
    accuracy = 0.0
    for step in range(steps):
        scores = [model(point) for point in points]
        # The second term keeps the weights small.
        penalty = sum(weight * weight for weight in model.parameters())
        total = loss.hinge(scores, classes) + 1e-4 * penalty
        optimizer.zero_grad()
        total.backward()
        optimizer.learning_rate = 1.0 - 0.9 * step / steps
        optimizer.step()

        right = sum(
            (score > 0.0) == (kind > 0) for score, kind in zip(scores, classes, strict=True)
        )
        accuracy = right / len(points)
        if step % 10 == 0 or step == steps - 1:
            print(f"step {step + 1:3d}  loss {total.data:.4f}  accuracy {accuracy:.0%}")
    print(picture(model))
    print(f"{accuracy:.0%} of the points are on the right side.")
    return accuracy


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=100, help="passes over the data (100)")
    main(steps=parser.parse_args().steps)
