"""Small programs with lists, arrays and other objects from outside whose contents change."""

from slicing.comparing import Call
from slicing.small_programs import Small


def _small(source, *calls, **expectations):
    # what comes from outside changes its type on purpose, and the run that sees that is left
    return Small(source, calls, None, None, **{"may_leave": True} | expectations)


STEPS = tuple(f"[dilim.ones(2), {n}]" for n in (3, 4, 0, 12))
ARRAYS = ("[np.array([1.0, 2.0])]", "[np.array([3.0, 4.0])]", "[np.array([5.0, 6.0, 7.0])]") * 2
LISTS = ("[[1.0, 2.0]]", "[[3.0, 4.0]]", "[[5.0, 6.0, 7.0]]", "[[8, 9]]", "[[8, 9]]")
A = "A = np.ones(2)\n\n"
X = "X = dilim.arange(6.0).reshape(2, 3)\n\n"

DATA = {
    "an array as a tensor": _small("def f(a): return dilim.asarray(a) * 2", *ARRAYS),
    "an array as a tensor, from_numpy": _small("def f(a): return dilim.from_numpy(a) * 2", *ARRAYS),
    "a list as a tensor": _small("def f(a): return dilim.tensor(a) * 2", *LISTS),
    "a list as a tensor, asarray": _small("def f(a): return dilim.asarray(a) * 2", *LISTS),
    "a list as a tensor, Tensor": _small("def f(a): return dilim.Tensor(a) * 2", *LISTS),
    "a bytearray as a tensor": _small(
        "B = bytearray(b'ab')\n\ndef f(): return dilim.asarray(B) + 1",
        "[]",
        Call("[]", before="B[0] = 3"),
    ),
    "a global array as a tensor": _small(
        A + "def f(): return dilim.asarray(A) * 2",
        "[]",
        Call("[]", before="A += 5"),
        Call("[]", before="A = np.zeros(3)"),
    ),
    "a buffer that grows": _small(
        """
class Buffer:
    def __init__(self):
        self.a = np.zeros(4)
        self.n = 0

    def push(self, v):
        self.a[self.n % 4] = v
        self.n += 1

B = Buffer()

def f(v):
    B.push(v)
    return dilim.asarray(B.a).mean(), B.n
""",
        *(f"[{v}.0]" for v in range(6)),
    ),
    "an array that is written first": _small(
        "def f(a):\n    a[0] = 7\n    return dilim.asarray(a)", *ARRAYS
    ),
    "memory of an array": _small(
        A + "def f(a):\n    z = dilim.asarray(a)\n    z += 1\n    return z", *("[A]",) * 3
    ),
    "a view of the memory of an array": _small(
        A
        + """
def f(a):
    y = dilim.reshape(dilim.asarray(a), (2, 1))
    y += 1
    return y
""",
        *("[A]",) * 3,
    ),
    "a tensor over an array, written later": _small(
        A + "def f(a): return dilim.asarray(a)",
        "[A]",
        Call("[A]", after="result += 1"),
        Call("[A]", after="result += 1"),
    ),
    "a tensor that is stretched to its own shape": _small(
        """
def f(x):
    y = dilim.broadcast_to(x, (2,))
    y += 1
    z, _ = dilim.broadcast_arrays(x, y)
    z *= 2
    return y, z, x
""",
        *("[dilim.ones(2)]",) * 2,
    ),
    "an array beside a tensor": _small(
        "def f(x, a): return x + a",
        "[dilim.ones(2), np.ones(2)]",
        "[dilim.ones(2), np.zeros(2)]",
        "[dilim.ones(2), np.float32(3.0)]",
        "[dilim.ones(2), np.float32(4.0)]",
        raises=(1, 2, 3, 4),
    ),
}

INDEXES = {
    "an index from outside": _small(
        "def f(x, i): return x[i]",
        "[dilim.arange(4), [0, 1]]",
        "[dilim.arange(4), [2, 3]]",
        "[dilim.arange(4), [1, 2, 3]]",
        "[dilim.arange(4), np.array([0, 1])]",
        "[dilim.arange(4), np.array([2, 1])]",
        "[dilim.arange(4), np.array([True, False, True, False])]",
        "[dilim.arange(4), np.array([True, False, False, False])]",
    ),
    "an index from outside that is changed": _small(
        "I = [0, 1]\n\ndef f(x):\n    y = x[I]\n    I[0] += 1\n    return y, x[I]",
        *("[dilim.arange(4)]",) * 3,
    ),
    "a write at an index from outside": _small(
        "def f(x, i):\n    x[i] = 9\n    return x",
        "[dilim.arange(4), [0, 1]]",
        "[dilim.arange(4), [2, 3]]",
        "[dilim.arange(4), np.array([0, 1])]",
        "[dilim.arange(4), np.array([3, 1])]",
    ),
    "a part of a list from outside": _small(
        "def f(a):\n    b = a[1:]\n    b.append(0.5)\n    return b, a",
        *("[[1.0, 2.0]]", "[[1.0, 3.0]]", "[[1.0, 3.0, 4.0]]") * 2,
    ),
    "a part of a list that is made": _small(
        "def f(x):\n    a = [x, x + 1, x + 2]\n    b = a[1:]\n    b.append(x)\n    return b, a",
        *("[dilim.ones(2)]",) * 2,
    ),
}

TENSORS = {
    "lists of tensors": _small(
        "def f(a): return dilim.stack(a), dilim.concat(a)",
        "[[dilim.zeros(2)]]",
        "[[dilim.ones(2)]]",
        "[[dilim.ones(2), dilim.zeros(2)]]",
    ),
    "a list of tensors that changes": _small(
        "L = [dilim.zeros(2)]\n\ndef f(): return dilim.stack(L)",
        "[]",
        Call("[]", before="L[0] = dilim.ones(2)"),
        Call("[]", before="L.append(dilim.full(2, 3.0))"),
        Call("[]", before="L[:] = [dilim.full(2, 4.0)]"),
    ),
    "a history": _small(
        """
class Net:
    def __init__(self):
        self.history = []

    def step(self, h):
        self.history.append(h)
        return dilim.stack(self.history)

N = Net()

def f(h):
    return N.step(h * 2)
""",
        "[dilim.zeros(2)]",
        "[dilim.ones(2)]",
        "[dilim.ones(2)]",
    ),
    "lists of tensors stay in the graph": Small(
        "def f(a): return dilim.stack(a).sum(0)",
        ("[[dilim.zeros(2), dilim.ones(2)]]",) * 3,
    ),
}

_SIZES = {
    "x.reshape(a)": ("[2, 3]", "[3, 2]", "[6]"),
    "x.reshape(*a)": ("[2, 3]", "[3, 2]", "[6]"),
    "dilim.zeros(a)": ("[2, 3]", "[3, 2]", "[6]"),
    "dilim.permute_dims(x, a)": ("[0, 1]", "[1, 0]", "[0, 1]"),
    "dilim.broadcast_to(x, a)": ("[4, 2, 3]", "[3, 2, 3]", "[1, 2, 3]"),
    "dilim.tile(x, a)": ("[1, 2]", "[2, 1]", "[1]"),
    "dilim.split(x, a, axis=1)": ("[1, 2]", "[2, 1]", "[3]"),
    "dilim.linspace(*a)": ("[0.0, 1.0, 3]", "[0.0, 2.0, 3]", "[1.0, 2.0, 5]"),
    "dilim.sum(x, axis=tuple(a))": ("[0]", "[1]", "[0, 1]"),
    "dilim.pad(x, a)": ("[(0, 1), (1, 0)]", "[(1, 1), (1, 0)]", "[(0, 0), (0, 2)]"),
    "dilim.one_hot(dilim.tensor(a), 4)": ("[1, 2]", "[2, 1]", "[3]"),
    "dilim.take(x, dilim.asarray(a), axis=1)": ("[1, 2]", "[2, 1]", "np.array([0])"),
    "dilim.where(dilim.asarray(a), x, 0)": ("np.eye(2, 3) > 0", "np.eye(2, 3) == 0"),
}
SIZES = {
    f"another list, {expression}": _small(
        f"{X}def f(x, a): return {expression}", *(f"[X, {a}]" for a in arguments)
    )
    for expression, arguments in _SIZES.items()
}

ITERATION = {
    "a generator that looks at an attribute": _small(
        """
class M: pass
m = M()
m.count = 0

def gen(n):
    try:
        for k in range(n):
            yield k + m.count
    finally:
        pass

def f(x, n):
    for k in gen(n):
        m.count += 1
        x = x * 0.5 + k
    return x
""",
        *STEPS,
    ),
    "a generator that looks at a tensor": _small(
        """
class M: pass
m = M()
m.w = dilim.zeros(2)

def gen(n):
    try:
        for k in range(n):
            yield float(m.w.sum())
    finally:
        pass

def f(x, n):
    for k in gen(n):
        m.w = m.w + x
        x = x * 0.5 + k
    return x
""",
        *STEPS,
    ),
    "an item that is replaced before a loop takes it": _small(
        """
L = [1.0, 2.0, 3.0]

def f(x, n):
    s = 0.0
    for v in L:
        L[2] = L[2] + 1.0
        s = s + v
        x = x * v
    return x, s
""",
        *STEPS,
    ),
    "an item that is replaced before an enumeration takes it": _small(
        """
L = [1.0, 2.0, 3.0]

def f(x, n):
    s = 0.0
    for i, v in enumerate(L):
        L[2] = L[2] + 1.0
        s = s + v
        x = x * v
    return x, s
""",
        *STEPS,
    ),
    "items that are replaced in their turns": _small(
        """
L = [1.0, 2.0, 3.0]

def f(x, n):
    s = 0.0
    for i, v in enumerate(L):
        L[i] = v + 1.0
        s = s + v
        x = x * v
    return x, s
""",
        *STEPS,
    ),
    "items that are replaced while several lists are taken": _small(
        """
L = [1.0, 2.0, 3.0]
M = [dilim.ones(2), dilim.zeros(2), dilim.ones(2)]

def f(x, n):
    s = 0.0
    for k in range(n):
        for a, b, c in zip(L, M, reversed(M)):
            M[1] = M[1] + c
            s = s + a
            x = x * 0.5 + b
    return x, s
""",
        *STEPS,
    ),
    "views of a dict from outside": _small(
        """
d = {"a": dilim.ones(2), "b": dilim.zeros(2)}

def f(x, n):
    for k, v in d.items():
        d[k] = v * 0.5 + x
    for v in d.values():
        x = x + v
    for k in d.keys():
        x = x + d[k]
    return x, [v for v in d.values()], len(d.items()), list(d.items()), dict(d), "a" in d.keys()
""",
        *STEPS,
    ),
    "an item that is replaced before a view gives it": _small(
        """
d = {"a": dilim.ones(2), "b": dilim.zeros(2)}

def f(x, n):
    for k, v in d.items():
        d["b"] = v * 0.5 + x
        x = x + v
    return x
""",
        *STEPS,
    ),
    "an enumeration that is older than an item": _small(
        """
L = [1.0, 2.0, 3.0]

def f(x, n):
    it = enumerate(L)
    L[1] = L[1] + 1
    for i, v in it:
        L[0] = L[0] + v
        x = x * v
    return x
""",
        *STEPS,
    ),
    "what dicts from outside give": _small(
        """
d = {"a": dilim.ones(2), "b": dilim.zeros(2)}

def f(x, n):
    d["a"] = d.get("a") + x
    return d.get("c", x), d.get("a", 0), d.get("zz")
""",
        *STEPS,
    ),
    "what dicts from outside give in a loop": _small(
        """
d = {"a": dilim.ones(2), "b": dilim.zeros(2)}

def f(x, n):
    for k in range(n):
        d["a"] = d.get("a") + x
        y = d.get("zz", k)
    return d.get("c", x), d.get("a", 0), d.get("zz")
""",
        *STEPS,
    ),
    "a dict that is asked before it gets an item": _small(
        """
d = {"a": dilim.ones(2), "b": dilim.zeros(2)}

def f(x, n):
    a = d.get("c")
    d["c"] = x
    return a is None, d.get("c", 0), len(d)
""",
        *STEPS,
    ),
    "views of a dict that gets an item": _small(
        """
d = {"a": dilim.ones(2), "b": dilim.zeros(2)}

def f(x, n):
    v = d.values()
    i = d.items()
    d["a"] = d["a"] + 1
    print(v, i)
    d["c"] = 1
    return v, len(v), [k for k, _ in i]
""",
        *STEPS,
    ),
    "views of a dict that the host changes": _small(
        """
d = {"a": dilim.ones(2), "b": dilim.zeros(2)}

def f(x, n):
    d.update(c=x)
    y = x
    for k, v in d.items():
        y = y + v
    d.pop("c")
    return y
""",
        *STEPS,
    ),
    "parameters in a dict": _small(
        """
params = {"w": dilim.ones(2, requires_grad=True), "b": dilim.zeros(2, requires_grad=True)}

def f(x, n):
    losses = []
    for _ in range(n):
        loss = ((params["w"] * x + params["b"]) ** 2).sum()
        for p in params.values():
            p.grad = None
        loss.backward()
        with dilim.no_grad():
            for name, p in params.items():
                p -= 0.1 * p.grad
        losses.append(loss.item())
    return losses
""",
        *STEPS,
    ),
    "a dict that changes between calls": _small(
        """
d = {"a": 1.0, "b": dilim.zeros(2)}

def f(x):
    return [v * x for v in d.values()], d.get("c", 5), list(d.keys())
""",
        *(
            Call("[dilim.ones(2)]", before=before)
            for before in (
                "",
                "d['a'] = 2.0",
                "d['c'] = 3.0",
                "del d['a']",
                "d['a'] = 4",
                "d = {1: dilim.ones(2)}",
                "d = {True: dilim.ones(2)}",
                "d = {1.0: 2}",
            )
        ),
    ),
}

DATA["a list of a branch that the host has seen"] = Small(
    """
STATE = {"t": dilim.ones(2)}

def toss():
    return len(STATE) == 1

def f(x, z, n=1.0):
    if toss():
        pass
    else:
        return z
    o = [(n * 2, x - x.mean())]
    print(o)
    if z.sum() > 1:
        print("large")
    else:
        print(o)
    if STATE["t"].max() <= 3:
        return o
""",
    tuple(f"[dilim.arange(3.0), dilim.full(3, {n})]" for n in ("1.0", "0.0", "2.0", "0.0")),
    None,
    None,
)

PROGRAMS = {**DATA, **INDEXES, **TENSORS, **SIZES, **ITERATION}
