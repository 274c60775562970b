"""More small programs that a search among random ones has found; see `small_found`."""

from slicing.small_programs import Small

_LOOPS = {
    "a view at a position of the program, in a loop that leaves it": Small(
        """
def f(x, n, u):
    whole = x[n % 3]
    items = {"a": whole}
    while True:
        if u:
            break
        items["a"] = items["a"] * 0.5
        u += 1
    return items, whole
""",
        ("[dilim.ones(3), 4, 1]", "[dilim.ones(3), 2, 0]", "[dilim.ones(3), 0, 1]"),
        None,
        None,
    ),
    "a tensor that a backward pass has used up goes through a loop": Small(
        """
W = dilim.tensor(0.1, requires_grad=True)

def f(n):
    y = W**2
    y.backward()
    for i in range(n):
        y = y * 2
    print(y)
    return y
""",
        ("[2]", "[0]", "[1]", "[3]"),
        None,
        None,
    ),
    "a name of what a backward pass has used up is bound anew in a loop": Small(
        """
W = dilim.tensor(0.1, requires_grad=True)

def f(x, n):
    y = W**2
    y.backward()
    for i in range(n):
        y = x * i
    return y
""",
        ("[dilim.ones(2), 2]", "[dilim.ones(2), 5]", "[dilim.ones(2), 1]"),
        None,
        None,
    ),
}

_ELSE = {
    "host items that change what is relied on, and an else": Small(
        """
KEPT = [dilim.ones(2)]

def items(n):
    for i in range(n):
        yield i
    KEPT.append(dilim.ones(2) * n)

def f(x, n):
    total = x * 1
    for k in (1, 2, 3):
        for i in items(n):
            total = total + len(KEPT)
        else:
            total = total * 2
            print(k, total)
    return total, len(KEPT)
""",
        ("[dilim.ones(2), 2]", "[dilim.ones(2), 3]", "[dilim.ones(2), 0]", "[dilim.ones(2), 2]"),
        None,
        None,
        may_leave=True,
    ),
    "host items that change what is relied on, and an else that a break skips": Small(
        """
KEPT = [dilim.ones(2)]

def items(n):
    for i in range(n):
        yield i
    KEPT.append(dilim.ones(2) * n)

def f(x, n, m):
    total, most = x * 1, 0.5
    for k in (1, 2, 3):
        for i in items(n):
            if total.sum() > m:
                break
            total = total + len(KEPT)
        else:
            total = total * most
            print(k, total)
        most = 0.25
        print(k)
    return total, len(KEPT)
""",
        ("[dilim.ones(2), 2, 9]", "[dilim.ones(2), 3, 3]", "[dilim.ones(2), 2, 90]"),
        None,
        None,
        may_leave=True,
    ),
}

_SET = {
    "an attribute that the host has seen, and has set otherwise since": Small(
        """
class Box:
    pass

BOX = Box()

def f(w, z):
    first, _ = w.numpy()
    BOX.w = z
    print(type(BOX).__name__, np.sum([BOX.w.sum().item()]))
    BOX.w = first
    BOX.w = z
    return BOX.w
""",
        ("[dilim.tensor([2.0, 3.0]), dilim.ones(2)]",) * 3,
        None,
        None,
    ),
}

_NAMES = {
    "a name of the host is deleted and read": Small(
        """
def f(x):
    some = dict(a=x, n=np.random.randint(4))
    del some
    some = some
""",
        ("[dilim.ones(2)]",) * 3,
        None,
        None,
        raises=(1, 2, 3),
    ),
}

_GIVEN = {
    "a gradient that turns give the host, some of which take it": Small(
        """
W = dilim.tensor([0.3, 0.2], requires_grad=True)

def f(x, n):
    k = 0
    while k < n:
        k += 1
        if random.random() > 0.5:
            pass
        elif k != 1:
            (W * x).sum().backward()
            y = W.grad * 1
            (W * x).sum().backward()
        else:
            float(np.sum([k]))
        float(np.sum([k]))
    return W.grad
""",
        ("[dilim.ones(2), 1]", "[dilim.ones(2), 1]", "[dilim.ones(2), 4]", "[dilim.ones(2), 0]"),
        None,
        None,
    ),
}


_BOX = """
class Box:
    def __init__(self):
        self.w = dilim.tensor([1.0, 2.0, 3.0])
        self.parts = [dilim.ones((3,)), dilim.tensor([0.0, -2.0, 0.5])]

box = Box()
KEPT = {}
"""


def _in_loops(taken):
    """A tensor that the host gets in some turns of an inner loop, and the graph goes on with."""
    source = f"""
def f(x, n):
    w = x
    for i in range(11):
        for j in range(12):
            if x.sum() > 0:
                {taken}
    return w
"""
    return Small(_BOX + source, ("[dilim.ones(3), 0]", "[dilim.ones(3), 1]"), None, None)


_IN_LOOPS = {
    "an item at a computed place and an attribute, in loops": _in_loops(
        "box.w = box.w * 0.5; box.parts[n % 2] = box.w"
    ),
    "an item at a computed place and a name, in loops": _in_loops(
        "w = w * 0.5; box.parts[n % 2] = w"
    ),
    "an item at a computed place and one of a tuple, in loops": _in_loops(
        "w = (w[0] * 0.5, j) if j else (x, j); box.parts[n % 2] = w[0]"
    ),
    "an item of a dict of the host and a name, in loops": _in_loops(
        "w = w * 0.5; KEPT[j % 5 == 0] = w"
    ),
    "an item at a computed place and a name, in an endless loop": Small(
        _BOX
        + """
def f(x, n):
    k = 0
    for i in range(11):
        while True:
            k += 1
            if k % 4 == n:
                break
            box.w = box.w * 0.5
            box.parts[i % 2] = box.w
    return x
""",
        ("[dilim.ones(3), 0]", "[dilim.ones(3), 1]"),
        None,
        None,
    ),
}

PROGRAMS = {**_GIVEN, **_SET, **_LOOPS, **_ELSE, **_NAMES, **_IN_LOOPS}
