"""Small programs with objects, host code that keeps tensors; see `small_programs`."""

from slicing.small_programs import SIGNS, VECTOR, Small

KEPT = {
    "an array of a tensor that is kept": Small(
        """
KEPT = []

def f(x):
    y = x * 2
    a = y.numpy()
    KEPT.append(a)
    y += 1
    return y, a
""",
        VECTOR,
        None,
    ),
    "a tensor changed by the host": Small(
        """
def poke(t):
    t += random.randint(5, 5)

def f(x):
    y = x * 2
    list(map(lambda t: t.add_(1), [y, x]))
    poke(y)
    z = y + 1
    poke(x)
    return y, z, x
""",
        VECTOR,
        None,
        None,
        may_leave=True,
    ),
    "a tensor kept by the host": Small(
        """
KEPT = []

def f(x):
    y = x * 2
    KEPT.append(y)
    y += 1
    print(KEPT[0].sum().item())
    KEPT[0] *= 2
    return y
""",
        VECTOR,
        None,
        None,
    ),
    "a default that is a list": Small(
        """
def f(x, seen=[]):
    seen.append(x.sum())
    return len(seen), seen[-1], x * len(seen)
""",
        VECTOR,
        None,
        None,
    ),
    "a dict changed while it is read": Small(
        """
D = {"a": 1.0, "b": 2.0}

def f(x):
    for k, v in D.items():
        x = x * v
        D[k] = v + 1
    return x
""",
        VECTOR,
        None,
        None,
    ),
    "texts of tensors": Small(
        """
import sys

def f(x):
    sys.stdout.write(f"{x.tolist()}\\n")
    print(x, x * 2, sep="|", file=sys.stdout)
    return repr(x), str(x.sum()), f"{x.sum().item():>8.3f}", "%.2f" % x.sum()
""",
        VECTOR,
        None,
    ),
}

OBJECTS = {
    "an attribute that the host changes in an inner loop": Small(
        """
class Box:
    scale = 0.5

B = Box()

def f(x, n):
    k = 0
    while k < 3:
        k += 1
        for i in range(n):
            print(x.sum().item())
            B.scale -= min(B.scale, B.scale) * 0.25
    B.scale *= 0.5
    return x * B.scale
""",
        ("[dilim.ones(2), 0]", "[dilim.ones(2), 1]", "[dilim.ones(2), 2]"),
        None,
        None,
    ),
    "objects that builtins look at": Small(
        """
class Counted:
    def __init__(self):
        self.n = 1
        self.w = dilim.ones(2)
    def __len__(self):
        print("len")
        return self.n
    def __str__(self):
        self.n += 1
        self.w = self.w + 1
        return str(self.n)
    def __abs__(self):
        self.n += 10
        return self.n
    def __add__(self, other):
        self.n += 100
        return self.n

C = Counted()

def f(x):
    x = x + C.w * len(C)
    print(C)
    x = x + C.w * C.n
    text = f"{C}"
    x = x + C.w * C.n
    total = abs(C) + (C + 1)
    return x + C.w * C.n, text, total, isinstance(C, Counted)
""",
        VECTOR,
        None,
        None,
        may_leave=True,
    ),
    "an attribute that the host sees on a path that goes on": Small(
        """
class Box:
    def __init__(self):
        self.w = dilim.tensor(0.0)
        self.scale = 0.5

B = Box()

def f(x):
    B.w = dilim.tanh(B.w)
    if B.w:
        return x
    elif B.scale:
        undefined
""",
        ("[dilim.ones(2)]",),
        None,
        None,
        raises=(1,),
        may_leave=True,
    ),
    "a new tensor in each turn, written after the host has seen it": Small(
        """
class Box:
    def __init__(self):
        self.w = dilim.ones(3)

    @property
    def total(self):
        return self.w.sum()

B = Box()

def f(n):
    for i in range(n):
        B.w = B.w * 0.5
        B.total.fill_(i)
        B.w.mul_(3.0)
    return B.w
""",
        ("[3]", "[9]", "[12]", "[0]", "[1]"),
        None,
        None,
    ),
    "an attribute that host code changes before the program does": Small(
        """
STEP = {"n": 0}

class Box:
    def __init__(self):
        self.n = 0

    def advance(self, t):
        self.n += 1
        return {t, 1.0}

B = Box()

def f(x):
    B.advance(str(x.shape))
    B.n -= STEP["n"]
    return x * B.n
""",
        VECTOR,
        None,
        None,
        may_leave=True,
    ),
    "properties": Small(
        """
class P:
    def __init__(self):
        self._v = 1.0

    @property
    def v(self):
        print("get")
        return self._v

    @v.setter
    def v(self, value):
        print("set")
        self._v = value

P0 = P()

def f(x):
    P0.v = P0.v * 2
    return x * P0.v
""",
        VECTOR,
        None,
        None,
    ),
    "attributes that are computed": Small(
        """
class P:
    def __getattr__(self, name):
        print("get", name)
        return 2.0

    def __getitem__(self, k):
        print("item", k)
        return k * 1.0

P0 = P()

def f(x):
    return x * P0.anything + P0[3]
""",
        VECTOR,
        None,
        None,
    ),
    "super without arguments": Small(
        """
class Base:
    def __init__(self, scale=2.0):
        self.scale = scale
        self.steps = 0

    def step(self, x, *, extra=0.0):
        self.steps += 1
        return x * self.scale + extra

    @property
    def name(self):
        return "base"

    @classmethod
    def make(cls, *scale):
        return cls(*scale)

class Middle(Base):
    pass

class Top(Middle):
    def step(self, x, **options):
        print(super().name, self.steps)
        return super().step(x, **options) + 1

    @classmethod
    def make(cls, *scale):
        return super().make(*scale)

T = Top.make(3.0)

def f(x):
    other = Top.make()
    return T.step(x, extra=0.5), other.step(x), T.steps + other.steps
""",
        VECTOR,
        2,
    ),
    "super of a wrapper": Small(
        """
class Env:
    def reset(self, seed):
        print("reset", seed)
        return 1.0

class Wrapper(Env):
    def __init__(self, env):
        self.env = env

    def reset(self, seed):
        return self.env.reset(seed)

class Limit(Wrapper):
    def reset(self, seed):
        self.n = 0
        return super().reset(seed)

E = Limit(Limit(Env()))

def f(x):
    return x * E.reset(3)
""",
        VECTOR,
        0,
        None,
    ),
    "operators of a class": Small(
        """
class N:
    def __init__(self, t):
        self.t = t

    def __add__(self, other):
        return N(self.t + (other.t if isinstance(other, N) else other))

    def __mul__(self, other):
        return N(self.t * (other.t if isinstance(other, N) else other))

    def __bool__(self):
        print("bool")
        return bool(self.t.sum() > 0)

    def __len__(self):
        return 2

    def __iter__(self):
        yield self.t
        yield -self.t

def f(x):
    a = N(x) * 2 + N(x)
    if a:
        b, c = a
        return b + c * 2, len(a)
    return a.t
""",
        SIGNS,
        None,
        None,
    ),
    "kinds of arguments": Small(
        """
def f(x, y):
    if isinstance(y, float):
        return x * y
    if y is None:
        return x
    if type(y) is dilim.Tensor and y.dtype == dilim.float32 and y.shape == x.shape:
        return x + y
    return x.shape[0] * y
""",
        tuple(
            f"[dilim.ones(2), {y}]" for y in ("2.0", "None", "dilim.ones(2)", "dilim.ones(1)", "3")
        ),
    ),
    "and, or, not and comparisons": Small(
        """
def f(x, y):
    a = x.sum() > 0 and y
    b = x.sum() > 0 or y
    c = y if x.sum() > 0 else None
    d = not x.sum() > 0
    e = 0 < x.sum() < 5
    return a, b, c, d, e
""",
        ("[dilim.ones(2), 3]", "[-dilim.ones(2), 0.5]", "[dilim.ones(2), dilim.zeros(1)]"),
    ),
    "arithmetic of ints": Small(
        """
def f(x, n, m):
    parts = n // m, n % m, n**2, n << 1, n | m, n > m, min(n, m), max(n, m), abs(n), divmod(n, m)
    return x * (n // m), parts, round(n / m, 2), int(n / m)
""",
        tuple(
            f"[dilim.ones(2), {n}, {m}]" for n, m in ((7, 2), (-7, 2), (7, -2), (2**30, 3), (0, 5))
        ),
        None,
        None,
    ),
    "arithmetic of floats": Small(
        """
def f(x, a, b):
    parts = a // b, a % b, a**b, math.sqrt(a), math.exp(b), int(a), round(a), max(a, b), a > b
    return x * a + b, parts
""",
        tuple(f"[dilim.ones(2), {a}, {b}]" for a, b in ((7.5, 2.0), (2.5, 0.1), (1e3, -3.0))),
        None,
        None,
    ),
}

PROGRAMS = {**KEPT, **OBJECTS}
