"""Small programs in which looking at an object changes what the program looks at next."""

from slicing.small_programs import Small

THRICE = ("[dilim.ones(2)]",) * 3


def _small(source):
    # the run that sees a change is left, and the host's values are learned from one run to the next
    return Small(source, THRICE, None, None, may_leave=True)


ALIASES = {
    "a list that has another name": _small(
        """
L = []

def pick(p):
    return eval("L")

def f(x):
    l = pick(1)
    l.append(1)
    y = x * len(L)
    l.append(2)
    l.extend([1])
    return y, len(L), x * len(L)
"""
    ),
    "a list that a function keeps": _small(
        """
KEPT = [[0.0]]

def keep(l):
    KEPT[0] = l

def f(x):
    l = [random.random()]
    keep(l)
    y = x * len(KEPT[0])
    l.append(random.random())
    return y, x * len(KEPT[0])
"""
    ),
}

SEEN = {
    "texts of an object": _small(
        """
class C:
    n = 0

    def __str__(self):
        C.n += 1
        return "c"

    def __format__(self, form):
        C.n += 10
        return "c"

c = C()

def f(x):
    print(c, x)
    y = x * C.n
    a = f"{c}", "{}".format(c)
    return y, a, x * C.n, "%s" % c, x * C.n
"""
    ),
    "the text of an object in a list": _small(
        """
N = 0

class C:
    def __repr__(self):
        global N
        N += 1
        return "c"

c = C()

def f(x):
    print([c])
    y = x * N
    print({1: (c, 2)})
    return y, x * N
"""
    ),
    "the text of an object of the host": _small(
        """
class C:
    n = 0

    def __str__(self):
        C.n += 1
        return "c"

def make():
    return eval("C()")

def f(x):
    c = make()
    print(c)
    y = x * C.n
    return y, f"{c}", x * C.n
"""
    ),
    "a property that counts": _small(
        """
class C:
    n = 0

    @property
    def following(self):
        self.n += 1
        return self.n

c = C()

def f(x):
    a = c.following
    y = x * c.n
    return a, y, c.following, x * c.n
"""
    ),
    "operators that count": _small(
        """
class C:
    n = 0

    def __getitem__(self, k):
        self.n += 1
        return 1

    def __add__(self, other):
        self.n += 10
        return 1

    __radd__ = __add__

    def __lt__(self, other):
        self.n += 100
        return True

    def __contains__(self, x):
        self.n += 1000
        return True

    def __iter__(self):
        self.n += 10000
        return iter((1, 2))

c = C()

def f(x):
    seen = [c[0], x * c.n]
    seen += [c + 1, x * c.n]
    seen += [c < 1, x * c.n]
    seen += [5 in c, x * c.n]
    p, q = c
    seen += [sum([c]), x * c.n]
    return seen, (*c, p, q), x * c.n
"""
    ),
    "a file that counts": _small(
        """
class File:
    n = 0

    def write(self, text):
        self.n += 1

FILE = File()

def f(x):
    print("a", file=FILE)
    y = x * FILE.n
    print("b", x, file=FILE)
    return y, x * FILE.n
"""
    ),
}

ENDS = {
    "an object that counts its end": _small(
        """
class C:
    n = 0

    def __del__(self):
        C.n += 1

def f(x):
    c = C()
    y = x * C.n
    del c
    return y, x * C.n
"""
    ),
}

TRUTHS = {
    "the truth of sets, queues and arrays": _small(
        """
from collections import deque

KNOWN, QUEUE = set(), deque()

def f(x):
    if KNOWN or not QUEUE:
        x = x + 1
    KNOWN.add(len(KNOWN))
    QUEUE.append(1)
    queue, seen = deque([3, 1]), set()
    while queue:
        k = queue.popleft()
        if k > 2:
            queue.append(k - 2)
        seen.add(k)
        x = x + k
    if not seen or np.zeros(1):
        x = x * 2
    return x, bool(seen)
"""
    ),
}

PLACES = {
    "an item that one path sets": _small(
        """
BOX = [0.5, [1.0]]

def f(x):
    if x.sum() > 5:
        return int
    BOX[0] = math
    BOX[1] = x * 2
"""
    ),
}

PROGRAMS = {**ALIASES, **SEEN, **ENDS, **TRUTHS, **PLACES}
