"""Small programs with ``with`` statements over contexts of the host; see `small_programs`."""

from slicing.comparing import Call
from slicing.small_programs import Small

CONTEXTS = """
import contextlib
import io
import threading
import traceback

class Shown:
    def __init__(self, name, *swallowed):
        self.name = name
        self.swallowed = swallowed

    def __enter__(self):
        print("enter", self.name)
        return self.name

    def __exit__(self, kind, error, entries):
        where = [(x.name, x.lineno) for x in traceback.extract_tb(entries)]
        print("exit", self.name, kind, error, where, STATE.count)
        return kind in self.swallowed

class Silent(Shown):
    def __exit__(self, *error):
        super().__exit__(*error)

@contextlib.contextmanager
def shown(name):
    print("in", name)
    try:
        yield name
    finally:
        print("out", name)

class State:
    def __init__(self):
        self.count = 0
        self.weight = dilim.ones(2)

STATE = State()

def fails(n):
    print("asked", n)
    if n == 2:
        raise ValueError(n)
    if n == 3:
        raise KeyError(n)
    return n * 0.5

"""
NUMBERS = ("[dilim.ones(2), 1]",) * 2
ERRORS = tuple(f"[dilim.ones(2), {n}]" for n in (1, 1, 2, 3, 1))

BODIES = {
    "contexts that do nothing": Small(
        CONTEXTS
        + """
def f(x, n):
    with contextlib.nullcontext(x) as y, contextlib.suppress(KeyError):
        x = y * 2
    with threading.Lock():
        x = x + y
    return x * n
""",
        NUMBERS,
        0,
        2,
    ),
    "a context of a class": Small(
        CONTEXTS
        + """
def f(x, n):
    with Silent("a") as name, shown("b"):
        y = x * 2
        fails(n)
        z = y + 1
        print(name)
    return z * 2
""",
        ERRORS,
        raises=(3, 4),
    ),
    "a context around a loop": Small(
        CONTEXTS
        + """
def f(x, n):
    with shown("all"):
        for i in range(20):
            x = x * 0.5 + n
    return x
""",
        NUMBERS,
    ),
    "a number from a context": Small(
        CONTEXTS
        + """
def f(x, n):
    for i in range(20):
        with Silent(n * 0.5 + i) as scale:
            x = x * scale
            if x.sum() > 1000:
                return x, i
        x = x + 1
    return x
""",
        NUMBERS,
        6,
        6,
    ),
    "two values from a context": Small(
        CONTEXTS
        + """
@contextlib.contextmanager
def pair(n):
    yield n * 0.5, "text"

def f(x, n):
    with pair(n) as (scale, text):
        x = x * scale
    print(text)
    return x
""",
        NUMBERS,
        0,
        None,
    ),
    "what is printed elsewhere": Small(
        CONTEXTS
        + """
def f(x, n):
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        print(x.sum().item())
        fails(n)
    print("after")
    return text.getvalue(), x + 1
""",
        ERRORS,
        1,
        raises=(3, 4),
    ),
    "a context that sees and changes attributes": Small(
        CONTEXTS
        + """
class Counting:
    def __init__(self, weight):
        self.weight = weight

    def __enter__(self):
        print("enter", STATE.count, STATE.weight)

    def __exit__(self, *error):
        print("exit", STATE.count, STATE.weight)
        if self.weight is not None:
            STATE.count += 1
            STATE.weight[0] += self.weight

def f(x, weight):
    STATE.count += 2
    for i in range(10):
        with Counting(weight):
            x = x + STATE.weight * STATE.count
            if x.sum() > 60:
                break
            if i % 3 == 0:
                continue
        x = x * 0.5 + STATE.count
    else:
        x = -x
    return x, STATE.count
""",
        tuple(f"[dilim.ones(2), {weight}]" for weight in (None, None, 1.0, 1.0, None)),
        None,
        None,
    ),
    "gradients in a context": Small(
        CONTEXTS
        + """
W = dilim.tensor([1.0, 2.0], requires_grad=True)
OPT = optim.SGD([W], learning_rate=0.1)

def f(x, n):
    for i in range(20):
        with shown(i):
            loss = ((x * W) ** 2).sum()
            OPT.zero_grad()
            loss.backward()
            OPT.step()
    return loss.item()
""",
        NUMBERS,
        None,
        None,
        may_leave=True,
    ),
    "a context that switches recording off": Small(
        CONTEXTS
        + """
W = dilim.tensor([1.0, 2.0], requires_grad=True)

@contextlib.contextmanager
def evaluation():
    with dilim.no_grad():
        yield 0.5

def f(x, n):
    with evaluation() as scale:
        y = W * x * scale
        fails(n)
    z = W * x
    return y.requires_grad, z.requires_grad, y
""",
        ERRORS,
        None,
        None,
        raises=(3, 4),
    ),
    "a context in no_grad": Small(
        CONTEXTS
        + """
W = dilim.tensor([1.0, 2.0], requires_grad=True)

class Mode(Silent):
    def __exit__(self, *error):
        super().__exit__(*error)
        print((W * 2).requires_grad)

def f(x, n):
    with dilim.no_grad():
        with Mode("a"):
            y = W * x
            fails(n)
    with shown("b"), dilim.no_grad():
        y = y + W
    return y.requires_grad, (W * 2).requires_grad
""",
        ERRORS,
        raises=(3, 4),
    ),
    "a context that cannot be sliced": Small(
        CONTEXTS
        + """
def f(x, n):
    y = x * 2
    with Shown("a", ValueError):
        if Shown(n):
            y = y + fails(n)
        if n == 1:
            return y
    return x, y + 1
""",
        ERRORS,
        None,
        None,
        raises=(4,),
    ),
}

EXITS = {
    "break, continue and return out of contexts": Small(
        CONTEXTS
        + """
def f(x, n):
    for i in range(30):
        with shown(i), Silent("inner"):
            x = x + 1
            if x.sum() > 200:
                return x, i
            if i == n:
                continue
            for j in range(9):
                with shown((i, j)):
                    if i == j:
                        break
                    x = x + j
            else:
                print("all")
            if x.mean() > 90:
                break
        x = x * 1.5
    return -x
""",
        tuple(f"[dilim.tensor([{x}, 2.0]), {n}]" for x, n in ((1.0, 1), (1.0, 2), (90.0, 3))),
        None,
        None,
    ),
    "return out of a context in a helper": Small(
        CONTEXTS
        + """
class Adding(Silent):
    def __exit__(self, *error):
        super().__exit__(*error)
        STATE.count += self.name == 4

def helper(x, n):
    with Adding(n):
        STATE.weight = STATE.weight * x
        if x.sum() > 10:
            return STATE.weight, fails(n)
        y = x * STATE.count
    return y, n

def f(x, n):
    with shown("f"):
        y, k = helper(x, n)
    return y * STATE.weight, k, STATE.count
""",
        tuple(f"[dilim.ones(2) * {x}, {n}]" for x in (1.0, 9.0) for n in (1, 1, 2, 4, 1)),
        None,
        None,
        raises=(8,),
    ),
    "return where a context is left with an error": Small(
        CONTEXTS
        + """
class Failing(Shown):
    def __exit__(self, *error):
        super().__exit__(*error)
        raise RuntimeError(self.name)

def f(x, n):
    with contextlib.suppress(RuntimeError), Shown("outer"):
        with Failing("inner"):
            fails(n)
            return x * 2
    return x * 3
""",
        ERRORS,
        None,
        None,
        may_leave=True,
    ),
}

FAILURES = {
    "an error that a context swallows": Small(
        CONTEXTS
        + """
def f(x, n):
    a = x * 1
    with Shown("a", ValueError):
        a = x * 2
        b = x.sum()
        b = fails(n)
        a = a + 1
    return a * 3, b
""",
        ERRORS,
        0,
        raises=(4,),
    ),
    "errors that a context swallows in a loop": Small(
        CONTEXTS
        + """
def f(x, n):
    for i in range(15):
        with Shown(i, ValueError):
            x = x + 1
            fails(i - n)
            x = x * 1.5
    return x
""",
        ("[dilim.ones(2), 20]", "[dilim.ones(2), 20]", "[dilim.ones(2), 5]", "[dilim.ones(2), 20]"),
        None,
        0,
        raises=(3,),
    ),
    "an error of an operation": Small(
        CONTEXTS
        + """
def f(x, n):
    STATE.count += 1
    with Silent("a"):
        y = x.clone()
        STATE.count += 1
        y = y[n]
        STATE.count += 1
    return y
""",
        ERRORS,
        2,
        raises=(3, 4),
    ),
    "an error of an operation that a context swallows": Small(
        CONTEXTS
        + """
def f(x, n):
    y = x
    with Shown("a", IndexError):
        y = x * 2
        STATE.count += 1
        y = y[n]
        STATE.count += 1
    return y + 1, STATE.count
""",
        ERRORS,
        None,
        None,
    ),
    "an error that a context turns into another": Small(
        CONTEXTS
        + """
@contextlib.contextmanager
def turning():
    try:
        yield
    except ValueError as error:
        raise TypeError("turned") from error

class Failing(Silent):
    def __exit__(self, *error):
        super().__exit__(*error)
        raise RuntimeError(self.name)

def f(x, n):
    with Silent("outer"), turning():
        y = x + 1
        fails(n)
    with Silent("outer"), Failing("inner"):
        y = y + 1
    return y
""",
        ERRORS,
        None,
        None,
        raises=(1, 2, 3, 4, 5),
    ),
    "an error on the way into a context": Small(
        CONTEXTS
        + """
class Closed(Shown):
    def __enter__(self):
        raise OSError(self.name)

def f(x, n):
    with shown("outer"):
        x = x + 1
        with Closed("inner"):
            x = x + 1
    return x
""",
        NUMBERS,
        None,
        raises=(1, 2),
        may_leave=True,
    ),
    "an error in a helper, swallowed by the caller": Small(
        CONTEXTS
        + """
def helper(y, n):
    with shown("helper"):
        k = int(y.sum())
        if k > 50:
            raise ValueError("large")
        return y[n]

def f(x, n):
    z = None
    with Shown("outer", ValueError):
        with dilim.no_grad():
            with Silent("inner"):
                y = x * 2
                z = helper(y, n)
            print(z)
    return x + 1, z
""",
        tuple(f"[dilim.ones(2) * {x}, {n}]" for x, n in ((1, 0), (1, 1), (30, 1), (1, 5), (1, 0))),
        None,
        None,
        raises=(4,),
    ),
    "raise in a context": Small(
        CONTEXTS
        + """
def f(x, n):
    with Silent("a"):
        if n == 2:
            raise ValueError("two")
        y = x * 2
    with Shown("b", ValueError):
        if x.sum() > 5:
            raise ValueError(n)
        if n == 3:
            raise KeyError(n)
        y = y + 1
    return y
""",
        (*ERRORS, "[dilim.ones(2) * 9, 1]", "[dilim.ones(2), 1]"),
        None,
        None,
        raises=(3, 4),
    ),
    "a swallowed error inside an except clause": Small(
        CONTEXTS
        + """
def g(x, n):
    with Shown("a", ValueError):
        x = x * 2
        fails(n)
    assert x.sum() < 5, x.sum().item()
    return x

def f(x, n):
    return g(x, n)
""",
        (
            *ERRORS,
            Call(
                "[dilim.ones(2) * 5, 2]",
                before="import sys\nsys.exc_info()",
            ),
            "[dilim.ones(2), 1]",
        ),
        None,
        None,
        raises=(4, 6),
    ),
}

CHANGED = {
    "what the host changes before the program does": Small(
        CONTEXTS
        + """
N = [0]

class Bumping(Shown):
    def __enter__(self):
        if self.name:
            STATE.count += 10
            N[0] += 10

def f(x, n):
    with Bumping(n):
        y = x * 2
        STATE.count += 1
        N[0] += 1
        y = y + STATE.count
    return y * N[0]
""",
        tuple(f"[dilim.ones(2), {n}]" for n in (0, 0, 0, 1, 0, 1, 1, 0, 0)),
        None,
        None,
        may_leave=True,
    ),
}

LEFT_WHOLE = {
    "ways out of a try that changes what is relied on": Small(
        CONTEXTS
        + """
def change(n):
    STATE.count += n
    return n

def helper(x, n):
    for i in range(20):
        x = x + STATE.count
        try:
            if change(n) == 1:
                return x * i
            if n == 2:
                continue
            if n == 3:
                break
        except ZeroDivisionError:
            return 0
        x = x * 2
        if x.sum() > 1000:
            return x
    else:
        return -x
    return x + 0.5

def f(x, n):
    with shown(n):
        y = helper(x, n)
    return y * STATE.count
""",
        tuple(f"[dilim.ones(2), {n}]" for n in (0, 0, 1, 1, 2, 2, 3, 3, 1, 0)),
        None,
        None,
        may_leave=True,
    ),
}

TRIED = {
    "a name that a try sets on one path": Small(
        """
def f(d, k, x):
    ok = True
    try:
        v = d[k]
    except KeyError:
        v, ok = 0, False
    return v, ok, x + 1
""",
        ("[{'a': 1}, 'a', dilim.ones(2)]", "[{'a': 1}, 'b', dilim.ones(2)]") * 2,
        None,
        None,
        may_leave=True,
    ),
    "a parameter that is set before a try and in it": Small(
        """
def f(x, rate):
    rate = rate * 0.5
    try:
        x = x + 1
        if rate > 3:
            raise ValueError
    except ValueError:
        rate = 0.0
    return x * rate
""",
        tuple(f"[dilim.ones(2), {rate}]" for rate in (1.0, 1.0, 8.0, 2.0)),
        None,
        None,
        may_leave=True,
    ),
    "memory that is found after a try has written into it": Small(
        """
class Box: pass
box = Box()

def f(n):
    box.w = dilim.zeros(2) if n < 4 else box.w
    return g(n), box.w

def g(n):
    if n > 5:
        return 3
    try:
        x = box.w
    finally:
        x[0] = 1
    box.w += 1
""",
        tuple(f"[{n}]" for n in (0, 4, 4, 7)),
        None,
        None,
        may_leave=True,
    ),
    "a lock is let go where a try in its body returns": Small(
        """
import threading
LOCK = threading.Lock()

def f(n, x):
    with LOCK:
        try:
            if n % 2:
                return x
        finally:
            x = x * 0.5
    return x, LOCK.locked()
""",
        tuple(f"[{n}, dilim.ones(2)]" for n in (3, 2, 3, 4)),
        None,
        None,
        may_leave=True,
    ),
    "the contexts of a loop are left by continue": Small(
        CONTEXTS
        + """
def f(n, x):
    for i in range(n):
        with shown(i), shown(n):
            if float(x.sum()) > 2:
                continue
            x = x + 1
    return x
""",
        tuple(f"[{n}, dilim.ones(2)]" for n in (3, 2, 3, 4)),
        None,
        None,
        may_leave=True,
    ),
}

PROGRAMS = {**BODIES, **EXITS, **FAILURES, **CHANGED, **LEFT_WHOLE, **TRIED}
