"""Small programs with lists that grow and shrink while a loop goes on; see `small_programs`."""

from slicing.small_programs import VECTOR, Small

_TURNS = tuple(f"[dilim.ones(2), {n}]" for n in (2, 5, 14, 0))

PROGRAMS = {
    "a list that grows under zip": Small(
        """
def f(x):
    a=[x, x+1]; b=[1.0, 2.0, 3.0]
    for u, k in zip(a, b):
        x = x*u + k
        if k < 1.5: a.append(x)
    return x, a
""",
        VECTOR,
    ),
    "a list that shrinks under reversed": Small(
        """
def f(x):
    a=[x, x+1, x+2, x+3]
    for u in reversed(a):
        x = x+u
        if len(a) > 2:
            a.pop()
    return x, a
""",
        VECTOR,
    ),
    "a list that grows under reversed": Small(
        """
def f(x):
    a=[x, x+1, x+2]
    for k, u in enumerate(reversed(a), 5):
        x = x+u*k
        a.append(u)
        a[0] = x
    return x, a
""",
        VECTOR,
    ),
    "the shorter list of a strict zip grows": Small(
        """
def f(x):
    a=[x, x+1]; b=[1.0, 2.0, 3.0]
    for u, k in zip(a, b, strict=True):
        x = x*u + k
        if len(a) < 3: a.append(x)
    return x
""",
        VECTOR,
        None,
        None,
    ),
    "the shorter list of a strict zip does not": Small(
        """
def f(x):
    a=[x, x+1]; b=[1.0, 2.0, 3.0]
    n = 0
    for u, k in zip(a, b, strict=True):
        x = x*u + k
        print(n)
    return x
""",
        VECTOR,
        None,
        None,
        raises=(1, 2, 3),
    ),
    "a key that another one replaces under a loop": Small(
        """
def f(x):
    d={'a': x, 'b': x+1}
    for k in d:
        v = d.pop('a', None)
        d['c'] = x
        x = x+1
    return x, d
""",
        VECTOR,
        None,
        None,
        raises=(1, 2, 3),
    ),
    "items of a dict from outside that are replaced": Small(
        """
D={'a': dilim.ones(2), 'b': dilim.ones(2)*3}
def f(x):
    for k, v in D.items():
        D['b'] = x + v
        x = x*v
    return x
""",
        VECTOR,
    ),
    "items of a list from outside that are replaced": Small(
        """
L=[dilim.ones(2), dilim.ones(2)*3, dilim.ones(2)*5]
def f(x):
    for k, v in enumerate(L):
        L[(k+1)%3] = x + v
        x = x*v
    return x
""",
        VECTOR,
    ),
    "a list from outside that host code makes longer": Small(
        """
L=[dilim.ones(2), dilim.ones(2)*3, dilim.ones(2)*5]
def g(k, c):
    if c and k == 1: L.append(dilim.ones(2)*7)
    return k
def f(x, c):
    for k, v in enumerate(L):
        g(k, c)
        x = x*v
    for v in L:
        g(1, c and len(L) < 8)
        x = x + v
    return x
""",
        ("[dilim.ones(2), 0]", "[dilim.ones(2), 0]", "[dilim.ones(2), 1]", "[dilim.ones(2), 0]"),
        None,
        None,
        may_leave=True,
    ),
    "a dict from outside that host code changes": Small(
        """
D={'a': dilim.ones(2), 'b': dilim.ones(2)*3}
def g(k, c):
    if c and k == 'a': D['b'] = dilim.ones(2)*7
    if c > 1: D['c'] = 1
    return k
def f(x, c):
    for k, v in D.items():
        g(k, c)
        x = x*v
    for k, (_, v) in enumerate(D.items()):
        g('a', c)
        x = x*v
    return x
""",
        (
            "[dilim.ones(2), 0]",
            "[dilim.ones(2), 0]",
            "[dilim.ones(2), 1]",
            "[dilim.ones(2), 0]",
            "[dilim.ones(2), 2]",
        ),
        None,
        None,
        raises=(5,),
        may_leave=True,
    ),
    "lists in a loop of the graph": Small(
        """
def f(x, n):
    ts = [x * 1, x * 2]
    for i in range(n):
        for k, t in enumerate(ts):
            t += i
            ts[1] = x*k
        for t, u in zip(ts, reversed(ts)):
            x = x + t*u
    return ts, len(ts), x
""",
        ("[dilim.ones(2), 20]", "[dilim.ones(2), 5]", "[dilim.ones(2), 0]", "[dilim.ones(2), 30]"),
    ),
    "a queue that a break leaves longer": Small(
        """
def f(x, n):
    q = [x, x * 2]
    for i in range(n):
        q.append(q[0] + i)
        if q[0].sum() > 20: break
        q.pop(0)
    return q, len(q)
""",
        _TURNS,
        None,
        None,
    ),
    "a queue that a break leaves as long": Small(
        """
def f(x, n):
    q = [x, x * 2]
    for i in range(n):
        q.append(q[0] + i)
        v = q.pop(0)
        if v.sum() > 20: break
    return q, len(q), v if n else None
""",
        _TURNS,
    ),
    "a queue that grows at first": Small(
        """
def f(x, n):
    q = [x]
    for i in range(n):
        q.append(x * i)
        if len(q) > 3: q.pop(0)
    return q, len(q)
""",
        _TURNS,
        None,
        None,
    ),
    "a queue in a loop that prints": Small(
        """
def f(x, n):
    q = [x, x * 2]
    for i in range(n):
        q.append(q[0] * 1.5)
        if i % 3 == 0: print(i, float(q[0].sum()), len(q))
        q.pop(0)
    return q
""",
        _TURNS,
        None,
        0,
    ),
    "a queue that a function changes": Small(
        """
def push(q, v):
    q.append(v)
    return q.pop(0)
def f(x, n):
    q = [x, x * 2, x*3]
    out = x*0
    for i in range(n):
        out = out + push(q, out + q[1])
    return q, out
""",
        _TURNS,
    ),
    "a queue whose tensors go round": Small(
        """
def f(x, n):
    q = [x*1, x * 2, x*3]
    k = q[0]
    for i in range(n):
        q.append(q.pop(0))
        q[0] += 1
    return q, k, k is q[0], k is q[1], k is q[2]
""",
        _TURNS,
    ),
    "a queue in a loop of unknown length": Small(
        """
def f(x, n):
    q = [x*1, x * 2, x*3]
    k = 0
    while q[0].sum() < n*4:
        q.insert(0, q[0]+q[1])
        q.pop()
        k += 1
    return q, k
""",
        _TURNS,
    ),
    "a function of trees that calls itself": Small(
        """
def tree_map(fn, tree):
    if isinstance(tree, dict):
        return {k: tree_map(fn, v) for k, v in tree.items()}
    if isinstance(tree, (list, tuple)):
        return type(tree)(tree_map(fn, v) for v in tree)
    return fn(tree)

def f(x):
    y = x * 2
    return tree_map(lambda t: t * 0.5, {"w": [x, y], "c": {"d": x}})
""",
        VECTOR,
        None,
        None,
    ),
}
