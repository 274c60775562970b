"""Functions without tensors on which running from the normal form is compared with Python itself.

Each is the text of a module with a function ``f``, and a list ``CALLS`` of arguments. ``log``
prints and gives back its argument, ``Loud`` prints what is asked of it (see `plain_running`).
"""

from plain_flow import FLOW

PROGRAMS = {
    "order": """
def f(a, b):
    x = log(1) + log(2) * log(3)
    y = a.u(log(4), *log([5, 6]), k=log(7), **log({"m": 8})).v[log(9)]
    a.w[log("key")] = b.x + y
    z = [log(1), *b, {log("k"): log("v"), **{"q": log(2)}}, {log(3)}, (log(4),)]
    del a[log(1)], z[0]
    return x, y, z[-1]
CALLS = [(Loud("a"), Loud("b"))]
""",
    "starred while evaluating": """
def f(items):
    def more():
        items.append(9)
        return [items[-1]]
    print(*items, *more(), sep=log("-"))
    return [*items, *more()], {**dict.fromkeys(items), "m": more()}
CALLS = [([1, 2],)]
""",
    "names in the middle": """
def f(x):
    a = x + (x := 3) * x + (x := x + 1)
    b = [x, (x := 7), x]
    g = lambda v: v
    c = (b[0], (b := [1]), b[0])
    return a, b, c, x
CALLS = [(1,)]
""",
    "a global that changes": """
def one(v):
    return ("one", v)
def two(v):
    return ("two", v)
h = one
def change():
    global h
    h = two
    return 5
counter = 0
def f():
    global counter
    first = h(change())
    counter += 2
    counter = counter * log(3)
    (counter, b) = (counter + 1, 4)
    for counter in range(3):
        pass
    return first, h(1), counter, b
CALLS = [()]
""",
    "unbound": """
def f(n):
    if n == 1:
        x = 1
    if n == 2:
        return undefined_name(log(2))
    if n == 3:
        del n
        return log(3) + n
    return log(x, log(2)) if n == 5 else [log(1), x, log(2)]
CALLS = [(0,), (1,), (2,), (3,)]
""",
    "unbound target": """
def f(n):
    if n == 0:
        y += log(1)
    if n == 1:
        del y
    if n == 2:
        print(log(1), y, log(2))
    y[log(0)] = log(1)
CALLS = [(0,), (1,), (2,), (3,)]
""",
    "truth": """
def f(a, b, c):
    x = a and b or c
    y = a or b and c
    z = not (a and b)
    w = (a or b) and c
    if a and b or c: print("1")
    if not (a or not b) or c: print("2")
    if (a if b else c): print("3")
    v = (a and b) if not c else (a or b)
    while a and not b: break
    u = a and (b or c) and log(1)
    t = [k for k in (a, b, c) if k or a]
    assert a or b or c, log("message")
    return x, y, z, w, v, u, t
CALLS = [(Loud("a", p), Loud("b", q), Loud("c", r)) for p in (0, 1) for q in (0, 1) for r in (0, 1)]
""",
    "chains": """
def f(a, b, c):
    x = log(a) < log(b) < log(c) < log(9)
    if a < b < c: print("ordered")
    if not a < b < c: print("unordered")
    y = 1 < 2 < log(3) in [log(3)] is not None
    z = a < (b := 5) < b < (c := 7)
    while a < b < c < log(8): break
    return x, y, z, (a < b < c) or log("or")
CALLS = [(1, 2, 3), (3, 2, 1), (1, 3, 2), (Loud("a", 1, 1), Loud("b", 1, 2), Loud("c", 1, 0))]
""",
    "strings": """
def f(a, b, w):
    items = [1]
    s = f"{a}{items}{items.append(2)}{items!r:>{w}}|{log(3):{log(5)}.{log(2)}f}{a:{b}}{{}}"
    t = f"{a!s:>{w}}" f"x{b=}" rf"\\{w}"
    return s, t, f"", f"{1}", f"{fails(2)}{log(1)}"
CALLS = [(Loud("a"), Loud("b"), 12), (Loud("a"), 3, 4)]
""",
    "assignments": """
class Box: pass
def f(a, m):
    x = y = z = log(1)
    i = a[i] = log(2) if False else 2
    (p, q), [r, *s] = (1, 2), "abc"
    p, q = q, p
    box = Box()
    box.u, box.v = log(1), log(2)
    box.u += log(5)
    a[log(0)] += log(10)
    a[log(0):log(2)] += [7]
    a[0], a[1] = a[1], a[0]
    m["k"], (m["l"], t) = 1, (2, 3)
    *u, v = range(4)
    k: int = log(4)
    box.n: int = log(5)
    j: log("never")
    x, x = 1, 2
    m[log("a")] = m[log("b")] = log(3)
    n = box.w = k
    a = a + [n]
    return x, y, z, i, p, q, r, s, t, u, v, k, vars(box), a, m
CALLS = [([1, 2, 3], {})]
""",
    "unpacking fails late": """
def f(d, v):
    d["x"], (d["y"], d["z"]), d["w"] = v
CALLS = [({}, (1, (2, 3), 4)), ({}, (1, (2,), 4)), ({}, (1, 2, 3)), ({}, 5)]
""",
    "updates": """
def f(a, n):
    a += log(1)
    a.b += log(2)
    a[log("i")] += log(3)
    a.b[log("j")].c += log(4)
    n += n
    n **= 2
    n //= log(3)
    m = n
    m -= (m := 1)
    return a.value, n, m
CALLS = [(Loud("a"), 4)]
""",
} | FLOW
