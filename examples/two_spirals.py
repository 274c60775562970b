"""A small network learns to tell two interleaved spirals apart.

Run it: ``python examples/two_spirals.py``. It prints loss and accuracy as they change, and draws
the plane as the network sees it.
"""

import math

import dilim
from dilim import nn, optim


def spirals(count, generator):
    """Points (2 count, 2) on two spirals with a little noise, and their labels (2 count,)."""
    turn = dilim.sqrt(generator.uniform(count)) * (3 * math.pi)
    arm = dilim.stack([dilim.cos(turn), dilim.sin(turn)], axis=1) * dilim.expand_dims(turn, 1)
    points = dilim.concat([arm, -arm]) / 10.0 + generator.normal((2 * count, 2), std=0.02)
    return points, dilim.concat([dilim.zeros(count), dilim.ones(count)])


def picture(model, size=24):
    """The plane as text: # where the model says 1, . where it says 0."""
    axis = dilim.linspace(-1.0, 1.0, size)
    x, y = dilim.meshgrid(axis, dilim.flip(axis))
    with dilim.no_grad():
        scores = model(dilim.stack([x.flatten(), y.flatten()], axis=1)).reshape(size, size)
    rows = (scores > 0.0).tolist()
    return "\n".join("".join("##" if cell else ".." for cell in row) for row in rows)


def main(steps=600):
    """Train, print progress, and return the final accuracy."""
    generator = dilim.Generator(0)
    points, labels = spirals(200, generator)
    model = nn.MLP(2, [32, 32, 1], activation="tanh", generator=generator)
    optimizer = optim.Adam(model.parameters(), learning_rate=0.01)
    accuracy = 0.0
    for step in range(steps):
        scores = model(points)[:, 0]
        loss = nn.losses.binary_cross_entropy_with_logits(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 100 == 0 or step == steps - 1:
            right = (scores > 0.0) == (labels > 0.5)
            accuracy = right.astype(dilim.float32).mean().item()
            print(f"step {step:5}  loss {loss.item():.4f}  accuracy {accuracy:.1%}")
    print(picture(model))
    return accuracy


if __name__ == "__main__":
    main()
