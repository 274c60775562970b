"""Small programs, each with one thing that a slicer may get wrong.

Each is its text, its calls (a `Call`, or the text of its arguments), and the sends and receives of
the last call (None: whatever it takes).
"""

from dataclasses import dataclass


@dataclass(frozen=True)
class Small:
    """A program of `check`."""

    source: str
    calls: tuple
    sends: int | None = 0
    receives: int | None = 0
    raises: tuple = ()
    may_leave: bool = False
    native: int | None = None
    fallback: str | None = None


MATRIX = ("[dilim.ones((3, 2))]",) * 3
VECTOR = ("[dilim.ones(2)]",) * 3
SIGNS = ("[dilim.ones(2)]", "[-dilim.ones(2)]") * 2
RUNNING = """
class Running:
    def __init__(self):
        self.mean = dilim.zeros(2)
        self.count = 0

R = Running()
"""

VIEWS = {
    "view changed": Small("def f(x):\n    row = x[0]\n    row += 10.0\n    return row", MATRIX),
    "views of views": Small(
        """
def f(x):
    row = x[0]
    row += 10.0
    row[1:] *= 0.5
    return row, x[1], x.T
""",
        MATRIX,
    ),
    "view changed in a loop": Small(
        """
def f(x, n):
    row = x[0]
    for i in range(n):
        row *= 0.5
    return x
""",
        ("[dilim.ones((2, 3)), 3]", "[dilim.ones((2, 3)), 2]"),
    ),
    "view and base changed in a loop": Small(
        """
def f(x, y, n):
    row = x[0]
    for i in range(n):
        x[i % 2] += y
        row *= 0.5
    return row
""",
        ("[dilim.ones((2, 3)), dilim.ones(3), 3]", "[dilim.ones((2, 3)), dilim.ones(3), 5]"),
    ),
    "item written at a place that is given": Small(
        "def f(x, y, i):\n    x[i] += y\n    return x",
        tuple(f"[dilim.ones((2, 3)), dilim.ones(3), {i}]" for i in (1, 0, -1)),
    ),
    "item written in a loop": Small(
        """
def f(x, y, n):
    for i in range(n):
        x[i % 2] += y
    return x
""",
        ("[dilim.ones((2, 3)), dilim.ones(3), 3]", "[dilim.ones((2, 3)), dilim.ones(3), 4]"),
    ),
    "overlapping slices": Small(
        """
def f(x, y):
    y[...] = x.sum()
    x[:, 1:] = x[:, :-1] * 2
    return y
""",
        ("[dilim.ones((2, 3)), dilim.ones(3)]",) * 2,
    ),
    "aliases in lists": Small(
        """
def f(x, y):
    a = b = x * 2
    a += 1
    c = [a, b]
    c[0] += y
    d = c
    d.append(y)
    return a, b, c, d, a is b
""",
        ("[dilim.ones(2), dilim.ones(2)]", "[dilim.ones(2), dilim.zeros(2)]"),
    ),
}

ATTRIBUTES = {
    "attribute changed in place": Small(
        RUNNING + "def f(x):\n    R.mean += x\n    return R.mean", VECTOR
    ),
    "attribute changed in place in a loop": Small(
        RUNNING + "def f(x, n):\n    for _ in range(n):\n        R.mean += x\n    return R.mean",
        ("[dilim.ones(2), 2]", "[dilim.ones(2), 3]", "[dilim.ones(2), 0]"),
    ),
    "attribute rebound in a loop": Small(
        RUNNING
        + "def f(x, n):\n    for _ in range(n):\n        R.mean = R.mean + x\n    return R.mean",
        ("[dilim.ones(2), 2]", "[dilim.ones(2), 3]", "[dilim.ones(2), 0]", "[dilim.ones(2), 1]"),
    ),
    "attribute rebound in a branch": Small(
        RUNNING + "def f(x):\n    if x.sum() > 1:\n        R.mean = x\n    return R.mean", SIGNS
    ),
    "attributes counted in a branch": Small(
        RUNNING
        + """
def f(x):
    if x.sum() > 1:
        R.mean = R.mean + x
        R.count += 1
    return x * R.count
""",
        SIGNS,
    ),
    "a global dict": Small(
        """
STATE = {"n": 0, "t": dilim.zeros(2)}

def f(x):
    STATE["n"] += 1
    STATE["t"] = STATE["t"] + x * STATE["n"]
    return STATE["t"]
""",
        VECTOR,
    ),
}

HOST = {
    "a list that grows": Small(
        """
SEEN = []

def f(t):
    SEEN.append(1)
    if len(SEEN) == 2:
        t = t * 1.25
    return t * len(SEEN)
""",
        VECTOR,
        None,
        None,
    ),
    "a loop on a list that grows": Small(
        """
SEEN = []

def f(t):
    while len(SEEN) % 5 != 4:
        SEEN.append(1)
        t = t * 1.25
    SEEN.append(2)
    return t
""",
        VECTOR,
        None,
        None,
    ),
    "a loop on a tensor and a list that grows": Small(
        """
SEEN = []

def f(t):
    while t.sum() < 3.0 or len(SEEN) % 5:
        SEEN.append(1)
        t = t * 1.25
    return t
""",
        VECTOR,
        None,
        None,
    ),
    "a list of the function changed by the host": Small(
        """
def f(t):
    order = [3, 1, 2]
    order.sort(key=lambda k: random.random())
    random.shuffle(order)
    np.array(order)
    return t * order[0] + order[1], order
""",
        VECTOR,
        0,
        None,
    ),
    "random numbers of NumPy": Small(
        """
def f(x, n):
    for _ in range(n):
        x = x + float(np.random.rand())
        if np.random.rand() < 0.5:
            x = x * 2
    return x
""",
        ("[dilim.ones(2), 4]",) * 3,
        0,
        8,
    ),
    "a text of a sum": Small(
        """
def f(x):
    print("start")
    y = x @ x
    print("done", y[0, 0].item(), f"{float(y.sum()):.2f}", end="!")
    return y
""",
        ("[dilim.ones((2, 2))]",) * 3,
        1,
    ),
    "an exception of a tensor": Small(
        """
class Bad(ValueError):
    pass

LOG = []

def f(x):
    LOG.append(x)
    x = x * 2
    if x.sum() > 5:
        raise Bad(f"sum {x.sum().item()}")
    LOG.append(x)
    return x
""",
        ("[dilim.ones(2)]", "[dilim.ones(2) * 3]", "[dilim.ones(2)]"),
        None,
        0,
        (2,),
    ),
    "a generator expression and its gradients": Small(
        """
W = [dilim.tensor([1.0, 2.0], requires_grad=True), dilim.tensor([3.0], requires_grad=True)]

def f(rate):
    total = sum((w * w).sum() for w in W)
    for w in W:
        w.grad = None
    total.backward()
    with dilim.no_grad():
        for w in W:
            w -= rate * w.grad
    return total.item()
""",
        ("[0.1]", "[0.2]", "[0.2]"),
    ),
    "finally with a return": Small(
        """
LOG = []

def f(x):
    x = x + 1
    for k in range(3):
        try:
            if k == 1:
                return x * k
        finally:
            LOG.append(k)
""",
        VECTOR,
        None,
        None,
    ),
}

PROGRAMS = {**VIEWS, **ATTRIBUTES, **HOST}
