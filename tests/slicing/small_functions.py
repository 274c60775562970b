"""Small programs that make functions: by def and lambda, and derivatives; see `small_programs`."""

from slicing.comparing import Call
from slicing.small_programs import Small

NUMBERS = tuple(f"[dilim.ones(2), {n}]" for n in (1, 1, 2, 3, 1))

STATE = """
class State:
    def __init__(self):
        self.count = 1

    def advance(self, n):
        if n == 3:
            self.count += 1

STATE = State()
OBJECTS = [STATE]

"""

CALLED = {
    "inner functions with variables from outside and defaults": Small(
        """
def f(x, n):
    a = x * 2
    k = 3.0

    def inner(y, times=n, *more, scale=k, **named):
        for _ in range(times):
            y = y + a * scale
        return y, more, sorted(named)

    g = lambda v, by=2: v * by + n
    return inner(x), inner(g(x), 2, 1, name=4, scale=0.5), g(x, by=n)
""",
        NUMBERS,
    ),
    "an inner function that calls itself": Small(
        """
def f(x, n):
    def power(y, k):
        return y if k < 1 else power(y * x, k - 1)

    return power(x * 2, 4) + n
""",
        NUMBERS,
    ),
    "a function that a helper makes": Small(
        """
def adding(t):
    def add(other, k=2):
        return other * k + t

    return add

def apply(g, x):
    return g(x)

def f(x, n):
    a, b = adding(x * n), adding(x + n)
    return b(a(x)), apply(a, x), a is b, a is a
""",
        NUMBERS,
        None,
        None,
    ),
    "an inner function that prints": Small(
        """
def f(x, n):
    def shown(v):
        print("shown", v.sum().item())
        return v * 2

    for _ in range(15):
        x = shown(x * 0.5 + n)
    return x
""",
        NUMBERS,
        15,
    ),
    "host code in an inner function that uses variables from outside": Small(
        """
a = "global"

def f(x, n):
    a = x.sum() * 2
    b = "text"
    c = [n]

    def inner(v):
        print(b, a, n, c)
        c.append(n)
        w = v * a
        for k in range(12):
            w = w * 0.5 + k
            if k == n:
                print(f"{b} {n} {k}", c, a)
        return w * len(c)

    return inner(x), (lambda: print(a, b, x))(), c
""",
        NUMBERS,
        None,
        None,
    ),
    "an inner function given to the host": Small(
        """
def f(x, n):
    by = lambda v: -v * n
    first = sorted([3, 1, 2], key=by)
    second = list(map(lambda v: v + n, first))
    return x * first[0] + second[1], by(2)
""",
        NUMBERS,
        None,
        None,
    ),
    "an inner function that is returned": Small(
        """
def g(x, n):
    def scaled(v, k=n):
        return v * x + k

    return scaled

MADE = []

def f(x, n):
    MADE.append(g(x, n))
    return [made(x) for made in MADE]
""",
        NUMBERS,
        None,
        None,
    ),
    "functions in a list and one of two": Small(
        """
def f(x, n):
    for g in [lambda v: v * 2, lambda v: v + 1]:
        x = g(x)
    act = (lambda v: dilim.tanh(v)) if n > 1 else (lambda v: v * 2)
    return act(x)
""",
        NUMBERS,
        None,
        None,
    ),
    "an error in an inner function": Small(
        """
def f(x, n):
    def inner(v, k):
        w = v[k]
        return w * 2

    g = lambda v: inner(v, n)
    return g(x)
""",
        NUMBERS,
        raises=(3, 4),
    ),
    "a wrong call of an inner function": Small(
        """
def f(x, n):
    def inner(v, *, k):
        return v * k

    return inner(x, k=n) + inner(x)
""",
        NUMBERS,
        None,
        None,
        raises=(1, 2, 3, 4, 5),
    ),
    "an inner function where the rest is left to the host": Small(
        STATE
        + """
def f(x, n):
    a = x * STATE.count
    own = lambda v: v - a

    def inner(v, k=n, *, shift=a):
        return own(v) * STATE.count + k - shift

    slope = dilim.grad(lambda v: (own(v) ** 2).sum())
    OBJECTS[0].advance(n)
    y = inner(x)
    print(inner.__name__ if n > 9 else "inner", STATE.count)
    return y, inner(y), slope(x), own(y)
""",
        NUMBERS,
        None,
        None,
    ),
    "inner functions made in loops and branches": Small(
        """
def f(x, n):
    g = None
    for i in range(n * 10):
        def h(v, k=2.0):
            return v * k + n

        x = h(x) * 0.25
        if x.sum() > 5:
            g = h
    if x.sum() > 2:
        def last(v):
            return v * 2
    else:
        def last(v):
            return v - 1
    return last(x), h(x), g is None or g(x)
""",
        NUMBERS,
        None,
        None,
    ),
    "an inner function of which the rest is left to the host": Small(
        STATE
        + """
def f(x, n):
    a = x * STATE.count
    k = [n]

    def changing(v):
        w = v + a
        OBJECTS[0].advance(n)
        k.append(STATE.count)
        return w * STATE.count + a, len(k)

    y, count = changing(x)
    return changing(y), count, k
""",
        (*NUMBERS, "[dilim.ones(2), 3]", "[dilim.ones(2), 1]"),
        None,
        None,
        may_leave=True,
    ),
    "an inner function in a method, with private names": Small(
        """
class Model:
    def __init__(self):
        self.__scale = 0.5

    def forward(self, x, n):
        def scaled(v):
            return v * self.__scale + n

        return scaled(scaled(x))

MODEL = Model()

def f(x, n):
    return MODEL.forward(x, n)
""",
        NUMBERS,
    ),
}

DERIVED = {
    "derivatives of functions that the function makes": Small(
        """
W = dilim.tensor([1.0, 2.0], requires_grad=True)

def f(x, n):
    def loss(w, b=0.5):
        return ((x * w + b) ** 2).mean() * n

    value, slope = dilim.value_and_grad(loss)(x * 2)
    second = dilim.grad(lambda t: dilim.grad(lambda u: (u**3).sum())(t).sum())
    both = dilim.grad(loss, argnums=(0, 1))(x, x + 1)
    return value, slope, second(x), both
""",
        NUMBERS,
    ),
    "derivatives in a loop": Small(
        """
def loss(w, x):
    return dilim.square(x * w).mean()

def f(x, n):
    def step(w, rate):
        return w - rate * dilim.grad(lambda u: ((u * x) ** 2).sum())(w)

    slope = dilim.grad(loss)
    w = dilim.ones(2)
    for _ in range(n * 10):
        w = step(w, 0.01) - 0.1 * slope(w, x)
        if w.sum() < 0.5:
            break
    return w
""",
        NUMBERS,
    ),
    "a derivative of a function that prints": Small(
        """
def loss(w):
    print("loss", w.sum().item())
    return (w * w).sum()

def f(x, n):
    for _ in range(n):
        x = x - 0.1 * dilim.grad(loss)(x)
    return x
""",
        NUMBERS,
        None,
        None,
    ),
    "a derivative of what is no number": Small(
        """
def f(x, n):
    y = x * 2
    return y + dilim.grad(lambda v: v * n)(y)
""",
        NUMBERS,
        None,
        None,
        raises=(1, 2, 3, 4, 5),
    ),
    "a derivative that is handed out": Small(
        """
KEPT = []

def f(x, n):
    KEPT.append(dilim.grad(lambda v: (v * x).sum() * n))
    return [slope(x) for slope in KEPT]
""",
        NUMBERS,
        None,
        None,
    ),
    "a loss that changes between calls": Small(
        """
RATE = 0.5

def loss(w):
    return (w * w).sum() * RATE

def f(x, n):
    return dilim.grad(loss)(x) * n
""",
        (
            *NUMBERS,
            Call("[dilim.ones(2), 1]", before="RATE = 2.0"),
            Call("[dilim.ones(2), 1]", before="def loss(w): return w.sum()"),
        ),
        None,
        None,
    ),
}

FALLING = {
    f"a helper that falls off its end, {name}": Small(
        f"""
class Box: pass
box = Box()
box.w = dilim.zeros(2)

def helper(x, n):
{body}

def f(x, n):
    r = helper(x, n)
    if r is None:
        x = x * 2
    return r, x
""",
        tuple(f"[dilim.ones(2), {n}]" for n in (0, 0, 7, 3, 7, 0)),
        None,
        None,
        may_leave=True,
    )
    for name, body in {
        "after a return on one path": "    if n > 5: return 3\n    box.w += 1",
        "after a return of a tensor": "    if x.sum() * n > 5: return x * 3",
        "after a return in a loop": "    for i in range(n):\n        if x.sum() > 5: return i\n"
        "        x = x + 1",
        "after a return in a try": "    try:\n        if [1, 9, 2, 8][n] > 5: return 3\n"
        "    except IndexError: pass",
    }.items()
}

PROGRAMS = {**CALLED, **DERIVED, **FALLING}
