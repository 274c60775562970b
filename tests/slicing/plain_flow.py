"""More of `plain_programs`: control flow, errors, scopes."""

FLOW = {
    "loops": """
def f(n):
    out = []
    for i in range(n):
        if i == 3: continue
        for j in range(i):
            if j == 2: break
            out.append((i, j))
        else:
            out.append("else")
            if i == 1: continue
        if len(out) > 8: break
        k = 0
        while (k := k + 1) < 3:
            out.append(k)
            if k == i: break
        else:
            out.append("no break")
    else:
        out.append("outer else")
    while log(len(out)) > 5 and n > 0:
        out.pop()
        n -= 1
        if n == 1: return "early", out, i, j
    return out, i, k
CALLS = [(2,), (4,), (6,), (1,), (0,)]
""",
    "else with break of the outer loop": """
def f(xs):
    for x in xs:
        for y in x:
            if y < 0: break
        else:
            print("none", x)
            if len(x) > 2: break
            continue
        while y < 0:
            y += 1
            if y == -3: return y
        else:
            print("while else", y)
            continue
        print("never")
    else:
        return "end"
    return "broken", x, y
CALLS = [([[1], [2, -2], [3]],), ([[1, 2, 3]],), ([[-5]],), ([],)]
""",
    "exceptions": """
def f(x, y):
    d = {}
    try:
        d["a"] = x / y
    except ZeroDivisionError as error:
        d["e"] = str(error)
        if x == 1: return d
    else:
        d["b"] = 1
    finally:
        print("finally", d)
    for i in range(3):
        try:
            if i == x: continue
            if i == y: break
            d[i] = fails(i) if i == 2 else i
        except ValueError:
            print("caught")
        finally:
            d["last"] = i
            z = i
    print(z)
    if x == 5:
        raise KeyError(x) from ValueError(y)
    assert x != 6, f"x is {x}"
    assert x != 7
    return error, d
CALLS = [(1, 0), (2, 0), (0, 1), (1, 2), (5, 1), (6, 1), (7, 9)]
""",
    "try in loops with returns": """
def f(n):
    total = 0
    while True:
        n -= 1
        try:
            try:
                if n == 5: continue
                if n == 3: raise ValueError(n)
                if n == 1: return total
                if n < 0: break
            finally:
                total += 1
                if n == 2: extra = total
        except ValueError as e:
            total += 10
            for k in range(5):
                if k == 2: break
            else:
                return None
    return total, extra
CALLS = [(8,), (4,), (2,), (0,)]
""",
    "bare raise": """
def f():
    try:
        fails(1)
    except ValueError:
        g()
def g():
    if log(1): raise
CALLS = [()]
""",
    "contexts": """
def f(a, b, how):
    with a as x, b as (y, *z), Loud("c", False):
        print(x, y, z)
        if how == "return": return log(5)
        if how == "error": fails(1)
        if how == "key": raise KeyError("k")
        n = 1
    for i in range(3):
        with a:
            if how == "break": break
            if how == "continue": continue
            if how == "loop error": fails(i)
            with b as a.attribute:
                print(i)
        print("after", i)
    with Loud("d") as n:
        if how == "name": unknown
        n = 2
        fails()
    return n, x
CALLS = [(Loud("a"), Loud("b", False), how) for how in
         ["", "return", "error", "key", "break", "continue", "loop error", "name"]]
""",
    "no context": """
class Half:
    def __enter__(self): return 1
class Bad:
    def __enter__(self): print("enter"); raise OSError("in enter")
    def __exit__(self, *rest): print("never")
class Worse:
    def __enter__(self): return 1
    def __exit__(self, *rest): raise OSError("in exit")
def f(n):
    for k in range(2):
        with [Loud("a"), Half(), 5, Bad(), Worse(), Worse()][n] as x:
            print(k)
            if n == 5: fails()
CALLS = [(0,), (1,), (2,), (3,), (4,), (5,)]
""",
    "comprehensions": """
def f(n, xs):
    x = "outer"
    a = [x * 2 for x in range(n) if x % 2]
    b = [(x, y) for x in range(3) for y in range(x) if y or x == 2 if x]
    c = [[log(x * y) for x in xs] for y in xs]
    d = [u for (u, *v) in [(1, 2), (3,)]]
    e = [last := y for y in xs]
    g = {y: x for y in xs}, {y for y in xs if y != x}, list(y for y in xs)
    h = [sum(k * y for k in xs) for y in xs]
    i = [(lambda: y)() for y in xs]
    j = [q for q in [w for w in xs]]
    k = [xs.pop() for _ in range(2) for y in xs]
    return x, a, b, c, d, e, last, g, h, i, j, k
CALLS = [(5, [1, 2]), (0, [3]), (2, [7, 8, 9])]
""",
    "comprehension names": """
def f(n):
    if n == 0: return [y for x in range(2) for y in y]
    if n == 2: return [late for x in range(2)]
    if n == 3: return [x for x in fails(n)]
    if n == 4: return [1 / x for x in range(2)]
    if n == 5: return [x for x in 5]
    if n == 6: return [x for x, y in range(2)], x
    late = 1
    return [late for x in range(n)]
FRAMES_DIFFER = "<listcomp>"
CALLS = [(k,) for k in range(8)]
""",
    "inner functions": """
def f(n, *more, key=3, **rest):
    def add(v, w=log(n)):
        return v + w + key
    class Inner(Loud):
        size = n
        def grow(self): return self.size + n
    times = lambda v, w=key: v * w + n
    import math as m, os.path
    from collections import OrderedDict as D
    match more:
        case [first, *others] if first: kind = "some"
        case []: kind = "none"
        case _: kind = "other"
    return add(1), Inner("i").grow(), times(2), m.floor(2.5), os.path.sep, D, kind, rest
CALLS = [(1,), (2, 3, 4), (2, 0)]
""",
    "recursion": """
def fact(n):
    return 1 if n == 0 else n * fact(n - 1)
def f(n):
    def inner(k):
        return [] if k == 0 else [k, *inner(k - 1)]
    return fact(n), inner(n)
CALLS = [(5,)]
""",
    "closures": """
def outer(a):
    total = 0
    def f(x):
        nonlocal total
        total += x
        for total in range(x, x + 2): pass
        return total + a, [a * k for k in range(x)], (lambda: total)()
    return f
f = outer(10)
CALLS = [(1,), (5,)]
""",
    "methods": """
class Base:
    def go(self, x): return ("base", x)
    @classmethod
    def make(cls, x): return cls, x
class Child(Base):
    __hidden = 4
    def go(self, x):
        self.__y = x
        sure = super(Child, self).go(1)
        return super().go(self.__y + self.__hidden), __class__, sure, super().make(2)
f = Child().go
def show(value): return [getattr(part, "__name__", part) for part in value]
CALLS = [(1,)]
""",
    "lambda": """
f = lambda x, y=2: [k + x for k in range(y)] if x and y else log(x or y)
CALLS = [(1,), (0,), (0, 0)]
""",
    "errors in long expressions": """
def f(n):
    v = (log(n)
         +
         (fails(n) if n == 0
          else 2)
         * [1, 2][
             n
         ])
    return (Loud("a")
            .b
            .c(v,
               1 / (n - 1))
            .d)
CALLS = [(0,), (1,), (2,)]
""",
    "iterables": """
class Weird:
    def __init__(self): self.n = 0
    def __iter__(self): print("iter"); return self
    def __next__(self):
        self.n += 1
        if self.n >= 3: raise StopIteration
        return self.n
def broken():
    yield 1
    raise KeyError("generator")
def f(n):
    items = [Weird(), Loud("l"), {"a": 1}, broken(), 3, None, zip([1, 2], "ab")][n]
    for i, x in enumerate(items):
        print(i, x)
    for a in items:
        print(a)
    else:
        print("done")
    return i, a
CALLS = [(k,) for k in range(7)]
""",
    "a list that changes while it is walked": """
def f(xs):
    for x in xs:
        if x < 3: xs.append(x + 1)
        xs = list(xs)
        del x
    return xs
CALLS = [([1],), ([],)]
""",
    "deleting": """
def f(n):
    x = y = 1
    for i in range(3):
        if i == n:
            del x
        print(x)
        if i == 2:
            del y, i
    return i
CALLS = [(0,), (1,), (2,), (5,)]
""",
    "nothing": '''
def f():
    """Only this."""
    3
    ...
    pass
CALLS = [()]
''',
    "walrus of a global": """
seen = 0
def f(xs):
    global seen
    if (seen := seen + len(xs)) > 1 and (n := log(seen)):
        return [seen := x for x in xs], n, seen
    while (seen := seen + 1) < 5: print(seen)
    return seen
CALLS = [([],), ([1, 2],)]
""",
    "when things are let go": """
class Noisy:
    def __init__(self, name): self.name = name
    def __del__(self): print("gone", self.name)
    def copy(self, name): return Noisy(name)
def f(n):
    a = Noisy("a").copy("b").copy("c")
    print("made")
    b = [Noisy(1), Noisy(2)]
    for x in [Noisy(3), Noisy(4)]:
        print(x.name)
    del b
    print(Noisy(5).name, "end")
    a = None
    while Noisy(n).name < 3:
        n += 1
        Noisy("unused")
    return Noisy("result").name
CALLS = [(1,)]
""",
}
