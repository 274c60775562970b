"""Training as lessons and research code write it; see `small_programs`."""

from slicing.small_programs import Small

_HEAD = """
from collections import deque

dilim.seed(0)
random.seed(0)
RNG = np.random.default_rng(0)


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.a = nn.Dense(2, 8)
        self.b = nn.Dense(8, 1)

    def forward(self, x):
        return self.b(dilim.tanh(self.a(x)))


net = Net()
opt = optim.SGD(net.parameters(), learning_rate=0.05)
adam = optim.Adam(net.parameters(), learning_rate=0.01)
x = dilim.tensor(RNG.normal(size=(20, 2)).astype(np.float32))
y = dilim.tensor(RNG.normal(size=(20, 1)).astype(np.float32))
"""

PROGRAMS = {
    "early stopping, and the best parameters": Small(
        _HEAD
        + """
def f(x, y, epochs, patience):
    best_loss = float("inf")
    best = None
    bad = 0
    for e in range(epochs):
        opt.zero_grad()
        loss = nn.losses.mse(net(x), y)
        loss.backward()
        opt.step()
        with dilim.no_grad():
            val = nn.losses.mse(net(x[:5]), y[:5]).item()
        if val < best_loss:
            best_loss = val
            best = [p.clone() for p in net.parameters()]
            bad = 0
        else:
            bad += 1
            if bad >= patience:
                print("early", e)
                break
    return best_loss, best
""",
        ("[x, y, 8, 2]",) * 4,
        None,
        None,
    ),
    "the best parameters put back": Small(
        _HEAD
        + """
def f(x, y, epochs):
    best_loss = float("inf")
    best = [p.detach().clone() for p in net.parameters()]
    for e in range(epochs):
        opt.zero_grad()
        loss = nn.losses.mse(net(x), y)
        loss.backward()
        opt.step()
        if loss.item() < best_loss:
            best_loss = loss.item()
            best = [p.detach().clone() for p in net.parameters()]
    with dilim.no_grad():
        for p, b in zip(net.parameters(), best):
            p[...] = b
    return best_loss
""",
        ("[x, y, 8]",) * 4,
        None,
        None,
    ),
    "training and evaluation, with prints at some epochs": Small(
        _HEAD
        + """
def f(x, y, epochs):
    history = []
    for e in range(epochs):
        net.train()
        adam.zero_grad()
        loss = nn.losses.mse(net(x), y)
        loss.backward()
        adam.step()
        history.append(loss.item())
        if e % 10 == 0:
            net.eval()
            with dilim.no_grad():
                acc = (net(x) - y).abs().mean().item()
            print(f"epoch {e}: {loss.item():.4f} {acc:.4f}")
    return history
""",
        ("[x, y, 25]",) * 4,
        None,
        None,
    ),
    "a learning rate that falls": Small(
        _HEAD
        + """
def f(x, y, epochs, lr):
    for e in range(epochs):
        opt.learning_rate = lr * 0.9**e
        opt.zero_grad()
        loss = nn.losses.mse(net(x), y)
        loss.backward()
        opt.step()
    return loss.item()
""",
        ("[x, y, 5, 0.1]",) * 4,
        None,
        None,
    ),
    "a learning rate on a cosine": Small(
        _HEAD
        + """
def f(x, y, epochs, lr):
    for e in range(epochs):
        adam.learning_rate = lr * 0.5 * (1 + math.cos(math.pi * e / epochs))
        adam.zero_grad()
        loss = nn.losses.mse(net(x), y)
        loss.backward()
        adam.step()
        if e % 4 == 0:
            print(e, loss.item())
    return loss.item()
""",
        ("[x, y, 9, 0.1]",) * 4,
        None,
        None,
    ),
    "a learning rate that is halved": Small(
        _HEAD
        + """
def f(x, y, epochs):
    lr = 0.1
    for e in range(epochs):
        if e % 3 == 2:
            lr = lr * 0.5
            opt.learning_rate = lr
        opt.zero_grad()
        loss = nn.losses.mse(net(x), y)
        loss.backward()
        opt.step()
    opt.learning_rate = 0.05
    return loss.item()
""",
        ("[x, y, 9]",) * 4,
        None,
        None,
    ),
    "gradients scaled by the host's number": Small(
        _HEAD
        + """
def f(x, y, epochs):
    for e in range(epochs):
        opt.zero_grad()
        loss = nn.losses.mse(net(x), y)
        loss.backward()
        norm = math.sqrt(sum((p.grad * p.grad).sum().item() for p in net.parameters()))
        if norm > 1.0:
            for p in net.parameters():
                p.grad = p.grad * (1.0 / norm)
        opt.step()
    return loss.item(), norm
""",
        ("[x, y, 9]",) * 4,
        None,
        None,
    ),
    "gradients scaled by a tensor": Small(
        _HEAD
        + """
def f(x, y, epochs):
    for e in range(epochs):
        opt.zero_grad()
        loss = nn.losses.mse(net(x), y)
        loss.backward()
        total = dilim.sqrt(sum((p.grad**2).sum() for p in net.parameters()))
        scale = dilim.minimum(1.0 / (total + 1e-6), dilim.tensor(1.0))
        for p in net.parameters():
            p.grad = p.grad * scale
        opt.step()
    return loss.item(), total
""",
        ("[x, y, 9]",) * 4,
        None,
        None,
    ),
    "deep Q-learning with a memory of the host": Small(
        _HEAD
        + """
class Env:
    def __init__(self):
        self.s = 0.0
        self.t = 0

    def reset(self):
        self.s = random.uniform(-1, 1)
        self.t = 0
        return np.array([self.s, 0.0], np.float32)

    def step(self, a):
        self.s += 0.1 if a else -0.1
        self.t += 1
        return np.array([self.s, self.t / 10], np.float32), -abs(self.s), self.t >= 10


env = Env()
memory = deque(maxlen=50)
q = nn.MLP(2, [8, 2])
qopt = optim.Adam(q.parameters(), learning_rate=0.01)


def f(episodes, eps):
    returns = []
    for ep in range(episodes):
        s = env.reset()
        done = False
        total = 0.0
        while not done:
            if random.random() < eps:
                a = random.randint(0, 1)
            else:
                a = int(q(dilim.tensor(s)).argmax())
            s2, r, done = env.step(a)
            memory.append((s, a, r, s2, done))
            s = s2
            total += r
            if len(memory) >= 16:
                batch = random.sample(memory, 8)
                S = dilim.tensor(np.array([b[0] for b in batch]))
                A = dilim.tensor(np.array([b[1] for b in batch]))
                R = dilim.tensor(np.array([b[2] for b in batch], np.float32))
                S2 = dilim.tensor(np.array([b[3] for b in batch]))
                D = dilim.tensor(np.array([b[4] for b in batch], np.float32))
                with dilim.no_grad():
                    target = R + 0.9 * q(S2).max(axis=1) * (1 - D)
                qs = dilim.take_along_axis(q(S), A[:, None], axis=1).squeeze(axis=1)
                loss = ((qs - target) ** 2).mean()
                qopt.zero_grad()
                loss.backward()
                qopt.step()
        returns.append(total)
        if ep % 2 == 0:
            print(ep, total)
    return returns
""",
        ("[3, 0.3]",) * 4,
        None,
        None,
    ),
    "a list of samples, shuffled": Small(
        _HEAD
        + """
data = [(x[i], y[i]) for i in range(6)]


def f(epochs):
    for e in range(epochs):
        total = 0.0
        random.shuffle(data)
        for xi, yi in data:
            opt.zero_grad()
            loss = ((net(xi) - yi) ** 2).sum()
            loss.backward()
            opt.step()
            total += loss.item()
        print(e, total / len(data))
    return total
""",
        ("[2]",) * 4,
        None,
        None,
    ),
    "functions that train and evaluate": Small(
        _HEAD
        + """
def evaluate(model, x, y):
    model.eval()
    with dilim.no_grad():
        out = model(x)
        l = nn.losses.mse(out, y)
    model.train()
    return l.item()


def step(model, opt, xb, yb):
    opt.zero_grad()
    l = nn.losses.mse(model(xb), yb)
    l.backward()
    opt.step()
    return l.item()


def f(x, y, epochs):
    hist = {"train": [], "val": []}
    for e in range(epochs):
        t = 0.0
        k = 0
        for i in range(0, 15, 4):
            t += step(net, adam, x[i : i + 4], y[i : i + 4])
            k += 1
        hist["train"].append(t / k)
        hist["val"].append(evaluate(net, x[15:], y[15:]))
        if e % 2 == 0:
            print(e, hist["train"][-1], hist["val"][-1])
    return hist
""",
        ("[x, y, 4]",) * 4,
        None,
        None,
    ),
    "momentum by hand": Small(
        _HEAD
        + """
W1 = dilim.tensor(RNG.normal(size=(2, 4)).astype(np.float32), requires_grad=True)
W2 = dilim.tensor(RNG.normal(size=(4, 1)).astype(np.float32), requires_grad=True)


def model(x):
    return dilim.relu(x @ W1) @ W2


def f(x, y, n):
    params = [W1, W2]
    m = [dilim.zeros(p.shape) for p in params]
    for i in range(n):
        loss = ((model(x) - y) ** 2).mean()
        for p in params:
            p.grad = None
        loss.backward()
        with dilim.no_grad():
            for k, p in enumerate(params):
                m[k] = 0.9 * m[k] + p.grad
                p -= 0.01 * m[k]
        if (i + 1) % 5 == 0:
            print(i + 1, round(loss.item(), 4))
    return loss.item()
""",
        ("[x, y, 11]",) * 4,
        None,
        None,
    ),
    "batches of which the last is smaller": Small(
        _HEAD
        + """
def f(x, y, bs, epochs):
    n = x.shape[0]
    losses = []
    for e in range(epochs):
        for i in range(0, n, bs):
            xb = x[i : i + bs]
            yb = y[i : i + bs]
            opt.zero_grad()
            loss = nn.losses.mse(net(xb), yb)
            loss.backward()
            opt.step()
            losses.append(loss.item())
    return losses
""",
        ("[x, y, 6, 2]",) * 4,
        None,
        None,
    ),
}
