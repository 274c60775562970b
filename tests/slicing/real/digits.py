"""Pictures of ten classes told apart by a network, in minibatches, as in lessons on MNIST."""

import numpy as np

import dilim
import dilim.nn as nn
import dilim.optim as optim

rng = np.random.default_rng(0)
dilim.seed(0)
prototypes = rng.random((10, 64)) > 0.5


def make_pictures(n):
    labels = rng.integers(0, 10, n)
    pictures = prototypes[labels] + rng.normal(scale=0.6, size=(n, 64))
    return dilim.tensor(pictures.astype(np.float32)), dilim.tensor(labels)


train_images, train_labels = make_pictures(224)
test_images, test_labels = make_pictures(100)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.hidden = nn.Dense(64, 32)
        self.output = nn.Dense(32, 10)

    def forward(self, x):
        x = dilim.relu(self.hidden(x))
        return self.output(x)


net = Net()
optimizer = optim.SGD(net.parameters(), learning_rate=0.05, momentum=0.9)


def accuracy(images, labels):
    with dilim.no_grad():
        guesses = net(images).argmax(axis=1)
        return (guesses == labels).astype(dilim.float32).mean().item()


def train(epochs, batch_size=32):
    history = []
    for epoch in range(epochs):
        order = dilim.tensor(rng.permutation(len(train_labels)))
        running_loss = 0.0
        batches = 0
        for start in range(0, len(order), batch_size):
            rows = order[start : start + batch_size]
            inputs = train_images[rows]
            labels = train_labels[rows]

            optimizer.zero_grad()
            outputs = net(inputs)
            loss = nn.losses.cross_entropy(outputs, labels)
            loss.backward()
            optimizer.step()

            running_loss += loss.item()
            batches += 1
        score = accuracy(test_images, test_labels)
        history.append((running_loss / batches, score))
        print(f"epoch {epoch + 1}: loss {running_loss / batches:.6f}, accuracy {score:.1%}")
    return history


f = train
