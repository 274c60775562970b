"""Small programs with gradients that there are on one path only; see `small_programs`."""

from slicing.small_programs import Small

_CALLS = (
    "[dilim.ones(2), 1]",
    "[-dilim.ones(2), 2]",
    "[dilim.tensor([0.0, -0.0]), 3]",
    "[dilim.tensor([-3.0, 2.0]), 4]",
)
_HEAD = """
W = dilim.tensor([0.5, -0.5], requires_grad=True)
V = dilim.tensor([2.0, -1.0], requires_grad=True)
"""

PROGRAMS = {
    "a leaf that has a gradient elsewhere": Small(
        _HEAD
        + """
def f(x, n):
    W.grad = V.grad = None
    y = x * W
    if y.sum() > 0:
        y = y * W
    (y*y).sum().backward()
    return W.grad
""",
        _CALLS,
    ),
    "a leaf that has none elsewhere": Small(
        _HEAD
        + """
def f(x, n):
    W.grad = V.grad = None
    y = x * V
    if y.sum() > 0:
        y = y * W
    (y*y).sum().backward()
    return W.grad, V.grad
""",
        _CALLS,
        None,
        None,
        fallback="on one path only",
        native=0,
    ),
    "a result that has a gradient elsewhere": Small(
        _HEAD
        + """
def f(x, n):
    W.grad = V.grad = None
    h = dilim.tanh(W)
    y = x * h
    if y.sum() > 0:
        y = y * h
    (y*y).sum().backward()
    return W.grad
""",
        _CALLS,
    ),
    "a result that has none elsewhere": Small(
        _HEAD
        + """
def f(x, n):
    W.grad = V.grad = None
    h = dilim.tanh(W)
    y = x * W
    if y.sum() > 0:
        y = y * h
    (y*y).sum().backward()
    return W.grad
""",
        _CALLS,
        None,
        None,
        fallback="on one path only",
        native=0,
    ),
    "a leaf on both sides": Small(
        _HEAD
        + """
def f(x, n):
    W.grad = V.grad = None
    y = x * W
    if y.sum() > 0:
        y = y * V
    else:
        y = y + V
    (y*y).sum().backward()
    return W.grad, V.grad
""",
        _CALLS,
    ),
    "a branch in a branch": Small(
        _HEAD
        + """
def f(x, n):
    W.grad = V.grad = None
    y = x * W * V
    if y.sum() > 0:
        if y.max() > 1.0:
            y = y * V
        y = y * W
    (y*y).sum().backward()
    return W.grad, V.grad
""",
        _CALLS,
    ),
    "a branch in a branch whose other side has it": Small(
        _HEAD
        + """
def f(x, n):
    W.grad = V.grad = None
    y = x * W
    if y.sum() > 0:
        z = y * V
        if z.max() > 1.0:
            z = z * V
        y = z
    else:
        y = y - V
    (y*y).sum().backward()
    return W.grad, V.grad
""",
        _CALLS,
    ),
    "a branch in a loop": Small(
        _HEAD
        + """
def f(x, n):
    W.grad = V.grad = None
    y = x * W
    for i in range(n + 10):
        if y.sum() > 0.1:
            y = y * W
        y = y + V * 0.5
    (y*y).sum().backward()
    return W.grad, V.grad
""",
        _CALLS,
    ),
    "a loop, and its tensor elsewhere": Small(
        _HEAD
        + """
def f(x, n):
    W.grad = V.grad = None
    y = x * W
    while y.sum() < n:
        y = y + W.square() + 0.1
    (y*y).sum().backward()
    return W.grad
""",
        _CALLS,
    ),
    "a derivative with a branch": Small(
        _HEAD
        + """
def f(x, n):
    W.grad = V.grad = None
    def loss(w):
        y = x * w
        if y.sum() > 0: y = y * w
        return (y*y).sum()
    return dilim.grad(loss)(W)
""",
        _CALLS,
    ),
    "a derivative that there is on one path": Small(
        _HEAD
        + """
def f(x, n):
    W.grad = V.grad = None
    def loss(w, v):
        y = x * w
        if y.sum() > 0: y = y * v
        return (y*y).sum()
    return dilim.grad(loss, (0, 1))(W, V)
""",
        _CALLS,
        None,
        None,
        fallback="on one path only",
        native=0,
    ),
    "a gradient at entry that stays the object on one path": Small(
        _HEAD
        + """
W.grad = dilim.ones(2)
def f(x, n):
    y = x * V
    g = W.grad
    if y.sum() > 0:
        y = y * W
    (y*y).sum().backward()
    r = g is W.grad
    V.grad = None
    return W.grad, r
""",
        _CALLS,
        None,
        None,
        fallback="on one path only",
        native=0,
    ),
    "zeros with signs": Small(
        _HEAD
        + """
def f(x, n):
    W.grad = V.grad = None
    y = x * W
    if n % 2: y = y * W * 0.0
    (y * -0.0).sum().backward()
    return W.grad, 1.0 / W.grad
""",
        _CALLS,
    ),
    "a condition of the host": Small(
        _HEAD
        + """
def f(x, n):
    W.grad = V.grad = None
    y = x * W
    if random.random() > 0.5:
        y = y * W
    (y*y).sum().backward()
    return W.grad
""",
        _CALLS,
        None,
        None,
    ),
    "a return on one path": Small(
        _HEAD
        + """
def f(x, n):
    W.grad = V.grad = None
    y = x * W
    if y.sum() > 0:
        (y * W).sum().backward()
        return W.grad
    (y + W).sum().backward()
    return W.grad
""",
        _CALLS,
    ),
}
