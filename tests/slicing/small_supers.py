"""Small programs with ``super()``; see `small_programs`."""

from slicing.comparing import Call
from slicing.small_programs import Small

HEAD = """
class A:
    scale = 2.0

    def g(self, x, k=1.0):
        return x * self.scale * k

    def where(self):
        return "A"

    @property
    def size(self):
        return 3

    @staticmethod
    def fixed(x):
        return x - 1.0

    @classmethod
    def named(cls, x):
        return x + len(cls.__name__)

class Middle(A):
    def where(self):
        return "M" + super().where()

class B(Middle):
    def g(self, x, k=1.0):
        return super().g(x, k=k + 1.0) + 1.0

class Mixed(B):
    def g(self, x, k=1.0):
        return super().g(x, k) * 0.5

class Side(A):
    def g(self, x, k=1.0):
        return super().g(x) - k

class Both(Mixed, Side):
    pass

b, both = B(), Both()
"""
X = "[dilim.ones(3)]"


def _small(source, *calls, sends=0, receives=0, **how):
    return Small(HEAD + source, calls, sends, receives, **how)


PROGRAMS = {
    "super: a chain of methods in a loop": _small(
        """
def f(x):
    for _ in range(20):
        x = b.g(x) * 0.25
    return x
""",
        *(X, X),
        Call(X, before="B.scale = 3.0"),
    ),
    "super: a method of another time": _small(
        """
def f(x):
    return b.g(x) * 0.25
""",
        *(X, X),
        Call(X, before="A.g = lambda self, x, k=1.0: x * k"),
        Call(X, before="Middle.g = lambda self, x, k=1.0: x * 3.0"),
        Call(X, before="del Middle.g"),
        receives=None,
        sends=None,
    ),
    "super: what is next depends on the object": _small(
        """
def f(x):
    return both.g(x), B.g(both, x), b.g(x), Side().g(x)
""",
        *(X, X),
        Call(X, before="Middle.g = lambda self, x, k=1.0: x * 3.0"),
        Call(X, before="Both.__bases__ = (Side, Mixed)"),
    ),
    "super: the object may be another one": _small(
        """
class Changing(A):
    def g(self, x):
        self = self.other
        return super().g(x)

one, two = Changing(), Changing()
one.other, two.scale = two, 5.0

def f(x):
    return one.g(x)
""",
        *(X, X),
        Call(X, before="two.scale = 7.0"),
        Call(X, before="one.other = one"),
    ),
    "super: no object of the class": _small(
        """
class Wrong(A):
    def g(self, x):
        y = x + 1.0
        self = 3
        return super().g(y)

def f(x):
    return Wrong().g(x)
""",
        *(X, X),
        raises=(1, 2),
        receives=None,
        sends=None,
    ),
    "super: there is no such method": _small(
        """
class Lost(A):
    def g(self, x):
        return super().missing(x * 2.0)

lost = Lost()

def f(x):
    return lost.g(x)
""",
        *(X, X),
        Call(X, before="A.missing = lambda self, x: x + 3.0"),
        raises=(1, 2),
        receives=None,
        sends=None,
    ),
    "super: properties, static methods and those of classes": _small(
        """
class C(A):
    def g(self, x):
        return super().fixed(x) * super().size + super().named(x), super().where()

c = C()

def f(x):
    return c.g(x)
""",
        *(X, X),
        receives=None,
        sends=None,
    ),
    "super: another function of this name": _small(
        """
class D(A):
    def g(self, x):
        return super().g(x) + 1.0

d = D()

def f(x):
    return d.g(x)
""",
        *(X, X),
        Call(X, before="super = lambda: A()"),
        Call(X, before="del super"),
        receives=None,
        sends=None,
    ),
    "super: inside functions and comprehensions": _small(
        """
class E(A):
    def g(self, x):
        def inner(me, y):
            return super().g(y) + 1.0

        return inner(self, x), [super(E, self).g(x) for _ in range(2)]

e = E()

def f(x):
    return e.g(x)
""",
        *(X, X),
        receives=None,
        sends=None,
    ),
    "super: makes objects": _small(
        """
class P:
    def __init__(self, w):
        self.w = w * 2.0

class Q(P):
    def __init__(self, w):
        super().__init__(w + 1.0)
        self.b = self.w - 1.0

def f(x):
    q = Q(x)
    return q.w + q.b
""",
        *(X, X),
        receives=None,
        sends=None,
    ),
    "super: modules": _small(
        """
class Twice(nn.Dense):
    def forward(self, x):
        return super().forward(x) * 2.0

net = Twice(3, 2, generator=dilim.Generator(3))

def f(x):
    return net(x).relu()
""",
        *(X, X),
        receives=None,
    ),
}
