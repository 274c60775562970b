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

PROGRAMS = {**_GIVEN, **_SET, **_LOOPS, **_ELSE, **_NAMES}
