"""Small programs in which a path decides which tensor, or view of one, a name stands for."""

from slicing.comparing import Call
from slicing.small_programs import Small

NUMBERS = (2, 3, 0, 1, 4)
BEFORE = """
A, B = dilim.arange(1.0, 5.0).reshape((2, 2)), dilim.arange(5.0, 9.0).reshape((2, 2))
"""


def _small(source, arguments="A, B, {}", *, after="", numbers=NUMBERS, **more):
    calls = [Call(f"[{arguments.format(n)}]", before=BEFORE, after=after) for n in numbers]
    return Small(source, tuple(calls), None, None, **more)


BRANCHES = {
    "a view of what the same branch wrote": _small(
        """
def f(a, b, n):
    c = b * 1
    if n == 2:
        c[0] *= 3
    else:
        if a.sum().item() > n:
            c[0] = 7
            a = c[:]
        b = a.detach()
    return b, c
""",
    ),
    "a view of what the same branch wrote, written": _small(
        """
def f(a, b, n):
    c = b * 1
    if n == 2:
        c[0] *= 3
    else:
        if n > 2:
            c[0] = 7
            a = c[::-1]
        b = a.detach()
    b[1] = 5
    c[0] = 11
    return b, c
""",
        after="fill(result[0])",
    ),
    "a view of what an inner branch has chosen, written": _small(
        """
def f(a, b, n):
    if n > 1:
        if n > 2:
            a = b * 2
        b = a[::-1]
    b += 1
    return b
""",
        after="fill(result)",
    ),
    "a view of what several inner branches have chosen, written": _small(
        """
def f(a, b, n):
    if n > 1:
        if n > 2:
            a = b
        elif n > 3:
            a = b * 2
        c = a.T
        if n > 4:
            c = c[::-1]
        b = c[:]
    b[0] -= 1
    return b
""",
        after="fill(result)",
    ),
    "a row of what an inner branch has chosen, written": _small(
        """
def f(x, y, n):
    if n > 1:
        if n > 2:
            z = y
        else:
            z = x * 2
        x = z[n - 2]
    x[0] = 5
    return x, y
""",
        numbers=(2, 3, 0, 1),
    ),
    "a view of what a branch has chosen, handed out": _small(
        """
def f(x, y, n):
    if n > 2:
        x = y
    return x.detach(), x[:], x
""",
        after="fill(result[0])",
    ),
    "views after loops in branches": _small(
        """
def f(x, b, n):
    b = (b * 1).reshape(2, 2)
    if n == 2:
        b[1, 0] *= 3
        for i in range(n + 1):
            c = b.detach()
        b = b[:]
    print(b.tolist())
""",
    ),
    "one that a loop has left, after a branch": _small(
        """
LOG = []

def f(x, b, n):
    if n < 4:
        for i in range(n):
            if n > 2:
                break
            x = b[[1, 0]]
            LOG.append(x)
    if LOG:
        LOG[-1][0] = 4
    return x
""",
    ),
    "views that change places in a loop, after a branch": _small(
        """
def f(x, b, n):
    a = x
    if n > 1:
        for i in range(n + 1):
            a, x = x, a
            a = x[:, ::-1]
    a[0, 1] = a[1, 1]
""",
    ),
    "reshapes that copy or do not": _small(
        """
def f(x, y, n):
    if n > 2:
        x = y.T
    z = x.reshape(4)
    z[0] = 5
    return z
""",
    ),
    "reshapes at positions that copy": _small(
        """
def f(x, n):
    z = x.permute(2, 1, 0)[n].reshape(4)
    z[0] = 5
    return z
""",
        "dilim.ones((2, 2, 3)), {}",
        numbers=(2, 0, 1),
    ),
}

SEVERAL_TIMES = {
    "a view that one path takes, kept several times": _small(
        """
def f(x, b, n):
    log = LOG
    if n > 1:
        x = x[::-1]
    for i in range(n):
        log.append(x)
    return log, len({id(x) for x in log})

LOG = []
""",
        after="LOG.clear()",
    ),
    "a view that an inner path takes, kept there and later": _small(
        """
LOG = []

def f(x, b, n):
    if n > 1:
        if n > 2:
            x = b
        b = x[::-1]
        LOG.append(b)
    LOG.append(b)
    return [x is b for x in LOG]
""",
        after="LOG.clear()",
        fallback="a view that host code may have got",
    ),
    "a row that one path takes, kept there and later": _small(
        """
LOG = []

def f(x, y, n):
    if n > 1:
        x = y[n - 2]
        LOG.append(x)
    for j in range(2):
        LOG.append(x)
    return [x is y for y in LOG]
""",
        after="LOG.clear()",
        fallback="a view that host code may have got",
        numbers=(2, 3, 0, 1),
    ),
}

LOOPS = {
    "a view of the same tensor in each turn is another object": _small(
        """
def f(x, y, n):
    if n > 2:
        x = y
    a = b = x
    for i in range(n):
        b = a
        a = x.detach()
        print(a is b, a is x, b is x)
    return a is x, a is b, a, b, x
""",
        after="fill(result[2])",
    ),
    "views in two names, rebound on different paths": _small(
        """
def f(x, y, n):
    a = b = x
    for i in range(n * 2):
        if i % 3 == 1:
            a = x[::-1]
        if i % 2 == 1:
            b = a
        print(a is b, a is x)
    b[0] = 5
    return a is b, a, b
""",
        after="fill(result[1])",
    ),
    "views that change places, and which they are": _small(
        """
def f(x, y, n):
    a, b = x, y
    for i in range(n * 2):
        a, b = b, a[::-1]
    a[0] = -1
    return a is x, b is y, a, b
""",
        after="fill(result[3])",
    ),
    "a view of what the turn has chosen": _small(
        """
def f(x, y, n):
    w = x
    for i in range(n):
        if n > 2:
            z = y
        else:
            z = x * 2
        w = z[::-1]
    w[0] = 5
    return w
""",
        after="fill(result)",
    ),
    "views of what turns have made": _small(
        """
def f(x, y, n):
    z = x
    for k in range(n):
        z = x * 2
        if k:
            a = z[::-1]
        else:
            a = x.T
    for k in range(n):
        a += 1
        a = a.T
    return z, x if n == 0 else a
""",
        after="fill(result[1])",
        may_leave=True,
    ),
    "rows turned around": _small(
        """
def f(x, y, n):
    a = x[0]
    for k in range(n % 3):
        a = x[k][::-1]
    a[:1] = 5
    return a
""",
        after="fill(result)",
    ),
    "a row of what the turn has made, and all of it": _small(
        """
def f(x, y, n):
    z = a = x
    for k in range(n % 3):
        z = x * 2
        a = z[k]
    a[0] = 5
    return a, z
""",
        after="fill(result[0])",
        fallback="tensors that share memory are carried out of a branch or loop",
    ),
    "rows of tensors that change places": _small(
        """
def f(x, y, n):
    a = y[0]
    for k in range(n % 3):
        a = x[k]
        x, y = y, x
    a[0] = 5
    return a
""",
        after="fill(result)",
    ),
    "rows of a tensor that is replaced": _small(
        """
def f(x, y, n):
    a = x[0]
    for k in range(n % 3):
        a = x[k]
        if k > 0:
            x = x * 2
    a[0] = 5
    return a, x
""",
        after="fill(result[0])",
        fallback="tensors that share memory are carried out of a branch or loop",
    ),
    "a view that is kept as the turn finds and leaves it": _small(
        """
LOG = []

def f(x, y, n):
    a = x
    for i in range(n):
        LOG.append(a)
        if i % 3 == 1:
            a = x[::-1]
        LOG.append(a)
    return [[x is y for y in LOG] for x in LOG]
""",
        after="LOG.clear()",
    ),
}

PLACES = {
    "a view with a gradient that the last turn took": _small(
        """
def f(w, x, n):
    v = x
    for i in range(n):
        v = w[::-1]
        if n > 2:
            v = v.T
    print(v)
    return v.requires_grad
""",
        "A.requires_grad_(), B, {}",
    ),
    "a tensor from before the loop, in a list that the host sees in its turns": _small(
        """
L = [dilim.ones(2), dilim.ones(2)]

def f(x, b, n):
    a = x
    c = b * 1
    x = a[[n % 2, 1]]
    for i in range(n + 1):
        b[0, 1] = a[1, 1]
        a, x = x, a
        L[-1] = c
    return a, c, L, L[-1] is c
""",
    ),
    "a tensor that some turns make, in a name and a list": _small(
        """
L = [dilim.ones(2), 1]

def f(x, b, n):
    c = b * 1
    for i in range(n):
        b[0] = b[[n % 2, 1]].sum()
        if i % 2:
            c = b * 2
            L[0] = c
        L[1] += 1
    return c, L, L[0] is c
""",
    ),
    "a tensor that some turns make, in a list and handed out": _small(
        """
L, LOG = [dilim.ones(2), 1], []

def f(x, b, n):
    c = b * 1
    for i in range(n):
        if i % 2:
            c = b * 2
            L[0] = c
        LOG.append(i)
        L[1] += 1
    LOG.append(c)
    return L, LOG[-1] is L[0]
""",
        after="LOG.clear()",
    ),
}

PROGRAMS = {**BRANCHES, **SEVERAL_TIMES, **LOOPS, **PLACES}
