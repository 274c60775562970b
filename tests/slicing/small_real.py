"""Small programs with forms that training code uses; see `small_programs`."""

from slicing.small_programs import VECTOR, Small

HANDED = {
    "an action that the host is told twice": Small(
        """
LOG = []
REWARDS = {0: 0.5, 1: 0.25}

def f(x):
    action = int(x.argmax())
    reward = REWARDS.get(action)
    LOG.append((action, reward))
    return x * 2
""",
        VECTOR,
        1,
    ),
    "a number that changes between two looks at it": Small(
        """
def f(x, n):
    k = int(x.argmax())
    for i in range(n):
        print(k)
        if i % 2 == 0:
            k = k + 1
        print(k)
    return k
""",
        ("[dilim.ones(3), 4]",) * 3,
        8,
    ),
    "a text that is made in two parts": Small(
        """
def f(x, n):
    for i in range(n):
        x = x * 0.5
        print(f"turn {i}: {x.sum().item():.3f}, {x.max().item()!r}")
    return x
""",
        ("[dilim.ones(3), 4]", "[dilim.ones(3), 12]"),
        12,
    ),
    "a text that cannot be made": Small(
        """
W = dilim.ones(3)

def f(x, n):
    for i in range(n):
        text = f"{i:{'y' if i > 2 else 'd'}} {x.sum().item()}"
        W.add_(x)
        print(text)
    return x
""",
        ("[dilim.ones(3), 2]", "[dilim.ones(3), 4]", "[dilim.ones(3), 12]"),
        None,
        raises=(2, 3),
    ),
}

RECEIVED = {
    "arrays of the host": Small(
        """
RNG = np.random.default_rng(3)
X = dilim.tensor([[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]])

def f(x):
    rows = RNG.integers(0, 3, 2)
    a, b = X[dilim.tensor(rows)], dilim.tensor(rows)
    b += 1
    noise = dilim.tensor(RNG.normal(size=2).astype(np.float32))
    return a, b, noise * x, dilim.tensor(rows)
""",
        VECTOR,
        None,
        3,
    ),
    "an array that the host changes": Small(
        """
def f(x, n):
    row = np.zeros(2, np.float32)
    for i in range(n):
        x = x + dilim.tensor(row)
        row[i % 2] += 1
        x = x * dilim.tensor(row)
    return x
""",
        ("[dilim.ones(2), 3]", "[dilim.ones(2), 9]", "[dilim.ones(2), 9]"),
        None,
        18,
    ),
    "an array of another type": Small(
        """
def f(x, k):
    row = np.ones(2 if k < 3 else 1, np.float32)
    return x * dilim.tensor(row), dilim.tensor(row)
""",
        ("[dilim.ones(2), 1]", "[dilim.ones(2), 2]", "[dilim.ones(2), 3]", "[dilim.ones(2), 2]"),
        None,
        None,
        may_leave=True,
    ),
    "a tensor of the host is looked at twice": Small(
        """
DATA = {"a": [dilim.tensor([1.0, 2.0]), dilim.tensor([3.0, 4.0])]}
PLACES = iter([0, 1] * 20)

def f(x):
    t = DATA["a"][next(PLACES)]
    y = x * t + t.shape[0]
    z = dilim.exp(dilim.asarray(t))
    same = dilim.asarray(t) is t
    t += 1
    return y, z, t, same
""",
        VECTOR,
        None,
        None,
    ),
}

BLIND = {
    "a draw that fails after a step": Small(
        """
RNG = np.random.default_rng(0)
W = dilim.tensor([1.0, 2.0], requires_grad=True)

class Box:
    n = 0

BOX = Box()
BOX.n = 1

def f(x, n, k):
    for i in range(n):
        W.grad = None
        loss = (W * x).sum()
        loss.backward()
        BOX.n += 1
        with dilim.no_grad():
            W.add_(-0.1 * W.grad)
        y = RNG.integers(0, k - i)
        print(i)
    return int(y)
""",
        tuple(f"[dilim.ones(2), {n}, {k}]" for n, k in ((2, 5), (3, 5), (5, 3), (4, 9), (4, 9))),
        5,
        0,
        raises=(3,),
    ),
    "a print that fails after a step": Small(
        """
W = dilim.tensor([1.0, 2.0], requires_grad=True)

def f(x, end):
    W.grad = None
    (W * x).sum().backward()
    print("done", end=end)
    W.grad = None
    return x
""",
        ("[dilim.ones(2), ' ']", "[dilim.ones(2), 3]", "[dilim.ones(2), ' ']"),
        0,
        0,
        raises=(2,),
    ),
    "an operation that fails after a step": Small(
        """
W = dilim.tensor([1.0, 2.0], requires_grad=True)
X = dilim.tensor([[1.0, 2.0], [3.0, 4.0]])

def f(n, rows):
    for i in range(n):
        a = (W * X[rows]).sum()
        W.grad = None
        a.backward()
        rows = rows + 1
    return a.item()
""",
        tuple(f"[{n}, dilim.tensor([0, -2])]" for n in (1, 2, 3, 2)),
        0,
        0,
        raises=(3,),
    ),
    "an operation that fails before a step": Small(
        """
W = dilim.tensor([1.0, 2.0], requires_grad=True)
X = dilim.tensor([[1.0, 2.0], [3.0, 4.0]])

def f(n, rows):
    for i in range(n):
        a = (W * X[rows]).sum()
        W.grad = None
        a.backward()
        rows = rows + 1
""",
        tuple(f"[{n}, dilim.tensor([{k}, -2])]" for n, k in ((1, 0), (2, 0), (3, 2), (0, 2))),
        0,
        0,
        raises=(3,),
    ),
    "losses in a list": Small(
        """
W = dilim.tensor([1.0, 2.0], requires_grad=True)

def f(x, n):
    losses = []
    for i in range(n):
        W.grad = None
        loss = (W * x).sum()
        loss.backward()
        losses.append((i, loss.item()))
    print(losses)
    return losses
""",
        ("[dilim.ones(2), 2]", "[dilim.ones(2), 4]", "[dilim.ones(2), 4]"),
        5,
        0,
    ),
    "gradients in a list": Small(
        """
W = dilim.tensor([1.0, 2.0], requires_grad=True)

def f(x, n):
    found = []
    for i in range(n):
        W.grad = None
        (W * x).sum().backward()
        found.append(W.grad)
    return found
""",
        ("[dilim.ones(2), 2]", "[dilim.ones(2), 4]", "[dilim.ones(2), 4]"),
        None,
    ),
}

STATE = {
    "an attribute that the host sees on one path": Small(
        """
class Box:
    scale = 0.5

BOX = Box()
BOX.scale = 2.0

def f(x):
    BOX.scale += 2.0
    if x.sum() > 0:
        y = x + 1
    else:
        print(x.tolist())
        y = x
    return y
""",
        ("[dilim.ones(2)]", "[-dilim.ones(2)]") * 2,
        None,
    ),
}

SUMMARIES = {
    "sums of generators": Small(
        """
W = [dilim.tensor([1.0, 2.0]), dilim.tensor([3.0, -1.0])]

def f(x, n):
    a = sum((w * x).sum() for w in W)
    b = sum(w for w in W if w.shape == x.shape)
    c = sum((i * j for i in range(3) for j in range(i)), 2)
    return a, b, c, sum(x * i for i in range(n, 4))
""",
        ("[dilim.ones(2), 2]", "[dilim.ones(2), 3]", "[dilim.ones(2), 0]"),
        None,
    ),
    "any and all stop at the first": Small(
        """
W = [dilim.tensor([1.0, 2.0]), dilim.tensor([3.0, -1.0])]

def f(x, k):
    a = any((w > k).all() for w in W)
    b = all((w > 0).all() for w in W)
    c = any(x.reshape(i) is not None for i in (2, 7))
    k = all(k > 0 for k in range(2))
    return a, b, c, k
""",
        ("[dilim.ones(2), 0]", "[dilim.ones(2), 2.5]", "[dilim.ones(2), 9]"),
    ),
    "the least and the largest of a generator": Small(
        """
W = [dilim.tensor([1.0, 2.0]), dilim.tensor([3.0, -1.0])]

def f(x):
    low = min(w.sum() for w in W)
    high = max((w * x).sum().item() for w in W)
    nan = float("nan")
    return low, high, min(i for i in (3, 2, 2)), max(nan if i == 1 else i for i in range(3))
""",
        ("[dilim.ones(2)]", "[-dilim.ones(2)]", "[dilim.ones(2)]"),
    ),
    "lists of generators": Small(
        """
def f(x, n):
    rows = tuple(row * i for i, row in enumerate(x))
    return list(row + 1 for row in rows), rows
""",
        ("[dilim.ones((2, 3)), 2]",) * 3,
    ),
    "a generator that the host has a part in": Small(
        """
LOG = []

def look(w):
    LOG.append(1)
    return 2.0

def f(x):
    a = sum(look(i) for i in range(3))
    b = any(print(i) for i in range(2))
    return x * a, b
""",
        VECTOR,
        0,
        1,
    ),
    "errors in a generator": Small(
        """
W = [dilim.ones(2), dilim.ones(3)]
E = []

def f(x, k):
    if k == 0:
        return sum(w * x for w in W)
    if k == 1:
        return max(w.sum() for w in E)
    if k == 2:
        return sum(next(iter(())) for i in range(3))
    return sum((w * x).sum() for w in W[:1])
""",
        *[tuple(f"[dilim.ones(2), {k}]" for k in (0, 1, 2, 3, 0, 1, 2, 3))],
        None,
        None,
        raises=(1, 2, 3, 5, 6, 7),
    ),
    "a sum that is another": Small(
        """
def sum(items):
    return [*items][0]

def f(x):
    return sum(x * i for i in (2, 3))
""",
        VECTOR,
        None,
        None,
    ),
}

PROGRAMS = {**HANDED, **RECEIVED, **BLIND, **STATE, **SUMMARIES}
