"""Small programs that use what host code has made; see `small_programs`."""

from slicing.comparing import Call
from slicing.small_programs import VECTOR, Small

_WHILE_MADE = {
    "defaults that are computed": Small(
        """
def f(x):
    g = lambda v, w=(x * 2).detach(), *, k=x.sum().item() + 1: v * w * k
    x = x + 1

    def h(v, w=x * 3, *, k=g(x)):
        return v + w - k

    x = x * 2
    return g(x), h(x), dilim.grad(lambda v, w=x.detach() + 1: (v * w).sum())(x)
""",
        VECTOR,
    ),
    "defaults that are computed in a loop": Small(
        """
def f(x):
    total = [(lambda v, w=v * 2: v + w)(x) for v in x]
    for v in x:
        def h(a, b=v.exp()):
            return a * b
        total.append(h(x))
    return total
""",
        VECTOR,
        None,
    ),
    "defaults in the order in which they stand": Small(
        """
def shown(value):
    print(value)
    return value

def f(x):
    g = lambda a, b=shown(1), *, c=shown(2), d, e=shown(x.sum().item()): (a, b, c, d, e)
    return g(x, d=x)
""",
        VECTOR,
        None,
        None,
    ),
    "a default that raises": Small(
        "def f(x):\n    g = lambda v, w=x[3]: v * w\n    return g(x)",
        ("[dilim.ones(4)]", "[dilim.ones(2)]"),
        None,
        None,
        raises=(2,),
        may_leave=True,
    ),
}
_LIST = """
KEPT = []

def made(x):
    KEPT.append(dilim.tensor(x.tolist()))
    return KEPT[-1]

def changed(value=5.0):
    KEPT[-1][0] = value
    return dilim.tensor([value])
"""
MANY = ("[dilim.ones(2)]",) * 5

_TENSORS = {
    "methods of a tensor of the host": Small(
        _LIST
        + """
def f(x):
    y = dilim.tensor(x.tolist())
    z = y.sum() + y.mean(axis=0) - (-y).abs().max() + y.shape[0] * y.ndim
    return z, y.astype(dilim.float64) if y.dtype is dilim.float32 else y
""",
        MANY,
        None,
        1,
    ),
    "items of a tensor of the host": Small(
        """
def f(x, n):
    y = dilim.tensor([x.tolist(), x.tolist()])
    total = float(y[0][1]) + y[0, 1:]
    total += y[1, 0]
    return total * y[n], y[:, x > 0] if n else -y[0]
""",
        ("[dilim.tensor([1.0, 2.0]), 1]", "[dilim.tensor([1.0, 2.0]), 0]") * 3,
        None,
        None,
    ),
    "a method whose tensor is changed before it is called": Small(
        _LIST
        + """
def f(x):
    y = made(x)
    return y.astype(changed().dtype), y.max(axis=len(changed()) - 1), y[0] + changed(), y.sum()
""",
        MANY,
        None,
        None,
    ),
    "an item that is kept while its tensor is changed": Small(
        _LIST
        + """
def f(x):
    y = made(x)
    first = y[0]
    changed(7.0)
    second = y[:1] if x.sum() > 0 else y
    changed(8.0)
    return first, second, first is y[0]
""",
        MANY,
        None,
        None,
    ),
    "a view of a tensor of the host": Small(
        _LIST
        + """
def f(x):
    y = made(x)
    z, flat, same = y.reshape(2, 1), y.mean, y.detach()
    z[0] = 9.0
    flat = flat() + y.reshape(2, 1).T
    same.mul_(x + 1)
    y.expand(3, 2).sum()
    return y, z, flat, same, y.item if x is y else y.uid == same.uid
""",
        MANY,
        None,
        None,
    ),
    "a tensor of the host with other numbers in each turn": Small(
        _LIST
        + """
def f(x, n):
    y, total = made(x), x * 0
    for i in range(n):
        total = total + y.exp() * y[0]
        changed(float(i))
    return total + y.sum()
""",
        ("[dilim.ones(2), 3]", "[dilim.ones(2), 4]") * 2,
        None,
        None,
    ),
    "a tensor of the host that is of another type in the end": Small(
        _LIST
        + """
import json

def f(text, x):
    y = dilim.tensor(json.loads(text))
    return y.sum(), x * 2, (y * 2).max()
""",
        tuple(f"['{text}', dilim.ones(2)]" for text in ("[1.5]", "[1.5]", "[1, 2]", "[1, 2]"))
        + tuple(f"['{text}', dilim.ones(2)]" for text in ("[1.5]", "[1, 2]", "[1, 2, 3]")),
        None,
        None,
        may_leave=True,
    ),
    "a tensor of the host that is no tensor in the end": Small(
        _LIST
        + """
import json

def f(text, x):
    y = np.float32(1.0) if text == "1.0" else dilim.tensor(json.loads(text))
    return y.sum() * 2, x * 2
""",
        tuple(f"['{text}', dilim.ones(2)]" for text in ("[1.5]", "[1.5]", "[1.5]", "1.0", "[2.5]")),
        None,
        None,
        may_leave=True,
    ),
}
PROGRAMS = {**_WHILE_MADE, **_TENSORS}
_BOX = """
import json

class Box:
    def __init__(self):
        self.w = dilim.ones(3)
        self.rate = 0.5
        self.parts = [1.0, dilim.ones(3)]

BOX = Box()
STATE = {"t": dilim.ones(3), 1: 2}
CHANGES = []

def touched(box):
    for text in CHANGES:
        exec(text)
    box.w = box.w + 1
    setattr(box, "rate", box.rate * 2)
    box.parts[1] = STATE["t"] = STATE["t"] * 2
    return box
"""


def _changed(*texts):
    """Calls before which it is said what host code does besides."""
    return tuple(Call("[dilim.ones(3), BOX]", before=f"CHANGES[:] = {list(x)!r}") for x in texts)


_WIDER = "box.w = dilim.ones((2, 3))"
_INT = "box.rate = 3"
_NONE = "box.w = None"

_EXPECTED = {
    "what host code has changed, in the first call": Small(
        _BOX
        + """
def f(x, box):
    touched(box)
    y = box.w.sum() * x + STATE["t"] * box.rate + box.parts[1] / STATE[1]
    return y, y.sum() * box.parts[0]
""",
        _changed([], []),
        None,
        None,
    ),
    "what host code has changed, of another type than at entry": Small(
        _BOX
        + """
def f(x, box):
    touched(box)
    return box.w * x, x * box.rate
""",
        _changed([_WIDER], [], [_WIDER], [_INT], [_WIDER, _INT], [], []),
        None,
        None,
        may_leave=True,
    ),
    "what host code has changed, no tensor any more": Small(
        _BOX.replace("    box.w = box.w + 1\n", "")
        + """
def f(x, box):
    touched(box)
    return box.w * x, x * box.rate
""",
        _changed([], [_NONE], []),
        None,
        None,
        raises=(2, 3),
        may_leave=True,
    ),
    "numbers of the host in the first call": Small(
        """
def f(x, n):
    y = x * random.random() + x * random.randint(1, 3) - x * float(np.random.rand())
    y = y * math.sin(random.uniform(0, 1)) + y * abs(-random.random() * n) + y * len(str(n))
    return y + dilim.asarray(np.tanh(np.exp(x.numpy()))), y * round(random.random(), 1)
""",
        ("[dilim.ones(2), 3]",),
        None,
        None,
    ),
    "a function of the host that gives a number": Small(
        """
def drawn(scale):
    print("drawn")
    return random.random() * scale

def f(x):
    for i in range(3):
        x = x * drawn(2.0) + 1
    return x
""",
        VECTOR,
        None,
        None,
    ),
    "a number that is expected to be an int, and is large": Small(
        """
def f(x, n):
    k = int(str(n))
    return x * k, x.sum() * int(float(str(n)))
""",
        tuple(f"[dilim.ones(2, dtype=dilim.float64), {n}]" for n in (3, 2**70, 4, 2**62, 5)),
        None,
        None,
        may_leave=True,
    ),
    "an operation of the host whose operands only seem to be numbers": Small(
        """
class Counting:
    def __add__(self, other):
        BOX.n += 1
        BOX.w = BOX.w * 2
        return 7.0

class Box:
    n = 0

BOX = Box()
BOX.v, BOX.w = 1.5, dilim.ones(2)

def touched():
    BOX.v = Counting()

def f(x):
    before = BOX.w
    touched()
    a = BOX.v + 1
    return x * BOX.w + before, a, BOX.n
""",
        VECTOR,
        None,
        None,
        may_leave=True,
    ),
}
PROGRAMS |= _EXPECTED

_CONTAINERS = {
    "tensors of numbers of the program and of the host": Small(
        """
def f(x, n):
    a, b = x.sum().item(), random.random()
    y = dilim.tensor([a, 0.5, b, float(n)], dtype=dilim.float32) + dilim.asarray((a, b)).sum()
    z = dilim.tensor([n, 2, int(x.argmax())]), dilim.tensor([n, 1, a], dtype=dilim.float64)
    y[1] = b
    return y, z, dilim.full((2, 3), a) * b, dilim.full(2, n), dilim.full((), b, dtype="float64")
""",
        ("[dilim.ones(2), 3]", "[dilim.ones(2) * 1.7, 5]") * 2,
        None,
        None,
    ),
    "tensors of numbers that find no common type, or do not fit": Small(
        """
def f(x, n):
    a = x.sum().item()
    y = dilim.tensor([a, n]), dilim.tensor([a > 0, False]), dilim.asarray([[a, 1.0], [2.0, a]])
    return y, dilim.tensor([int(a), n], dtype=dilim.int8), dilim.tensor([], dtype=dilim.float32)
""",
        ("[dilim.ones(2), 3]", "[dilim.ones(2) * 1.7, 5]", "[dilim.ones(2) * 900, 5]"),
        None,
        None,
        raises=(3,),
        may_leave=True,
    ),
    "memory of tensors of numbers is their own": Small(
        """
def f(x, n):
    a = x.sum().item()
    y, z, w = dilim.full((2,), a), dilim.full((2, 2), n), dilim.tensor([a, a])
    y[0], z[1, 1] = 7.0, 9
    w += y
    return y, z, w, a
""",
        ("[dilim.ones(2), 3]", "[dilim.ones(2) * 1.7, 5]") * 2,
    ),
    "a dict and a list with numbers of the host": Small(
        """
def f(x):
    d = dict(a=x * 2, n=random.random(), k=random.randint(1, 3))
    e = {"a": x, "n": float(np.random.rand())}
    ts = [x, random.random(), x + 1]
    d["a"] = d["a"] * d["n"] + e["a"] * e["n"]
    d["k"] -= 1
    return d, e, ts[0] * ts[1] + ts[2]
""",
        ("[dilim.ones(2)]",) * 3,
        0,
        None,
    ),
}
PROGRAMS |= _CONTAINERS
