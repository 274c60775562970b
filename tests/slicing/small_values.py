"""Small programs on numbers in containers, and on names that stand for one of several things.

See `small_programs`.
"""

from slicing.comparing import Call
from slicing.small_programs import VECTOR, Small

SCALES = ("[2.0, 3.0]", "[2.0, 3.0]", "[4.0, 5.0]")
PAIRS = (
    "[dilim.ones((2, 3)), dilim.ones((2, 3))]",
    "[dilim.zeros((2, 3)), dilim.ones((2, 3))]",
    "[dilim.ones((2, 3)), dilim.zeros((2, 3))]",
)
TURNS = tuple(f"[dilim.ones(2), {n}]" for n in (2, 5, 9, 30, 12))

CONTAINERS = {
    "numbers of a list from outside": Small(
        """
def product(a, b):
    return a * b

def f(x, s):
    k = list(s)
    return x * k[0] + product(*s) + [*s][1]
""",
        tuple(f"[dilim.ones(2), {scales}]" for scales in SCALES),
    ),
    "items of a dict from outside": Small(
        """
def f(x, parts):
    for name, scale in dict(parts).items():
        x = x * scale + len(name)
    return x, len(parts)
""",
        tuple(f"[dilim.ones(2), {{'a': {k}, 'bc': 2.0}}]" for k in (1.0, 3.0, 4.0)),
    ),
    "keys that are equal": Small(
        """
def f(x, parts):
    for key in parts:
        x = x + (1 if key is True else 10)
    return x
""",
        tuple(f"[dilim.ones(2), {{{key}: 0}}]" for key in ("True", "1", "1.0")),
        receives=None,
    ),
    "a list that grows while a loop takes its items": Small(
        """
def f(x):
    items = [1, 2]
    for k in items:
        x = x + k
        if len(items) < 5:
            items.append(k)
    for k, item in enumerate(items):
        items[-1] += k
        x = x * item
    for k in reversed(items):
        items.insert(0, k)
        x = x + k
    return x, items
""",
        VECTOR,
        sends=None,
        receives=None,
        may_leave=True,
    ),
    "a dict that changes while a loop takes its values": Small(
        """
def f(x):
    parts = {"a": 1, "b": x.shape[0]}
    for key, part in parts.items():
        x = x + part
        parts[key] = part + 1
    for key in parts:
        x = x * parts[key]
        parts[key + key] = 1
    return x
""",
        VECTOR,
        sends=None,
        receives=None,
        raises=(1, 2, 3),
        may_leave=True,
    ),
    "views of a dict": Small(
        """
def f(x):
    parts = {"a": x, "b": x * 2}
    keys, values = parts.keys(), parts.values()
    parts["c"] = x + 1
    if "c" in keys:
        x = x + len(values)
    for i, (name, part) in enumerate(parts.items()):
        x = x + part * i
    first, _, _ = values
    x = x + first + dilim.stack(list(values)).sum()
    return x, sum(values), max(keys), [*keys], dict(parts.items())
""",
        VECTOR,
    ),
    "views of a dict that are shown and returned": Small(
        """
def f(x):
    parts = {"a": 1, "b": x.shape[0]}
    print(parts.keys(), parts.values(), str(parts.items()))
    return x * 2, parts.keys(), parts.keys() - {"a"}
""",
        VECTOR,
        sends=None,
        receives=None,
    ),
    "strides of empty tensors": Small(
        """
def f(x):
    y = x.T, x[:, :2], x[1:], x.expand((2, *x.shape)), x + 1.0, x.reshape((3, 0))
    print(*(part.strides for part in y))
    return y
""",
        ("[dilim.zeros((0, 3))]", "[dilim.zeros((3, 0))]") * 2,
        sends=None,
    ),
    "a list that is empty or not": Small(
        """
def f(x, s):
    if s:
        x = x + 1
    return x * 2 if not s else x
""",
        tuple(f"[dilim.ones(2), {s}]" for s in ("[]", "[1]", "[]", "[1, 2]")),
    ),
    "an object with methods that builtins call": Small(
        """
class Loud:
    def __len__(self):
        print("len")
        return 3

    def __iter__(self):
        print("iter")
        return iter([1, 2])

    def __abs__(self):
        print("abs")
        return 2

def f(x, a):
    for k, j in enumerate(a):
        x = x + k * j
    return x * len(a) * abs(a), tuple(a)
""",
        ("[dilim.ones(2), Loud()]",) * 3,
        sends=None,
        receives=None,
    ),
}
STATES = {
    "a dict with values of all kinds through a loop": Small(
        """
def f(x, n):
    d = {"k": 0, "best": None, "t": (x, 1)}
    for i in range(n):
        d["k"] += i
        if d["best"] is None or x.sum() > d["best"]:
            d["best"] = x.sum()
        x = x * 0.5 if i % 2 else x * 3
        d["t"] = (x, d["t"][1] + 1)
    return d
""",
        tuple(f"[dilim.ones(2), {n}]" for n in (3, 7, 0, 1)),
    ),
    "comprehensions of dicts and stars": Small(
        """
def f(x, xs):
    names = {f"t{len(xs)}": x, "b": x * 2}
    first, *rest = xs
    a, *_, c = (x, 1, 2, xs)
    table = {k: v * k for k, v in enumerate(rest) if k != 1}
    return names, rest, table, a, c is xs, {k + 1: w for k in range(2) for w in [x + k]}
""",
        ("[dilim.ones(2), [dilim.zeros(2), dilim.ones(1), dilim.ones(2) * 3]]",) * 3
        + ("[dilim.ones(2), [dilim.zeros(2)]]",),
        sends=None,
    ),
    "a result with values of the host": Small(
        """
def f(x, k):
    order = list(range(5))
    random.shuffle(order)
    text = f"{k}"
    return x * 2, order, text, (x, k), [x + 1]
""",
        ("[dilim.ones(2), 3]",) * 3,
    ),
    "a list in an attribute": Small(
        """
class Box:
    pass

B = Box()

def f(x):
    B.parts = [x]
    print("one", x.sum())
    B.parts.append(x * 2)
    return len(B.parts)
""",
        ("[dilim.ones(2)]",) * 3,
        sends=1,
    ),
    "a dict that is printed in some turns": Small(
        """
def f(x, n):
    d = {"n": 0, "t": x}
    kept = []
    for i in range(n):
        d["n"] += i
        d["t"] = d["t"] * 2
        if i % 3 == 1:
            print(d, i)
    print([d], kept)
    d["n"] = -1
    return d
""",
        tuple(f"[dilim.ones(2), {n}]" for n in (3, 7, 0, 1)),
        sends=None,
    ),
    "a list that host code changes later": Small(
        """
KEPT = []

def clear():
    for each in KEPT:
        each.append(7)

def f(x):
    ts = [x, 1]
    KEPT.append(ts)
    ts[1] = 2
    clear()
    return ts[1], len(ts), x * 2
""",
        ("[dilim.ones(2)]",) * 3,
        sends=None,
        receives=None,
        may_leave=True,
    ),
    "sequences put together": Small(
        """
def f(x, xs):
    hist = [0.0] * 3
    hist[1] += x.sum()
    both = xs + [x * 2]
    return hist, both, (x,) * 2 + (1,), [] * 5
""",
        ("[dilim.ones(2), [dilim.zeros(2)]]",) * 3,
    ),
    "items at positions that are given": Small(
        """
def f(x, n, k):
    ts = [x, x * 2, x + 1]
    y = ts[k]
    y += 1
    ts[k - 1] = x * 5
    ts[n % 3] = y
    return ts, (4, 5, 6)[k], ts[k] is ts[n % 3]
""",
        tuple(f"[dilim.ones(3), {n}, {k}]" for n, k in ((2, 1), (3, 0), (6, 5), (4, -1), (5, 2))),
        raises=(3,),
    ),
    "a tensor written in a loop that may replace it": Small(
        """
def f(n):
    k = dilim.zeros((), dtype="int64")
    for i in range(n):
        k += i
        if k % 3 == 1:
            k = k * 2
    return k, int(k) // 2
""",
        ("[2]", "[5]", "[9]"),
    ),
    "items of a list that one path replaces": Small(
        """
def f(x, n):
    ts = [x, None]
    if n < 5:
        ts[0] = x + 1
        ts[1] = x * 2
    elif x.sum() > 0:
        ts[1] = x - 1
    else:
        raise ValueError("neither")
    return ts
""",
        ("[dilim.ones(2), 3]", "[dilim.ones(2), 7]", "[-dilim.ones(2), 7]", "[dilim.ones(2), 2]"),
        raises=(3,),
    ),
    "lists and dicts made on one path": Small(
        """
def f(x, n):
    if x.sum() < 0:
        raise ValueError("no")
    ts = [x * 2, {"a": x + n}]
    if n > 3:
        us = [x - 1, ts]
        us[0] = us[0] * 3
    else:
        ts[0] = ts[0] + 5
    ts[1]["a"] = ts[1]["a"] - 1
    if n > 3:
        return us
    return ts
""",
        ("[dilim.ones(2), 3]", "[dilim.ones(2), 7]", "[-dilim.ones(2), 0]", "[dilim.ones(2), 1]"),
        raises=(3,),
    ),
    "a tensor of the host that is one of the program": Small(
        """
def f(x, xs):
    y = xs.pop()
    z = x * 2
    y += 1
    return z, x * 5
""",
        tuple(
            Call("[(X := dilim.ones(2)), [X]]" if shared else "[dilim.ones(2), [dilim.ones(2)]]")
            for shared in (False, False, True, True, False)
        ),
        sends=None,
        receives=None,
        may_leave=True,
    ),
}
KINDS = {
    "none or a number, in a loop": Small(
        """
def f(x, n):
    done = False
    found = None
    best = None
    for i in range(n):
        x = x * 1.5
        if not done and x.sum() > 10:
            done = True
            found = i
        s = (x * (i % 3)).sum()
        if best is None or s > best:
            best = s
            at = i
        if i % 7 == 6:
            found = None
    if found is not None:
        found = found + 1
    return done, found, best, at
""",
        TURNS,
    ),
    "none or a tensor, of an attribute": Small(
        """
class Best:
    def __init__(self):
        self.value = None

B = Best()

def f(x):
    loss = x.sum()
    if B.value is None or loss < B.value:
        B.value = loss
    return B.value
""",
        ("[dilim.ones(2)]", "[dilim.ones(2) * 3]", "[dilim.ones(2) / 3]", "[dilim.ones(2) * 2]"),
    ),
    "ints that grow, in a tuple and beside none": Small(
        """
def f(x, n):
    s = (x, 1)
    k = None
    for i in range(n):
        s = (s[0] + 1, s[1] * 2)
        if k is None:
            k = 1
        else:
            k = k * 2
    return s, k
""",
        tuple(f"[dilim.ones(2), {n}]" for n in (2, 5, 80, 61, 62, 63, 12)),
    ),
    "an int or a float": Small(
        """
def f(x):
    k = 1 if x.sum() > 0 else 2.5
    return k, x * 2
""",
        ("[dilim.ones(2)]", "[-dilim.ones(2)]") * 2,
    ),
    "which of two, asked in other words": Small(
        """
def f(x, n):
    last = None
    for i in range(n):
        if not (last is None):
            x = x + last
        if x.sum() < 20:
            last = x * 0.5
        elif last is not None:
            last = None
    return x, last is None
""",
        TURNS,
    ),
}
UNBOUND = {
    "a name that a loop may not bind": Small(
        """
def f(x, n):
    for i in range(n):
        x = x + i
        last = x * 2
    return last, i
""",
        ("[dilim.ones(2), 3]", "[dilim.ones(2), 5]", "[dilim.ones(2), 0]", "[dilim.ones(2), 4]"),
        raises=(3,),
    ),
    "a name that a branch may not bind": Small(
        """
def f(x):
    if x.sum() > 0:
        y = x + 1
    x += 1
    y = y * 2
    return y if x.sum() > 3 else x
""",
        ("[dilim.ones(2)]", "[-dilim.ones(2)]") * 2,
        raises=(2, 4),
    ),
    "a name that may be unbound, printed": Small(
        """
def f(x):
    if x.sum() > 0:
        k = 3
    print("before", x.sum())
    print(k)
    return x * k
""",
        ("[dilim.ones(2)]", "[-dilim.ones(2)]") * 2,
        sends=1,
        raises=(2, 4),
    ),
}
OBJECTS = {
    "one of two that are changed later": Small(
        """
def f(a, b):
    y = a if a.sum() > 0 else b
    row = a[0] if b.sum() > 0 else b[1]
    a += 1
    b += 2
    row *= 3
    y -= 1
    return y * 2, row, y is a, y is b
""",
        PAIRS,
    ),
    "views at positions that are given": Small(
        """
def f(x, y, n):
    for i in range(n):
        row = x[i % 2]
        row[1:] *= 2
        row += y
        part = row[0]
        part -= 1
        x[1, i % 3] *= 0.5
        x[i % 2, 1:] += y[1:]
        if x.sum() > 9:
            row *= 0.25
            x[0] += 1
    return x, row
""",
        tuple(f"[dilim.ones((2, 3)), dilim.ones(3), {n}]" for n in (3, 7, 10)),
    ),
    "a view at a position, or a known one": Small(
        """
def f(x, n):
    row = x[0]
    if n > 2:
        row = x[n % 2]
    row += 1
    best = None
    for i in range(n):
        if best is None or x[i % 2].sum() > best.sum():
            best = x[i % 2]
        x[1] += 1
    return row, best
""",
        tuple(f"[dilim.ones((2, 3)), {n}]" for n in (3, 1, 8, 2)),
    ),
    "an item with positions in a tensor is a copy": Small(
        """
def f(x, k):
    row = x[k % 2, dilim.tensor([0, 2])]
    x += 1
    return row
""",
        ("[dilim.ones((2, 3)), 1]", "[dilim.ones((2, 3)), 4]"),
    ),
    "a tensor that a loop may leave as it is": Small(
        """
def f(x, n):
    for i in range(n):
        if x.sum() > 5:
            x = x * 2
    return x
""",
        tuple(f"[dilim.ones({size}), {n}]" for size in (2, 6) for n in (3, 0)),
    ),
    "tensors that change places": Small(
        """
def f(x, y, n):
    for i in range(n):
        x, y = y, x
    x += 1
    return x, y
""",
        tuple(f"[dilim.ones(2), dilim.zeros(2), {n}]" for n in (3, 0, 4, 1)),
    ),
    "objects from before, from other turns, and of other names": Small(
        """
def f(a, b, n):
    y = a
    c = a * 0
    for i in range(n):
        if i == 2:
            y = b
        if i % 4 == 3:
            y = c + 1
            z = y
        if i % 3 == 0:
            z = y
        a += 1
        b += 2
        c = c + y
        y += 0.5
    return y * 2, a, c, y, z, y is z
""",
        tuple(f"[dilim.ones((2, 3)), dilim.ones((2, 3)), {n}]" for n in (1, 3, 4, 5, 9, 13)),
    ),
    "objects that the host has got in some turns": Small(
        """
LOG = []

def f(x, n):
    best = last = x
    for i in range(n):
        if i > 2:
            LOG.append(last)
        row = x * i
        if i % 3 == 0:
            LOG.append(row)
            best = last = row
    return best
""",
        tuple(f"[dilim.ones(2), {n}]" for n in (3, 7, 10)),
        sends=None,
    ),
    "objects through many branches": Small(
        """
def f(a, b, n):
    y = z = a
    for k in range(7):
        if a.sum() > k:
            y = b
        elif b.sum() > k:
            z = y
        if y.sum() + z.sum() > n:
            return y, z
        y += 1
    return y, z, a
""",
        tuple(f"[dilim.ones(2), dilim.zeros(2), {n}]" for n in (30, 3, 9, 18)),
    ),
    "tensors in a tuple through a loop": Small(
        """
def f(a, b, n):
    state = (a, b)
    for i in range(n):
        if i % 3 != 1:
            state = (state[1], state[0] + 1)
    return state, state[0] is a
""",
        tuple(f"[dilim.ones(2), dilim.zeros(2), {n}]" for n in (1, 0, 2, 3, 6)),
    ),
}
VALUES = CONTAINERS | STATES | KINDS | UNBOUND | OBJECTS
