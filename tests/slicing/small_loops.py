"""Small programs with state carried through loops, and what changes between calls."""

from slicing.comparing import Call
from slicing.small_programs import VECTOR, Small


def turns(*counts):
    return tuple(f"[dilim.ones(2), {n}]" for n in counts)


def after(*changes):
    """Calls with the same argument: two, then one after each change."""
    return VECTOR[:2] + tuple(Call(VECTOR[0], before=change) for change in changes)


LOOPS = {
    "a return from a loop that prints": Small(
        """
def f(x, n):
    for i in range(n):
        x = x * 2
        print("turn", i)
        if x.sum() > 10:
            print("stop", x.sum().item())
            return x, i
    return x, None
""",
        turns(2, 9, 9),
        4,  # three counters and a sum
    ),
    "nested loops": Small(
        """
def f(x, n):
    count = 0
    for i in range(n):
        for j in range(i):
            if (i + j) % 3 == 0:
                continue
            if x.sum() > 1000:
                break
            x = x + i * j
            count += 1
        else:
            x = x + 0.5
    return x, count
""",
        turns(2, 9, 12),
    ),
    "the else of a loop that is left in two ways": Small(
        """
def f(x, n):
    for i in range(20):
        x = x + 1
        if x.sum() > 4 * n:
            break
        if x.sum() > 30 - n:
            return x, "returned"
    else:
        x = x * 2
        print("to its end")
    return x
""",
        turns(2, 9, 20, 1),
        None,
    ),
    "a name that a turn binds on one path and reads": Small(
        """
def f(x, n, limit=2):
    for i in range(n):
        if i < limit:
            x = x + 1
        else:
            t = x * i
        x = x + t
    return x, t
""",
        (*turns(0, 3), *turns(20, 1), "[dilim.ones(2), 20, 0]"),
        None,
        None,
        raises=(1, 2, 3, 4),
    ),
    "a helper with two returns": Small(
        """
def norm(t):
    n = dilim.sqrt((t * t).sum())
    if n > 2:
        return t / n, True
    return t, False

def f(x, n):
    hits = []
    for i in range(n):
        x, hit = norm(x * 1.5)
        if hit:
            hits.append(i)
    return x, hits
""",
        turns(2, 9, 12),
        None,
    ),
    "names that change places": Small(
        """
def f(x, n):
    a, b = x, x + 1
    for i in range(n):
        a, b = b, a + b
        if i == 3:
            a = b
            a += 1
    return a, b, a is b
""",
        turns(2, 4, 5, 9),
    ),
    "items of a list that change places": Small(
        """
def f(x, n):
    ts = [x, x * 2]
    for i in range(n):
        ts[i % 2] = ts[(i + 1) % 2] + 1
    return ts
""",
        turns(2, 5, 4),
        None,
    ),
    "a queue of tensors": Small(
        """
def f(x, n):
    ts = [x * 1, x * 2]
    for i in range(n):
        for t in ts:
            t += i
        ts.append(ts[0] * 1)
        ts.pop(0)
    return ts, len(ts)
""",
        turns(2, 5, 4),
        None,
        None,
    ),
    "a stack of what a loop made": Small(
        """
def f(x, n):
    out = []
    for i in range(n):
        x = x * 0.5 + i
        out.append(x)
    return dilim.stack(out), dilim.concat(out[:2]) if n > 1 else None
""",
        turns(2, 5, 5),
        None,
        None,
    ),
    "a dict as state": Small(
        """
def f(x, n):
    state = {"h": x, "c": x * 0, "n": 0}
    for i in range(n):
        state["h"] = dilim.tanh(state["h"] + state["c"])
        state["c"] = state["c"] + 0.1
        state["n"] += 1
    return state
""",
        turns(2, 5, 0),
    ),
    "a data class and a named tuple as state": Small(
        """
from dataclasses import dataclass, replace
from typing import NamedTuple

@dataclass
class S:
    h: object
    n: int = 0

class P(NamedTuple):
    a: object
    b: object

def f(x, n):
    s = S(x)
    p = P(x, x + 1)
    for i in range(n):
        s = replace(s, h=s.h * 2, n=s.n + 1)
        p = p._replace(a=p.b, b=p.a + 1)
    return s, p
""",
        turns(2, 5, 0),
        None,
        None,
    ),
    "flags": Small(
        """
def f(x, n):
    done = False
    found = None
    for i in range(n):
        x = x * 1.5
        if not done and x.sum() > 10:
            done = True
            found = i
        best = x if done else -x
    return done, found, best
""",
        turns(2, 5, 9),
    ),
    "a mean over turns": Small(
        """
def f(x, n):
    total = 0.0
    for i in range(n):
        x = x * 1.01
        total += x.sum().item()
        mean = total / (i + 1)
    return total, mean, f"{mean:.3f}"
""",
        turns(2, 5, 9),
        1,
    ),
    "an integer tensor as a number": Small(
        """
def f(x, n):
    k = dilim.zeros((), dtype="int64")
    for i in range(n):
        k += i
        if k % 3 == 1:
            k = k * 2
    return k, int(k), x[int(k) % 2]
""",
        turns(2, 5, 9),
    ),
    "items of a list and a dict set in a loop that is left": Small(
        """
PARTS = [dilim.ones(3), dilim.ones(3)]
NAMED = {"%a": 1.0, "%return": dilim.ones(3)}

def f(x, n):
    k = 0
    while True:
        k += 1
        if k > 30 or x.mean() <= 0.5 * n:
            break
        PARTS[1] = x * 2
        NAMED["%return"] = x + k
        x = x * 0.5
    return x, k, PARTS[1], NAMED
""",
        tuple(f"[dilim.tensor([3.0, 1.0, {n}.0]), {n}]" for n in (1, 1, 3, 0)),
    ),
    "the host writes into a view of one of two tensors": Small(
        """
class Writing:
    def __getattr__(self, name):
        def write(view):
            view[0] = 7.0
        return write

HOST = Writing()

def f(x, n):
    y = x
    for i in range(n):
        y = y * 0.5
    HOST.writes(y[1:])
    z = y + 1
    return x, y, z
""",
        tuple(f"[dilim.tensor([3.0, 1.0, {n}.0]), {n}]" for n in (12, 12, 0, 12, 0)),
        None,
        None,
        may_leave=True,
    ),
    "a list with a place per action": Small(
        """
def f(x, n):
    hist = [0, 0]
    for i in range(n):
        j = int(x.argmax())
        hist[j] += 1
        x = x + dilim.tensor([0.3, 0.7]) * (1 - 2 * j)
    return hist
""",
        turns(2, 5, 9),
        None,
    ),
}

CHANGES = {
    "a list of keywords": Small(
        """
def layer(t, *, act="relu", scale=1.0):
    t = t * scale
    return dilim.relu(t) if act == "relu" else dilim.tanh(t)

CONFIG = [{"act": "relu", "scale": 2.0}, {"act": "tanh"}, {}]

def f(x):
    for c in CONFIG:
        x = layer(x, **c)
    return x
""",
        after("CONFIG[1]['act'] = 'relu'", "CONFIG.append({'scale': 0.5})"),
    ),
    "a list of weights": Small(
        """
LAYERS = [dilim.tensor([1.0, 2.0]), dilim.tensor([0.5, 0.5])]

def f(x):
    for w in LAYERS:
        x = x * w + 1
    return x
""",
        after(
            "LAYERS.append(dilim.tensor(3.0))",
            "LAYERS[0] = dilim.tensor([9.0, 9.0])",
            "LAYERS[0] += 1",
            "LAYERS[0] = 2.0",
        ),
    ),
    "a method that is replaced": Small(
        """
class M:
    scale = 2.0

    def go(self, x):
        return x * self.scale

m = M()

def other(self, x):
    return x - self.scale

def f(x):
    return m.go(x)
""",
        after(
            "M.go = other",
            "M.scale = 5.0",
            "m.scale = 7",
            "m.go = lambda x: x",
            "del m.go; m.__class__ = type('K', (M,), {'scale': 1.5})",
        ),
    ),
    "a builtin that is hidden": Small(
        "def f(x):\n    return math.floor(2.7) * x + len([1, 2])",
        after("math = type('K', (), {'floor': staticmethod(abs)})", "len = lambda v: 50", "pass"),
        0,
        None,
    ),
    "defaults that are objects": Small(
        """
T = dilim.ones(2)

def f(x, y=T, *, k=[1.0]):
    k.append(k[-1] * 2)
    return x * y * k[-1]
""",
        after("T += 1", "original.__kwdefaults__['k'] = [3.0]"),
        None,
        1,  # the list is the host's: it grows from call to call
    ),
}

PROGRAMS = {**LOOPS, **CHANGES}
