"""Small programs whose arguments are views, one of them or several of the same memory."""

from slicing.comparing import Call
from slicing.small_programs import Small

MATRIX = "X = dilim.arange(12.0).reshape((3, 4)); V = dilim.arange(6.0)"
WINDOW = "D = dilim.arange(12.0)"
WINDOWS = (
    *(f"[D[{i}:{i + 4}], D[{i + 1}:{i + 5}]]" for i in range(4)),
    "[D[:4], D[8:]]",
    "[D[:4], dilim.ones(4)]",
)


def _small(source, *calls, before=MATRIX, raises=(), fallback=None):
    given = (Call(arguments, before=before) for arguments in calls)
    return Small(source, tuple(given), None, None, raises, True, fallback=fallback)


PROGRAMS = {
    "views of all kinds, written": _small(
        """
def f(x):
    x += 1
    x[0] = 5.0
    return x
""",
        "[X]",
        "[X.T]",
        "[X[:, ::2]]",
        "[X[::2]]",
        "[X[1]]",
        "[X[:, 1]]",
        "[X[::-1]]",
        "[V[::2]]",
    ),
    "two views of the same memory": _small(
        """
def f(x, y):
    x += y
    y *= 2
    return x, y
""",
        "[V[:3], V[3:]]",
        "[V[:3], V[2:5]]",
        "[V[::2], V[1::2]]",
        "[X[0], X[1]]",
        "[V[:3], V[:3]]",
        "[V, V[:1]]",
    ),
    "a global and a view of it": _small(
        """
W = dilim.arange(6.0)

def f(y):
    W[0] = 10.0
    y += 1
    return W * 2, y
""",
        "[W[2:4]]",
        "[W[::2]]",
        "[W]",
        "[V[:3]]",
        "[W[2:4]]",
    ),
    "a gradient beside a view": _small(
        """
def f(x, w):
    l = (x * w).sum()
    l.backward()
    return w.grad
""",
        "[X.T, dilim.ones((4,3), requires_grad=True)]",
        "[X.T, dilim.ones((4,3), requires_grad=True)]",
        "[X.T, dilim.ones((4,3), requires_grad=True)]",
    ),
    "rows of different places": _small(
        """
def f(w, x):
    w -= 0.1 * (x * w)
    return w.sum()
""",
        "[W, X[0:2]]",
        "[W, X[1:3]]",
        "[W, X[2:4]]",
        "[W, X[3:5]]",
        before="W = dilim.ones((2, 4)); X = dilim.arange(24.0).reshape((6, 4))",
    ),
    "a matrix and its transpose": _small(
        """
def f(x, y):
    x += 1
    z = y * 2
    y[0] = z[0]
    return x, y, z
""",
        "[X.T, X]",
        "[X, X.T]",
        "[X, X]",
        "[X.T, X.T]",
        "[X.T, dilim.ones((3, 4))]",
        "[X.T, X]",
    ),
    "overlapping views in a loop": _small(
        """
def f(x, y, n):
    for i in range(n):
        x[i % 3] = y[(i + 1) % 3] * 0.5 + 1
        y *= 1.5
    return x, y
""",
        "[V[:3], V[2:5], 9]",
        "[V[:3], V[2:5], 10]",
        "[V[::2], V[1::2], 9]",
        "[V[:3], V[3:], 9]",
    ),
    "overlapping views that the host looks at": _small(
        """
def f(x, y):
    x += 1
    print(x, y, V)
    y *= 2
    V[1] = 7.0
    print(x, y)
    return x[1:], y[0], V
""",
        "[V[:3], V[2:5]]",
        "[V[::2], V[1::2]]",
        "[V[:3], V[3:]]",
    ),
    "overlapping views that the host changes": _small(
        """

def bump(v):
    try:
        v += 1
    finally:
        pass

def f(x, y):
    x += 1
    bump(x)
    y *= 2
    bump(V)
    return x + y
""",
        "[V[:3], V[2:5]]",
        "[V[::2], V[1::2]]",
        "[V[:3], V[3:]]",
        "[V[:3], V[3:]]",
    ),
    "parts of views": _small(
        """
def f(x):
    r = x[1]
    c = x[:, 0]
    r += 10.0
    c *= 2.0
    return r, c, x.T, x.reshape(-1), x.T[0]
""",
        "[X.T]",
        "[X[:, ::2]]",
        "[X[::2]]",
        "[X[::-1]]",
        "[X.T]",
        "[X[:, 1:3]]",
    ),
    "a view in another shape": _small(
        """
def f(x):
    r = x.reshape(-1)
    r += 10.0
    return x, r
""",
        "[X.T]",
        "[X[:, ::2]]",
        "[X[::-1]]",
        "[X]",
    ),
    "a view with repeated elements": _small(
        """
def f(x):
    x += 1
    return x
""",
        "[dilim.broadcast_to(V, (3, 6))]",
        "[V]",
        "[dilim.broadcast_to(V, (3, 6))]",
        raises=(1, 3),
    ),
    "views of NumPy arrays": _small(
        """
def f(x):
    x += 1
    return x * 2
""",
        "[dilim.from_numpy(A)]",
        "[dilim.from_numpy(A.T)]",
        "[dilim.from_numpy(A[::-1])]",
        "[dilim.from_numpy(A.T)]",
        before="A = np.arange(12.0).reshape(3, 4)",
    ),
    "a leaf that is a view": _small(
        """
def f(x, w):
    l = (x * w).sum()
    l.backward()
    g = w.grad
    w.grad = None
    return g, l
""",
        "[X.T, W.detach()[::2].requires_grad_()]",
        "[X.T, W.detach()[::2].requires_grad_()]",
        "[X.T, W.detach()[::2].requires_grad_()]",
        before="X = dilim.ones((3, 2)); W = dilim.ones((4, 3))",
    ),
    "a view with a gradient": _small(
        """
def f(x):
    y = x * 2
    return y, y.requires_grad
""",
        "[(P * 2)[::2]]",
        "[(P * 2).reshape((2, 2)).T]",
        "[(P * 2)[::2]]",
        before="P = dilim.ones(4, requires_grad=True)",
    ),
    "views in attributes": Small(
        """
class M: pass
m = M()
m.a = dilim.arange(6.0)
m.b = m.a[::2]

def f(x):
    m.a += 1
    m.b *= 2
    return m.a, m.b
""",
        (
            Call("[1]", before=""),
            Call("[1]", before=""),
            Call("[1]", before="m.b = m.a[1::2]"),
            Call("[1]", before="m.b = dilim.ones(3)"),
            Call("[1]", before="m.b = m.a[:3]"),
        ),
        None,
        None,
    ),
    "views that are one object": _small(
        """
def f(x, y):
    return x is y, x, y
""",
        "[X.T, X.T]",
        "[V[:3], V[3:]]",
    ),
    "a view of one element": _small(
        """
def f(x, y):
    y += x
    return y
""",
        "[V[2], V]",
        "[V[3], V]",
        "[V[2:3], V]",
    ),
    "views of no elements": _small(
        """
def f(x, y):
    y += x.sum()
    return y
""",
        "[V[2:2], V]",
        "[X[:, 4:], V]",
        "[X[:, 4:], X]",
    ),
    "overlapping windows": _small(
        """
def f(x, y):
    return ((x - y) ** 2).sum(), x[1], y
""",
        *WINDOWS,
        before=WINDOW,
    ),
    "a step of training on overlapping windows": _small(
        """
W = dilim.ones(4, requires_grad=True)
opt = optim.SGD([W], 0.01)

def f(x, y):
    opt.zero_grad()
    loss = ((x * W - y) ** 2).sum()
    loss.backward()
    opt.step()
    return loss.item()
""",
        *WINDOWS,
        before=WINDOW,
    ),
    "overlapping windows, one of them written": _small(
        """
def f(x, y):
    y += 1
    return x * 2, y
""",
        *WINDOWS,
        before=WINDOW,
    ),
    "an overlapping window that is written in a loop": _small(
        """
def f(x, y):
    z = x * 2
    for _ in range(10):
        z = z + y
        x += z
    return x, y, z
""",
        *WINDOWS,
        before=WINDOW,
    ),
    "overlapping windows that are printed": _small(
        """
def f(x, y):
    z = x + y
    print(x, y)
    return z, x, y, x is y
""",
        *WINDOWS,
        before=WINDOW,
    ),
    "overlapping windows, one of them written by the host": _small(
        """
def bump(v):
    try:
        v += 1
    finally:
        pass

def f(x, y):
    z = x + y
    bump(x)
    return z, x + y, x, y
""",
        *WINDOWS,
        before=WINDOW,
    ),
    "overlapping windows that are returned": _small(
        """
def f(x, y):
    return x, y, x[1:], y[:2], [y], {"y": y}
""",
        *WINDOWS,
        before=WINDOW,
    ),
    "either of two overlapping windows": _small(
        """
def f(x, y):
    z = y if x.sum() > 20 else x
    for i in range(12):
        z = y if i == 5 else z
    return z, z is y, z is x
""",
        *WINDOWS,
        before=WINDOW,
    ),
    "either of two overlapping windows, written": _small(
        """
def f(x, y):
    z = y if x.sum() > 20 else x
    z += 1
    return x, y
""",
        *WINDOWS,
        before=WINDOW,
    ),
    "a gradient of an overlapping window": _small(
        """
def f(x, y):
    y.requires_grad_()
    l = (x * y).sum()
    l.backward()
    return y.grad
""",
        *WINDOWS,
        before=WINDOW,
    ),
    "three overlapping windows": _small(
        """
def f(x, y, z):
    return x + y + z, z
""",
        "[D[:4], D[1:5], D[2:6]]",
        "[D[:4], D[3:7], D[2:6]]",
        "[D[:4], D[2:6], D[2:6]]",
        "[D[::3], D[2:6], D[2:6]]",
        before=WINDOW,
    ),
    "overlapping windows that are kept": _small(
        """
class M: pass
m = M()

def f(x, y):
    m.y = y
    m.z = [x, y]
    return y.shape, m.y is y
""",
        *WINDOWS,
        before=WINDOW,
    ),
    "what made a view at a position": _small(
        """
P = dilim.arange(6.0).reshape((2, 3)).requires_grad_()

def f(n):
    for k in range(n):
        print(P[k % 2], P[:, k % 3] * 2)
    return P[n % 2]
""",
        "[2]",
        "[3]",
        "[4]",
    ),
    "a view that a loop rebinds on one path, then written": _small(
        """
def f(x, n):
    a = x
    for i in range(n):
        if i % 2:
            a = a[::-1]
    a[0] = 9
    return a
""",
        *(f"[dilim.arange(1.0, 4.0), {n}]" for n in (3, 2, 1, 4, 0)),
    ),
    "views that change places in a loop, then written": _small(
        """
def f(x, y, n):
    a, b = x, y
    for i in range(n):
        a, b = b, a[::-1]
    a[0] = -1
""",
        *(f"[dilim.arange(3.0), dilim.arange(1.0, 4.0), {n}]" for n in (3, 2, 1, 4, 0)),
    ),
    "a view that a loop rebinds on one path and writes on the other": _small(
        """
def f(c, n):
    for i in range(n):
        if i % 2:
            c[0] = 7
        else:
            c = c[:]
    return c
""",
        *(f"[dilim.arange(1.0, 4.0), {n}]" for n in (3, 2, 1, 4, 0)),
    ),
    "a tensor stretched on one path is not writable outside": Small(
        """
def f(x):
    t = x.max().expand(3, 3) if x.sum() > 0 else dilim.full((3, 3), 1.5)
    if x.min() > 0:
        y = x.min().expand(2)
    else:
        y = x.clone()
    return t, y
""",
        tuple(
            Call(f"[dilim.tensor([{a}, 2.0])]", after=f"print(result[{part}].fill_(2.0))")
            for a in (1.0, -1.0, -5.0, 3.0)
            for part in (0, 1)
        ),
        None,
        None,
        (1, 2, 3, 7, 8),
        fallback="as it was stretched",
    ),
}
