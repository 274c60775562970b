"""Programs as lessons on training have them, in small; see `small_programs`."""

from slicing.comparing import Call
from slicing.small_programs import Small

_HELPERS = "\n".join(
    f"""
def add{i}(row):
    ROWS.append(row)
    return len(ROWS) + {i}
"""
    for i in range(70)
)
_CALLS = "\n".join(f"    k = add{i}(k)" for i in range(70))

HOST = {
    "many functions that turn out to be the host's": Small(
        f"""
from collections import deque

ROWS = deque(maxlen=3)
{_HELPERS}
def f(x, k):
{_CALLS}
    return x * k
""",
        ("[dilim.ones(2), 1]",) * 3,
        None,
        1,
    ),
    "what a function left to the host has looked at is not relied on": Small(
        """
from collections import deque

class Memory:
    def __init__(self):
        self.rows = deque(maxlen=3)
        self.last = None

    def __call__(self, row):
        if self.last is None or self.last != row:
            self.last = row
        self.rows.append(row)
        return self.last

MEMORY = Memory()

def f(x, k):
    y = x + 1
    return y * MEMORY(k)
""",
        ("[dilim.ones(2), 1]", "[dilim.ones(2), 2]", "[dilim.ones(2), 2]", "[dilim.ones(2), 3]"),
        None,
        None,
    ),
    "host statements one after another, and an attribute that the first of them changes": Small(
        """
from collections import deque

class Box:
    n = 1

BOX, LOG = Box(), deque(maxlen=9)
BOX.n = 1
NAMES = {}

def more(k):
    exec("BOX.n += k", {"BOX": BOX, "k": k})
    return k

def f(x, k):
    y = x * BOX.n
    NAMES["k"] = more(k)
    LOG.append(k)
    print(BOX.n, len(NAMES))
    LOG.append(BOX.n)
    with dilim.no_grad():
        NAMES["y"] = more(1)
        LOG.append(y.requires_grad)
    return y * BOX.n, LOG[0]
""",
        tuple(f"[dilim.ones(2), {k}]" for k in (1, 2, 0, 0)),
        None,
        None,
        may_leave=True,
    ),
    "host statements one after another, of which a later one fails": Small(
        """
from collections import deque

W = dilim.tensor([1.0, 2.0], requires_grad=True)
LOG = deque(maxlen=9)

class Seen:
    def __init__(self, k):
        self.k = k

    def __add__(self, other):
        LOG.append(other)
        return self.k // other

def f(x, k, n):
    seen = Seen(k)
    for i in range(n):
        W.grad = None
        (W * x * i).sum().backward()
        LOG.append(i)
        a = seen + (k - i)
        LOG.append(a)
        x = x * a
    return x
""",
        tuple(f"[dilim.ones(2), {k}, {n}]" for k, n in ((9, 2), (9, 4), (2, 4), (9, 5))),
        None,
        None,
        raises=(3,),
    ),
}

NAMES = {
    "a name that a block without gradients binds": Small(
        """
from collections import deque

LOG = deque(maxlen=9)

def f(x, n):
    k = 0
    while k < n:
        if k > 1:
            with dilim.no_grad():
                target = (x * 2, k)
            x = x + target[0].sum() * target[1]
        LOG.append(k)
        k += 1
    return x
""",
        tuple(f"[dilim.ones(2), {n}]" for n in (3, 4, 0, 5)),
        None,
        None,
    ),
    "a name that is bound in a context of the user's, which has another name of dilim's": Small(
        """
import contextlib
import types

real = dilim
dilim = types.SimpleNamespace(no_grad=lambda: contextlib.suppress(ValueError))

def f(x, n):
    a = x
    with dilim.no_grad():
        a = x * 2
        if n > 1:
            raise ValueError(n)
        a = a + 1
    return a
""",
        tuple(Call(f"[real.ones(2), {n}]") for n in (1, 2, 0, 5)),
        None,
        None,
        may_leave=True,
    ),
}

_TRAIN = """
dilim.seed(0)
RNG = np.random.default_rng(0)
X = dilim.tensor(RNG.normal(size=(10, 2)).astype(np.float32))
Y = dilim.tensor(RNG.normal(size=(10, 1)).astype(np.float32))
NET = nn.MLP(2, [4, 1])
OPT = optim.SGD(NET.parameters(), 0.125, momentum=0.5)

def step(x, y):
    OPT.zero_grad()
    loss = nn.losses.mse(NET(x), y)
    loss.backward()
    OPT.step()
    return loss.item()
"""

BATCHES = {
    "a shuffled list in batches of which the last is smaller": Small(
        _TRAIN
        + """
def f(n, size):
    rows = list(range(len(X)))
    total = 0.0
    for epoch in range(n):
        random.Random(epoch).shuffle(rows)
        for i in range(0, len(rows), size):
            batch = dilim.tensor(rows[i : i + size])
            total += step(X[batch], Y[batch])
        print(epoch, total)
    return total
""",
        ("[2, 4]", "[2, 4]", "[3, 4]", "[3, 4]", "[1, 3]", "[2, 4]"),
        None,
        None,
        may_leave=False,
    ),
    "a permutation in batches of several sizes": Small(
        _TRAIN
        + """
def f(n, sizes):
    losses = []
    for epoch in range(n):
        order = np.random.default_rng(epoch).permutation(10)
        start = 0
        for size in sizes:
            batch = dilim.tensor(order[start : start + size])
            x, y = X[batch], Y[batch]
            losses.append(step(x, y) / size)
            start += size
    return losses, x, y
""",
        ("[2, [4, 4, 2]]",) * 4 + ("[2, [4, 3, 2, 1]]",) * 3 + ("[2, [2, 4]]", "[1, [4]]"),
        None,
        None,
        may_leave=True,
    ),
    "batches of the host": Small(
        _TRAIN
        + """
def batches(size):
    for i in range(0, 10, size):
        yield X[i : i + size], Y[i : i + size]

def f(n, size):
    total = 0.0
    for epoch in range(n):
        for x, y in batches(size):
            total += step(x, y) * x.shape[0]
    return total
""",
        ("[2, 4]",) * 5 + ("[3, 5]", "[1, 4]"),
        None,
        None,
        may_leave=True,
    ),
    "a batch for which there is no place": Small(
        _TRAIN
        + """
def f(n, size):
    order = np.arange(n)
    for i in range(0, n, size):
        batch = dilim.tensor(order[i : i + size])
        loss = step(X[batch], Y[: len(batch)])
        print(i, loss)
    return loss
""",
        ("[10, 4]",) * 3 + ("[11, 4]", "[10, 4]", "[12, 4]"),
        None,
        None,
        raises=(4, 6),
        may_leave=True,
    ),
    "arrays of the host of two types": Small(
        """
ROWS = [np.ones(2, np.float32), np.ones(2, np.float64), np.ones(3, np.float32)]

def f(x, places):
    for k in places:
        row = ROWS[k]
        t = dilim.tensor(row)
        x = x + t.sum().astype(dilim.float32)
        if k == 1:
            x = x * 2
        row[0] += 1
    return x, t
""",
        tuple(f"[dilim.ones(2), {places}]" for places in ([0, 1, 0], [1, 0], [0, 2, 1], [2], [0]))
        * 2,
        None,
        None,
        may_leave=True,
    ),
}

NUMBERS = {
    "the largest and the least of numbers": Small(
        """
def f(x, n, a, b):
    for i in range(n):
        e = max(a * i + b, 0.05)
        k = min(i, 3, n - i)
        x = x * e + max(k, 1) + min(a, b)
    return x, max(n, 3), min(a, -0.0), max(a, b, 0.0)
""",
        tuple(
            f"[dilim.ones(2), {x}]"
            for x in (
                "3, 0.5, 0.25",
                "5, -0.5, 1.0",
                "6, 0.0, -0.0",
                "7, math.nan, 1.0",
                "2, 1.0, math.nan",
            )
        ),
    ),
    "the largest of numbers of several kinds": Small(
        """
def f(x, n, a):
    return x * max(n, a), min(n, a, 2), max(True, n), min(n, key=lambda k: k) if n is None else n
""",
        tuple(f"[dilim.ones(2), {x}]" for x in ("3, 3.0", "3, 4.0", "-3, -3.0")),
        None,
        None,
    ),
    "a number that falls, against one of the host": Small(
        """
RANDOM = random.Random(3)

def rate(start, end, duration, t):
    slope = (end - start) / duration
    return max(slope * t + start, end)

def f(x, n, end):
    for i in range(n):
        epsilon = rate(1.0, end, 0.5 * n, i)
        if RANDOM.random() < epsilon:
            x = x * 2
        else:
            x = x - epsilon
    return x
""",
        tuple(f"[dilim.ones(2), {x}]" for x in ("8, 0.25", "12, 0.5", "0, 0.5", "12, 0.125")),
        0,
        12,
    ),
}

PROGRAMS = {**HOST, **NAMES, **BATCHES, **NUMBERS}
