"""Small programs that use what host code has made; see `small_programs`."""

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
