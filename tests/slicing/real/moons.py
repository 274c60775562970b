# ruff: noqa: NPY002
"""Two moons told apart by a small network, after the demo of micrograd."""

import numpy as np

import dilim
from dilim import nn

np.random.seed(1337)
dilim.seed(1337)


def make_moons(n, noise):
    half = n // 2
    upper = np.linspace(0, np.pi, half)
    lower = np.linspace(0, np.pi, n - half)
    points = np.concatenate(
        [
            np.stack([np.cos(upper), np.sin(upper)], axis=1),
            np.stack([1 - np.cos(lower), 0.5 - np.sin(lower)], axis=1),
        ]
    )
    points += np.random.normal(scale=noise, size=points.shape)
    return points, np.repeat([-1.0, 1.0], [half, n - half])


points, signs = make_moons(n=60, noise=0.1)
X = dilim.tensor(points.astype(np.float32))
y = dilim.tensor(signs.astype(np.float32))
model = nn.MLP(2, [16, 16, 1])


def loss(batch_size=None):
    if batch_size is None:
        Xb, yb = X, y
    else:
        chosen = np.random.permutation(X.shape[0])[:batch_size]
        Xb, yb = X[dilim.tensor(chosen)], y[dilim.tensor(chosen)]

    scores = model(Xb).squeeze(axis=1)

    # a hinge: how far each score is from one on its own side
    losses = dilim.relu(1 - yb * scores)
    data_loss = losses.mean()
    alpha = 1e-4
    reg_loss = alpha * sum((p * p).sum() for p in model.parameters())
    total_loss = data_loss + reg_loss

    accuracy = ((yb > 0) == (scores > 0)).astype(dilim.float32).mean()
    return total_loss, accuracy


def train(steps, batch_size=None):
    for k in range(steps):
        total_loss, acc = loss(batch_size)

        model.zero_grad()
        total_loss.backward()

        learning_rate = 1.0 - 0.9 * k / 100
        with dilim.no_grad():
            for p in model.parameters():
                p -= learning_rate * p.grad

        print(f"step {k} loss {total_loss.item()}, accuracy {acc.item() * 100}%")


f = train
