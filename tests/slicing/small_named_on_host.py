"""Small programs with named tuples that the host looks at, or makes; see `small_programs`."""

from slicing.comparing import Call
from slicing.small_named_tuples import CALLS, HEAD
from slicing.small_programs import Small


def _hosted(source, calls=CALLS, **how):
    return Small(HEAD + source, calls, None, None, **how)


PROGRAMS = {
    "named tuples: in a list in a loop": _hosted(
        """
def f(x, n):
    bs = []
    for i in range(n):
        x = x * 0.5
        bs.append(Batch(x * i, x))
    return bs
""",
    ),
    "named tuples: printed": _hosted(
        """
def f(x, n):
    b = Pair(n, 2.0)
    print(b)
    p = Pair(x, n)
    print(p.b, p.a.sum().item())
    return p.a * b.b
""",
    ),
    "named tuples: equal": _hosted(
        """
def f(x, n):
    b = Pair(1, n)
    return x * (b == (1, 3)), b == Pair(1, 3)
""",
        raises=(1, 2, 3),
    ),
    "named tuples: identity": _hosted(
        """
def f(x, n):
    b = Pair(x, x * 2.0)
    c = b
    return b is c, b, c, b.a is x
""",
    ),
    "named tuples: no such field": _hosted(
        """
def f(x, n):
    return Pair(x, x * 2.0).c
""",
        raises=(1, 2, 3),
    ),
    "named tuples: wrong arity": _hosted(
        """
def f(x, n):
    y = x * 2.0
    return Pair(y)
""",
        raises=(1, 2, 3),
    ),
    "named tuples: set field": _hosted(
        """
def f(x, n):
    b = Pair(x, x * 2.0)
    b.a = x
    return b
""",
        raises=(1, 2, 3),
    ),
    "named tuples: own new": _hosted(
        """
class Odd(namedtuple("Odd", "a b")):
    def __new__(cls, a):
        print("new")
        return super().__new__(cls, a, a * 2.0)
def f(x, n):
    return Odd(x).b
""",
    ),
    "named tuples: match": _hosted(
        """
def f(x, n):
    b = Pair(x, n)
    match b:
        case Pair(a=t, b=3):
            return t * 2.0
        case Pair(t, k):
            return t + k
""",
    ),
    "named tuples: compare": _hosted(
        """
def f(x, n):
    p, q = Pair(n, 1), Pair(n, 2)
    return p == q, p < q, p != (n, 1), x * 2.0, hash(p) == hash((n, 1)), 1 in p
""",
    ),
    "named tuples: dict key": _hosted(
        """
def f(x, n):
    p = Pair(1, 2)
    d = {p: x}
    return d[(1, 2)] * 2.0
""",
    ),
    "named tuples: fstring": _hosted(
        """
def f(x, n):
    p = Pair(n, 0.5)
    print(f"{p} {p.a:03d} {p!r} {str(p)}")
    return x * p.b
""",
    ),
    "named tuples: deque": _hosted(
        """
from collections import deque
Q = deque(maxlen=4)
def f(x, n):
    for i in range(n):
        x = x * 0.9
        Q.append(Pair(x, i))
    return sum(q.a.sum() for q in Q), len(Q)
""",
    ),
    "named tuples: kinds": _hosted(
        """
def f(x, n):
    p = Pair(x, 1)
    if x.sum() > 0:
        p = (x, 2)
    return p[0] * 2.0, p
""",
    ),
    "named tuples: backward inside loop": _hosted(
        """
w = dilim.ones(3, requires_grad=True)
def loss(b): return ((w * b.a - b.b) ** 2).sum()
def f(x, n):
    global w
    for i in range(n):
        b = Pair(x * (i + 1.0), x)
        l = loss(b)
        w.grad = None
        l.backward()
        with dilim.no_grad():
            w -= 0.001 * w.grad
    return l.item()
""",
    ),
    "named tuples: host item": _hosted(
        """
def f(x, n):
    p = Pair(x * 2.0, random.random())
    q = Pair(p.a, str(n))
    return p.a, len(q.b)
""",
        ("[dilim.ones(3), 1]",),
    ),
    "named tuples: given odd": _hosted(
        """
def f(p, n):
    y = p.a * 2.0
    return y, p.b
""",
        (
            "[Pair(dilim.ones(3), {1}), 12]",
            "[Pair(dilim.ones(3), np.ones(2)), 10]",
            "[Pair(dilim.ones(3), lambda: 5), 0]",
            "[Pair(dilim.ones(3), 2**70), 0]",
            "[Pair(dilim.ones(3), [1, 2]), 0]",
        ),
    ),
    "named tuples: exception": _hosted(
        """
def f(x, n):
    p = Pair(x * 2.0, n)
    try:
        if p.b > 5:
            raise ValueError(p.b)
        return p.a
    except ValueError as e:
        return Pair(p.a * 3.0, e.args[0])
""",
    ),
    "named tuples: equal in loop": _hosted(
        """
def f(x, n):
    last = Pair(0, 0)
    for i in range(n):
        x = x * 0.9
        if Pair(i // 2, 0) == last:
            x = x + 1.0
        last = Pair(i // 2, 0)
    return x, last
""",
    ),
    "named tuples: monkey": _hosted(
        """
def f(x, n):
    p = Pair(x, 1)
    return p.a * 2.0, p
""",
        (
            "[dilim.ones(3), 3]",
            "[-dilim.ones(3), 12]",
            "[dilim.ones(3), 12]",
            Call("[dilim.ones(3), 3]", before="Pair.a = property(lambda s: s[0] * 10.0)"),
            "[dilim.ones(3), 3]",
            Call(
                "[dilim.ones(3), 3]",
                before="Pair.__new__ = lambda cls, a, b: tuple.__new__(cls, (a * 3.0, b))",
            ),
        ),
    ),
    "class methods: plain": _hosted(
        """
class A:
    scale = 2.0
    @classmethod
    def up(cls, x): return x * cls.scale
class B(A):
    scale = 3.0
def f(x, n):
    return A.up(x) + B.up(x)
""",
        (
            "[dilim.ones(3), 3]",
            "[-dilim.ones(3), 12]",
            "[dilim.ones(3), 12]",
            Call("[dilim.ones(3), 3]", before="A.scale = 5.0"),
            Call("[dilim.ones(3), 3]", before="A.up = classmethod(lambda cls, x: x - cls.scale)"),
            Call("[dilim.ones(3), 3]", before="B.up = staticmethod(lambda x: x - 1.0)"),
        ),
    ),
}
