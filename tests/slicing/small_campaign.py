"""Small programs that a long search among random ones has found; see `small_programs`."""

from slicing.comparing import Call
from slicing.small_programs import Small

_P = """
P = dilim.tensor([0.5, 0.2], requires_grad=True)
"""

_SEEN = {
    "a gradient that a loop without a turn does not give": Small(
        _P
        + """
def f(n, w):
    for i in range(n):
        w = P
    print(w - 1)
""",
        tuple(f"[{n}, dilim.ones(2)]" for n in (0, 2, 0)),
        None,
        None,
    ),
    "a gradient that the first turn gives": Small(
        _P
        + """
def f(n, w):
    for i in range(n):
        z = w * 2
        print(z)
        w = z * P
    print(w + 1)
""",
        tuple(f"[{n}, dilim.ones(2)]" for n in (0, 3, 1, 2)),
        None,
        None,
    ),
    "a gradient that the first turn takes away": Small(
        _P
        + """
def f(n, w):
    w = P * w
    for i in range(n):
        print(w * 2)
        w = (w + 1).detach()
    print(w + 1)
""",
        tuple(f"[{n}, dilim.ones(2)]" for n in (0, 3, 1, 2)),
        None,
        None,
    ),
    "made before a branch, or in it": Small(
        _P
        + """
def f(x):
    y = (P * x).sum()
    if y > 1:
        y = y + 1
    print(y)
""",
        ("[dilim.ones(2)]", "[dilim.ones(2) * 9]"),
        None,
        None,
    ),
}

_SEEN["a result of a loop of which backward() has used up another"] = Small(
    _P
    + """
def f(x, n):
    t = h = P
    k = 0
    while k < 3:
        k += 1
        h = h * 0.5
        t = dilim.tanh(t + h)
    loss = (P * h).mean()
    loss.backward()
    P.numpy()
    print(n)
    if (t + x > 1.5).any():
        return n
""",
    ("[dilim.ones(2), 2]",) * 2,
    None,
    None,
    may_leave=True,
    fallback="has used up another",
)

_CONTAINERS = {
    "a list that is gone over beside a tensor, and is written": Small(
        """
def f(x, items):
    for v, w in zip(items, x):
        for i in range(3):
            items[i % 2] = v
    return items
""",
        ("[dilim.ones(3), [dilim.ones(3), dilim.zeros(3)]]",) * 3,
    ),
    "a list of an attribute that is gone over beside a tensor": Small(
        """
class Box:
    pass

BOX = Box()
BOX.parts = [1, 2]

def f(x, box):
    for v, w in zip(box.parts, dilim.zeros(3) + x):
        box.parts[1] = v
    return box.parts
""",
        ("[dilim.ones(3), BOX]",) * 3,
        None,
        None,
    ),
}

_BROUGHT_UP_TO_DATE = {
    "written in a branch, after turns have given it to the host": Small(
        """
import random

class Box:
    pass

BOX = Box()
BOX.w, BOX.s = dilim.tensor([1.0, 2.0, 3.0]), 0.5

def f(x, box):
    if random.random() < 2:
        k = 0
        while k < 3:
            k += 1
            box.w = box.w * 0.5
            print(x.tolist())
        box.w[2] = round(box.s, 2)
    return box.w
""",
        ("[dilim.ones(3), BOX]",) * 3,
        None,
        None,
    ),
    "written on one side, given to the host on another that may return": Small(
        """
def f(n, u):
    if n > 5:
        return u
    made = dilim.ones(3)
    if u > 0:
        made[:] = n
    elif n > 3:
        print(made)
        made()
    else:
        return len
""",
        ("[1.0, 0.0]", "[1.0, 1.0]", "[1.0, 0.0]", "[6.0, 1.0]"),
        None,
        None,
    ),
}

_WRITTEN_BY_THE_HOST = {
    "an attribute that the host makes old before the program sets it": Small(
        """
class Box:
    def __init__(self):
        self.w = dilim.tensor([1.0, 2.0, 3.0])
        self.p = dilim.tensor([0.25, 0.5, 0.125], requires_grad=True)
        self.n = 0

BOX = Box()

def f(box):
    with dilim.no_grad():
        try:
            box.w[1] = 0.5
        except ValueError:
            pass
    y = dilim.tanh(box.w + box.p)
    box.n = box.n + 1
    print(box.n)
    box.w = y
""",
        ("[BOX]",) * 3,
        None,
        None,
        raises=(2, 3),
        may_leave=True,
    ),
    "a view that the host makes old": Small(
        _P
        + """
STATE = {}

def f(p):
    t = p[1]
    with dilim.no_grad():
        p.copy_(p)
        STATE['t'] = dilim
    return t
""",
        (Call("[P]", after="result.sum().backward()"),),
        None,
        None,
        raises=(1,),
        may_leave=True,
    ),
    "what the host makes old where nothing is recorded": Small(
        """
LIMIT = 3
P = dilim.tensor(0.25, requires_grad=True)

def f(p, n):
    t = p.max()
    d = dict(a=LIMIT % 2, n=n)
    with dilim.no_grad():
        p.sub_(d['a'])
    return t
""",
        (Call("[P, 2]", after="result.sum().backward()"),),
        None,
        None,
        raises=(1,),
        may_leave=True,
    ),
    "a recorded write of the host into what the program has used": Small(
        _P
        + """
class Box:
    pass

BOX = Box()
BOX.w = dilim.tensor([2.0, 3.0])

def f(box):
    t = dilim.stack(box.w)
    box.w[1] = box.w.max()
    made = lambda x: x * 0.5
    box.w = made(P)
    return t
""",
        (Call("[BOX]"), *(Call("[BOX]", after="result.sum().backward()"),) * 2),
        None,
        None,
        may_leave=True,
    ),
    "what detach() gives, used and then written": Small(
        _P
        + """
Q = dilim.tensor([0.25, 4.0], requires_grad=True)

def f():
    x = Q @ P.detach()
    with dilim.no_grad():
        P.sub_(0.125)
    return x
""",
        ("[]", Call("[]", after="result.sum().backward()")),
        None,
        None,
        raises=(2,),
        native=0,
        fallback="a gradient through memory that was written is handed out",
    ),
    "the same in a loop": Small(
        _P
        + """
Q = dilim.tensor([0.25, 4.0], requires_grad=True)

def f():
    for i in range(2):
        x = Q * P.detach()
    with dilim.no_grad():
        P.sub_(0.125)
    return x
""",
        ("[]", Call("[]", after="result.sum().backward()")),
        None,
        None,
        raises=(2,),
        fallback="a gradient through memory that was written is handed out",
    ),
}

_ON_ONE_PATH = {
    "a tensor of the host that one path takes, with a gradient": Small(
        _P
        + """
class Box:
    pass

BOX = Box()
BOX.w = dilim.tensor([1.0, 2.0])

def f(box, n):
    d = len
    for () in zip([], []):
        box.w = i
    [].insert(0, dilim)
    if d == n:
        t = box.w @ P
    else:
        t = P.max(axis=0)
    return t
""",
        ("[BOX, 1]", "[BOX, len]") * 2,
        None,
        None,
    ),
    "a dict that one path gives a tensor, and the other leaves to the host": Small(
        """
def f(x):
    d = dict(a=x, n=1)
    if x.sum() > 3:
        d['n'] = 2
    else:
        if x.sum() > 0:
            d['a'] = -x
        else:
            d['a'] = x * 2
        d = str(min(x.sum().item(), 1.5))
    return d
""",
        ("[dilim.ones(2)]", "[-dilim.ones(2)]", "[dilim.ones(2) * 5]"),
        None,
        None,
    ),
    "a tensor with a gradient, written past it in a loop of unknown length": Small(
        _P
        + """
def f(x):
    t = P.max()
    with dilim.no_grad():
        k = 0
        while True:
            k += 1
            if k > 3 or x.sum() > 100:
                break
            t += dilim.where((x > 0.25).any(), x.max(), dilim.softplus(t))
    return t.detach()
""",
        ("[dilim.ones(2)]", "[-dilim.ones(2)]"),
        None,
        None,
        fallback="a tensor that may be written past its gradient",
    ),
}

_UNBOUND = {
    "a name of two kinds, deleted": Small(
        """
W = dilim.tensor(0.5)

def f(x):
    t = len if W > 0 else 2
    del t
    W[()] = x
    return t if x > 100 else x
""",
        ("[dilim.tensor(3.0)]",) * 2,
        None,
        None,
    ),
    "the target of a loop without a turn, in a loop laid out flat": Small(
        """
import random

def f(n):
    for i in range(1, 4):
        for j in range(n):
            pass
        n = random.randrange(1)
    return j
""",
        ("[2]", "[0]"),
        None,
        None,
        raises=(2,),
    ),
    "the same in a loop of the graph": Small(
        """
import random

class Box:
    pass

BOX = Box()

def f(box):
    for i in range(12):
        for j in range(box.n):
            pass
        box.n = random.randrange(1)
    return j
""",
        (Call("[BOX]", before="BOX.n = 2"), Call("[BOX]", before="BOX.n = 0")),
        None,
        None,
        raises=(2,),
    ),
    "the target of a loop over a list of the host's, in a tuple": Small(
        """
def f(x, items):
    for j in items:
        x = x + 1
    return x, j
""",
        ("[dilim.ones(2), iter([1, 2])]", "[dilim.ones(2), iter([])]"),
        None,
        None,
        raises=(2,),
    ),
}

_UNBOUND |= {
    "a name that some turns bind in a try": Small(
        """
def f(x, items):
    for i in range(14):
        try:
            items[i]
        except IndexError:
            pass
        else:
            got = x
        x = x + got
    return x
""",
        ("[dilim.ones(2), [1]]", "[dilim.ones(2), [1, 2]]", "[dilim.ones(2), []]"),
        None,
        None,
        raises=(3,),
        may_leave=True,
    ),
    "one that is carried, and is left to the host": Small(
        """
def f(x, n):
    k = 0
    while k < 4 and x.sum() < 100:
        k += 1
        rows = [print(n) or x, x] * 2
        for row in reversed(rows):
            x = x + 1
        else:
            print(len(rows))
        last = row
    return x
""",
        ("[dilim.ones(2), 2]",) * 3,
        None,
        None,
    ),
}

_STRETCHED = {
    "made in a loop, and written": Small(
        """
def f(z, n):
    t = z
    for i in range(n):
        t = (t * 2)[1].expand(3, 3)
    t[:] = 3
    return t
""",
        ("[-dilim.ones((3, 3)), 0]", "[dilim.ones((3, 3)), 12]"),
        None,
        None,
        raises=(2,),
    ),
}

_SEEN["a gradient that is None again, after the host has seen another"] = Small(
    """
MODEL = nn.Dense(3, 3, generator=dilim.Generator())
OPTIMIZER = optim.RMSprop(MODEL, learning_rate=0.05)

class Box:
    def __init__(self):
        self.w = dilim.tensor(1.0)
        self.p = dilim.tensor([0.25, 0.5, 0.125], requires_grad=True)
        self.n = 0
        self.parts = [dilim.tensor([0.0, 2.0, 0.5])]

    def f(self, x):
        self.w = self.parts[self.n % 2]
        if max(self.n, 0):
            for v in ():
                pass
        d = {'a': x}
        k = 0
        while 3:
            k += 1
            zeros = dilim.zeros((2, 3), dtype=dilim.float32)
            loss = nn.losses.huber(MODEL(d['a'] / (1.5 + abs(zeros + x))), zeros + 0.1)
            loss.backward()
            for i in range(1):
                loss = nn.losses.mse(MODEL(zeros), dilim.stack([self.p, self.w]))
                OPTIMIZER.zero_grad()
                loss.backward()
                OPTIMIZER.step()
                v

BOX = Box()

def f(x):
    return BOX.f(x)
""",
    ("[dilim.tensor([1.5, -0.0, 3.0])]",),
    None,
    None,
    raises=(1,),
    may_leave=True,
)

PROGRAMS = {
    **_SEEN,
    **_UNBOUND,
    **_STRETCHED,
    **_ON_ONE_PATH,
    **_WRITTEN_BY_THE_HOST,
    **_BROUGHT_UP_TO_DATE,
    **_CONTAINERS,
}
