"""Small programs with exceptions and odd exits; see `small_programs`."""

from slicing.small_programs import VECTOR, Small

FRESH = "dilim.ones(2)"
ERRORS = {
    "a name that a try may bind": Small(
        """
def f(x, k):
    try:
        if x.sum() > k:
            m = dilim.tensor(1.0)
            raise ValueError(1)
    except ValueError:
        pass
    return m
""",
        tuple(f"[dilim.ones(2), {k}]" for k in (0, 5, 0, 5)),
        None,
        None,
        raises=(2, 4),
    ),
    "continue and break in a try": Small(
        """
LOG = []

def f(x, n):
    for i in range(n):
        try:
            if i == 1:
                continue
            if i == 3:
                break
            LOG.append(i)
        except ValueError:
            pass
        else:
            x = x + i
        finally:
            LOG.append(-i)
        x = x * 2
    return x, i
""",
        (f"[{FRESH}, 6]", f"[{FRESH}, 2]", f"[{FRESH}, 6]"),
        None,
        None,
    ),
    "a tensor operation that raises in a try": Small(
        """
def f(x):
    x = x + 1
    try:
        y = x @ dilim.ones((3, 3))
    except Exception as e:
        print(type(e).__name__)
        y = x
    return y * 2
""",
        VECTOR,
        None,
        None,
    ),
    "an argument changed in place until it is too big": Small(
        """
def f(x, n):
    for i in range(n):
        x += 1
        if x.sum() > 10:
            raise ValueError(f"too big at {i}")
    return x
""",
        (f"[{FRESH}, 2]", f"[{FRESH}, 8]", f"[{FRESH}, 3]"),
        None,
        0,
        (2,),
    ),
    "a dict that host code changes while a loop takes its keys": Small(
        """
PARTS = {"a": 1.0, "b": 2.0}

def f(x):
    for key in PARTS:
        x = x * PARTS[key]
        PARTS[key + str(len(PARTS))] = 1.0
    return x
""",
        VECTOR,
        None,
        None,
        (1, 2, 3),
    ),
    "objects that have no truth and no items": Small(
        """
class Odd:
    def __bool__(self):
        raise ValueError("no truth")

    def __iter__(self):
        yield 1
        raise ValueError("no second item")

def chosen(x, odd, k):
    y = x * 2
    if k == 0:
        if odd:
            y = y + 1
    if k == 1:
        for item in odd:
            y = y + item
    if k == 2:
        y = y * (2 if np.ones(2) > 0 else 3)
    if k == 3:
        while odd:
            y = y + 1
    return y

def f(x, k):
    y = x * 2
    z = chosen(y, Odd(), k)
    return y + z
""",
        tuple(f"[{FRESH}, {k}]" for k in (0, 1, 2, 3) * 2),
        None,
        None,
        (1, 2, 3, 4, 5, 6, 7, 8),
        may_leave=True,
    ),
    "host code that raises in a loop": Small(
        """
LOG = []

def look(v):
    if v > 3:
        raise ValueError(v)

def f(x, n):
    for i in range(n):
        x = x * 2
        LOG.append(float(x.sum()))
        look(i)
        x += 1
    return x
""",
        (f"[{FRESH}, 2]", f"[{FRESH}, 8]", f"[{FRESH}, 3]"),
        None,
        None,
        (2,),
    ),
    "globals before an exception": Small(
        """
COUNT = 0
LAST = None

def f(x):
    global COUNT, LAST
    COUNT += 1
    LAST = x * COUNT
    if LAST.sum() > 5:
        raise RuntimeError(f"at {COUNT}")
    return LAST
""",
        VECTOR * 2,
        None,
        0,
        (3, 4, 5, 6),
    ),
    "while with an else": Small(
        """
def f(x, n):
    while n > 0:
        n -= 1
        if x.sum() > 30:
            break
        x = x * 2
    else:
        x = x + 100
    return x, n
""",
        (f"[{FRESH}, 3]", f"[{FRESH}, 8]", f"[{FRESH}, 0]"),
    ),
    "positions of slices": Small(
        """
def f(x, a, b):
    return x[a:b], x[:b].sum(), x[::-1], x[..., None], x[b]
""",
        ("[dilim.arange(6), 1, 3]", "[dilim.arange(6), 0, 4]", "[dilim.arange(6), 2, 5]"),
    ),
    "a factorial": Small(
        """
def fact(n):
    return 1 if n <= 1 else n * fact(n - 1)

def f(x, n):
    return x * fact(n)
""",
        (f"[{FRESH}, 3]", f"[{FRESH}, 5]", f"[{FRESH}, 5]"),
    ),
    "an assert with a text that prints": Small(
        """
def told():
    print("told")
    return "bad"

def f(x):
    x = x - 1
    assert x.sum() >= 0, told()
    return x
""",
        (f"[{FRESH}]", f"[-{FRESH}]", f"[{FRESH}]"),
        0,
        0,
        (2,),
    ),
    "an error in a helper": Small(
        """
def deep(t, k):
    if k == 0:
        return t @ dilim.ones((3, 3))
    return deep(t * 2, k - 1)

def f(x, k):
    print("begin")
    x = x + 1
    return deep(x, k)
""",
        (f"[{FRESH}, 2]", "[dilim.ones(3), 2]", f"[{FRESH}, 2]"),
        1,  # the host raises, and so is given what it needs for that
        0,
        (1, 3),
    ),
    "names that are deleted": Small(
        """
def f(x, flag):
    y = x * 2
    if flag:
        del y
    return y
""",
        (f"[{FRESH}, False]", f"[{FRESH}, True]", f"[{FRESH}, False]"),
        0,
        0,
        (2,),
    ),
    "raise from": Small(
        """
def f(x):
    x = x * 2
    try:
        if x.sum() > 3:
            raise KeyError("inner")
    except KeyError as e:
        raise ValueError("outer") from e
    return x
""",
        (f"[{FRESH}]", f"[-{FRESH}]", f"[{FRESH}]"),
        None,
        None,
        (1, 3),
    ),
    "a function that raises in a list comprehension, which has a frame before Python 3.12": Small(
        """
def helper(t, n):
    if n > 1:
        raise ValueError(n)
    return t + dilim.ones(n)

def f(x, n):
    return [helper(x, i + n) for i in range(2)]
""",
        (f"[{FRESH}, 1]", f"[{FRESH}, 0]", f"[{FRESH}, 2]"),
        None,
        None,
        (1, 2, 3),
    ),
}
