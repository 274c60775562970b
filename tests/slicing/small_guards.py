"""Small programs whose constants could be taken for others: what they depend on changes."""

from slicing.comparing import Call
from slicing.small_programs import Small

X = "[dilim.ones(2)]"


def _small(source, *calls, **expectations):
    # what is depended on changes on purpose, and the run that sees it is left
    return Small(source, calls, None, None, **{"may_leave": True} | expectations)


def _given(function, *values):
    return _small(function, *(f"[dilim.ones(2), {value}]" for value in values))


EQUALS = {
    "ranges that are equal": _given(
        "def f(x, r): return x * len(r), r", "range(0)", "range(1, 1)", "range(0, 3, 2)", "range(4)"
    ),
    "complex numbers that are equal": _given(
        "def f(x, z): return x, z, str(z)", "0j", "-0j", "complex(0, -0.0)", "complex(-0.0, 0)"
    ),
    "slices that are equal": _given(
        "def f(x, s): return x + 1, s",
        *("slice(0, 1)", "slice(False, 1)", "slice(0.0, 1)", "slice(-0.0, True)"),
    ),
    "slices of objects": _given(
        "def f(x, s): return x + 1, s",
        *("slice(dilim.ones(2), 1)", "slice(dilim.zeros(2), 1)", "slice([1], 2)", "slice([2], 2)"),
    ),
    "keys that are equal": _given(
        "def f(x, d): return list(d), [k for k in d], x * len(d)",
        *("{1: 0}", "{True: 0}", "{1.0: 0}", "{0.0: 0}", "{-0.0: 0}"),
        *("{(1,): 0}", "{(True,): 0}", "{(0.0,): 0}", "{(-0.0,): 0}"),
    ),
    "texts of an own kind": _small(
        """
class Name(str):
    scale = 1.0

NAME = Name("a")

def f(x):
    return x * NAME.scale, NAME == "a"
""",
        X,
        Call(X, before="NAME = Name('a'); NAME.scale = 2.0"),
        Call(X, before="Name.__eq__ = lambda self, other: False"),
        X,
    ),
}

CLASSES = {
    "a class that is registered": _small(
        """
import abc

class Kind(abc.ABC):
    pass

class U:
    pass

u = U()

def f(x):
    return x * (2 if isinstance(u, Kind) else 3), issubclass(U, Kind)
""",
        X,
        Call(X, before="Kind.register(U)"),
        X,
    ),
    "a class that decides what is of its kind": _small(
        """
class Meta(type):
    def __instancecheck__(cls, x):
        print("check")
        return True

class Anything(metaclass=Meta):
    pass

def f(x):
    return isinstance(x, Anything), isinstance(1, (int, str)), isinstance(1, int | str), x + 1
""",
        *(X,) * 3,
    ),
    "a class made in the function with type": _small(
        "def f(x): return type('K', (), {}), type(x).__name__, x + 1",
        *(X,) * 3,
    ),
    "an object that becomes one to be called": _small(
        """
class K:
    pass

k = K()

def f(x):
    return x * (2 if callable(k) else 3), callable(f), callable(K), callable(1)
""",
        X,
        Call(X, before="K.__call__ = lambda self: 1"),
        Call(X, before="del K.__call__"),
    ),
    "objects that are compared with None": _small(
        """
class Own:
    def __eq__(self, other):
        print("eq")
        return other is None

class Plain:
    pass

own, plain, hook = Own(), Plain(), None

def f(x):
    return own == None, own != None, None == own, plain == None, hook != None, x * 2
""",
        *(X, X),
        Call(X, before="Plain.__eq__ = lambda self, other: 'equal'"),
        Call(X, before="hook = print"),
        Call(X, before="del Plain.__eq__; Plain.__ne__ = Plain.__eq__"),
    ),
    "objects that come to be false": _small(
        """
class K:
    pass

k = K()

def f(x):
    if k:
        return x + 1
    return x - 1
""",
        *(X, X),
        Call(X, before="K.__bool__ = lambda self: False"),
        Call(X, before="del K.__bool__; K.__len__ = lambda self: 0"),
        Call(X, before="del K.__len__"),
        native=3,
        fallback="the truth of an object of K",
    ),
}

NET = "net = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))\n"

MODULES = {
    "a module with parts of the user's": _small(
        """
SCALE = 2.0

class Scaled(nn.Module):
    def __init__(self):
        self.w = dilim.ones(2, requires_grad=True)

    def forward(self, x):
        print("forward")
        return x * self.w * SCALE

def act(x):
    print("act")
    return x + SCALE

net = nn.Sequential(nn.Linear(2, 2), Scaled(), act, dilim.relu, lambda x: x * 2)
OPT = optim.SGD(net.parameters(), learning_rate=0.1)

def f(x):
    OPT.zero_grad()
    y = net(x).sum()
    y.backward()
    OPT.step()
    return y.item()
""",
        *(X, X),
        Call(X, before="SCALE = 3.0"),
        Call(X, before="net.layers[4] = lambda x: x - 1"),
        Call(X, before="net.forward = lambda x: net[0](x) * 3"),
    ),
    "how modules are called": _small(
        """
class A(nn.Module):
    def forward(self, x):
        return x + 1

class B(A):
    def __call__(self, x):
        return super().__call__(x) * 10

a, b = A(), B()

def f(x):
    return a(x) * 2, b(x)
""",
        X,
        Call(X, before="A.forward = lambda self, x: x + 0.5"),
        Call(X, before="a.forward = lambda x: x + 0.25"),
        Call(X, before="A.__call__ = lambda self, x: x + 0.75"),
    ),
    "evaluation for the next call": _small(
        NET
        + """
def f(x):
    y = net(x)
    net.eval()
    return y
""",
        *(X, X),
        Call(X, before="net.train()"),
        X,
    ),
    "training and evaluation": _small(
        NET
        + """
def f(x):
    net.train()
    a = net(x)
    net.eval()
    return a, net(x), net.training
""",
        *(X,) * 3,
    ),
    "the layers of a module": _small(
        """
net = nn.Sequential(nn.Linear(2, 2), nn.ReLU())

def f(x):
    for layer in net:
        x = layer(x)
    for i in range(len(net)):
        x = net[i](x)
    return x, len(net), str(net)
""",
        *(X, X),
        Call(X, before="net.layers.append(nn.Tanh())"),
        Call(X, before="net.layers[0] = nn.Tanh()"),
    ),
    "a range of an object": _small(
        """
class Count:
    n = 2

    def __index__(self):
        print("index")
        return self.n

count = Count()

def f(x):
    for i in range(count):
        x = x + i
    return x, range(count), list(range(0, count, 1))
""",
        *(X, X),
        Call(X, before="count.n = 4"),
    ),
}


def _result_listed(x):
    return Call(x, after="result = list(map(list, result))")


ITERATORS = {
    "iterators that are handed out": _small(
        """
class Holder:
    pass

HOLDER = Holder()

def f(x):
    HOLDER.left = enumerate([3, 4])
    d = {"a": 1, "b": 2}
    print(d.items(), d.keys())
    return enumerate([5, 6]), zip([x], [1]), reversed([1, 2]), d.values(), HOLDER.left
""",
        *(_result_listed(X),) * 3,
    ),
    "an iterator from outside that is used up": _small(
        """
LEFT = iter([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])

def f(x, a):
    for p, q in zip(LEFT, a):
        x = x + p * q
    return x, tuple(LEFT) if len(a) > 1 else ()
""",
        *("[dilim.ones(2), [1.0]]",) * 2,
        "[dilim.ones(2), [1.0, 2.0]]",
    ),
    "an iterator that a loop leaves early": _small(
        """
def f(x, n):
    z = zip([x, x + 1, x + 2], [1, 2, 3])
    for a, k in z:
        if k == n:
            break
    return a, [k for _, k in z]
""",
        *(f"[dilim.ones(2), {n}]" for n in (1, 2, 3, 4)),
    ),
    "an iterator around a loop": _small(
        """
def f(x, n):
    z = zip([x, x * 2, x * 3], [1.0, 2.0, 3.0])
    for _ in range(n):
        for a, b in z:
            x = x + a * b
    return x
""",
        *("[dilim.ones(2), 3]", "[dilim.ones(2), 9]") * 2,
    ),
    "an iterator that one path uses up": _small(
        """
def f(x):
    z = zip([x, x + 1], [1, 2])
    first = 0
    if x.sum() > 1:
        for y, k in z:
            first = first + k
    r = reversed([1, 2])
    a = tuple(r)
    return tuple(z), first, a, tuple(r)
""",
        *("[dilim.ones(2)]", "[dilim.zeros(2)]") * 2,
    ),
}

LISTS = {
    "lists that grow by what comes from outside": _small(
        """
G = [2.0]

def f(x):
    a = [1.0]
    a.extend(G)
    b = [x]
    b += G
    b += (1, 2)
    b.extend(zip("ab", G))
    return x * a[1] + b[1], a, b, len(a)
""",
        X,
        Call(X, before="G[0] = 3.0"),
        Call(X, before="G.append(4.0)"),
        Call(X, before="G = [7.0]"),
    ),
    "lists that grow by an object": _small(
        """
class C:
    n = 0

    def __iter__(self):
        self.n += 1
        print("iter")
        return iter([self.n, 0])

    def __index__(self):
        self.n += 1
        return 0

c = C()

def f(x):
    a = [1.0, 2.0]
    a.extend(c)
    a += c
    a.pop(c)
    a.insert(c, 5)
    return a, x * c.n
""",
        *(X,) * 3,
    ),
}

PATCHES = {
    "a function of dilim that is replaced": _small(
        "old = dilim.exp\n\ndef f(x): return dilim.exp(x) + nn.losses.mse(x, x)",
        X,
        Call(X, before="dilim.exp = lambda x: x * 3", after="dilim.exp = old"),
        X,
        Call(
            X, before="mse, nn.losses.mse = nn.losses.mse, dilim.add", after="nn.losses.mse = mse"
        ),
        X,
    ),
    "a builtin that is replaced": _small(
        """
import builtins

old = abs

def f(x):
    return x * abs(-3.0), len([x])
""",
        X,
        Call(X, before="builtins.abs = lambda x: x", after="builtins.abs = old"),
        X,
    ),
    "a layer of dilim that is replaced": _small(
        """
old = nn.Dense.forward
net = nn.Sequential(nn.Dense(2, 2), nn.ReLU())

def noted(self, x):
    print("forward")
    return old(self, x)

def f(x):
    return net(x), net[0](x)
""",
        X,
        Call(X, before="nn.Dense.forward = noted"),
        X,
        Call(X, before="nn.Dense.forward = old"),
    ),
}

LATER = {
    "a method of tensors that is replaced": _small(
        """
old = dilim.Tensor.sum

def noted(self):
    print("sum")
    return old(self) * K

K = 2.0

def f(x):
    return x.sum() + 1, x * 2
""",
        X,
        Call(X, before="dilim.Tensor.sum = noted"),
        Call(X, before="K = 3.0", after="dilim.Tensor.sum = old"),
        X,
    ),
    "attributes that become others": _small(
        """
class C:
    k = 2.0

    def __init__(self):
        self.n = 3.0

c = C()

def f(x):
    c.m = x
    return x * c.k + c.n
""",
        X,
        Call(X, before="C.n = property(lambda self: 4.0)"),
        Call(X, before="C.k = property(lambda self: print('k') or 5.0)"),
        Call(
            X, before="C.__getattribute__ = lambda self, name: 9.0", after="del C.__getattribute__"
        ),
        Call(X, before="C.__setattr__ = lambda self, name, value: print('set', name)"),
        Call(X, before="del C.n, C.k, C.__setattr__; c.k = 1.0"),
    ),
    "a class that gets another base": _small(
        """
class A:
    v = 1.0

class B:
    v = 2.0

class C(A):
    pass

c = C()

def f(x):
    return x * c.v, isinstance(c, A), issubclass(C, B)
""",
        X,
        Call(X, before="C.__bases__ = (B,)"),
        Call(X, before="B.v = 5.0"),
    ),
}

PROGRAMS = {**LATER, **PATCHES, **LISTS, **EQUALS, **CLASSES, **MODULES, **ITERATORS}
