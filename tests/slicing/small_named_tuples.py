"""Small programs with named tuples, given and made; see `small_programs`."""

from slicing.comparing import Call
from slicing.small_programs import Small

HEAD = """
from typing import NamedTuple
from collections import deque, namedtuple

class Batch(NamedTuple):
    obs: dilim.Tensor
    act: dilim.Tensor
    done: bool = False

    def total(self):
        return self.obs.sum() + self.act.sum()

    @property
    def both(self):
        return self.obs + self.act

Pair = namedtuple("Pair", "a b")
"""
CALLS = ("[dilim.ones(3), 3]", "[-dilim.ones(3), 12]", "[dilim.ones(3), 12]")


def _small(source, calls=CALLS, sends=0, receives=0, **how):
    return Small(HEAD + source, calls, sends, receives, **how)


PROGRAMS = {
    "named tuples: given": _small(
        """
def f(b, n):
    return b.obs * 2.0 + b[1] + b.total(), len(b)
""",
        (
            "[Batch(dilim.ones(3), dilim.ones(3)), 3]",
            "[Batch(dilim.ones(3), dilim.ones(3)), 3]",
            "[Batch(dilim.ones(3), dilim.ones(3)), 3]",
        ),
    ),
    "named tuples: given unpack": _small(
        """
def f(b, n):
    o, a, d = b
    return o + a
""",
        (
            "[Batch(dilim.ones(3), dilim.ones(3)), 3]",
            "[Batch(dilim.ones(3), dilim.ones(3)), 3]",
            "[Batch(dilim.ones(3), dilim.ones(3)), 3]",
        ),
    ),
    "named tuples: given pair": _small(
        """
def f(b, n):
    o, a = b
    return o + a + b.a
""",
        (
            "[Pair(dilim.ones(3), dilim.ones(3)), 3]",
            "[Pair(dilim.ones(3), dilim.ones(3)), 3]",
            "[Pair(dilim.ones(3), dilim.ones(3)), 3]",
        ),
    ),
    "named tuples: attribute": _small(
        """
def f(x, n):
    b = Batch(x, x * 2.0)
    return b.obs + b.act
""",
    ),
    "named tuples: keyword default": _small(
        """
def f(x, n):
    b = Batch(act=x, obs=x * 2.0)
    y = b.obs - b.act
    if b.done:
        y = y * 5.0
    return y
""",
    ),
    "named tuples: unpack": _small(
        """
def f(x, n):
    b = Batch(x, x * 2.0, True)
    o, a, d = b
    return o + a
""",
    ),
    "named tuples: index": _small(
        """
def f(x, n):
    b = Pair(x, x * 2.0)
    return b[0] + b[-1] + len(b)
""",
    ),
    "named tuples: method and property": _small(
        """
def f(x, n):
    b = Batch(x, x * 2.0, True)
    return b.total() + b.both
""",
    ),
    "named tuples: returned": _small(
        """
def f(x, n):
    return Batch(x * 1.5, x * 2.0, True)
""",
    ),
    "named tuples: returned from helper": _small(
        """
def g(x):
    return Pair(x * 1.5, x * 2.0)
def f(x, n):
    p = g(x)
    q, r = g(p.a)
    return p.b + q + r
""",
    ),
    "named tuples: carried anew": _small(
        """
def f(x, n):
    b = Pair(x, x * 0.5)
    for i in range(n):
        b = Pair(b.b * 0.9, b.a + 1.0)
    return b.a + b.b
""",
    ),
    "named tuples: carried anew, returned": _small(
        """
def f(x, n):
    b = Pair(x, 0)
    for i in range(n):
        b = Pair(b.a * 0.9, b.b + i)
    return b
""",
    ),
    "named tuples: replace": _small(
        """
def f(x, n):
    b = Batch(x, x * 0.5)
    for i in range(n):
        b = b._replace(obs=b.obs * 0.9)
    return b.obs + b.act
""",
    ),
    "named tuples: in a list": _small(
        """
def f(x, n):
    bs = []
    for i in range(3):
        bs.append(Batch(x * i, x))
    return sum(b.obs.sum() for b in bs)
""",
    ),
    "named tuples: branch": _small(
        """
def f(x, n):
    if x.sum() > 0:
        b = Pair(x, x * 2.0)
    else:
        b = Pair(x * 3.0, x)
    return b.a - b.b
""",
    ),
    "named tuples: early return": _small(
        """
def f(x, n):
    if x.sum() > 0:
        return Pair(x, x * 2.0)
    return Pair(x * 3.0, x)
""",
    ),
    "named tuples: star": _small(
        """
def g(a, b): return a + b
def f(x, n):
    b = Pair(x, x * 2.0)
    return g(*b) + Pair(*[x, x]).a
""",
    ),
    "named tuples: asdict": _small(
        """
def f(x, n):
    b = Pair(x, x * 2.0)
    return b._asdict(), b._fields
""",
    ),
    "named tuples: attribute kept": _small(
        """
class A: pass
box = A()
box.b = None
def f(x, n):
    box.b = Pair(x * 2.0, n)
    return x.sum()
""",
    ),
    "named tuples: attribute carried": _small(
        """
class A: pass
box = A()
box.b = Pair(dilim.ones(3), 0)
def f(x, n):
    for i in range(n):
        box.b = Pair(box.b.a * 0.5 + x, box.b.b + 1)
    return box.b.a
""",
    ),
    "named tuples: gradient": _small(
        """
w = dilim.ones(3, requires_grad=True)
def f(x, n):
    b = Pair(x * w, x)
    for i in range(3):
        b = Pair(b.a * w, b.b)
    b.a.sum().backward()
    return w.grad
""",
    ),
    "named tuples: concat": _small(
        """
def f(x, n):
    b = Pair(x, x * 2.0) + (x,)
    return b[0] + b[2]
""",
    ),
    "named tuples: loop over": _small(
        """
def f(x, n):
    s = 0.0
    for t in Pair(x, x * 2.0):
        s = s + t.sum()
    for k, t in enumerate(Pair(x, x * 2.0)):
        s = s + t.sum() * k
    return s
""",
    ),
    "named tuples: nested": _small(
        """
def f(x, n):
    b = Pair(Pair(x, 1), Batch(x, x))
    for i in range(n):
        b = Pair(Pair(b.a.a * 0.5, b.a.b + 1), b.b)
    return b.a.a + b.b.obs, b
""",
    ),
    "named tuples: subclass": _small(
        """
class Sub(Pair):
    __slots__ = ()
    def both(self): return self.a + self.b
def f(x, n):
    return Sub(x, x * 2.0).both()
""",
    ),
    "named tuples: while": _small(
        """
def f(x, n):
    s = Pair(x, 0)
    while s.a.sum() > 0.1:
        s = Pair(s.a * 0.5, s.b + 1)
    return s.a, s.b
""",
    ),
    "named tuples: isinstance": _small(
        """
def f(x, n):
    b = Batch(x, x)
    if isinstance(b, Batch) and isinstance(b, tuple) and not isinstance(b, Pair):
        return b.obs * 2.0
    return b.obs
""",
    ),
    "named tuples: stack of one": _small(
        """
def f(x, n):
    return dilim.stack(Pair(x, x * 2.0)), dilim.concat(Pair(x, x))
""",
    ),
    "named tuples: doublestar": _small(
        """
def f(x, n):
    d = {"a": x * 2.0, "b": x}
    p = Pair(**d)
    return p.a - p.b
""",
    ),
    "named tuples: computed index": _small(
        """
def f(x, n):
    p = Pair(x * 2.0, x)
    s = 0.0
    for i in range(n):
        s = s + p[i % 2].sum()
    return s
""",
    ),
    "named tuples: fields": _small(
        """
def f(x, n):
    p = Pair(x * 2.0, x)
    s = {}
    for name, v in zip(p._fields, p):
        s[name] = v.sum()
    return s
""",
    ),
    "named tuples: star unpack": _small(
        """
def f(x, n):
    a, *b = Batch(x, x * 2.0)
    return a, b
""",
    ),
    "named tuples: lstm": _small(
        """
State = namedtuple("State", "h c")
W = dilim.full((3, 3), 0.1, requires_grad=True)
def cell(x, s):
    c = (s.c * 0.5 + x) @ W
    return State(dilim.tanh(c), c)
def f(x, n):
    s = State(dilim.zeros(3), dilim.zeros(3))
    for i in range(6):
        s = cell(x, s)
    loss = (s.h ** 2).sum()
    loss.backward()
    return loss.item(), W.grad, s.c.detach()
""",
    ),
    "named tuples: lstm counted": _small(
        """
State = namedtuple("State", "h c")
W = dilim.full((3, 3), 0.1)
def cell(x, s):
    c = (s.c * 0.5 + x) @ W
    return State(dilim.tanh(c), c)
def f(x, n):
    s = State(dilim.zeros(3), dilim.zeros(3))
    for i in range(n):
        s = cell(x, s)
        if s.h.sum() > 5.0:
            break
    return s
""",
    ),
    "named tuples: optional": _small(
        """
def f(x, n):
    best = None
    for i in range(n):
        x = x * 0.9
        if best is None or x.sum() > best.a.sum():
            best = Pair(x, i)
    return best
""",
    ),
    "named tuples: optional by tensor": _small(
        """
def f(x, n):
    p = Pair(x, 1) if x.sum() > 0 else None
    return p if p is None else p.a * 2.0
""",
    ),
    "named tuples: kinds in a loop": _small(
        """
Other = namedtuple("Other", "a b")
def f(x, n):
    p = (x, 1)
    for i in range(n):
        p = Pair(p[0] * 0.5, p[1] + 1)
    return p
""",
    ),
    "named tuples: in place": _small(
        """
def f(x, n):
    p = Pair(x * 1.0, x * 2.0)
    q = p
    p.a[0] = 5.0
    t = p.a
    t += 1.0
    return q, p.a
""",
    ),
    "named tuples: in place in loop": _small(
        """
def f(x, n):
    p = Pair(x * 1.0, 0)
    for i in range(n):
        p.a[i % 3] += 1.0
        p = Pair(p.a, p.b + 1)
    return p, x
""",
    ),
    "named tuples: given carried": _small(
        """
def f(p, n):
    for i in range(n):
        p = Pair(p.a * 0.5, p.b + 1)
    return p
""",
        (
            "[Pair(dilim.ones(3), 2), 12]",
            "[Pair(dilim.ones(3), 3), 10]",
            "[Pair(dilim.ones(3), 3), 0]",
        ),
    ),
    "named tuples: given replaced": _small(
        """
def f(p, n):
    return p._replace(b=n), p._asdict(), p
""",
        (
            "[Pair(dilim.ones(3), 2), 12]",
            "[Pair(dilim.ones(3), 3), 10]",
            "[Pair(dilim.ones(3), 3), 0]",
        ),
    ),
    "named tuples: alias given": _small(
        """
def f(p, n):
    q = p
    p.a[0] = 5.0
    return q is p, q, p.a.sum()
""",
        (
            "[Pair(dilim.ones(3), 2), 1]",
            "[Pair(dilim.ones(3), 2), 1]",
            "[Pair(dilim.ones(3), 2), 1]",
        ),
    ),
    "named tuples: typed": _small(
        """
def f(b: Batch, n):
    o, a, done = b
    return Batch(o * 2.0, a, not done)
""",
        (
            "[Batch(dilim.ones(3), dilim.ones(3)), 1]",
            "[Batch(dilim.ones(3), dilim.ones(3)), 1]",
            "[Batch(dilim.ones(3), dilim.ones(3)), 1]",
        ),
    ),
    "named tuples: unique": _small(
        """
def f(x, n):
    u = dilim.unique_counts(x)
    return x * 2.0, u.values
""",
    ),
    "named tuples: default changed": _small(
        """
def f(x, n):
    b = Batch(x, x)
    return b.obs * 2.0 if b.done else b.obs
""",
        (
            "[dilim.ones(3), 3]",
            "[-dilim.ones(3), 12]",
            "[dilim.ones(3), 12]",
            Call("[dilim.ones(3), 3]", before="Batch.__new__.__defaults__ = (True,)"),
        ),
    ),
    "named tuples: rebound class": _small(
        """
def f(x, n):
    p = Pair(x, 1)
    return p.a * 2.0, p
""",
        (
            "[dilim.ones(3), 3]",
            "[-dilim.ones(3), 12]",
            "[dilim.ones(3), 12]",
            Call("[dilim.ones(3), 3]", before="Pair = namedtuple('Pair', 'b a')"),
        ),
    ),
    "class methods: named": _small(
        """
class Acc(NamedTuple):
    total: dilim.Tensor
    count: int
    def plus(self, x): return self._replace(total=self.total + x, count=self.count + 1)
    @property
    def mean(self): return self.total / self.count
    @classmethod
    def empty(cls): return cls(dilim.zeros(3), 0)
    @staticmethod
    def twice(x): return x * 2.0
    LIMIT = 5
def f(x, n):
    a = Acc.empty()
    for i in range(n):
        a = a.plus(Acc.twice(x))
    return a.mean if a.count > Acc.LIMIT else a.total
""",
    ),
    "class methods: super": _small(
        """
class A:
    scale = 2.0
    @classmethod
    def up(cls, x): return x * cls.scale
class B(A):
    @classmethod
    def up(cls, x): return super().up(x) + 1.0
def f(x, n):
    return B.up(x)
""",
    ),
}
