"""Small programs in which it matters which tensor a name stands for."""

from slicing.comparing import Call
from slicing.small_programs import Small

ENDS = tuple(
    Call(f"[dilim.ones(2), {n}]", after=after)
    for n in (3, 0, 1, 4)
    for after in ("", "fill(result)")
)
TWO = tuple(
    Call(f"[dilim.ones(2), dilim.zeros(2), {n}]", after=after)
    for n in (3, 0, 1, 4)
    for after in ("", "fill(result)")
)

KEPT = {
    "a view that host code gets in each turn": Small(
        """
LOG = []
P = dilim.tensor([1.0, 2.0], requires_grad=True)

def f(x, n):
    for i in range(0, n * 2, 2):
        LOG.sort()
        d = P.detach()
        LOG.extend([float(d.sum())])
        LOG.append(i)
    return x * 2
""",
        ("[dilim.ones(2), 9]",) * 3,
        None,
        None,
    ),
    "a name that a loop may leave as it is": Small(
        """
def f(x, n):
    while n > 0:
        if x.sum() > 3:
            x = x * 2
        n -= 1
    return x
""",
        (*ENDS, Call("[dilim.ones(4), 2]", after="fill(result)")),
    ),
    "a statement that is never reached": Small(
        """
def f(x, n):
    while True:
        if n < 9:
            break
        x = x * 0.5
    x[::2] *= 2
    return x
""",
        ENDS,
        None,
        None,
    ),
    "the best so far": Small(
        """
def f(w, n):
    best, best_w = w.sum() * 0 + 100, w
    for i in range(n):
        w = w - 0.75
        loss = (w * w).sum()
        if loss < best:
            best, best_w = loss, w
    return w, best_w, best, best_w is w
""",
        ENDS,
        None,
        None,
    ),
    "the one before": Small(
        """
def f(x, n):
    before = x
    for i in range(n):
        before, x = x, x * 0.5
    return before, x, before is x
""",
        ENDS,
        None,
        None,
    ),
    "one tensor in the last turn only": Small(
        """
def f(a, b, n):
    k = 0
    while k < n:
        k += 1
        a = b + k
        b = b * 2
        if k == n and n > 2:
            b = a
            break
    return a, b, a is b
""",
        TWO,
        None,
        None,
    ),
}

PLACES = {
    "names that change places in a loop": Small(
        """
def f(a, b, n):
    for i in range(n):
        a, b = b, a
    return a, b, a is b
""",
        TWO,
        None,
        None,
    ),
    "names that change places and one that changes": Small(
        """
def f(a, b, n):
    c = a
    for i in range(n):
        a, b = b, a
        if i == 2:
            c = b
    return a, b, c, c is a
""",
        TWO,
        None,
        None,
    ),
    "attributes that change places": Small(
        """
class Pair:
    pass

P = Pair()

def f(a, b, n):
    P.a, P.b = a, b
    for i in range(n):
        P.a, P.b = P.b, P.a
    return P.a, P.b
""",
        TWO,
        None,
        None,
    ),
}

SHARED = {
    "a view that a loop makes": Small(
        """
def f(x, n):
    v = x
    for i in range(n):
        v = x[i % 2 :]
    return v
""",
        ENDS,
        None,
        None,
    ),
    "two names over one memory, made in a loop": Small(
        """
def f(x, n):
    a, b = x, x
    for i in range(n):
        a = x * i
        b = a[1:]
    return a, b
""",
        ENDS,
        None,
        None,
    ),
    "a tensor that a list has as well": Small(
        """
def f(x, n):
    log = []
    for i in range(n):
        x = x * 0.5
        log.append(x)
    return x, log
""",
        ENDS,
        None,
        None,
    ),
    "either of two, with another name": Small(
        """
def f(x, z, n):
    y = x if x.sum() > n else z
    w = y
    y += 1
    return w * 2, w, y
""",
        TWO,
        None,
        None,
    ),
    "a view of either of two": Small(
        """
def f(x, z, n):
    y = x if x.sum() > n else z
    return y[::-1], y
""",
        TWO,
        None,
        None,
    ),
    "memory that changes under a name that a loop carries": Small(
        """
def f(x, n):
    y = x
    for i in range(n):
        x += 1
        if i == 2:
            y = y * 2
        x += y.sum()
    return x, y
""",
        ENDS,
        None,
        None,
    ),
    "a choice in a loop": Small(
        """
def f(x, z, n):
    y = x
    for i in range(n):
        y = z if y.sum() > 1 else x
    return y, y is x
""",
        TWO,
        None,
        None,
    ),
    "a loop in a loop": Small(
        """
def f(x, z, n):
    y = x
    last = z
    for i in range(n):
        for j in range(i):
            if y.sum() > 9:
                break
            last = y
            y = y + j
        else:
            y = y + 0.5
    return y, last, y is last, last is z
""",
        TWO,
        None,
        None,
    ),
}

SHOWN = {
    "one tensor, shown in each turn": Small(
        """
def f(x, n):
    log = []
    y = x * 2
    for i in range(n):
        log.append(y)
    return log, y
""",
        ENDS,
        None,
        None,
    ),
    "a tensor that one path shows": Small(
        """
LOG = []

def f(x, n):
    y = x * 2
    if x.sum() > n:
        LOG.append(y)
    else:
        y = y + 1
    z = y * 1
    if n:
        LOG.append(z)
    return y, z
""",
        ENDS,
        None,
        None,
    ),
    "tensors made on both paths, one of them kept": Small(
        """
def f(x, n):
    log = []
    if x.sum() > n:
        y = x * 2
        log.append(y)
    else:
        y = x * 3
        if n > 3:
            log.append(y)
    if n:
        y = y if x.sum() > 1 else y * 2
    return log, y
""",
        ENDS,
        None,
        None,
    ),
    "each turn's tensor, kept on one path": Small(
        """
def f(x, n):
    log = []
    for i in range(n):
        for j in range(2):
            x = x * 0.5
            if x.sum() < 1.0:
                log.append(x)
            last = x
    return log, x
""",
        ENDS,
        None,
        None,
    ),
    "a tensor that the host changes by another name": Small(
        """
LOG = []
def last():
    return LOG[-1]

def f(x, n):
    y = x * n
    LOG.append(y)
    z = last()
    z += 1
    return y * 2, z
""",
        ENDS,
        None,
        None,
        may_leave=True,
    ),
    "a row twice in a result": Small(
        """
def f(x, k):
    row = x[k]
    return row, {"all": [row]}
""",
        ("[dilim.ones((3, 2)), 2]", Call("[dilim.ones((3, 2)), 1]", after="fill(result)")),
        None,
        None,
    ),
    "what a side that does not fail has made": Small(
        """
def f(x, n):
    log = []
    if n > 3:
        raise ValueError("large")
    else:
        y = x * 2
        log.append(y)
        v = y[:1]
    y = y * 1 if n else y
    return log, y, v
""",
        ENDS,
        None,
        None,
        raises=(7, 8),
    ),
    "a write into what a loop may have left": Small(
        """
def f(x, n):
    kept = x
    for i in range(n):
        x = x * 2
    x += 1
    return x, kept, kept * 3
""",
        ENDS,
        None,
        None,
        may_leave=True,
    ),
}

TUPLES = {
    "tuples that a loop makes anew are not told apart": Small(
        """
def f(x, n):
    p = q = (x, n)
    for i in range(n):
        if p is q:
            q = (q[0] * 0.5, i)
        else:
            p = q
    return p[0], q[1]
""",
        ("[dilim.ones(2), 3]", "[dilim.ones(2), 12]"),
        native=0,
        fallback="tuples that are told apart",
    ),
    "a tuple that is given is handed back": Small(
        """
class Kept:
    pair = None

def f(pair, n):
    Kept.pair = pair
    y = pair[0] * 2.0
    return y, Kept.pair is pair, pair, (pair, n)

def same(result, pair):
    return result[2] is pair and result[3][0] is pair
""",
        (Call("[pair, 1]", before="pair = dilim.ones(2), 5", after="print(same(result, pair))"),)
        * 3,
        None,
        None,
    ),
}

PROGRAMS = {**KEPT, **PLACES, **SHARED, **SHOWN, **TUPLES}
