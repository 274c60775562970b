"""Small programs that a search among random ones has found; see `small_programs`."""

from slicing.comparing import Call
from slicing.small_programs import Small

_BOX = """
class Box:
    def __init__(self):
        self.w = 1.0

    @property
    def total(self):
        return self.w

BOX = Box()
W = dilim.tensor(0.5, requires_grad=True)
"""

_STATE = {
    "a property of what is being set": Small(
        _BOX
        + """
def f(box):
    BOX.w = BOX.w + 3
    BOX.w = box.total
    return BOX.w
""",
        ("[BOX]",) * 3,
        None,
        None,
    ),
    "a dict that only the host has after a branch": Small(
        """
def f(x, d):
    if x.sum() < 0:
        return d
    made = dict(a=d, n=3)
    if x.sum() > 5:
        made['a'] = 1
    else:
        print(made)
""",
        ("[dilim.ones(2), 1]", "[dilim.ones(2) * 9, 1]", "[-dilim.ones(2), 1]"),
        None,
        None,
    ),
    "a list that only the host has after a branch": Small(
        """
KEPT = []

def f(x):
    if x.sum() < 0:
        return x
    made = [x.mean() for i in range(3)]
    KEPT.append(made)
    made[2] = x

def g(x):
    return f(x), KEPT
""",
        ("[dilim.ones(2)]", "[dilim.ones(2) * 9]", "[-dilim.ones(2)]"),
        None,
        None,
    ),
    "a name deleted after host code that changes what the program knows": Small(
        _BOX
        + """
def change():
    W.grad = dilim.ones(())

def f(x):
    some = [0, x]
    if len(some) > 2:
        missing = some
    W.grad = None
    change()
    y = W.grad * x
    del some
    print(y)
    return missing
""",
        ("[dilim.ones(2)]",) * 3,
        None,
        None,
        raises=(1, 2, 3),
        may_leave=True,
    ),
}

_SHOWN = {
    "a dict that is shown on one path, of a tensor that is written later": Small(
        """
def f(x, n):
    some = {"a": x * 1}
    if x.sum() < n:
        print(some)
    some["a"] *= 2
    return some
""",
        ("[dilim.ones(2), 3]", "[dilim.ones(2), 1]", "[dilim.ones(2), 3]"),
        None,
        None,
    ),
}

_ROWS = {
    "a row that an early return gives beside what is recorded": Small(
        _BOX
        + """
def f(x, n):
    for row, k in zip(x, [1, 2, 3]):
        if k > n:
            return row
        BOX.w = BOX.w * 0.5 + W
        BOX.row = row
    return BOX.w, BOX.row
""",
        (
            Call(
                "[[dilim.ones(2), dilim.zeros(2)], 2]",
                before="BOX.w, BOX.row = dilim.ones(2), None",
            ),
            *(
                Call(f"[[dilim.ones(2), dilim.zeros(2)], {n}]", after="print(BOX.w)")
                for n in (2, 0, 1, 5)
            ),
        ),
        None,
        None,
    ),
}

_VIEWS = {
    "a view that a step taken back has looked at": Small(
        """
P = dilim.tensor(0.3, requires_grad=True)

def f(x, y, u):
    kept = [v for v in [P * y, dilim.where(y > 0.5, x, y)] if v.sum() > 0]
    text = f"{max(u, u):{8}.1f}"
    x[::2] *= 2
    return text, x
""",
        ("[dilim.ones(3), dilim.ones(3), 0.5]", "[dilim.ones(3), -dilim.ones(3), 2.5]"),
        None,
        None,
    ),
}

_OVER = {
    "a list of an end that a loop never comes to": Small(
        """
def f(x, u):
    for row in x:
        while x.sum:
            if u:
                return 3
        else:
            items = [x * i for i in range(3)]
            return items
        for i in range(0):
            pass
""",
        ("[dilim.ones(3), 4.0]",) * 3,
        None,
        None,
        fallback="a loop whose body never comes to its end",
    ),
    "a number that a branch has given to the host, of a gradient after it": Small(
        _BOX
        + """
def f(x, n):
    if x.sum() > 0:
        BOX.w = W * n
        float(np.sum([1]))
    else:
        return x
    float(np.sum([1]))
    return BOX.w
""",
        ("[dilim.ones(2), 4.0]", "[dilim.ones(2), 3.0]", "[-dilim.ones(2), 1.0]"),
        None,
        None,
        native=0,
        fallback="a gradient goes through a branch or loop of which host code has got a part",
    ),
}

_NUMBERS = {
    "an int of a dict that its loop counts down": Small(
        """
def f(x):
    d = dict(a=1, n=int(x.sum()))
    for i in range(d["n"]):
        d["n"] -= 1
    return d
""",
        ("[3 * dilim.ones(2)]", "[dilim.zeros(2)]"),
        None,
        None,
    ),
    "the largest and smallest of zeros of both signs": Small(
        """
def f(x):
    return x.max(), x.min(), x.max(axis=0), x.min(axis=1)
""",
        (
            "[dilim.tensor([[0.0, 0.0, -0.0], [-0.0, 0.0, -0.0]])]",
            "[dilim.tensor([[-0.0, -0.0, 0.0], [0.0, -0.0, 0.0]])]",
            "[dilim.tensor([[-1.0, -0.0, 0.0], [1.0, -0.0, 0.0]])]",
        ),
    ),
}

_MADE = {
    "shown after a branch that has made it": Small(
        _BOX
        + """
def f(x):
    y = x
    if x.sum() > 0:
        y = W * x
    print(y)
""",
        ("[dilim.ones(2)]", "[dilim.ones(2) * 3]", "[-dilim.ones(2)]"),
        None,
        None,
    ),
    "shown after a branch whose sides have made it otherwise": Small(
        _BOX
        + """
def f(x):
    if x.sum() > 0:
        y = W * x
    else:
        y = W + x
    print(y)
    y.sum().backward()
    print(y)
""",
        ("[dilim.ones(2)]", "[dilim.ones(2) * 3]", "[-dilim.ones(2)]"),
        None,
        None,
        native=0,
        fallback="has used up is made on several paths",
    ),
    "shown after a loop with and without turns": Small(
        _BOX
        + """
def f(x, n):
    y = W * x
    for i in range(n):
        y = y + 1
    print(y)
""",
        ("[dilim.ones(2), 3]", "[dilim.ones(2), 0]", "[dilim.ones(2), 12]"),
        None,
        None,
    ),
    "made in a loop from what a backward pass has used up": Small(
        _BOX
        + """
def f(x, n):
    y = x
    for i in range(n):
        loss = (W * x).sum()
        loss.backward()
        y = y + loss
    return y * 1, W.grad
""",
        (Call("[dilim.ones(2), 3]", after="W.grad = None"), "[dilim.ones(2), 20]"),
        None,
        None,
    ),
}

_KEPT = {
    "a tensor that the host has after turns, written after the loop": Small(
        _BOX
        + """
def f(x, n):
    BOX.w = x * 1
    while BOX.w.sum() > n:
        BOX.w = BOX.w * 0.5
        print(BOX.total.sum())
    BOX.w[1] = 1
    return BOX.w
""",
        ("[dilim.ones(2), 5]", "[dilim.ones(2), 1]", "[dilim.ones(2), 5]", "[dilim.ones(2), 0.1]"),
        None,
        None,
    ),
    "an attribute that the host has after turns, written after the loop": Small(
        _BOX
        + """
def f(box, n):
    while n > 2:
        box.w = box.w * 0.5
        print(box.total)
        n = n - 1
    box.w[1] = 1
    return box.w
""",
        tuple(Call(f"[BOX, {n}]", before="BOX.w = dilim.ones(2)") for n in (1, 2, 4, 0, 3)),
        None,
        None,
    ),
    "a recorded tensor that the host has, written in place": Small(
        _BOX
        + """
KEPT = []

def f(x):
    y = x * W
    KEPT.append(y)
    y.mul_(0.5)
    print(y)
    return (KEPT[-1] * 3).sum()
""",
        ("[dilim.ones(2)]",) * 3,
        None,
        None,
        fallback="a gradient through memory that was written",
    ),
    "a recorded tensor that an object has, written in place": Small(
        _BOX
        + """
def f(x):
    BOX.w = x * W
    "%s" % (BOX.total,)
    BOX.w.mul_(0.5)
    return BOX.total * 2
""",
        (Call("[dilim.ones(2)]", after="result.sum().backward()"),) * 3,
        None,
        None,
        fallback="a gradient through memory that was written",
    ),
}

_TRAINED = {
    "trained in a loop of unknown length, in a loop of the host": Small(
        _BOX
        + """
def rows(n):
    for i in range(n):
        yield dilim.ones(2) * i

def f(x, n):
    for row in rows(n):
        k = 0
        while k < 2:
            k += 1
            i = 1
            W.grad = None
            (W * x).sum().backward()
            with dilim.no_grad():
                W.sub_(0.125 * W.grad)
            print(3)
        print(i)
""",
        tuple(Call(f"[dilim.ones(2), {n}]", before="W.grad = None") for n in (2, 3, 2, 3)),
        None,
        None,
    ),
}

PROGRAMS = {
    **_ROWS,
    **_OVER,
    **_VIEWS,
    **_SHOWN,
    **_TRAINED,
    **_KEPT,
    **_STATE,
    **_NUMBERS,
    **_MADE,
}
