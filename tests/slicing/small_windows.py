"""Small programs with slices at positions that are known when they run; see `small_programs`.

And with functions that are made anew for each such slice.
"""

from slicing.small_programs import Small

_CALLS = tuple(f"[dilim.arange(80.0).reshape(40, 2), {n}]" for n in (4, 5, 3, 4))

PROGRAMS = {
    "batches whose end is one more": Small(
        """
def f(x, n):
    out = x[0]*0
    for i in range(n):
        v = x[i*4:(i+1)*4]
        out = out + v.sum(axis=0)
    return out
""",
        _CALLS,
    ),
    "batches as far as they are long": Small(
        """
def f(x, n):
    out = x[0]*0
    for i in range(n):
        v = x[i*4:i*4+4]
        out = out + v.sum(axis=0)
    return out
""",
        _CALLS,
    ),
    "batches of a size that is given": Small(
        """
def f(x, n):
    out = x[0]*0
    for i in range(n):
        v = x[i*n:(i+1)*n]
        out = out + v.sum(axis=0)
    return out
""",
        _CALLS,
    ),
    "batches beyond the end": Small(
        """
def f(x, n):
    out = x[0]*0
    for i in range(n):
        v = x[i*4:(i+1)*4]
        out = out + v.sum(axis=0)
    return out, v
""",
        (
            "[dilim.arange(80.0).reshape(40,2), 4]",
            "[dilim.arange(80.0).reshape(40,2), 10]",
            "[dilim.arange(80.0).reshape(40,2), 11]",
            "[dilim.arange(80.0).reshape(40,2), 12]",
            "[dilim.arange(80.0).reshape(40,2), 4]",
            "[dilim.arange(80.0).reshape(40,2), 12]",
            "[dilim.arange(80.0).reshape(40,2), 3]",
        ),
        None,
        None,
        may_leave=True,
    ),
    "batches of which the last is shorter": Small(
        """
def f(x, n):
    out = x[0]*0
    for e in range(n):
        for s in range(0, len(x), 3):
            v = x[s:s+3]
            out = out + v.sum(axis=0)
    return out
""",
        _CALLS,
        None,
        None,
    ),
    "batches that all fit": Small(
        """
def f(x, n):
    out = x[0]*0
    for e in range(n):
        for s in range(0, len(x), 4):
            v = x[s:s+4]
            out = out + v.sum(axis=0)
    return out
""",
        _CALLS,
    ),
    "batches before the beginning": Small(
        """
def f(x, n):
    out = x[0]*0
    for e in range(n):
        v = x[e-2:e+2]
        out = out + v.sum(axis=0)
    return out
""",
        _CALLS,
        None,
        None,
        may_leave=True,
    ),
    "batches that are written": Small(
        """
def f(x, n):
    a = x * 1
    b = None
    for e in range(n):
        v = a[e*2:e*2+2]
        v += 1
        b = v
    a += 10
    return a, b, v
""",
        (
            "[dilim.arange(80.0).reshape(40,2), 4]",
            "[dilim.arange(80.0).reshape(40,2), 2]",
            "[dilim.arange(80.0).reshape(40,2), 6]",
        ),
    ),
    "batches into which is written": Small(
        """
def f(x, n):
    a = x * 1
    for e in range(n):
        a[e*2:e*2+2] += 1
        a[e:e+3] = a[e+3:e+6]
        a[e:e+3, 0] = 0.0
    return a
""",
        _CALLS,
        None,
        None,
        may_leave=True,
    ),
    "batches of columns": Small(
        """
def f(x, n):
    a = x.T * 1
    out = a[:, 0]
    for e in range(n):
        out = out + a[:, e:e+3].sum(axis=1) + a[..., e:e+2].sum(axis=1)
        out = out + a[0:1, e:e+1].sum() + a[1, e:e+2].sum()
    return out
""",
        _CALLS,
        None,
        None,
    ),
    "batches that are kept": Small(
        """
KEEP=[]
def f(x, n):
    seen = []
    for e in range(n):
        v = x[e*2:e*2+2]
        seen.append(v)
        KEEP.append(v)
        print(v.sum().item(), v.shape)
    x += 1
    return seen, KEEP[-1]
""",
        (
            "[dilim.arange(80.0).reshape(40,2), 4]",
            "[dilim.arange(80.0).reshape(40,2), 2]",
            "[dilim.arange(80.0).reshape(40,2), 12]",
        ),
        None,
        None,
    ),
    "one batch or another": Small(
        """
def f(x, n):
    v = x[0:2]
    for e in range(n):
        if x[e].sum() > 8:
            v = x[e:e+2]
        else:
            v = x[e+1:e+3]
        x[e] = 0.5
    return v
""",
        _CALLS,
    ),
    "batches for training": Small(
        """
W = dilim.zeros((2,1), requires_grad=True)
opt = optim.SGD([W], learning_rate=1e-4)
def f(x, n):
    y = x[:, :1] * 2
    for e in range(3):
        for k in range(0, len(x), 4):
            xb, yb = x[k:k+4], y[k:k+4]
            opt.zero_grad()
            loss = ((xb @ W - yb)**2).mean()
            loss.backward()
            opt.step()
    return loss.item()
""",
        _CALLS,
    ),
    "batches of a tensor with a gradient": Small(
        """
W = dilim.ones((40,2), requires_grad=True)
def f(x, n):
    W.grad = None
    s = 0
    for e in range(n):
        s = s + (W[e:e+4] * x[e:e+4]).sum()
    s.backward()
    return W.grad
""",
        _CALLS,
        None,
        None,
        may_leave=True,
    ),
    "batches while there are some": Small(
        """
def f(x, n):
    k, out = 0, 0.0
    while k + n < len(x):
        out = out + x[k:k+2].sum()
        k += 2
    return out, k
""",
        _CALLS,
    ),
    "a function of each batch": Small(
        """
def f(x, n):
    y = x[:, :1]
    w = dilim.zeros((2, 1))
    for i in range(n):
        xb, yb = x[i*4:(i+1)*4], y[i*4:(i+1)*4]
        def loss_fn(w):
            return ((xb @ w - yb) ** 2).mean()
        loss, g = dilim.value_and_grad(loss_fn)(w)
        w = w - 0.00001 * g
        print(i, loss.item())
    return w
""",
        _CALLS,
        None,
        0,
    ),
    "a lambda of each batch": Small(
        """
def f(x, n):
    w = dilim.zeros((2, 1))
    for i in range(n):
        xb = x[i*4:(i+1)*4]
        g = dilim.grad(lambda w: ((xb @ w - 1) ** 2).mean())(w)
        w = w - 0.00001 * g
    return w
""",
        _CALLS,
    ),
    "a function of the batch before": Small(
        """
def f(x, n):
    w = dilim.zeros((2, 1))
    fs = None
    for i in range(n):
        xb = x[i*4:(i+1)*4]
        if fs is not None: w = w + fs(1.0)
        def fs(k):
            return xb.sum() * k
        xb = xb * 2
        w = w + fs(2.0)
    return w
""",
        _CALLS,
        None,
        None,
        fallback="xb changes after",
        native=0,
    ),
    "functions that see a variable change": Small(
        """
def f(x, n):
    fs, gs = [], []
    for i in range(n):
        def g(k): return x * i * k
        fs.append(g)
        h = lambda k: g(k) + i
        gs.append(h(2.0))
    return [q(1.0) for q in fs], gs
""",
        _CALLS,
        None,
        None,
        fallback="i changes after",
        native=0,
    ),
    "gates of a size that is given": Small(
        """
size = 3
W = dilim.ones((2, 6), requires_grad=True)

def f(x, n):
    W.grad = None
    gates = x @ W
    a, b = gates[:, :size], gates[:, size : 2 * size]
    (a * b).sum().backward()
    return W.grad
""",
        _CALLS,
    ),
}
