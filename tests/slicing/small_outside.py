"""Small programs that change what stands outside: globals, items, variables around them."""

from slicing.comparing import Call
from slicing.small_programs import SIGNS, Small

VECTOR = ("[dilim.ones(2)]",) * 4
STEPS = tuple(f"[dilim.ones(2), {n}]" for n in (3, 4, 0, 12))

PROGRAMS = {
    "a global counter in a loop": Small(
        """
counter = 0

def f(x, n):
    global counter
    for _ in range(n):
        counter += 1
        x = x * counter
    return x
""",
        STEPS,
    ),
    "items of a global dict in a loop": Small(
        """
state = {"w": dilim.ones(2), "n": 0}

def f(x, n):
    for _ in range(n):
        state['w'] = state['w'] * 0.9 + x
        state["n"] += 1
    return state["w"]
""",
        STEPS,
    ),
    "items through two names of a dict": Small(
        """
state = {"w": dilim.ones(2), "n": 0}
other = state

def f(x, n):
    state['w'] = state['w'] * 0.9 + x
    y = other['w']
    other['w'] = y * 2
    y += 1
    return state["w"], y, state['w'] is other['w'], y is state['w']
""",
        STEPS,
    ),
    "globals printed while they change": Small(
        """
counter = 0
state = {"w": dilim.ones(2), "n": 0}

def f(x, n):
    global counter
    print(counter)
    counter += 1
    print(counter)
    t = f"{counter}"
    counter += int(x.sum())
    state["n"] += counter
    print(state, t)
    print(f"{counter} {state['n']}")
    return x * counter
""",
        STEPS,
        sends=None,
        receives=None,
    ),
    "globals that host code looks at": Small(
        """
counter = 0
state = {"w": dilim.ones(2), "n": 0}

def look():
    try:
        return counter, state["n"], state["w"].tolist()
    finally:
        pass

def f(x, n):
    global counter
    counter += 1
    a = look()
    state["n"] += counter
    state["w"] = x * counter
    b = look()
    return x * counter, a, b
""",
        STEPS,
        sends=None,
        receives=None,
    ),
    "globals that host code changes": Small(
        """
counter = 0
state = {"w": dilim.ones(2), "n": 0}

def bump():
    global counter
    try:
        counter += 10
        state["n"] += 10
        state["w"] = state["w"] + 1
    finally:
        pass

def f(x, n):
    global counter
    counter += 1
    state["n"] += 1
    state["w"] = state["w"] * 2
    bump()
    counter += 1
    state["n"] += 1
    state["w"] = state["w"] * 2
    return x * counter * state["n"], state["w"]
""",
        STEPS,
        sends=None,
        receives=None,
        may_leave=True,
    ),
    "globals in a branch": Small(
        """
best = 0.0
best_x = None
state = {"w": dilim.ones(2), "n": 0, "who": "a"}

def f(x):
    global best, best_x
    s = x.sum().item()
    if s > best:
        best = s
        best_x = x
        state["n"] += 1
        state["who"] = "b"
    return x * best, best_x, state["who"]
""",
        SIGNS + ("[dilim.ones(2) * 2]",) * 2,
        sends=None,
        receives=None,
    ),
    "globals of two kinds": Small(
        """
last = None
state = {"last": 1}

def f(x):
    global last
    if x.sum() > 0:
        last = x * 2
        state["last"] = x
    else:
        last = 3
        state["last"] = 2.0
    return last
""",
        SIGNS,
    ),
    "globals before an operation that fails": Small(
        """
count = 0
state = {"n": 0}

def f(x, i):
    global count
    count += 1
    state["n"] += 2
    y = x[i]
    count += 1
    state["n"] += 2
    return y
""",
        (
            "[dilim.ones(2),0]",
            "[dilim.ones(2),5]",
            "[dilim.ones(2),1]",
            "[dilim.ones(2),7]",
            "[dilim.ones(2),0]",
        ),
        sends=None,
        receives=None,
        raises=(2, 4),
    ),
    "a dict that gets an item": Small(
        """
state = {}

def f(x):
    state["w"] = x * 2
    state["n"] = state.get("n", 0) + 1
    return state["w"] + state["n"]
""",
        VECTOR,
        sends=None,
        receives=None,
    ),
    "a global that is made": Small(
        """

def f(x):
    global made
    made = x * 2
    return made + 1
""",
        VECTOR,
        sends=None,
        receives=None,
    ),
    "a text in a dict of tensors": Small(
        """
state = {"msg": "", "n": 0, "w": dilim.ones(2)}

def f(x, n):
    for k in range(n):
        state["msg"] = f"{k}"
        state["n"] += 1
        state["w"] = state["w"] * 0.5
    return state["w"], state["msg"]
""",
        STEPS,
        sends=None,
        receives=None,
    ),
    "items of a global list": Small(
        """
L = [0, dilim.ones(2), 1.5]

def f(x, n):
    L[0] += 1
    L[-2] = L[1] * 2
    L[2] *= 2
    a = L[-1], L[-2], L[-3]
    for k in range(n):
        L[0] += k
        L[-2] = L[-2] + x
    return a, len(L), L[1], [v for v in L]
""",
        STEPS,
    ),
    "a dict of parameters in a loop": Small(
        """
params = {"w": dilim.ones(2), "b": dilim.zeros(2)}

def f(x, n):
    for _ in range(n):
        for k in params:
            params[k] = params[k] * 0.9 + x
    return sum(params[k] for k in params)
""",
        STEPS,
    ),
    "variables of an enclosing function": Small(
        """

def make():
    n = 0
    def look():
        try:
            return n
        finally:
            pass
    def f(x):
        nonlocal n
        n += 1
        a = look()
        for _ in range(10):
            n += 1
            x = x * 0.5
        print(n)
        return x * n, a, look()
    return f
f = make()
""",
        VECTOR,
        sends=None,
        receives=None,
    ),
    "a global as an attribute of its module": Small(
        """
import sys
me = sys.modules[__name__] if __name__ in sys.modules else None
n = 0

def f(x):
    global n
    n += 1
    if me is not None:
        y = me.n
        me.n = me.n + 1
        return x * n, y
    return x * n
""",
        VECTOR,
        sends=None,
        receives=None,
        may_leave=True,
    ),
    "a global that a helper changes": Small(
        """
n = 0

def g(x):
    global n
    n += 1
    return x * n

def f(x):
    y = g(x)
    z = g(y)
    return y + z * n
""",
        VECTOR,
    ),
    "globals changed in place": Small(
        """
acc = dilim.zeros(2)
state = {"acc": dilim.zeros(2)}

def f(x):
    global acc
    acc += x
    state["acc"] += x
    old = acc
    acc = acc * 2
    old += 1
    return acc, old, state["acc"]
""",
        VECTOR,
    ),
    "globals that are swapped": Small(
        """
a = dilim.zeros(2)
b = dilim.ones(2)

def f(x):
    global a, b
    a, b = b, a + x
    return a, b, a is b
""",
        VECTOR,
    ),
    "a tensor at three places": Small(
        """
a = dilim.zeros(2)
state = {"p": None, "q": None}

def f(x):
    global a
    y = x * 2
    a = y
    state["p"] = y
    state["q"] = state["p"]
    y += 1
    return y is a
""",
        VECTOR,
    ),
    "a global bound in an expression": Small(
        """
a = dilim.zeros(2)

def f(x):
    global a
    if (a := a + x).sum() > 4:
        a = a * 0.5
    return a
""",
        VECTOR,
    ),
    "a global as the target of a loop": Small(
        """
k = 0

def f(x, n):
    global k
    for k in range(n):
        x = x * 0.5 + k
    return x, k
""",
        STEPS,
    ),
    "globals that are unpacked": Small(
        """
a, b = 1, 2.0

def f(x):
    global a, b
    a, b = b, a
    (a, b), c = (a + 1, b + 1), x
    return c * a * b
""",
        VECTOR,
    ),
    "a global that is deleted": Small(
        """
a = 1

def f(x):
    global a
    a = 5
    y = x * a
    del a
    a = 2
    return y + a
""",
        VECTOR,
        sends=None,
        receives=None,
        may_leave=True,
    ),
    "globals that begin with none": Small(
        """
last = None
state = {"m": None}

def f(x, n):
    global last
    for k in range(n):
        last = x * k
        state["m"] = last if state["m"] is None else state["m"] + last
    return last
""",
        STEPS,
    ),
    "an item that grows": Small(
        """
state = {"v": 1}

def f(x, n):
    for k in range(n):
        state["v"] = state["v"] * 1000
        x = x + 1
    return x, state["v"]
""",
        STEPS,
    ),
    "keys that are equal": Small(
        """
state = {True: dilim.ones(2), 2: 0, (1, 2): 1.0, 2.5: 1}

def f(x):
    state[1] = state[1] + x
    state[2.0] += 1
    state[1, 2] += 1
    state[2.5] += 1
    return state[True], state[2], state
""",
        VECTOR,
    ),
    "a dict in an attribute": Small(
        """

class M:
    def __init__(self):
        self.p = {"w": dilim.ones(2)}
        self.n = 0
    def step(self, x):
        self.p["w"] = self.p["w"] + x
        self.n += 1
        return self.p["w"] * self.n
m = M()

def f(x, n):
    for _ in range(n):
        y = m.step(x)
    return m.p["w"]
""",
        STEPS,
    ),
    "texts of a global": Small(
        """
n = 1

def f(x):
    global n
    t = f"{n}"
    n = 2
    u = f"{n}"
    n = 3
    y = x * 2
    n = 1
    return y, t, u
""",
        VECTOR,
    ),
    "a global that the host binds": Small(
        """
n = 1

def f(x):
    global n
    n = n + 1
    print(n)
    n = int((x * n).sum())
    print(n, math.sqrt(n))
    m = math.sqrt(n) + np.sqrt(n)
    n = 1
    return m
""",
        VECTOR,
        sends=None,
        receives=None,
    ),
    "globals in a try": Small(
        """
n = 0
d = {"a": 1}

def f(x):
    global n
    n += 1
    d["a"] += 1
    try:
        print(n, d)
        n += 5
        d["a"] += 7
    finally:
        pass
    n += 1
    d["a"] += 1
    return x * n * d["a"]
""",
        VECTOR,
        sends=None,
        receives=None,
        may_leave=True,
    ),
    "globals changed between calls": Small(
        """
n = 1
d = {"a": 1, "w": dilim.ones(2)}


def f(x):
    global n
    n = n + 1
    d["a"] += n
    d["w"] = d["w"] + x
    return d["w"] * n
""",
        tuple(
            Call("[dilim.ones(2)]", before=before)
            for before in (
                "",
                "",
                "n = 7; d['a'] = 2.5",
                "d['w'] = dilim.ones(3)[:1]; n = True",
                "d = {'a': 2, 'w': dilim.zeros(2), 'z': 1}",
                "n = 2; d['w'] = d['q'] = dilim.ones(2)",
            )
        ),
    ),
    "a list that grows in an operator, and a flag that it turns": Small(
        """
LOG = []
FLAG = "even"

class Noted:
    def __add__(self, other):
        global FLAG
        LOG.append(other)
        FLAG = "odd" if FLAG == "even" else "even"
        return 1.0

NOTED = Noted()

def f(x):
    if FLAG == "even":
        x = x * 2
    k = NOTED + 3
    if FLAG == "odd":
        x = x - 1
    return x * k + len(LOG)
""",
        ("[dilim.ones(2)]",) * 8,
        sends=None,
        receives=None,
    ),
}
